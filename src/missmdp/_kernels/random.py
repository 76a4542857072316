"""Random numbers that are a function of where they are used, and draws from many distributions.

The draw for (seed, episode, step, purpose) is always the same number, whatever else was drawn before. So
results do not depend on the number of threads, and two policies that are simulated with the same seed meet
the same luck. Mixing is SplitMix64's finaliser over a Weyl sequence, one sequence per episode.

The guide has one entry per target: for u in [i/n, (i + 1)/n) the search starts at guide[i], which is at
or before the answer (Chen and Asau's indexed search). So the draw is exactly the inverse of the CDF, and
equal u give coupled draws from similar distributions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

DRAW_STATE, DRAW_PATTERN, DRAW_ACTION, DRAW_SEARCH = 0, 1, 2, 3
"""What a draw within a step is for; that for a search is the key of a sequence of its own."""
DRAWS_PER_STEP = 4
"""Draws set aside for each step."""

WEYL = np.uint64(0x9E3779B97F4A7C15)
_EPISODE_WEYL = np.uint64(0xD1342543DE82EF95)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@kernel
def mix(x: Any) -> Any:
    """Return 64 random bits for a number; x, x + WEYL, x + 2 WEYL, … give a sequence (SplitMix64)."""
    x = (x ^ (x >> _S30)) * _FIRST
    x = (x ^ (x >> _S27)) * _SECOND
    return x ^ (x >> _S31)


@kernel
def episode_key(seed: Any, episode: int) -> Any:
    """Return the key of an episode's sequence from seed[2] (uint64)."""
    return mix(seed[0] ^ mix(seed[1] + (np.uint64(episode) + np.uint64(1)) * _EPISODE_WEYL))


@kernel
def bits(key: Any, step: int, purpose: int) -> Any:
    """Return 64 random bits for one purpose of one step."""
    counter = np.uint64(step) * np.uint64(DRAWS_PER_STEP) + np.uint64(purpose + 1)
    return mix(key + counter * WEYL)


@kernel
def uniform(key: Any, step: int, purpose: int) -> float:
    """Return the draw in [0, 1) for one purpose of one step."""
    return np.float64(bits(key, step, purpose) >> _S11) * _UNIT


@kernel
def nth_uniform(random: Any, n: int) -> float:
    """Return one of many draws in [0, 1) for one purpose of one step, from the bits of that purpose."""
    return np.float64(mix(random + (np.uint64(n) + np.uint64(1)) * WEYL) >> _S11) * _UNIT


class RowSampler(NamedTuple):
    """Distributions as rows: row r has its targets at start[r] .. start[r + 1]."""

    start: NDArray[np.int64]
    target: NDArray[np.int32]
    cdf: NDArray[np.float64]
    """Cumulative probabilities; the last of each row is 1."""
    guide: NDArray[np.int32]
    """Offset within the row at which the search for u begins."""


@kernel
def fill_guide(start: NDArray[np.int64], cdf: NDArray[np.float64], guide: NDArray[np.int32]) -> None:
    """Fill guide[nnz]; a hair below i/n, so that rounding never skips the answer."""
    for row in range(len(start) - 1):
        first, size = start[row], start[row + 1] - start[row]
        place = 0
        for i in range(size):
            threshold = i / size * (1.0 - 1e-14)
            while place < size - 1 and cdf[first + place] <= threshold:
                place += 1
            guide[first + i] = place


@kernel
def draw(rows: RowSampler, row: int, u: float) -> int:
    """Return the first target whose cumulative probability exceeds u in [0, 1)."""
    first = rows.start[row]
    size = rows.start[row + 1] - first
    place: int = first + rows.guide[first + min(np.int64(u * size), size - 1)]
    last = first + size - 1
    while place < last and rows.cdf[place] <= u:
        place += 1
    return rows.target[place]


@kernel
def fill_cdf(start: NDArray[np.int64], weights: NDArray[np.float64], cdf: NDArray[np.float64]) -> None:
    """Fill cdf[nnz] with the cumulative weights of each row, scaled so that each row ends at exactly 1."""
    for row in range(len(start) - 1):
        total = 0.0
        for j in range(start[row], start[row + 1]):
            total += weights[j]
            cdf[j] = total
        for j in range(start[row], start[row + 1] - 1):
            cdf[j] /= total
        cdf[start[row + 1] - 1] = 1.0

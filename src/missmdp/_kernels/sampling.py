"""Draw from one of many discrete distributions by inverting its CDF, in constant expected time.

The guide has one entry per target: for u in [i/n, (i + 1)/n) the search starts at guide[i], which is at
or before the answer (Chen and Asau's indexed search). So the draw is exactly the inverse of the CDF, and
equal u give coupled draws from similar distributions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["RowSampler", "draw", "fill_cdf", "fill_guide"]


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

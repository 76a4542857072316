"""Beliefs as states: those that were sifted out by what was seen, or drawn from an exact belief."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner
from missmdp._kernels.pomcp.alias import pick
from missmdp._kernels.pomcp.search import GenerativeModel
from missmdp._kernels.random import WEYL, mix
from missmdp._kernels.tracking import Belief

__all__ = ["Particles", "draw_particles", "draw_states", "sift_particles", "start_particles"]

_S11, _HALF = np.uint64(11), np.uint64(32)
_UNIT = 2.0**-53


class Particles(NamedTuple):
    """States that stand for a belief, each for as much as the others."""

    state: NDArray[np.int32]
    """The first size[0] are the belief, shape (n,); n is 0 where beliefs are exact."""
    spare: NDArray[np.int32]
    """Room for those of the next step, shape (n,)."""
    size: NDArray[np.int64]
    """How many survived the last observation, shape (1,)."""


@inner
def start_particles(model: GenerativeModel, particles: Particles, key: Any) -> None:
    """Draw all particles from b₀."""
    for i in range(len(particles.state)):
        particles.state[i] = pick(model.initial, 0, mix(key + np.uint64(i) * WEYL))
    particles.size[0] = len(particles.state)


@inner
def sift_particles(
    model: GenerativeModel, particles: Particles, moves: bool, action: int, seen: int, key: Any
) -> bool:
    """Keep the states whose simulated observation is the one seen; return False, and all as it was, if there are none.

    There are always n tries: survivors take turns until there were that many. Only if `moves` does the action
    lead to another state first.
    """
    kept = 0
    turn = 0
    x = key
    for _ in range(len(particles.state)):
        state = np.int64(particles.state[turn])
        turn = turn + 1 if turn + 1 < particles.size[0] else 0
        if moves:
            x += WEYL
            state = np.int64(pick(model.step, state * model.n_actions + action, mix(x)))
        x += WEYL
        watched = action if model.n_watched > 1 else 0
        if np.int64(pick(model.seen, state * model.n_watched + watched, mix(x))) == seen:
            particles.spare[kept] = state
            kept += 1
    if kept == 0:
        return False
    for i in range(kept):
        particles.state[i] = particles.spare[i]
    particles.size[0] = kept
    return True


@inner
def draw_particles(particles: Particles, key: Any, first: int, count: int, out: NDArray[np.int32]) -> None:
    """Fill out[count] with particles; draw i of them all is that of mix(key + i WEYL)."""
    size = np.uint64(particles.size[0])
    for i in range(count):
        word = mix(key + np.uint64(first + i) * WEYL)
        out[i] = particles.state[((word >> _HALF) * size) >> _HALF]


@inner
def draw_states(
    belief: Belief,
    cumulative: NDArray[np.float64],
    key: Any,
    first: int,
    count: int,
    out: NDArray[np.int32],
) -> None:
    """Fill out[count] with states from an exact belief, by inverting its CDF; draws as in `draw_particles`."""
    size = int(belief.size[0])
    total = 0.0
    for j in range(size):
        total += belief.weight[j]
        cumulative[j] = total
    for i in range(count):
        u = total * (np.float64(mix(key + np.uint64(first + i) * WEYL) >> _S11) * _UNIT)
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] > u:
                high = middle
            else:
                low = middle + 1
        out[i] = belief.state[low]

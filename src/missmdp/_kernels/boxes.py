"""Which values are possible along histories, feature by feature: a box around the states that are possible.

For models too large to follow states one by one. What a box rules out is impossible; what it admits may be impossible
all the same, where features move together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.support import CONFLICT, ENDED, FIRST, GOING_ON, NO_START


class BoxMoves(NamedTuple):
    """What a model allows, feature by feature, without its probabilities; a box has one flag for each value."""

    offset: NDArray[np.int64]
    """The values of feature i are flags offset[i] .. offset[i + 1] of a box, shape (n + 1,)."""
    start: NDArray[np.int64]
    """Feature i depends on parent[start[i]] .. parent[start[i + 1]], the last changing fastest."""
    parent: NDArray[np.int64]
    first: NDArray[np.int64]
    """Where the rows of feature i begin in `support`: row (group · n_actions + a), one flag for each next value."""
    support: NDArray[np.bool_]
    n_actions: int
    initial: NDArray[np.bool_]
    """A box."""
    ending: NDArray[np.int64]
    """The features that decide whether a state is terminal."""
    ends: NDArray[np.bool_]
    """Whether it is, for each combination of their values; empty where nobody knows."""


@inner
def _possible(moves: BoxMoves, box: NDArray[np.bool_], features: NDArray[np.int64], group: int) -> bool:
    """Return whether a combination of values of some features, given by its number, is inside a box."""
    left: Any = group
    for j in range(len(features) - 1, -1, -1):
        low, high = moves.offset[features[j]], moves.offset[features[j] + 1]
        if not box[low + left % (high - low)]:
            return False
        left //= high - low
    return True


@inner
def _how_it_ends(moves: BoxMoves, box: NDArray[np.bool_]) -> int:
    """Return `ENDED` if all states of a box are terminal, `GOING_ON` if none is, 0 otherwise."""
    some_end, some_go_on = False, False
    for group in range(len(moves.ends)):
        if _possible(moves, box, moves.ending, group):
            if moves.ends[group]:
                some_end = True
            else:
                some_go_on = True
    if some_end == some_go_on:
        return 0
    return ENDED if some_end else GOING_ON


@inner
def _step(moves: BoxMoves, box: NDArray[np.bool_], action: int, out: NDArray[np.bool_]) -> None:
    """Fill out with the values that can follow; terminal states stay as they are."""
    ends = _how_it_ends(moves, box)
    if ends == GOING_ON:
        out[:] = False
    else:
        out[:] = box
    if ends == ENDED:
        return
    for i in range(len(moves.offset) - 1):
        low, high = moves.offset[i], moves.offset[i + 1]
        parents = moves.parent[moves.start[i] : moves.start[i + 1]]
        groups = 1
        for parent in parents:
            groups *= moves.offset[parent + 1] - moves.offset[parent]
        for group in range(groups):
            if _possible(moves, box, parents, group):
                row = moves.first[i] + (group * moves.n_actions + action) * (high - low)
                for v in range(high - low):
                    out[low + v] |= moves.support[row + v]


@inner
def _shows(moves: BoxMoves, box: NDArray[np.bool_], observation: NDArray[Any]) -> bool:
    """Leave of a box what an observation shows; return whether something is left, and else all that it shows."""
    fits = True
    for i in range(len(observation)):
        if observation[i] >= 0 and not box[moves.offset[i] + observation[i]]:
            fits = False
    for i in range(len(observation)):
        low, high = moves.offset[i], moves.offset[i + 1]
        if observation[i] >= 0:
            box[low:high] = False
            box[low + observation[i]] = True
        elif not fits:
            box[low:high] = True
    return fits


@kernel
def follow_boxes(
    seen: NDArray[np.int64],
    actions: NDArray[Any],
    begins: NDArray[np.int8],
    observations: NDArray[Any],
    moves: BoxMoves,
    out: NDArray[np.uint8],
) -> None:
    """Fill out with what is certainly wrong with each row, as `follow_histories` does with all that is wrong."""
    box, after = np.ones(moves.offset[-1], dtype=np.bool_), np.ones(moves.offset[-1], dtype=np.bool_)
    for row in range(len(seen)):
        if begins[row] == FIRST:
            after[:] = moves.initial
        elif begins[row] == 0:
            _step(moves, box, actions[row - 1], after)
        else:
            after[:] = True
        fits = _shows(moves, after, observations[seen[row]])
        box, after = after, box
        flag = 0 if fits else NO_START if begins[row] == FIRST else CONFLICT
        out[row] = flag | _how_it_ends(moves, box)

"""What follows a class, an action and an observation: weights over classes, as sums over states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import DataError
from missmdp.learn.em.classes import Classes
from missmdp.learn.em.sights import Sights

__all__ = ["Details", "transition_weights"]

_MAX_DETAILS = 100_000_000
"""Ways to get to a state with an observation above which preparing histories is refused (2.4 GB)."""


class Details(NamedTuple):
    """How weights come from M: each detail is one state to which an entry leads."""

    entry: NDArray[np.int64]
    place: NDArray[np.int64]
    """Pattern · S + state, into M's table."""
    probability: NDArray[np.float64]
    """T(state | class, action), or b₀."""


def transition_weights(
    classes: Classes,
    sights: Sights,
    token_action: NDArray[np.int64],
    token_sight: NDArray[np.int64],
    place_of_state: NDArray[np.int64],
    pattern: NDArray[np.int64],
    initial: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Details]:
    """Return the keys of rows (token · classes + class), their entries, and the states that entries sum over."""
    n_states = len(classes.of_state)
    n_classes = classes.count + 1
    start = sparse.csc_array(np.where(np.arange(n_classes)[:, None] == classes.count, initial[None, :], 0.0))
    parts: list[tuple[NDArray[np.int64], ...]] = []
    chances: list[NDArray[np.float64]] = []
    for action, matrix in enumerate((*classes.transition, start)):
        chosen = np.flatnonzero(token_action == action)
        sizes = np.diff(sights.start)[token_sight[chosen]]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        at = (
            sights.start[token_sight[chosen]][owner]
            + np.arange(int(sizes.sum()))
            - (np.cumsum(sizes) - sizes)[owner]
        )
        state = sights.state[at]
        reach = np.diff(matrix.indptr)[state].astype(np.int64)
        if reach.sum() > _MAX_DETAILS:
            raise DataError(
                f"there are {int(reach.sum()):,} ways to get from a state to what was seen, too many to go through"
            )
        which = np.repeat(np.arange(len(state)), reach)
        inside = np.arange(int(reach.sum())) - (np.cumsum(reach) - reach)[which]
        position = matrix.indptr[state].astype(np.int64)[which] + inside
        parts.append(
            (
                chosen[owner][which] * n_classes + matrix.indices[position],
                place_of_state[at][which],
                pattern[token_sight[chosen]][owner][which] * n_states + state[which],
            )
        )
        chances.append(matrix.data[position].astype(np.float64))
    row, target, place = (np.concatenate(column) for column in zip(*parts, strict=True))
    widest = int(target.max(initial=0)) + 1
    entries, entry = np.unique(row * widest + target, return_inverse=True)
    rows, first = np.unique(entries // widest, return_index=True)
    return (
        rows,
        np.append(first, len(entries)).astype(np.int64),
        (entries % widest).astype(np.int64),
        Details(entry.reshape(-1).astype(np.int64), place.astype(np.int64), np.concatenate(chances)),
    )

"""Which states admit observations, for many observations at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.model.space import MISSING
from missmdp.model.states import StateSpace

__all__ = ["admitted_by", "only_admitted_by"]


def admitted_by(
    space: StateSpace, some: NDArray[np.bool_], observations: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """Return which observations are admitted by at least one of some states, shape (rows,)."""
    found = np.zeros(len(observations), dtype=np.bool_)
    for shown, rows in _by_pattern(observations):
        states = np.where(shown, space.codes[some], MISSING)
        found[rows] = np.isin(space.features.rank(observations[rows]), space.features.rank(states))
    return found


def only_admitted_by(
    space: StateSpace, some: NDArray[np.bool_], observations: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """Return which observations are admitted by some of the given states and by no other, shape (rows,)."""
    if not some.any():
        return np.zeros(len(observations), dtype=np.bool_)
    return admitted_by(space, some, observations) & ~admitted_by(space, ~some, observations)


def _by_pattern(
    observations: NDArray[np.integer[Any]],
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Yield each pattern that occurs and its rows; within one pattern, admitting is being equal."""
    patterns, label = np.unique(observations != MISSING, axis=0, return_inverse=True)
    for number, shown in enumerate(patterns):
        yield shown, np.flatnonzero(label.reshape(-1) == number)

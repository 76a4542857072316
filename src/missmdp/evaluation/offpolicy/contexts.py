"""What the policy that made a log may have looked at: a summary of each recorded history, in integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.evaluation.offpolicy.decisions import Decisions, actions_of, features_of
from missmdp.model.space import MISSING

_STEP_CLASSES = 16
"""Steps are told apart by their order of magnitude: 0, 1, 2–3, 4–7, …"""


class Layout(NamedTuple):
    """What the columns of contexts are; each holds the values 0, 1, …, size − 1."""

    sizes: tuple[int, ...]
    seen: int
    """The first columns are the current observation, missing being 0."""
    last_action: int
    """The column of the action before; 0 for none."""
    n_actions: int


def layout_of(log: Dataset) -> Layout:
    """Return the columns: the observation, the action before, when each feature was last what, and how late it is."""
    sizes = [int(size) + 1 for size in features_of(log).sizes]
    n = len(actions_of(log))
    return Layout((*sizes, n + 1, *sizes, _STEP_CLASSES), len(sizes), len(sizes), n)


def contexts_of(log: Dataset, decisions: Decisions) -> NDArray[np.int64]:
    """Return the context of every decision, shape (D, columns)."""
    rows = decisions.rows
    seen = log.observations.astype(np.int64) + 1
    before = np.where(decisions.step > 0, log.actions[np.maximum(rows - 1, 0)].astype(np.int64) + 1, 0)
    late = np.minimum(np.frexp(decisions.step.astype(np.float64))[1], _STEP_CLASSES - 1)
    return np.column_stack([seen[rows], before, _last_seen(log)[rows], late]).astype(np.int64)


def _last_seen(log: Dataset) -> NDArray[np.int64]:
    """Return the last value that each feature showed up to now in the episode, plus 1; 0 for none, shape (N, n)."""
    first = np.repeat(log.offsets[:-1], log.lengths)
    number = np.arange(log.n_steps)
    out = np.empty(log.observations.shape, dtype=np.int64)
    for i, column in enumerate(log.observations.T):
        last = np.maximum.accumulate(np.where(column != MISSING, number, -1))
        out[:, i] = np.where(last >= first, column[np.maximum(last, 0)].astype(np.int64) + 1, 0)
    return out

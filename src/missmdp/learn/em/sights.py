"""What can be seen at a step: an observation, and whether the episode goes on.

An episode goes on from states that are not terminal only, and one that ended in a terminal state is in one: that
is seen too, even where the features are not. A log that was cut says nothing of its last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.data.support import distinct_observations
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING

__all__ = ["Sights", "admitting_states", "distinct_sights"]

_GOES_ON, _ENDED, _OPEN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Sights:
    """The distinct sights of a log, D of them, and the states that each leaves possible."""

    codes: NDArray[np.integer[Any]]
    """The observations, shape (D, n)."""
    of_row: NDArray[np.int64]
    """Which sight each row of the log is, shape (N,)."""
    start: NDArray[np.int64]
    """The states of each sight, shape (D + 1,)."""
    state: NDArray[np.int64]

    @property
    def owner(self) -> NDArray[np.int64]:
        """The sight of each entry of `state`."""
        return np.repeat(np.arange(len(self.codes)), np.diff(self.start))

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which features each sight shows, shape (D, n)."""
        return self.codes != MISSING


def distinct_sights(dataset: Dataset) -> Sights:
    """Return the sights of a log."""
    mdp = dataset.mdp
    distinct = distinct_observations(mdp.space.features, dataset.observations)
    start, state = admitting_states(mdp, distinct.codes)
    ending = np.full(dataset.n_steps, _OPEN, dtype=np.int64)
    terminal, admitted = _terminal_counts(mdp, start, state), np.diff(start)
    last = dataset.offsets[1:] - 1
    going = np.ones(dataset.n_steps, dtype=np.bool_)
    going[last] = False
    # Some logs go on after observations that only terminal states admit, and then that it goes on says nothing.
    only = (admitted > 0) & (terminal == admitted)
    if mdp.terminal.any() and not only[distinct.of_row[going]].any():
        ending[:] = _GOES_ON
        # Some call an episode terminated whose last observation no terminal state admits.
        possible = terminal[distinct.of_row[last]] > 0
        ending[last] = np.where(dataset.terminated & possible, _ENDED, _OPEN)
    seen, of_row = np.unique(distinct.of_row * 3 + ending, return_inverse=True)
    observation, kind = seen // 3, seen % 3
    owner, kept = _expanded(start, state, observation)
    fits = np.choose(
        kind[owner], [~mdp.terminal[kept], mdp.terminal[kept], np.ones(len(kept), dtype=np.bool_)]
    )
    owner, kept = owner[fits], kept[fits]
    return Sights(
        distinct.codes[observation],
        of_row.reshape(-1).astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(seen)))]).astype(np.int64),
        kept,
    )


def admitting_states(
    mdp: FactoredMDP, codes: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the states that admit each observation: where they begin, and the states."""
    space = mdp.space
    observed = codes != MISSING
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    which = which.reshape(-1)
    ranks = space.features.rank(codes)
    lists: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(codes)
    for k, pattern in enumerate(patterns):
        of_state = space.features.rank(np.where(pattern, space.codes, MISSING))
        order = np.argsort(of_state, kind="stable")
        ordered = of_state[order]
        for z in np.flatnonzero(which == k):
            lists[z] = np.sort(order[_first(ordered, ranks[z]) : _first(ordered, ranks[z] + 1)])
    sizes = np.array([len(found) for found in lists], dtype=np.int64)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(lists).astype(np.int64)


def _first(ordered: NDArray[np.int64], value: int) -> int:
    return int(np.searchsorted(ordered, np.array([value]))[0])


def _expanded(
    start: NDArray[np.int64], values: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values of the chosen lists one after the other, and which of the chosen each belongs to."""
    sizes = np.diff(start)[chosen]
    owner = np.repeat(np.arange(len(chosen)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return owner, values[start[chosen][owner] + within]


def _terminal_counts(
    mdp: FactoredMDP, start: NDArray[np.int64], state: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many terminal states admit each observation."""
    sizes = np.diff(start)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(owner[mdp.terminal[state]], minlength=len(sizes)).astype(np.int64)

"""What can be seen at a step, the states that it leaves possible, and what follows.

An episode goes on from states that are not terminal only, and one that ended in a terminal state is in one: that
is seen too, even where the features are not. A log that was cut says nothing of its last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.data.dataset import Dataset
from missmdp.data.support import distinct_observations
from missmdp.errors import DataError
from missmdp.memory import check_fits
from missmdp.model.equal_rows import canonical, equal_rows
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING

_GOES_ON, _ENDED, _OPEN = 0, 1, 2

_MAX_DETAILS = 100_000_000
"""Ways to get to a state with an observation above which preparing histories is refused (2.4 GB)."""


@dataclass(frozen=True, eq=False)
class ObservationClasses:
    """The distinct observations of a log, D of them, and the states that each leaves possible."""

    codes: NDArray[np.integer[Any]]
    """The observations, shape (D, n)."""
    of_row: NDArray[np.int64]
    """Which observation each row of the log is, shape (N,)."""
    start: NDArray[np.int64]
    """The states of each observation, shape (D + 1,)."""
    state: NDArray[np.int64]

    @property
    def owner(self) -> NDArray[np.int64]:
        """The observation of each entry of `state`."""
        return np.repeat(np.arange(len(self.codes)), np.diff(self.start))

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which features each observation shows, shape (D, n)."""
        return self.codes != MISSING


def observation_classes(dataset: Dataset) -> ObservationClasses:
    """Return the distinct observations of a log, each with whether the episode goes on."""
    mdp = dataset.known_mdp
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
    return ObservationClasses(
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


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of states that one need not tell apart once they have been observed."""

    of_state: NDArray[np.int64]
    """The class of each state, shape (S,)."""
    transition: tuple[sparse.csc_array, ...]
    """P(state | class, action), one matrix per action, shape (C, S)."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.transition[0].shape[0]


def merged_states(mdp: FactoredMDP) -> Classes:
    """Return the classes of an MDP's states; rows are the same only if they are equal bit for bit."""
    matrices = [canonical(matrix) for matrix in mdp.transition]
    equal = equal_rows(matrices)
    return Classes(equal.number, tuple(sparse.csc_array(matrix[equal.first]) for matrix in matrices))


class Details(NamedTuple):
    """How weights come from M: each detail is one state to which an entry leads."""

    entry: NDArray[np.int64]
    place: NDArray[np.int64]
    """Pattern · S + state, into M's table."""
    probability: NDArray[np.float64]
    """T(state | class, action), or b₀."""


def transition_weights(
    classes: Classes,
    seen: ObservationClasses,
    token_action: NDArray[np.int64],
    token_seen: NDArray[np.int64],
    place_of_state: NDArray[np.int64],
    pattern: NDArray[np.int64],
    initial: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Details]:
    """Return the keys of rows (token · classes + class), their entries, and the states that entries sum over."""
    n_states = len(classes.of_state)
    n_classes = classes.count + 1
    first = np.flatnonzero(initial)
    start = sparse.csc_array(
        (initial[first], (np.full(len(first), classes.count), first)), shape=(n_classes, n_states)
    )
    parts: list[tuple[NDArray[np.int64], ...]] = []
    chances: list[NDArray[np.float64]] = []
    n_details = 0
    for action, matrix in enumerate((*classes.transition, start)):
        chosen = np.flatnonzero(token_action == action)
        sizes = np.diff(seen.start)[token_seen[chosen]]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        at = (
            seen.start[token_seen[chosen]][owner]
            + np.arange(int(sizes.sum()))
            - (np.cumsum(sizes) - sizes)[owner]
        )
        state = seen.state[at]
        reach = np.diff(matrix.indptr)[state].astype(np.int64)
        if reach.sum() > _MAX_DETAILS:
            raise DataError(
                f"there are {int(reach.sum()):,} ways to get from a state to what was seen, too many to go through"
            )
        n_details += int(reach.sum())
        check_fits(
            f"going through {n_details:,} or more ways to get from a state to what was seen",
            100.0 * int(reach.sum()) + 100.0 * n_details,
            "learn with AIMI(assume='simple MAR') or AIMI(graph=…), which need no histories",
        )
        which = np.repeat(np.arange(len(state)), reach)
        inside = np.arange(int(reach.sum())) - (np.cumsum(reach) - reach)[which]
        position = matrix.indptr[state].astype(np.int64)[which] + inside
        parts.append(
            (
                chosen[owner][which] * n_classes + matrix.indices[position],
                place_of_state[at][which],
                pattern[token_seen[chosen]][owner][which] * n_states + state[which],
            )
        )
        chances.append(matrix.data[position].astype(np.float64))
    row, target, place = (np.concatenate(column) for column in zip(*parts, strict=True))
    widest = int(target.max(initial=0)) + 1
    entries, entry = np.unique(row * widest + target, return_inverse=True)
    rows, begin = np.unique(entries // widest, return_index=True)
    return (
        rows,
        np.append(begin, len(entries)).astype(np.int64),
        (entries % widest).astype(np.int64),
        Details(entry.reshape(-1).astype(np.int64), place.astype(np.int64), np.concatenate(chances)),
    )

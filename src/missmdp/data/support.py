"""Whether logged histories can happen in a model, judged by the states that remain possible along them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.boxes import BoxMoves, follow_boxes
from missmdp._kernels.support import (
    CONFLICT,
    ENDED,
    GOING_ON,
    NO_START,
    NO_STATE,
    RESTART,
    PossibleMoves,
    follow_histories,
)
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_progress

_MAX_DENSE = 50_000_000
_MOST_SETS = 1 << 17
_MOST_STATES = 1 << 24
_MOST_ENTRIES = 100_000_000
"""Entries of transition matrices up to which states are followed."""
_MOST_ENDS = 10_000
"""Combinations of values that decide whether a state is terminal, up to which that is followed in large models."""
_FIRST_ROWS, _FEWEST_ROWS = 100_000, 1000
_SECONDS = 0.4


_Run = Callable[[NDArray[np.int64], NDArray[Any], NDArray[np.int8], NDArray[Any], NDArray[np.uint8]], None]
"""What fills the flags of some rows: which observation each shows, actions, how rows begin, observations, flags."""


class Distinct(NamedTuple):
    """The distinct observations of a log and which one each row shows."""

    codes: NDArray[np.signedinteger[Any]]
    """Shape (D, n), in order of rank."""
    of_row: NDArray[np.int64]
    """Shape (N,)."""


def distinct_observations(features: FeatureSpace, observations: NDArray[np.integer[Any]]) -> Distinct:
    """Return the distinct observations and where they occur."""
    ranks = features.rank(observations)
    if features.n_ranks <= _MAX_DENSE:
        place = np.zeros(features.n_ranks, dtype=np.int64)
        place[ranks] = 1
        found = np.flatnonzero(place)
        place[found] = np.arange(len(found))
        return Distinct(features.unrank(found), place[ranks])
    found, of_row = np.unique(ranks, return_inverse=True)
    return Distinct(features.unrank(found), of_row.reshape(-1).astype(np.int64))


class Verdicts(NamedTuple):
    """What is wrong with the rows of a log, each of shape (N,)."""

    no_state: NDArray[np.bool_]
    """No state of the model admits the observation."""
    no_start: NDArray[np.bool_]
    """It is the first of an episode, and no initial state admits it."""
    conflict: NDArray[np.bool_]
    """No state that is possible after the history so far leads to the observation."""
    ended: NDArray[np.bool_]
    """All possible states are terminal."""
    going_on: NDArray[np.bool_]
    """No possible state is terminal."""


def follow(
    mdp: FactoredMDP,
    distinct: Distinct,
    actions: NDArray[np.integer[Any]],
    begins: NDArray[np.int8],
    *,
    progress: bool | None = False,
) -> Verdicts:
    """Return what is wrong with each row, given how rows begin and the actions between them.

    After a conflict, everything that the observation allows counts as possible again, so one impossible row is
    reported once. In large models it is followed which values of each feature are possible, so only what no single
    feature allows is found.
    """
    flags = np.zeros(len(begins), dtype=np.uint8)
    run = _by_boxes(mdp) if in_boxes(mdp) else _by_states(mdp)
    with show_progress("Checking", len(begins), enabled=progress) as advance:
        for rows in _pieces(begins):
            run(distinct.of_row[rows], actions[rows], begins[rows], distinct.codes, flags[rows])
            advance(rows.stop - rows.start)
    return Verdicts(
        *((flags & bit).astype(np.bool_) for bit in (NO_STATE, NO_START, CONFLICT, ENDED, GOING_ON))
    )


def in_boxes(mdp: FactoredMDP) -> bool:
    """Return whether histories are followed feature by feature, since the transition matrices would be too large."""
    return mdp.by_factors and mdp.n_entries > _MOST_ENTRIES


def _by_states(mdp: FactoredMDP) -> _Run:
    stacked = sparse.csr_array(sparse.vstack(mdp.transition, format="csr"))
    indptr = np.asarray(stacked.indptr, dtype=np.int64)
    indices = np.asarray(stacked.indices, dtype=np.int32)
    moves = PossibleMoves(indptr, indices, mdp.space.codes, mdp.initial > 0.0, np.array(mdp.terminal))
    sizes = np.array([_MOST_SETS, _MOST_STATES])
    return lambda seen, actions, begins, codes, flags: follow_histories(
        seen, actions, begins, codes, moves, sizes, flags
    )


def _by_boxes(mdp: FactoredMDP) -> _Run:
    factors = mdp.factors
    assert factors is not None
    sizes = factors.sizes
    supports = [(scope.table > 0.0).reshape(-1) for scope in factors.scopes]
    initial = mdp.initial.reshape(sizes) > 0.0
    marginals = [initial.any(axis=tuple(j for j in range(len(sizes)) if j != i)) for i in range(len(sizes))]
    ending = features_that_end(mdp)
    others = tuple(i for i in range(len(sizes)) if i not in ending)
    ends = mdp.terminal.reshape(sizes).any(axis=others).reshape(-1)
    moves = BoxMoves(
        offset=np.cumsum([0, *sizes]),
        start=np.cumsum([0, *(len(scope.parents) for scope in factors.scopes)]),
        parent=np.array([p for scope in factors.scopes for p in scope.parents], dtype=np.int64),
        first=np.cumsum([0, *(len(support) for support in supports[:-1])]),
        support=np.concatenate(supports),
        n_actions=mdp.n_actions,
        initial=np.concatenate(marginals),
        ending=np.array(ending, dtype=np.int64),
        ends=ends if len(ends) <= _MOST_ENDS else np.empty(0, dtype=np.bool_),
    )
    return lambda seen, actions, begins, codes, flags: follow_boxes(
        seen, actions, begins, codes, moves, flags
    )


def features_that_end(mdp: FactoredMDP) -> list[int]:
    """Return the positions of the features that decide whether a state is terminal; all combinations must be states."""
    flags = mdp.terminal.reshape(tuple(map(int, mdp.space.features.sizes)))
    return [i for i in range(flags.ndim) if (flags != flags.take([0], axis=i)).any()]


def _pieces(begins: NDArray[np.int8]) -> Iterator[slice]:
    """Yield all rows in pieces that take some tenths of a second each, since a kernel cannot be interrupted.

    A piece ends where the next row does not go on from it.
    """
    cuts = np.append(np.flatnonzero(begins), len(begins))
    start, size = 0, _FIRST_ROWS
    while start < len(begins):
        stop = int(cuts[np.searchsorted(cuts, min(start + size, len(begins)))])
        began = time.monotonic()
        yield slice(start, stop)
        taken = max(time.monotonic() - began, 1e-3)
        # At most four times as many, since the first piece may be the one that compiles.
        size = max(int((stop - start) * min(_SECONDS / taken, 4.0)), _FEWEST_ROWS)
        start = stop


def possible_transitions(
    mdp: FactoredMDP,
    before: NDArray[np.integer[Any]],
    actions: NDArray[np.integer[Any]],
    after: NDArray[np.integer[Any]],
) -> NDArray[np.bool_]:
    """Return for rows of (z, a, z′) whether T(s′ | s, a) > 0 for some s that admits z and s′ that admits z′.

    In large models each feature is looked at on its own.
    """
    possible = np.empty(len(actions), dtype=np.bool_)
    if in_boxes(mdp):
        begins = np.tile(np.array([RESTART, 0], dtype=np.int8), len(actions))
        codes = np.stack([before, after], axis=1).reshape(2 * len(actions), before.shape[1])
        flags = np.zeros(2 * len(actions), dtype=np.uint8)
        _by_boxes(mdp)(np.arange(2 * len(actions)), np.repeat(actions, 2), begins, codes, flags)
        return (flags[1::2] & CONFLICT) == 0
    for row in range(len(actions)):
        here = np.flatnonzero(mdp.space.admit(before[row]))
        matrix = mdp.transition[int(actions[row])]
        reached = (matrix.indices[matrix.indptr[s] : matrix.indptr[s + 1]] for s in here)
        admits = mdp.space.admit(after[row])
        possible[row] = any(admits[states].any() for states in reached)
    return possible

"""Whether logged histories can happen in a model, judged by the states that remain possible along them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.support import (
    CONFLICT,
    ENDED,
    GOING_ON,
    NO_START,
    NO_STATE,
    PossibleMoves,
    follow_histories,
)
from missmdp.model.factors import Factors
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_progress

_MAX_DENSE = 50_000_000
_MOST_SETS = 1 << 17
_MOST_STATES = 1 << 24
_MOST_ENTRIES = 30_000_000
"""Entries of T above which histories are not followed in the MDP as a whole."""
_MOST_WITH_ENDS = 30_000_000
"""The same for a view to which the features are added that decide which states are terminal."""
_FIRST_ROWS, _FEWEST_ROWS = 100_000, 1000
_SECONDS = 0.4


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
    reported once. Where T is large, `views_of` the MDP are followed instead: whatever is reported is impossible.
    """
    flags = np.zeros(len(begins), dtype=np.uint8)
    views = views_of(mdp)
    with show_progress("Checking", len(begins) * len(views), enabled=progress) as advance:
        for view in views:
            seen, told = view.seen(distinct), np.zeros(len(begins), dtype=np.uint8)
            moves = _possible_moves(view.mdp)
            for rows in _pieces(begins):
                follow_histories(
                    seen.of_row[rows],
                    actions[rows],
                    begins[rows],
                    seen.codes,
                    moves,
                    np.array([_MOST_SETS, _MOST_STATES]),
                    told[rows],
                )
                advance(rows.stop - rows.start)
            # A view that does not know what is terminal cannot say that an episode goes on.
            flags |= told if view.knows_ends else told & ~np.uint8(GOING_ON)
    return Verdicts(
        *((flags & bit).astype(np.bool_) for bit in (NO_STATE, NO_START, CONFLICT, ENDED, GOING_ON))
    )


class View(NamedTuple):
    """An MDP as some of its features show it."""

    kept: tuple[int, ...]
    """Their positions."""
    mdp: FactoredMDP
    """These features: those whose parents are among them move as they do, others in any way."""
    knows_ends: bool = True
    """Whether these features decide which states are terminal; if not, any state may stay as it is for ever."""

    def seen(self, distinct: Distinct) -> Distinct:
        """Return what these features show of observations."""
        own = distinct_observations(self.mdp.space.features, distinct.codes[:, list(self.kept)])
        return Distinct(own.codes, own.of_row[distinct.of_row])


def views_of(mdp: FactoredMDP) -> list[View]:
    """Return the MDP itself if T is small; if not, each feature together with what its next value depends on.

    What decides which states are terminal is in every view, unless that makes views too large. What is impossible in
    a view is impossible in the MDP; `tell_all` says when the converse holds.
    """
    factors, features = (
        mdp.factors if mdp.by_factors and mdp.n_entries > _MOST_ENTRIES else None,
        mdp.space.features,
    )
    if factors is None:
        return [View(tuple(range(len(features))), mdp)]
    scopes = [frozenset({i, *scope.parents}) for i, scope in enumerate(factors.scopes)]
    terminal = mdp.terminal.reshape(factors.sizes)
    ends = _deciding(terminal)
    joined = [scope | ends for scope in scopes]
    most = max(_most_entries(scope, mdp.n_actions, factors) for scope in joined)
    knows_ends = not ends or most <= _MOST_WITH_ENDS
    views: list[View] = []
    initial = (mdp.initial > 0.0).reshape(factors.sizes)
    for kept in map(sorted, _largest(joined if knows_ends else scopes)):
        own = FeatureSpace({features.names[i]: features.values[i] for i in kept})
        tables: dict[str, Any] = {
            features.names[i]: (
                [features.names[p] for p in factors.scopes[i].parents],
                factors.scopes[i].table,
            )
            if scopes[i] <= {*kept}
            else ([], np.full((mdp.n_actions, factors.sizes[i]), 1.0 / factors.sizes[i]))
            for i in kept
        }
        others = tuple(i for i in range(len(features)) if i not in kept)
        first = initial.any(axis=others).reshape(-1)
        made: Any = Factors(own, mdp.actions, tables)
        if not knows_ends:
            made = [_may_stay(made.matrix(action)) for action in range(mdp.n_actions)]
        over = terminal.any(axis=others).reshape(-1) if knows_ends else None
        shown = FactoredMDP(own, mdp.actions, made, 0.0, first / first.sum(), over, 0.5)
        views.append(View(tuple(kept), shown, knows_ends))
    return views


def _deciding(terminal: NDArray[np.bool_]) -> frozenset[int]:
    """Return the features that decide which states are terminal, given as a tensor with one axis per feature."""
    return frozenset(
        axis for axis in range(terminal.ndim) if (terminal != terminal.take([0], axis=axis)).any()
    )


def _largest(scopes: list[frozenset[int]]) -> list[frozenset[int]]:
    return [scope for scope in dict.fromkeys(scopes) if not any(scope < other for other in scopes)]


def _most_entries(scope: frozenset[int], n_actions: int, factors: Factors) -> int:
    """Return how many entries the matrices of some features have at most."""
    return n_actions * math.prod(factors.sizes[i] for i in scope) ** 2


def _may_stay(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return T of features that move as given or stay as they are, since terminal states do."""
    return sparse.csr_array(0.5 * matrix + 0.5 * sparse.eye_array(matrix.shape[0], format="csr"))


def tell_all(mdp: FactoredMDP, always_seen: NDArray[np.bool_]) -> bool:
    """Return whether `views_of` an MDP notice all that is impossible, given which features are seen in every row."""
    views = views_of(mdp)
    if not all(view.knows_ends for view in views):
        return False
    if len(views) == 1 or mdp.factors is None:
        return True
    closed = all({*mdp.factors.scopes[i].parents} <= {*view.kept} for view in views for i in view.kept)
    times = np.bincount([i for view in views for i in view.kept])
    return closed and bool(always_seen[times > 1].all())


def _possible_moves(mdp: FactoredMDP) -> PossibleMoves:
    stacked = sparse.csr_array(sparse.vstack(mdp.transition, format="csr"))
    return PossibleMoves(
        np.asarray(stacked.indptr, dtype=np.int64),
        np.asarray(stacked.indices, dtype=np.int32),
        mdp.space.codes,
        mdp.initial > 0.0,
        np.array(mdp.terminal),
    )


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
    """Return for rows of (z, a, z′) whether T(s′ | s, a) > 0 for some s that admits z and s′ that admits z′."""
    possible = np.ones(len(actions), dtype=np.bool_)
    for view in views_of(mdp) if len(actions) else []:
        space, kept = view.mdp.space, list(view.kept)
        for row in np.flatnonzero(possible):
            here = np.flatnonzero(space.admit(before[row, kept]))
            matrix = view.mdp.transition[int(actions[row])]
            reached = (matrix.indices[matrix.indptr[s] : matrix.indptr[s + 1]] for s in here)
            admits = space.admit(after[row, kept])
            possible[row] = any(admits[states].any() for states in reached)
    return possible

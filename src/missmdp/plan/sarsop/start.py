"""Where a search begins: every class a point, every blind policy a vector, the start, and beliefs of an earlier search.

Beliefs of an earlier search, in a model whose probabilities may differ, are where the lower bound begins. They are
forgotten again: the upper bound gets tighter in the same time at points
that are found while it tightens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.sarsop.lower import search_values, start_blind
from missmdp._kernels.sarsop.points import add_beliefs
from missmdp._kernels.sarsop.upper import start_corners
from missmdp.plan.sarsop.lower import improve_lower, look_at_all
from missmdp.plan.sarsop.search import BUDGET, Search

ROUNDS = 3
"""Rounds of backups at the beliefs of an earlier search."""


def set_up(search: Search) -> None:
    """Give a search its first points and vectors, with bounds that hold everywhere; takes next to no time."""
    compiled, pools = search.compiled, search.pools
    start_corners(search.model, pools.points, compiled.highest, pools.counters)
    start_blind(search.model, pools.vectors, _lowest(search), pools.counters)
    look_at_all(search, 0.0)
    support = np.flatnonzero(compiled.start)
    if len(support) > 1:
        search.root = pools.n_points
        ends = np.array([0, len(support)])
        beliefs = support.astype(np.int32), compiled.start[support]
        while add_beliefs(*search.lower_arrays(), ends, *beliefs, 0, BUDGET) < 0:
            pools.grow()
        look_at_all(search, 0.0)


def _lowest(search: Search) -> NDArray[np.float64]:
    """Return a lower bound on taking each action for ever; in wide models a better one, which needs fewer sweeps."""
    compiled, reward = search.compiled, search.model.reward
    if compiled.is_wide:
        least: NDArray[np.float64] = reward.min(axis=0).clip(max=0.0) / (1.0 - compiled.discount)
        return least
    return np.repeat(compiled.lowest, reward.shape[1])


def beliefs_over_states(search: Search, n_states: int) -> sparse.csr_array:
    """Return the beliefs of a search but the corners, one per row; a class is its first state."""
    compiled, points = search.compiled, search.pools.points
    first_state = np.zeros(compiled.n_classes, dtype=np.int64)
    live = np.flatnonzero(compiled.class_of >= 0)[::-1]
    first_state[compiled.class_of[live]] = live
    first, last = compiled.n_classes, search.pools.n_points
    start = points.start[first : last + 1]
    part = slice(start[0], start[-1])
    return sparse.csr_array(
        (points.prob[part].copy(), first_state[points.support[part]], start - start[0]),
        shape=(last - first, n_states),
    )


def begin_with(search: Search, beliefs: sparse.csr_array) -> None:
    """Back up the lower bound at the beliefs over states that lie inside one component."""
    start, support, prob = _inside_components(search, beliefs)
    n_points = search.pools.n_points
    try:
        search.work_off(
            lambda place: add_beliefs(*search.lower_arrays(), start, support, prob, place, BUDGET),
            len(start) - 1,
        )
        order = np.append(np.arange(n_points, search.pools.n_points)[::-1], search.root)
        for _ in range(ROUNDS):
            improve_lower(search, order)
    finally:
        search.pools.forget_points(n_points)
        pools = search.pools
        search_values(search.model, pools.points, pools.vectors, pools.n_points, pools.counters)


def _inside_components(
    search: Search, beliefs: sparse.csr_array
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return beliefs over states as rows of a sparse matrix over classes, without those that span components."""
    compiled = search.compiled
    live = np.flatnonzero(compiled.class_of >= 0)
    to_class = sparse.csr_array(
        (np.ones(len(live)), (live, compiled.class_of[live])),
        shape=(len(compiled.class_of), compiled.n_classes),
    )
    rows = sparse.csr_array(beliefs @ to_class)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    several = np.flatnonzero(np.diff(rows.indptr) > 1)
    # Classes of one component are neighbours, and indices are sorted.
    components = search.model.component_of[rows.indices]
    same = components[rows.indptr[several]] == components[rows.indptr[several + 1] - 1]
    inside = rows[several[same]]
    total = np.asarray(inside.sum(axis=1)).ravel()
    prob = inside.data / np.repeat(total, np.diff(inside.indptr))
    return inside.indptr.astype(np.int64), inside.indices.astype(np.int32), prob

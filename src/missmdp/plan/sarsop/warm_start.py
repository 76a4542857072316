"""Beliefs to begin with: those of an earlier search, in a model whose probabilities may differ."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from missmdp._kernels.sarsop import upper as kernels
from missmdp.plan.sarsop.lower import improve_lower
from missmdp.plan.sarsop.sampling import STEPS
from missmdp.plan.sarsop.search import BUDGET, Search

__all__ = ["add_beliefs", "beliefs_over_states"]


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


def add_beliefs(search: Search, beliefs: sparse.csr_array) -> None:
    """Make the beliefs over states that lie inside one block points, and back up the lower bound there."""
    compiled = search.compiled
    live = np.flatnonzero(compiled.class_of >= 0)
    to_class = sparse.csr_array(
        (np.ones(len(live)), (live, compiled.class_of[live])),
        shape=(len(compiled.class_of), compiled.n_classes),
    )
    rows = sparse.csr_array(beliefs @ to_class)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    blocks = search.model.block_of[rows.indices]
    size = np.diff(rows.indptr)
    several = np.flatnonzero(size > 1)
    first, last = rows.indptr[several], rows.indptr[several + 1] - 1
    # Classes of one block are neighbours, and indices are sorted.
    inside = rows[several[blocks[first] == blocks[last]]]
    total = np.asarray(inside.sum(axis=1)).ravel()
    prob = inside.data / np.repeat(total, np.diff(inside.indptr))
    start, support = inside.indptr.astype(np.int64), inside.indices.astype(np.int32)
    n_points = search.pools.n_points
    search.work_off(
        lambda place: kernels.add_beliefs(*search.upper_arrays(), start, support, prob, place, STEPS, BUDGET),
        inside.shape[0],
    )
    improve_lower(search, np.arange(n_points, search.pools.n_points)[::-1].copy())

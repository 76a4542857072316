"""The lower bound: from blind policies, by backups at the points that matter.

The vectors form a controller: each has an action and, for each observation, a vector to go on with. Backups make new
vectors, which are then evaluated over and over, since that costs far less than a backup.

A vector's value may be above that of its plan where the plan was made of vectors that have since been dropped.
Evaluation finds that out. What is reported as the lower bound is the value of a policy that is there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop import lower as kernels
from missmdp.plan.sarsop.search import BUDGET, Search

__all__ = ["improve_lower", "look_at_all", "start_lower"]

SWEEPS_AT_START = 1000
SMALL_AT_START = 1e-6
"""Of the largest value that is possible: changes below it end the sweeps at the start."""
ROUNDS = 3
SWEEPS = 10
SWEEPS_AT_END = 200
SMALL = 1e-3
"""Of the gap at the start: changes below it end the sweeps."""
WORTHWHILE = 1e-3
"""Of a point's gap: what a backup must close to be kept."""
AGAIN = 0.05
"""Of the gap at the start: what a round must close for another one to follow."""
SLACK = 0.01
"""Of the gap at the start: what the reported lower bound may give away to vectors that still fall."""


def start_lower(search: Search) -> None:
    """Set the lower bound to the best blind policy: one action for ever, whatever is seen."""
    pools, model, compiled = search.pools, search.model, search.compiled
    small = SMALL_AT_START * max(abs(compiled.lowest), abs(compiled.highest))
    fall = 0.0
    for _ in range(SWEEPS_AT_START):
        search.limits.check()
        rise, fall = kernels.evaluate_vectors(model, pools.vectors, pools.scratch, pools.n_vectors)
        if rise <= small:
            break
    look_at_all(search, fall)


def look_at_all(search: Search, fall: float) -> None:
    """Find the best vector of every point, and keep the controller."""
    model, points, vectors, scratch, counters = search.lower_arrays()
    kernels.search_values(model, points, vectors, search.pools.n_points, counters)
    kernels.choose_defaults(model, vectors, scratch, counters)
    search.keep_controller(fall)


def improve_lower(search: Search, order: NDArray[np.int64]) -> None:
    """Back up at points in the order given, and evaluate the plans that came out; again while that pays."""
    one_step = 1.0 - search.compiled.discount
    share = min(WORTHWHILE, 0.1 * one_step)
    for _ in range(ROUNDS):
        before = search.lower
        search.work_off(
            lambda place: kernels.backup_points(*search.lower_arrays(), order, place, share, BUDGET),
            len(order),
        )
        prune(search)
        evaluate(search)
        if search.lower - before < AGAIN * search.gap:
            break
    evaluate(search, fall=SLACK * one_step * search.gap, sweeps=SWEEPS_AT_END)


def prune(search: Search) -> None:
    """Drop vectors that are best nowhere and that no plan needs."""
    number, stack = np.empty((2, search.pools.n_vectors), dtype=np.int32)
    kernels.prune_vectors(*search.lower_arrays(), search.root, number, stack)


def evaluate(search: Search, *, fall: float = np.inf, sweeps: int = SWEEPS) -> None:
    """Evaluate the plans of all vectors until they rise little, and those that the start needs fall little."""
    pools, model = search.pools, search.model
    fell = 0.0
    for _ in range(sweeps):
        search.limits.check()
        rose, fell = kernels.evaluate_vectors(model, pools.vectors, pools.scratch, pools.n_vectors)
        if rose <= SMALL * search.gap and fell <= fall:
            break
    kernels.refresh_values(model, pools.points, pools.vectors, pools.n_points)
    search.keep_controller(fell)

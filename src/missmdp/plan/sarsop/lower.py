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
from missmdp._kernels.sarsop.lower import backup_points
from missmdp._kernels.sarsop.pruning import prune_vectors
from missmdp.plan.sarsop.search import BUDGET, SMALL_AT_START, SWEEPS_AT_START, Search

ROUNDS = 3
"""Rounds of backups per trial, at most."""
WORK_AT_END, WORK_AT_END_IF_SLOW = 2, 5
"""Times the work of the backups: what may be spent on evaluating the policy, and the same if backups are slow."""
SMALL = 1e-3
"""Of the gap at the start: changes below it end the sweeps."""
WORK_AT_START = 25 * BUDGET
"""What blind policies may take in a wide model, where others will soon be better."""
WORTHWHILE = 1e-3
"""Of a point's gap: what a backup must close to be kept."""
AGAIN = 0.05
"""Of the gap at the start: what a round must close, by all points that are visited, for another one to follow."""
WORK_TO_SETTLE = 2 * BUDGET
"""What may be spent on sweeps after a limit was reached."""
SWEEPS_TO_SETTLE, MOST_TO_SETTLE = 5, 0.05
"""Time kept back for that if backups are slow: for so many sweeps, but at most this share of the time limit."""
SLACK = 0.01
"""Of the gap at the start: what the reported lower bound may give away to vectors that still fall."""


def start_lower(search: Search) -> None:
    """Set the lower bound to the best blind policy: one action for ever, whatever is seen."""
    compiled = search.compiled
    small = SMALL_AT_START * compiled.scale / compiled.slowness
    fall = 0.0
    for _ in range(int(SWEEPS_AT_START * compiled.slowness)):
        rise, fall = _sweep(search)
        if rise <= small or (compiled.is_wide and search.work > WORK_AT_START):
            break
    look_at_all(search, fall)


def look_at_all(search: Search, fall: float) -> None:
    """Find the best vector of every point, and keep the controller."""
    model, points, vectors, scratch, counters = search.lower_arrays()
    kernels.search_values(model, points, vectors, search.pools.n_points, counters)
    kernels.choose_defaults(model, vectors, scratch, counters)
    search.keep_controller(fall)


def improve_lower(search: Search, order: NDArray[np.int64], *, most_work: float = np.inf) -> None:
    """Back up at points in the given order and in reverse, and evaluate the new plans; repeat while that pays.

    No round begins once `most_work` has been spent.
    """
    stop = search.work + most_work
    one_step = 1.0 - search.compiled.discount
    share = min(WORTHWHILE, 0.1 * one_step)
    work = 0
    for _ in range(ROUNDS):
        values, begin = search.pools.points.value[order], search.work
        search.work_off(
            lambda place: backup_points(
                *search.lower_arrays(),
                order,  # noqa: B023, called at once
                place,
                share,
                BUDGET,
            ),
            len(order),
        )
        prune(search)
        work += search.work - begin
        evaluate(search, most_work=0 if search.compiled.is_wide else search.work - begin)
        rise = search.pools.points.value[order] - values
        if np.dot(search.pools.points.visits[order], rise) < AGAIN * search.gap or search.work >= stop:
            break
        order = order[::-1].copy()
    if not search.compiled.is_wide:
        times = WORK_AT_END_IF_SLOW if search.compiled.backups_are_slow else WORK_AT_END
        evaluate(search, fall=SLACK * one_step * search.gap, most_work=times * work)


def settle_lower(search: Search, seconds: float) -> None:
    """Keep what the backups of an interrupted trial have gained; take about so many seconds if they are enough.

    Sweeps go on until the vectors that the start needs stop falling: whatever they still fall is taken off the bound.
    """
    prune(search)
    end, stop = search.limits.seconds + seconds, search.work + WORK_TO_SETTLE
    slack = SLACK * (1.0 - search.compiled.discount) * search.gap
    while True:
        begin = search.limits.seconds
        rose, fell = _sweep(search, stoppable=False)
        if max(rose, fell) <= SMALL * search.gap and fell <= slack:
            break
        now = search.limits.seconds
        if search.work >= stop and (fell <= slack or 2.0 * now - begin > end):
            break
    _keep(search, fell)


def prune(search: Search) -> None:
    """Drop vectors that are best nowhere and that no plan needs."""
    search.pools.list_near(search.model, search.compiled.narrow)
    number, stack = np.empty((2, search.pools.n_vectors), dtype=np.int32)
    prune_vectors(*search.lower_arrays(), search.root, number, stack, not search.compiled.is_wide)


def evaluate(search: Search, *, most_work: int, fall: float | None = None) -> None:
    """Evaluate plans until little changes, or as much work has been spent on it as is allowed.

    Without `fall`, those of all vectors until they rise little; with it, those that the start needs until they fall
    by no more than that.
    """
    stop = search.work + int(most_work * search.compiled.slowness)
    small = SMALL * search.gap / search.compiled.slowness
    while True:
        rose, fell = _sweep(search, only_needed=fall is not None)
        if search.work >= stop or (fell <= fall if fall is not None else rose <= small):
            break
    if fall is not None:
        # Those that the start does not need must know where they stand, too.
        _, fell = _sweep(search)
    _keep(search, fell)


def _keep(search: Search, fell: float) -> None:
    """Bring the values of all points up to date, and keep the controller if it is the best so far."""
    pools = search.pools
    kernels.refresh_values(search.model, pools.points, pools.vectors, pools.n_points)
    search.keep_controller(fell)


def _sweep(search: Search, *, only_needed: bool = False, stoppable: bool = True) -> tuple[float, float]:
    """Evaluate the plans of vectors once, newest first; return the largest rise, and fall of those needed."""
    pools = search.pools
    begin = search.limits.seconds
    rise, fall, place = 0.0, 0.0, pools.n_vectors
    while place > 0:
        if stoppable:
            search.limits.check()
        rose, fell, place = kernels.evaluate_vectors(
            search.model, pools.vectors, pools.scratch, pools.counters, only_needed, place, BUDGET
        )
        rise, fall = max(rise, rose), max(fall, fell)
    if search.compiled.backups_are_slow and not only_needed:
        search.limits.keep_back(SWEEPS_TO_SETTLE * (search.limits.seconds - begin), MOST_TO_SETTLE)
    return rise, fall

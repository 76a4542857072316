"""The upper bound: from the MDP's value over the fast informed bound to value iteration on all points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop import upper as kernels
from missmdp._kernels.sarsop.exploring import expand_corners, expand_points
from missmdp.plan.sarsop.search import BUDGET, SMALL_AT_START, SWEEPS_AT_START, Search

SWEEPS, SWEEPS_IF_WIDE = 2, 15
"""Sweeps over the points that are visited, at most."""
SMALL = 1e-3
"""Of the gap at the start: changes below it end the sweeps."""
STEPS = 20
"""Steps of the simplex method for a new mixture; those that matter are refined later."""


def start_upper(search: Search) -> None:
    """Set the upper bounds of the corners to the MDP's value."""
    compiled = search.compiled
    for _ in range(int(SWEEPS_AT_START * compiled.slowness)):
        search.limits.check()
        if kernels.sweep_mdp(search.model, search.pools.points) <= _small(search):
            break
    if compiled.is_wide:
        _mix_start(search)


def inform_upper(search: Search) -> None:
    """Lower the upper bounds of the corners, from the MDP's value to the fast informed bound."""
    compiled = search.compiled
    corners, n_actions = np.arange(compiled.n_classes), search.model.reward.shape[1]
    search.work_off(
        lambda place: expand_corners(*search.corner_arrays(), place, BUDGET), compiled.n_classes * n_actions
    )
    for a in range(n_actions):
        left = corners[search.pools.points.seen[corners, a] < 0]
        expand(search, left, np.full(len(left), a), steps=0)
    for _ in range(int(SWEEPS_AT_START * compiled.slowness)):
        # The sweeps of trials go on with it.
        enough = max(_small(search), 1e-2 * SMALL * search.gap / compiled.slowness)
        if improve_upper(search, corners[::-1].copy(), sweeps=1) <= enough:
            break
    if compiled.is_wide:
        _mix_start(search)


def _small(search: Search) -> float:
    return SMALL_AT_START * search.compiled.scale / search.compiled.slowness


def _mix_start(search: Search) -> None:
    """Let the upper bound of the start be the mixture of its corners, as they are now."""
    points, root = search.pools.points, search.root
    part = slice(points.start[root], points.start[root + 1])
    points.q[root] = np.minimum(points.q[root], points.prob[part] @ points.q[points.support[part]])
    points.upper[root] = points.q[root].max()


def expand(
    search: Search, points: NDArray[np.int64], actions: NDArray[np.int64], *, steps: int = STEPS
) -> None:
    """Work out what follows points and actions."""
    search.work_off(
        lambda place: expand_points(
            *search.upper_arrays(), search.pools.seen, points, actions, place, steps, BUDGET
        ),
        len(points),
    )


def improve_upper(search: Search, order: NDArray[np.int64], *, sweeps: int | None = None) -> float:
    """Back up the upper bounds of points, several times unless little changes; return the last change."""
    pools = search.pools
    search.limits.check()
    corners = pools.points.upper[: search.compiled.n_classes]
    if not np.array_equal(corners, search.corners):
        search.corners = corners.copy()
        kernels.sweep_seen(pools.points, pools.seen, pools.n_points)
    change = 0.0
    if sweeps is None:
        sweeps = int((SWEEPS_IF_WIDE if search.compiled.is_wide else SWEEPS) * search.compiled.slowness)
    for _ in range(sweeps):
        change = search.sweep(
            lambda part: kernels.sweep_upper(
                pools.points, pools.entries, pools.weights, pools.counters, part
            ),
            order,
        )
        if change <= SMALL * search.gap / search.compiled.slowness:
            break
    return change

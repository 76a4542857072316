"""Near-optimally reachable beliefs: what the optimistic policy visits, and where its bounds are loosest.

The upper bound at the start is the value of an optimistic policy in a world of points, in which an entry's belief
turns into one of the points that it is a mixture of. The expected discounted visits in that world, times
the error of a mixture, say what each mixture adds to the gap at the start. The worst are mixed again
or become points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop import points as kernels
from missmdp._kernels.sarsop.arrays import ENTRIES
from missmdp._kernels.sarsop.exploring import refine_entries
from missmdp._kernels.sarsop.points import follow_policy
from missmdp.plan.sarsop.search import BUDGET, Search

SWEEPS, SWEEPS_IF_WIDE = 3, 20
"""Sweeps over the expected visits, at most; they go on where they ended last time."""
SMALL = 1e-4
"""Changes of expected visits below it end the sweeps."""
RARELY, RARELY_IF_WIDE = 1e-5, 1e-7
"""Of the gap at the start: what a point's gap times its expected visits must be for it to count as visited."""
CLASSES = 250_000
"""Classes of all visited points of a trial, at most, in a wide model."""
FEWEST = 100
GROWTH = 0.05
"""New points per trial: this share of all points, and not fewer than `FEWEST`."""
SHARE, SHARE_IF_WIDE = 0.7, 1.0
"""Of what all mixtures add to the gap: what those add that are made better at a time."""
BACKED_UP = 0.9
"""Of what all visited points add to the gap: what those add that are backed up in a trial, where backups take long."""
CANDIDATES = 10
"""Entries to look at per trial, for each point that may be new."""
FRESH = 0.8
"""A mixture made when the component had this share of its points is as good as it gets."""
STEPS = 1000
"""Steps of the simplex method for a mixture that matters."""
EPISODES, LENGTH = 20, 100
"""Episodes of the lower bound's policy per trial, and their length."""
SAMPLED = 0.25
"""Points that they may add, as a share of those that may be new."""
STEPS_IF_SAMPLED = 20
"""Steps of the simplex method for their mixtures."""


@dataclass(frozen=True)
class Visited:
    """Where the optimistic policy goes."""

    points: NDArray[np.int64]
    """Newest first."""
    actions: NDArray[np.int32]
    """The optimistic action of every point."""

    def unexplored(self, search: Search) -> NDArray[np.int64]:
        """Return the points for which it is not known what follows the optimistic action."""
        return self.points[search.pools.points.seen[self.points, self.actions[self.points]] < 0]


def visit(search: Search) -> Visited:
    """Update the expected visits of all points and return those that are visited."""
    pools = search.pools
    n_points = pools.n_points
    actions = np.empty(n_points, dtype=np.int32)
    kernels.optimistic_actions(pools.points, n_points, actions)
    space = np.empty(n_points)
    for _ in range(SWEEPS_IF_WIDE if search.compiled.is_wide else SWEEPS):
        search.limits.check()
        change = kernels.sweep_visits(
            pools.points,
            pools.seen,
            pools.entries,
            pools.weights,
            actions,
            search.root,
            n_points,
            space,
        )
        if change <= SMALL:
            break
    points = pools.points
    matters = points.visits[:n_points] * (points.upper[:n_points] - points.lower[:n_points])
    matters[search.root] = np.inf
    visited = np.flatnonzero(matters > _rarely(search))
    if search.compiled.is_wide:
        visited = _worst(search, visited, matters)
    return Visited(visited[::-1].copy(), actions)


def _rarely(search: Search) -> float:
    return (RARELY_IF_WIDE if search.compiled.is_wide else RARELY) * search.gap


def _worst(search: Search, visited: NDArray[np.int64], matters: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the points that matter most, as many as a trial of a wide model has time for, in order."""
    sizes = np.diff(search.model.component_start)[search.pools.points.component[visited]]
    order = np.argsort(-matters[visited], kind="stable")
    few = order[np.cumsum(sizes[order]) - sizes[order] < CLASSES]
    return visited[np.sort(few)]


def worth_backing_up(search: Search, visited: Visited, most: int) -> NDArray[np.int64]:
    """Return the points that add most to the gap at the start, newest first, at most `most` of them."""
    points, chosen = search.pools.points, visited.points
    matters = np.maximum(points.visits[chosen] * (points.upper[chosen] - points.lower[chosen]), 0.0)
    worst = np.argsort(-matters, kind="stable")
    count = _how_many(matters[worst], BACKED_UP * float(matters.sum()))
    return chosen[np.sort(worst[: max(1, min(count, most))])]


def _how_many(parts: NDArray[np.float64], total: float) -> int:
    """Return how many parts, in their order, it takes to make up a total; all if they do not."""
    sums: NDArray[np.float64] = np.cumsum(parts)
    return 1 + int(np.searchsorted(sums, total))


def refine(search: Search, visited: Visited) -> None:
    """Mix the entries that matter most again, or make them points."""
    pools = search.pools
    n_points, n_entries = len(visited.actions), int(pools.counters[ENTRIES])
    score = np.empty(n_entries)
    of_point, entry = np.empty((2, n_entries), dtype=np.int64)
    count = kernels.score_entries(
        pools.points,
        pools.entries,
        pools.weights,
        visited.actions,
        n_points,
        _rarely(search),
        score,
        of_point,
        entry,
    )
    most = max(FEWEST, int(GROWTH * n_points))
    shuffled = search.random.permutation(count)
    worst = shuffled[np.argsort(-score[shuffled], kind="stable")[: CANDIDATES * most]]
    # What follows the worst ones comes next, and may be worse than the rest.
    share = SHARE_IF_WIDE if search.compiled.is_wide else SHARE
    worst = worst[: _how_many(score[worst], share * float(score[:count].sum()))]
    of_point, entry = of_point[worst], entry[worst]
    of_action = visited.actions[of_point].astype(np.int64)
    search.work_off(
        lambda place: refine_entries(
            *search.upper_arrays(), of_point, of_action, entry, place, FRESH, n_points + most, STEPS, BUDGET
        ),
        len(entry),
    )


def sample(search: Search) -> None:
    """Act by the lower bound's policy for some episodes, and make the beliefs that it meets points."""
    most = search.pools.n_points + max(1, int(SAMPLED * max(FEWEST, GROWTH * search.pools.n_points)))
    draws = search.random.random((EPISODES, LENGTH))
    search.work_off(
        lambda place: follow_policy(
            *search.lower_arrays(), search.root, draws, place, most, STEPS_IF_SAMPLED
        ),
        EPISODES,
    )

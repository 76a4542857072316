"""Upper bounds: the fast informed bound, with beliefs besides the corners.

U(b, a) = ρ(b, a) + Σ_z max_a′ Σ_j w_j(b, a, z) U(b_j, a′), where the points b_j mix to the (unnormalised) belief
after b, a and z. With corners only this is the fast informed bound. Each U(·, a) bounds a convex function, so
that it is sound to mix per action and to take the maximum afterwards; that is tighter than mixing the maxima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    POINTS,
    SUPPORT,
    WORK,
    Compiled,
    Entries,
    MixtureWeights,
    Points,
    Scratch,
    Seen,
)
from missmdp._kernels.sarsop.near import hold_classes


@kernel
def start_corners(model: Compiled, points: Points, highest: float, counters: Any) -> None:
    """Make every class a point, with an upper bound that holds everywhere."""
    for c in range(len(model.component_of)):
        points.start[c + 1] = c + 1
        points.support[c] = c
        points.prob[c] = 1.0
        link_point(points, c, model.component_of[c])
        hold_classes(points, c)
        for a in range(model.reward.shape[1]):
            points.reward[c, a] = model.reward[c, a]
            points.q[c, a] = highest
        points.upper[c] = highest
        points.lower[c] = -np.inf
        points.value[c] = -np.inf
    counters[POINTS] = len(model.component_of)
    counters[SUPPORT] = len(model.component_of)


@inner
def link_point(points: Points, point: int, component: int) -> None:
    points.component[point] = component
    points.next_in_component[point] = points.first_in_component[component]
    points.first_in_component[component] = point
    points.n_in_component[component] += 1
    for a in range(points.q.shape[1]):
        points.seen[point, a] = -1
        points.n_seen[point, a] = 0
        points.n_entries[point, a] = 0
    points.visits[point] = 0.0


@kernel
def sweep_mdp(model: Compiled, points: Points) -> float:
    """Back up the corners as if the class were always seen; return the largest change."""
    n_classes, n_actions = model.reward.shape
    change = 0.0
    for c in range(n_classes - 1, -1, -1):
        upper = -np.inf
        for a in range(n_actions):
            value = model.reward[c, a]
            for j in range(model.start[c * n_actions + a], model.start[c * n_actions + a + 1]):
                value += model.prob[j] * points.upper[model.target[j]]
            points.q[c, a] = min(points.q[c, a], value)
            upper = max(upper, points.q[c, a])
        change = max(change, points.upper[c] - upper)
        points.upper[c] = upper
    return change


@kernel
def sweep_seen(points: Points, seen: Seen, n_points: int) -> None:
    """Bring the part of the upper bounds that comes from corners up to date."""
    for point in range(n_points):
        for a in range(points.q.shape[1]):
            begin = points.seen[point, a]
            if begin >= 0:
                value = points.reward[point, a]
                for j in range(begin, begin + points.n_seen[point, a]):
                    value += seen.prob[j] * points.upper[seen.point[j]]
                points.base[point, a] = value


@inner
def _mixed(q: Any, upper: Any, point: Any, weight: Any, first: int, count: int) -> float:
    """Return the upper bound of a mixture of points, per action."""
    if count == 1:
        return weight[first] * upper[point[first]]
    value = -np.inf
    for a in range(q.shape[1]):
        mixed = 0.0
        for k in range(first, first + count):
            mixed += weight[k] * q[point[k], a]
        value = max(value, mixed)
    return value


@inner
def entry_value(points: Points, entries: Entries, weights: MixtureWeights, entry: int) -> float:
    """Return the upper bound of an entry's belief."""
    return (
        _mixed(
            points.q, points.upper, weights.point, weights.weight, entries.first[entry], entries.size[entry]
        )
        - entries.excess[entry]
    )


@kernel
def sweep_upper(
    points: Points, entries: Entries, weights: MixtureWeights, counters: Any, order: Any
) -> float:
    """Back up the upper bounds of points in the order given; return the largest change."""
    change = 0.0
    # Arrays by their own names: whole records handed from call to call cost more than the sums.
    qs, uppers, lower, base, seen = points.q, points.upper, points.lower, points.base, points.seen
    first_entry, n_entries = points.entries, points.n_entries
    prob, first, size, excess = entries.prob, entries.first, entries.size, entries.excess
    mixed, weight = weights.point, weights.weight
    n_actions = qs.shape[1]
    work = 0
    for i in range(len(order)):
        point = order[i]
        upper = -np.inf
        for a in range(n_actions):
            q = qs[point, a]
            # An action whose upper bound is below the lower bound of the point cannot matter.
            if seen[point, a] >= 0 and q > lower[point]:
                value = base[point, a]
                begin = first_entry[point, a]
                for e in range(begin, begin + n_entries[point, a]):
                    value += prob[e] * (_mixed(qs, uppers, mixed, weight, first[e], size[e]) - excess[e])
                    work += 4 * (n_actions * size[e] + 1)
                q = min(q, value)
                qs[point, a] = q
            upper = max(upper, q)
        change = max(change, uppers[point] - upper)
        uppers[point] = upper
    counters[WORK] += work
    return change


@inner
def mixture_value(points: Points, scratch: Scratch, count: int, excess: float, out: Any) -> float:
    """Fill out with the upper bound per action of the mixture in scratch; return the largest."""
    value = -np.inf
    for a in range(points.q.shape[1]):
        mixed = -excess
        for k in range(count):
            mixed += scratch.weight[k] * points.q[scratch.mixed[k], a]
        out[a] = mixed
        value = max(value, mixed)
    return value

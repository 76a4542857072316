"""Which beliefs matter: those that the optimistic policy visits and whose mixtures are loose."""

from __future__ import annotations

from typing import Any

from missmdp._kernels.jit import kernel
from missmdp._kernels.sarsop.arrays import Entries, Points, Seen, Weights
from missmdp._kernels.sarsop.upper import entry_value

__all__ = ["optimistic_actions", "score_entries", "sweep_visits"]


@kernel
def optimistic_actions(points: Points, n_points: int, out: Any) -> None:
    """Fill out with the action of the largest upper bound at each point."""
    for point in range(n_points):
        best = 0
        for a in range(1, points.q.shape[1]):
            if points.q[point, a] > points.q[point, best]:
                best = a
        out[point] = best


@kernel
def sweep_visits(
    points: Points,
    seen: Seen,
    entries: Entries,
    weights: Weights,
    actions: Any,
    root: int,
    n_points: int,
    out: Any,
) -> float:
    """Set visits to one step of d = 1[root] + Pᵀ d; return the largest change. `out` is working space."""
    for point in range(n_points):
        out[point] = 0.0
    out[root] = 1.0
    for point in range(n_points):
        d = points.visits[point]
        a = actions[point]
        first_seen = points.seen[point, a]
        if d <= 0.0 or first_seen < 0:
            continue
        for j in range(first_seen, first_seen + points.n_seen[point, a]):
            out[seen.point[j]] += d * seen.prob[j]
        begin = points.entries[point, a]
        for e in range(begin, begin + points.n_entries[point, a]):
            p = d * entries.prob[e]
            for k in range(entries.first[e], entries.first[e] + entries.size[e]):
                out[weights.point[k]] += p * weights.weight[k]
    change = 0.0
    for point in range(n_points):
        change = max(change, abs(out[point] - points.visits[point]))
        points.visits[point] = out[point]
    return change


@kernel
def score_entries(
    points: Points,
    entries: Entries,
    weights: Weights,
    actions: Any,
    n_points: int,
    floor: float,
    out_score: Any,
    out_point: Any,
    out_entry: Any,
) -> int:
    """List the entries whose mixtures add more than `floor` to the gap at the start, with that score; return how many.

    The gap of an entry beyond the mixture of its points' gaps is the error of the mixture; times its expected visits,
    it is what the gap at the start owes to it.
    """
    count = 0
    for point in range(n_points):
        if points.visits[point] <= 0.0 or points.seen[point, actions[point]] < 0:
            continue
        begin = points.entries[point, actions[point]]
        for e in range(begin, begin + points.n_entries[point, actions[point]]):
            if entries.stamp[e] < 0:
                continue
            error = entry_value(points, entries, weights, e) - entries.lower[e]
            for k in range(entries.first[e], entries.first[e] + entries.size[e]):
                j = weights.point[k]
                error -= weights.weight[k] * (points.upper[j] - points.lower[j])
            score = points.visits[point] * entries.prob[e] * error
            if score > floor and count < len(out_score):
                out_score[count] = score
                out_point[count] = point
                out_entry[count] = e
                count += 1
    return count

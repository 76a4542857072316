"""Points: which beliefs matter, and new ones from an earlier search or such as the policy meets."""

from __future__ import annotations

from typing import Any

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
    Vectors,
)
from missmdp._kernels.sarsop.lower import best_vector
from missmdp._kernels.sarsop.near import hold_classes
from missmdp._kernels.sarsop.successors import clear, find_point, gather, hash_belief, mix, spread
from missmdp._kernels.sarsop.upper import entry_value, link_point, mixture_value


@inner
def add_belief(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    n: int,
    count: int,
    excess: float,
    key: int,
) -> int:
    """Make the belief in scratch a point, with the upper bounds of the mixture there; −1 if there is no room."""
    new, first = counters[POINTS], counters[SUPPORT]
    if new >= len(points.component) or first + n > len(points.support) or 2 * new >= len(points.slots):
        return -1
    points.upper[new] = mixture_value(points, scratch, count, excess, points.q[new])
    for a in range(points.q.shape[1]):
        reward = 0.0
        for k in range(n):
            reward += scratch.prob[k] * model.reward[scratch.support[k], a]
        points.reward[new, a] = reward
    for k in range(n):
        points.support[first + k] = scratch.support[k]
        points.prob[first + k] = scratch.prob[k]
    points.start[new + 1] = first + n
    counters[SUPPORT] = first + n
    counters[POINTS] = new + 1
    component = model.component_of[scratch.support[0]]
    link_point(points, new, component)
    hold_classes(points, new)
    points.best[new], points.value[new] = best_vector(
        model, vectors, component, scratch.support, scratch.prob, n, counters
    )
    points.lower[new] = points.value[new]
    points.hash[new] = key
    mask = len(points.slots) - 1
    slot = key & mask
    while points.slots[slot] >= 0:
        slot = (slot + 1) & mask
    points.slots[slot] = new
    return new


@kernel
def add_beliefs(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    start: Any,
    support: Any,
    prob: Any,
    place: int,
    budget: int,
) -> int:
    """Make beliefs points: those in rows place, place + 1, … of a sparse matrix over classes.

    Each is inside one component. Their upper bounds are those of the corners.
    Returns the next place, or −1 − place if there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(start) - 1 and counters[WORK] < stop:
        n = start[place + 1] - start[place]
        for k in range(n):
            scratch.support[k] = support[start[place] + k]
            scratch.prob[k] = prob[start[place] + k]
            scratch.mixed[k] = scratch.support[k]
            scratch.weight[k] = scratch.prob[k]
        key = hash_belief(scratch.support, scratch.prob, n)
        if (
            find_point(points, scratch.support, scratch.prob, n, key) < 0
            and add_belief(model, points, vectors, scratch, counters, n, n, 0.0, key) < 0
        ):
            return -1 - place
        counters[WORK] += n
        place += 1
    return place


@kernel
def follow_policy(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    root: int,
    draws: Any,
    place: int,
    max_points: int,
    max_steps: int,
) -> int:
    """Act by the best vectors from the start, and make the beliefs that are met points, max_points at most.

    Row place, place + 1, … of draws from [0, 1) is one episode each. It ends where they do, or where a draw says so:
    with what the discount and terminal states leave over. Returns the number of rows, or −1 − place if there is no
    room.
    """
    for episode in range(place, len(draws)):
        point = root
        for step in range(draws.shape[1]):
            if counters[POINTS] >= max_points:
                return len(draws)
            n_touched = spread(model, points, point, vectors.action[points.best[point]], scratch)
            rest = draws[episode, step]
            n = 0
            for t in range(n_touched):
                n, total = gather(model, scratch, scratch.touched[t])
                rest -= total
                if rest < 0.0 and n > 0:
                    break
            clear(model, scratch, n_touched)
            if rest >= 0.0 or n == 0:
                break
            if n == 1:
                point = scratch.support[0]
                continue
            key = hash_belief(scratch.support, scratch.prob, n)
            found = find_point(points, scratch.support, scratch.prob, n, key)
            if found < 0:
                count, excess = mix(model, points, scratch, n, max_steps, counters)
                found = add_belief(model, points, vectors, scratch, counters, n, count, excess, key)
            if found < 0:
                return -1 - episode
            point = found
    return len(draws)


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
    weights: MixtureWeights,
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
    weights: MixtureWeights,
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

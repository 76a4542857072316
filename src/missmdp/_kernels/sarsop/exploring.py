"""What can follow a point and an action, written as mixtures of points, and mixtures made better."""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    ENTRIES,
    POINTS,
    SEEN,
    WEIGHTS,
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
from missmdp._kernels.sarsop.points import add_belief
from missmdp._kernels.sarsop.successors import clear, find_point, gather, hash_belief, mix, nearly, spread
from missmdp._kernels.sarsop.upper import entry_value, mixture_value


@inner
def _place(
    entries: Entries,
    weights: MixtureWeights,
    entry: int,
    scratch: Scratch,
    count: int,
    excess: float,
    counters: Any,
) -> bool:
    """Store the mixture in scratch with an entry; return whether there was room."""
    if count > entries.room[entry]:
        if counters[WEIGHTS] + count > len(weights.point):
            return False
        entries.first[entry] = counters[WEIGHTS]
        entries.room[entry] = count
        counters[WEIGHTS] += count
    first = entries.first[entry]
    for k in range(count):
        weights.point[first + k] = scratch.mixed[k]
        weights.weight[first + k] = scratch.weight[k]
    entries.size[entry] = count
    entries.excess[entry] = excess
    return True


@inner
def _best_of_mixed(
    model: Compiled, points: Points, vectors: Vectors, scratch: Scratch, n: int, count: int
) -> float:
    """Return the largest value of the belief in scratch by a vector that is best at a point of its mixture."""
    support, prob, values = scratch.support, scratch.prob, vectors.values
    offset = model.component_start[model.component_of[support[0]]]
    best, previous = -np.inf, -1
    for i in range(count):
        k = points.best[scratch.mixed[i]]
        if k != previous:
            first = vectors.start[k] - offset
            value = 0.0
            for j in range(n):
                value += prob[j] * values[first + support[j]]
            best = max(best, value)
            previous = k
    return best


@inner
def _describe(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: MixtureWeights,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    entry: int,
    n: int,
    max_steps: int,
    before: float,
) -> bool:
    """Write the belief in scratch as an entry: the point that equals it, or a mixture if its bound is below `before`.

    Returns whether there was room.
    """
    point = find_point(points, scratch.support, scratch.prob, n, entries.hash[entry])
    if point >= 0:
        scratch.mixed[0] = point
        scratch.weight[0] = 1.0
        entries.stamp[entry] = -1
        return _place(entries, weights, entry, scratch, 1, 0.0, counters)
    component = model.component_of[scratch.support[0]]
    count, excess = mix(model, points, scratch, n, max_steps, counters)
    if before < np.inf:
        _, entries.lower[entry] = best_vector(
            model, vectors, component, scratch.support, scratch.prob, n, counters
        )
    else:
        # Good enough to tell which mixtures to look at again.
        entries.lower[entry] = _best_of_mixed(model, points, vectors, scratch, n, count)
        counters[WORK] += count * n
    entries.stamp[entry] = points.n_in_component[component]
    # The program minimises the mixture of maxima, not the maximum of mixtures, so that it may also do worse.
    if mixture_value(points, scratch, count, excess, scratch.per_action) < before:
        return _place(entries, weights, entry, scratch, count, excess, counters)
    return True


@inner
def _same_belief(model: Compiled, scratch: Scratch, node: int, n: int) -> bool:
    """Return whether the belief after a node, still in scratch.joint, is the one in scratch.support, scratch.prob."""
    total = 0.0
    for pair in range(model.node_start[node], model.node_start[node + 1]):
        total += scratch.joint[pair]
    k = 0
    for pair in range(model.node_start[node], model.node_start[node + 1]):
        p = scratch.joint[pair]
        if p > 0.0:
            if k >= n or scratch.support[k] != model.pair_class[pair]:
                return False
            if not nearly(p / total, scratch.prob[k]):
                return False
            k += 1
    return k == n


@kernel
def expand_corners(
    model: Compiled, points: Points, scratch: Scratch, counters: Any, seen: Seen, place: int, budget: int
) -> int:
    """Work out what follows corners and actions where that is corners only, as far as the budget goes.

    Begins with row `place` of the joint probabilities, and returns the next place, or −1 − place if there is no room.
    """
    n_classes, n_actions = model.reward.shape
    stop = counters[WORK] + budget
    while place < n_classes * n_actions and counters[WORK] < stop:
        corner, action = place // n_actions, place % n_actions
        first, last = model.start[place], model.start[place + 1]
        counters[WORK] += last - first + 1
        place += 1
        mixed = False
        for j in range(first + 1, last):
            mixed = mixed or model.node[j] == model.node[j - 1]
        if mixed:
            continue
        begin = counters[SEEN]
        if begin + last - first > len(seen.prob):
            return -place
        end = begin
        for j in range(first, last):
            target = model.target[j]
            if scratch.seen_at[target] < 0:
                scratch.seen_at[target] = end
                seen.point[end] = target
                seen.prob[end] = 0.0
                end += 1
            seen.prob[scratch.seen_at[target]] += model.prob[j]
        value = points.reward[corner, action]
        for j in range(begin, end):
            scratch.seen_at[seen.point[j]] = -1
            value += seen.prob[j] * points.upper[seen.point[j]]
        points.seen[corner, action] = begin
        points.n_seen[corner, action] = end - begin
        points.base[corner, action] = value
        counters[SEEN] = end
    return place


@inner
def _expand(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: MixtureWeights,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    seen: Seen,
    point: int,
    action: int,
    max_steps: int,
) -> bool:
    """Work out what follows a point and an action; return whether there was room for it."""
    begin_seen, begin, begin_weights = counters[SEEN], counters[ENTRIES], counters[WEIGHTS]
    n_touched = spread(model, points, point, action, scratch)
    fits = begin + n_touched <= len(entries.prob) and begin_seen + n_touched <= len(seen.prob)
    end_seen, end = begin_seen, begin
    for t in range(n_touched):
        if not fits:
            break
        node = scratch.touched[t]
        n, total = gather(model, scratch, node)
        if n == 1:
            corner = scratch.support[0]
            if scratch.seen_at[corner] < 0:
                scratch.seen_at[corner] = end_seen
                seen.point[end_seen] = corner
                seen.prob[end_seen] = 0.0
                end_seen += 1
            seen.prob[scratch.seen_at[corner]] += total
        elif n > 1:
            key = hash_belief(scratch.support, scratch.prob, n)
            same = -1
            for e in range(begin, end):
                if entries.hash[e] == key and _same_belief(model, scratch, entries.node[e], n):
                    same = e
            if same >= 0:
                entries.prob[same] += total
                continue
            entries.prob[end] = total
            entries.node[end] = node
            entries.hash[end] = key
            entries.room[end] = 0
            fits = _describe(
                model, points, entries, weights, vectors, scratch, counters, end, n, max_steps, np.inf
            )
            end += 1
    for j in range(begin_seen, end_seen):
        scratch.seen_at[seen.point[j]] = -1
    clear(model, scratch, n_touched)
    if not fits:
        counters[WEIGHTS] = begin_weights
        return False
    points.seen[point, action] = begin_seen
    points.n_seen[point, action] = end_seen - begin_seen
    points.entries[point, action] = begin
    points.n_entries[point, action] = end - begin
    counters[SEEN] = end_seen
    counters[ENTRIES] = end
    value = points.reward[point, action]
    for j in range(begin_seen, end_seen):
        value += seen.prob[j] * points.upper[seen.point[j]]
    points.base[point, action] = value
    return True


@kernel
def expand_points(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: MixtureWeights,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    seen: Seen,
    todo: Any,
    actions: Any,
    place: int,
    max_steps: int,
    budget: int,
) -> int:
    """Work out what follows todo[place], todo[place + 1], … and their actions, as far as the budget goes.

    Returns the next place, or −1 − place if there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(todo) and counters[WORK] < stop:
        if not _expand(
            model,
            points,
            entries,
            weights,
            vectors,
            scratch,
            counters,
            seen,
            todo[place],
            actions[place],
            max_steps,
        ):
            return -1 - place
        place += 1
    return place


@kernel
def refine_entries(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: MixtureWeights,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    of_point: Any,
    of_action: Any,
    todo: Any,
    place: int,
    fresh: float,
    max_points: int,
    max_steps: int,
    budget: int,
) -> int:
    """Make the mixtures of entries todo[place], todo[place + 1], … better, as far as the budget goes.

    An entry that has been mixed when the component had about as many points as now (a share of at least `fresh`)
    becomes a point, as long as there are fewer than max_points; others are mixed again.
    Returns the next place, or −1 − place if there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(todo) and counters[WORK] < stop:
        entry = todo[place]
        n_touched = spread(model, points, of_point[place], of_action[place], scratch)
        n, _ = gather(model, scratch, entries.node[entry])
        clear(model, scratch, n_touched)
        component = model.component_of[scratch.support[0]]
        if entries.stamp[entry] < fresh * points.n_in_component[component]:
            before = entry_value(points, entries, weights, entry)
            if not _describe(
                model, points, entries, weights, vectors, scratch, counters, entry, n, max_steps, before
            ):
                return -1 - place
        elif counters[POINTS] < max_points:
            first, count = entries.first[entry], entries.size[entry]
            new = find_point(points, scratch.support, scratch.prob, n, entries.hash[entry])
            if new < 0:
                for k in range(count):
                    scratch.mixed[k] = weights.point[first + k]
                    scratch.weight[k] = weights.weight[first + k]
                new = add_belief(
                    model,
                    points,
                    vectors,
                    scratch,
                    counters,
                    n,
                    count,
                    entries.excess[entry],
                    entries.hash[entry],
                )
            if new < 0:
                return -1 - place
            weights.point[first] = new
            weights.weight[first] = 1.0
            entries.size[entry] = 1
            entries.excess[entry] = 0.0
            entries.stamp[entry] = -1
        counters[WORK] += n
        place += 1
    return place

"""Upper bounds: the fast informed bound, with beliefs besides the corners.

U(b, a) = ρ(b, a) + Σ_z max_a′ Σ_j w_j(b, a, z) U(b_j, a′), where the points b_j mix to the (unnormalised) belief
after b, a and z. With corners only this is the fast informed bound. Each U(·, a) bounds a convex function, so
that it is sound to mix per action and to take the maximum afterwards; that is tighter than mixing the maxima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import kernel
from missmdp._kernels.sarsop.arrays import (
    ENTRIES,
    POINTS,
    SEEN,
    SUPPORT,
    WEIGHTS,
    WORK,
    Compiled,
    Entries,
    Points,
    Scratch,
    Seen,
    Vectors,
    Weights,
)
from missmdp._kernels.sarsop.lower import best_vector
from missmdp._kernels.sarsop.mixture import mix
from missmdp._kernels.sarsop.successors import clear, find_point, gather, hash_belief, spread

__all__ = [
    "add_beliefs",
    "entry_value",
    "expand_points",
    "follow_policy",
    "refine_entries",
    "start_corners",
    "sweep_mdp",
    "sweep_seen",
    "sweep_upper",
]


@kernel
def start_corners(model: Compiled, points: Points, highest: float, counters: Any) -> None:
    """Make every class a point, with an upper bound that holds everywhere."""
    for c in range(len(model.block_of)):
        points.start[c + 1] = c + 1
        points.support[c] = c
        points.prob[c] = 1.0
        _link(points, c, model.block_of[c])
        for a in range(model.reward.shape[1]):
            points.reward[c, a] = model.reward[c, a]
            points.q[c, a] = highest
        points.upper[c] = highest
        points.lower[c] = -np.inf
        points.value[c] = -np.inf
    counters[POINTS] = len(model.block_of)
    counters[SUPPORT] = len(model.block_of)


@kernel
def _link(points: Points, point: int, block: int) -> None:
    points.block[point] = block
    points.next_in_block[point] = points.first_in_block[block]
    points.first_in_block[block] = point
    points.n_in_block[block] += 1
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


@kernel
def entry_value(points: Points, entries: Entries, weights: Weights, entry: int) -> float:
    """Return the upper bound of an entry's belief."""
    first, count = entries.first[entry], entries.size[entry]
    if count == 1:
        return weights.weight[first] * points.upper[weights.point[first]]
    value = -np.inf
    for a in range(points.q.shape[1]):
        mixed = 0.0
        for k in range(first, first + count):
            mixed += weights.weight[k] * points.q[weights.point[k], a]
        value = max(value, mixed)
    return value


@kernel
def sweep_upper(points: Points, entries: Entries, weights: Weights, counters: Any, order: Any) -> float:
    """Back up the upper bounds of points in the order given; return the largest change."""
    change = 0.0
    n_actions = points.q.shape[1]
    work = 0
    for i in range(len(order)):
        point = order[i]
        upper = -np.inf
        for a in range(n_actions):
            q = points.q[point, a]
            # An action whose upper bound is below the lower bound of the point cannot matter.
            if points.seen[point, a] >= 0 and q > points.lower[point]:
                value = points.base[point, a]
                begin = points.entries[point, a]
                for e in range(begin, begin + points.n_entries[point, a]):
                    value += entries.prob[e] * entry_value(points, entries, weights, e)
                    work += 4 * (n_actions * entries.size[e] + 1)
                q = min(q, value)
                points.q[point, a] = q
            upper = max(upper, q)
        change = max(change, points.upper[point] - upper)
        points.upper[point] = upper
    counters[WORK] += work
    return change


@kernel
def _mixture_value(points: Points, scratch: Scratch, count: int, out: Any) -> float:
    """Fill out with the upper bound per action of the mixture in scratch; return the largest."""
    value = -np.inf
    for a in range(points.q.shape[1]):
        mixed = 0.0
        for k in range(count):
            mixed += scratch.weight[k] * points.q[scratch.mixed[k], a]
        out[a] = mixed
        value = max(value, mixed)
    return value


@kernel
def _place(
    entries: Entries, weights: Weights, entry: int, scratch: Scratch, count: int, counters: Any
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
    return True


@kernel
def _describe(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: Weights,
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
        return _place(entries, weights, entry, scratch, 1, counters)
    block = model.block_of[scratch.support[0]]
    _, entries.lower[entry] = best_vector(model, vectors, block, scratch.support, scratch.prob, n, counters)
    count = mix(model, points, scratch, n, max_steps, counters)
    entries.stamp[entry] = points.n_in_block[block]
    # The program minimises the mixture of maxima, not the maximum of mixtures, so that it may also do worse.
    if _mixture_value(points, scratch, count, scratch.per_action) < before:
        return _place(entries, weights, entry, scratch, count, counters)
    return True


@kernel
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
            if abs(p / total - scratch.prob[k]) > 1e-12 * scratch.prob[k] + 1e-15:
                return False
            k += 1
    return k == n


@kernel
def _expand(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: Weights,
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
    weights: Weights,
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
def _add_belief(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    n: int,
    count: int,
    key: int,
) -> int:
    """Make the belief in scratch a point, with the upper bounds of the mixture there; −1 if there is no room."""
    new, first = counters[POINTS], counters[SUPPORT]
    if new >= len(points.block) or first + n > len(points.support) or 2 * new >= len(points.slots):
        return -1
    points.upper[new] = _mixture_value(points, scratch, count, points.q[new])
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
    block = model.block_of[scratch.support[0]]
    _link(points, new, block)
    points.best[new], points.value[new] = best_vector(
        model, vectors, block, scratch.support, scratch.prob, n, counters
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
def refine_entries(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: Weights,
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

    An entry that has been mixed when the block had about as many points as now (a share of at least `fresh`) becomes a
    point, as long as there are fewer than max_points; others are mixed again.
    Returns the next place, or −1 − place if there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(todo) and counters[WORK] < stop:
        entry = todo[place]
        n_touched = spread(model, points, of_point[place], of_action[place], scratch)
        n, _ = gather(model, scratch, entries.node[entry])
        clear(model, scratch, n_touched)
        block = model.block_of[scratch.support[0]]
        if entries.stamp[entry] < fresh * points.n_in_block[block]:
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
                new = _add_belief(model, points, vectors, scratch, counters, n, count, entries.hash[entry])
            if new < 0:
                return -1 - place
            weights.point[first] = new
            weights.weight[first] = 1.0
            entries.size[entry] = 1
            entries.stamp[entry] = -1
        counters[WORK] += n
        place += 1
    return place


@kernel
def add_beliefs(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: Weights,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    start: Any,
    support: Any,
    prob: Any,
    place: int,
    max_steps: int,
    budget: int,
) -> int:
    """Make beliefs points: those in rows place, place + 1, … of a sparse matrix over classes, each inside one block.

    Returns the next place, or −1 − place if there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(start) - 1 and counters[WORK] < stop:
        n = start[place + 1] - start[place]
        for k in range(n):
            scratch.support[k] = support[start[place] + k]
            scratch.prob[k] = prob[start[place] + k]
        key = hash_belief(scratch.support, scratch.prob, n)
        if find_point(points, scratch.support, scratch.prob, n, key) < 0:
            count = mix(model, points, scratch, n, max_steps, counters)
            if _add_belief(model, points, vectors, scratch, counters, n, count, key) < 0:
                return -1 - place
        counters[WORK] += n
        place += 1
    return place


@kernel
def follow_policy(
    model: Compiled,
    points: Points,
    entries: Entries,
    weights: Weights,
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
                count = mix(model, points, scratch, n, max_steps, counters)
                found = _add_belief(model, points, vectors, scratch, counters, n, count, key)
            if found < 0:
                return -1 - episode
            point = found
    return len(draws)

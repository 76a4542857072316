"""New points: beliefs of an earlier search, or such as the policy meets."""

from __future__ import annotations

from typing import Any

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    POINTS,
    SUPPORT,
    WORK,
    Compiled,
    Points,
    Scratch,
    Vectors,
)
from missmdp._kernels.sarsop.mixture import mix
from missmdp._kernels.sarsop.successors import clear, find_point, gather, hash_belief, spread
from missmdp._kernels.sarsop.upper import link_point, mixture_value
from missmdp._kernels.sarsop.vectors import best_vector

__all__ = ["add_belief", "add_beliefs", "follow_policy"]


@inner
def add_belief(
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
    points.upper[new] = mixture_value(points, scratch, count, points.q[new])
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
    link_point(points, new, block)
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
    """Make beliefs points: those in rows place, place + 1, … of a sparse matrix over classes, each inside one block.

    Their upper bounds are those of the corners. Returns the next place, or −1 − place if there is no room.
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
            and add_belief(model, points, vectors, scratch, counters, n, n, key) < 0
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
                count = mix(model, points, scratch, n, max_steps, counters)
                found = add_belief(model, points, vectors, scratch, counters, n, count, key)
            if found < 0:
                return -1 - episode
            point = found
    return len(draws)

"""Backups of the lower bound.

A backup at a belief chooses an action and, for each node that can follow, the best vector there; the new vector is
the value of that plan in every class of the block.
"""

from __future__ import annotations

from typing import Any

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    BACKUPS,
    CHOICES,
    VALUES,
    VECTORS,
    WORK,
    Compiled,
    Points,
    Scratch,
    Vectors,
)
from missmdp._kernels.sarsop.successors import clear, gather, spread
from missmdp._kernels.sarsop.vectors import best_vector, evaluate_plan, plan_size

__all__ = ["backup_points"]


@inner
def _new_vector(
    model: Compiled, vectors: Vectors, scratch: Scratch, block: int, action: int, origin: int, counters: Any
) -> int:
    """Return a new vector for an action and then the vectors scratch.best_choice[node]; −1 if there is no room."""
    row = block * model.reward.shape[1] + action
    begin, end = model.next_start[row], model.next_start[row + 1]
    size = model.block_start[block + 1] - model.block_start[block]
    new, first, first_choice = counters[VECTORS], counters[VALUES], counters[CHOICES]
    if (
        new >= len(vectors.block)
        or first + size > len(vectors.values)
        or first_choice + end - begin > len(vectors.choice)
    ):
        return -1
    for j in range(begin, end):
        vectors.choice[first_choice + j - begin] = scratch.best_choice[model.next_node[j]]
    choice = vectors.choice[first_choice : first_choice + end - begin]
    evaluate_plan(model, vectors, scratch, block, action, choice, vectors.values[first : first + size])
    vectors.start[new] = first
    vectors.block[new] = block
    vectors.action[new] = action
    vectors.choice_start[new] = first_choice
    vectors.origin[new] = origin
    vectors.next_in_block[new] = vectors.first_in_block[block]
    vectors.first_in_block[block] = new
    counters[VECTORS] = new + 1
    counters[VALUES] = first + size
    counters[CHOICES] = first_choice + end - begin
    counters[WORK] += plan_size(model, block, action)
    return new


@inner
def _backup(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    point: int,
    tolerance: float,
) -> bool:
    """Back up the lower bound at a point, if that raises it by the tolerance; return whether there was room."""
    n_actions = model.reward.shape[1]
    block = points.block[point]
    best_action, best_value = -1, points.value[point] + tolerance
    counters[BACKUPS] += 1
    for a in range(n_actions):
        # What cannot be better than the best so far need not be worked out.
        if points.q[point, a] <= best_value:
            continue
        n_touched = spread(model, points, point, a, scratch)
        value = points.reward[point, a]
        for t in range(n_touched):
            node = scratch.touched[t]
            n, total = gather(model, scratch, node)
            if n == 0:
                scratch.choice[node] = vectors.default[node]
            elif n == 1:
                corner = scratch.support[0]
                scratch.choice[node] = points.best[corner]
                value += total * points.value[corner]
            else:
                scratch.choice[node], v = best_vector(
                    model, vectors, model.node_block[node], scratch.support, scratch.prob, n, counters
                )
                value += total * v
        if value > best_value:
            best_action, best_value = a, value
            row = block * n_actions + a
            for j in range(model.next_start[row], model.next_start[row + 1]):
                node = model.next_node[j]
                chosen = scratch.choice[node] if scratch.mark[node] else vectors.default[node]
                scratch.best_choice[node] = chosen
        clear(model, scratch, n_touched)
    if best_action < 0:
        return True
    new = _new_vector(model, vectors, scratch, block, best_action, point, counters)
    if new < 0:
        return False
    first = vectors.start[new] - model.block_start[block]
    other = points.first_in_block[block]
    while other >= 0:
        value = 0.0
        counters[WORK] += points.start[other + 1] - points.start[other]
        for k in range(points.start[other], points.start[other + 1]):
            value += points.prob[k] * vectors.values[first + points.support[k]]
        if value > points.value[other]:
            points.value[other] = value
            points.best[other] = new
            points.lower[other] = max(points.lower[other], value)
        other = points.next_in_block[other]
    return True


@kernel
def backup_points(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    todo: Any,
    place: int,
    share: float,
    budget: int,
) -> int:
    """Back up the lower bounds at todo[place], todo[place + 1], … as far as the budget goes.

    A backup counts where it closes at least a share of the point's gap. Returns the next place, or −1 − place if
    there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(todo) and counters[WORK] < stop:
        point = todo[place]
        tolerance = share * max(points.upper[point] - points.lower[point], 0.0)
        if not _backup(model, points, vectors, scratch, counters, point, tolerance):
            return -1 - place
        counters[WORK] += 1
        place += 1
    return place

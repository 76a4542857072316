"""Lower bounds: α-vectors, and the controller that they form.

A backup at a belief chooses an action and, for each node that can follow, the best vector there; the new vector is
the value of that plan in every class of the block. The choices are kept, so that a vector can be evaluated again
when those it leads to have become better: that is a sparse product instead of a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import kernel
from missmdp._kernels.sarsop.arrays import (
    BACKUPS,
    CHOICES,
    POINTS,
    VALUES,
    VECTORS,
    WORK,
    Compiled,
    Points,
    Scratch,
    Vectors,
)
from missmdp._kernels.sarsop.successors import clear, gather, spread

__all__ = [
    "backup_points",
    "best_vector",
    "choose_defaults",
    "evaluate_vectors",
    "mark_certified",
    "prune_vectors",
    "refresh_values",
    "search_values",
    "start_blind",
]


@kernel
def best_vector(
    model: Compiled, vectors: Vectors, block: int, support: Any, prob: Any, n: int, counters: Any
) -> tuple[int, float]:
    """Return the vector with the largest value at a belief inside a block, and that value."""
    best, value = -1, -np.inf
    offset = model.block_start[block]
    k = vectors.first_in_block[block]
    work = 0
    while k >= 0:
        first = vectors.start[k] - offset
        dot = 0.0
        for j in range(n):
            dot += prob[j] * vectors.values[first + support[j]]
        if dot > value:
            best, value = k, dot
        k = vectors.next_in_block[k]
        work += n
    counters[WORK] += work
    return best, value


@kernel
def choose_defaults(model: Compiled, vectors: Vectors, scratch: Scratch, counters: Any) -> None:
    """Choose the vector for nodes that a point holds impossible: the best where all classes are equally likely."""
    for node in range(len(model.node_block)):
        n = 0
        for pair in range(model.node_start[node], model.node_start[node + 1]):
            scratch.support[n] = model.pair_class[pair]
            scratch.prob[n] = 1.0
            n += 1
        vectors.default[node], _ = best_vector(
            model, vectors, model.node_block[node], scratch.support, scratch.prob, n, counters
        )


@kernel
def _evaluate_plan(
    model: Compiled, vectors: Vectors, scratch: Scratch, block: int, action: int, choice: Any, out: Any
) -> None:
    """Fill out with the value, class by class of a block, of an action and then one vector per node that can follow.

    Those are in `choice`, in the order of the nodes.
    """
    n_actions = model.reward.shape[1]
    begin, end = (
        model.next_start[block * n_actions + action],
        model.next_start[block * n_actions + action + 1],
    )
    for j in range(begin, end):
        node = model.next_node[j]
        scratch.base[node] = vectors.start[choice[j - begin]] - model.block_start[model.node_block[node]]
    offset = model.block_start[block]
    for c in range(offset, model.block_start[block + 1]):
        row = c * n_actions + action
        value = model.reward[c, action]
        for j in range(model.start[row], model.start[row + 1]):
            value += model.prob[j] * vectors.values[scratch.base[model.node[j]] + model.target[j]]
        out[c - offset] = value


@kernel
def _plan_size(model: Compiled, block: int, action: int) -> int:
    """Return what it takes to evaluate a plan, in multiplications of a search for the best vector.

    Those run through memory in order; here each one looks up a value somewhere else.
    """
    n_actions = model.reward.shape[1]
    size = 0
    for c in range(model.block_start[block], model.block_start[block + 1]):
        row = c * n_actions + action
        size += model.start[row + 1] - model.start[row]
    return 4 * size


@kernel
def start_blind(model: Compiled, vectors: Vectors, lowest: float, counters: Any) -> None:
    """Make one vector per block and action, for taking that action for ever, with a value that holds everywhere."""
    n_actions = model.reward.shape[1]
    for block in range(len(model.block_start) - 1):
        size = model.block_start[block + 1] - model.block_start[block]
        for a in range(n_actions):
            k = counters[VECTORS]
            vectors.start[k] = counters[VALUES]
            vectors.block[k] = block
            vectors.action[k] = a
            vectors.choice_start[k] = counters[CHOICES]
            vectors.origin[k] = -1
            vectors.needed[k] = True
            for j in range(size):
                vectors.values[counters[VALUES] + j] = lowest
            for j in range(
                model.next_start[block * n_actions + a], model.next_start[block * n_actions + a + 1]
            ):
                vectors.choice[counters[CHOICES]] = model.node_block[model.next_node[j]] * n_actions + a
                counters[CHOICES] += 1
            vectors.next_in_block[k] = vectors.first_in_block[block]
            vectors.first_in_block[block] = k
            counters[VALUES] += size
            counters[VECTORS] += 1


@kernel
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
    _evaluate_plan(model, vectors, scratch, block, action, choice, vectors.values[first : first + size])
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
    counters[WORK] += _plan_size(model, block, action)
    return new


@kernel
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


@kernel
def evaluate_vectors(
    model: Compiled, vectors: Vectors, scratch: Scratch, counters: Any, only_needed: bool
) -> tuple[float, float]:
    """Evaluate the plan of every vector once, or of those that the start needs, newest first.

    Returns the largest rise, and the largest fall of those that the start needs.
    """
    rise, largest = 0.0, 0.0
    n_actions = model.reward.shape[1]
    for k in range(counters[VECTORS] - 1, -1, -1):
        if only_needed and not vectors.needed[k]:
            continue
        block, action = vectors.block[k], vectors.action[k]
        row = block * n_actions + action
        first = vectors.choice_start[k]
        choice = vectors.choice[first : first + model.next_start[row + 1] - model.next_start[row]]
        size = model.block_start[block + 1] - model.block_start[block]
        _evaluate_plan(model, vectors, scratch, block, action, choice, scratch.level)
        most = 0.0
        for c in range(size):
            change = scratch.level[c] - vectors.values[vectors.start[k] + c]
            rise = max(rise, change)
            most = max(most, -change)
            vectors.values[vectors.start[k] + c] = scratch.level[c]
        vectors.fall[k] = most
        if vectors.needed[k]:
            largest = max(largest, most)
        counters[WORK] += _plan_size(model, block, action)
    return rise, largest


@kernel
def refresh_values(model: Compiled, points: Points, vectors: Vectors, n_points: int) -> None:
    """Set the value of each point to that of its best vector now."""
    for point in range(n_points):
        k = points.best[point]
        first = vectors.start[k] - model.block_start[points.block[point]]
        value = 0.0
        for j in range(points.start[point], points.start[point + 1]):
            value += points.prob[j] * vectors.values[first + points.support[j]]
        points.value[point] = value
        points.lower[point] = max(points.lower[point], value)


@kernel
def search_values(model: Compiled, points: Points, vectors: Vectors, n_points: int, counters: Any) -> None:
    """Find the best vector of each point among all."""
    for point in range(n_points):
        first, last = points.start[point], points.start[point + 1]
        points.best[point], points.value[point] = best_vector(
            model,
            vectors,
            points.block[point],
            points.support[first:last],
            points.prob[first:last],
            last - first,
            counters,
        )
        points.lower[point] = max(points.lower[point], points.value[point])


@kernel
def _redirect(
    model: Compiled, points: Points, vectors: Vectors, scratch: Scratch, counters: Any, k: int, keep: Any
) -> None:
    """Let vector k lead to vectors that are best at some point, where that costs nothing at the belief it was made for.

    Only those are in the lists of the blocks now, and have keep = 1. Nodes that are impossible there do not count.
    Where the belief is not known any more, everything stays as it is.
    """
    row = vectors.block[k] * model.reward.shape[1] + vectors.action[k]
    first = vectors.choice_start[k] - model.next_start[row]
    whole = True
    for j in range(model.next_start[row], model.next_start[row + 1]):
        whole &= keep[vectors.choice[first + j]] == 1
    if whole or vectors.origin[k] < 0:
        return
    n_touched = spread(model, points, vectors.origin[k], vectors.action[k], scratch)
    for j in range(model.next_start[row], model.next_start[row + 1]):
        old = vectors.choice[first + j]
        if keep[old] == 1:
            continue
        node = model.next_node[j]
        n = 0
        if scratch.mark[node]:
            n, _ = gather(model, scratch, node)
        if n == 0:
            vectors.choice[first + j] = vectors.default[node]
        else:
            offset = vectors.start[old] - model.block_start[vectors.block[old]]
            value = 0.0
            for i in range(n):
                value += scratch.prob[i] * vectors.values[offset + scratch.support[i]]
            new, better = best_vector(
                model, vectors, model.node_block[node], scratch.support, scratch.prob, n, counters
            )
            if better >= value:
                vectors.choice[first + j] = new
    clear(model, scratch, n_touched)


@kernel
def _relink(vectors: Vectors, n_vectors: int, keep: Any, least: int) -> None:
    for block in range(len(vectors.first_in_block)):
        vectors.first_in_block[block] = -1
    for k in range(n_vectors):
        if keep[k] >= least:
            vectors.next_in_block[k] = vectors.first_in_block[vectors.block[k]]
            vectors.first_in_block[vectors.block[k]] = k


@kernel
def prune_vectors(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    root: int,
    number: Any,
    stack: Any,
) -> None:
    """Keep the vectors that are best at some point, and those that they cannot do without.

    Also marks those that the start needs. `number` and `stack` are working space, one entry per vector.
    """
    n_vectors, n_actions = counters[VECTORS], model.reward.shape[1]
    height = 0
    for k in range(n_vectors):
        number[k] = -1
    for point in range(counters[POINTS]):
        k = points.best[point]
        if number[k] < 0:
            number[k] = 1
            stack[height] = k
            height += 1
    _relink(vectors, n_vectors, number, 1)
    choose_defaults(model, vectors, scratch, counters)
    while height > 0:
        height -= 1
        k = stack[height]
        _redirect(model, points, vectors, scratch, counters, k, number)
        row = vectors.block[k] * n_actions + vectors.action[k]
        first = vectors.choice_start[k]
        for j in range(first, first + model.next_start[row + 1] - model.next_start[row]):
            if number[vectors.choice[j]] < 0:
                number[vectors.choice[j]] = 0
                stack[height] = vectors.choice[j]
                height += 1
    _compact(model, points, vectors, counters, number)
    _mark_needed(model, vectors, points.best[root], counters[VECTORS], stack)
    for k in range(counters[VECTORS]):
        number[k] = 1
    _relink(vectors, counters[VECTORS], number, 1)


@kernel
def _compact(model: Compiled, points: Points, vectors: Vectors, counters: Any, number: Any) -> None:
    """Move the vectors with number ≥ 0 together; afterwards number[k] is where k went."""
    n_actions = model.reward.shape[1]
    new, values, choices = 0, 0, 0
    for k in range(counters[VECTORS]):
        if number[k] < 0:
            continue
        block, action = vectors.block[k], vectors.action[k]
        row = block * n_actions + action
        first, first_choice = vectors.start[k], vectors.choice_start[k]
        vectors.block[new] = block
        vectors.action[new] = action
        vectors.origin[new] = vectors.origin[k]
        vectors.start[new] = values
        vectors.choice_start[new] = choices
        for j in range(model.block_start[block + 1] - model.block_start[block]):
            vectors.values[values] = vectors.values[first + j]
            values += 1
        for j in range(model.next_start[row + 1] - model.next_start[row]):
            vectors.choice[choices] = vectors.choice[first_choice + j]
            choices += 1
        number[k] = new
        new += 1
    for j in range(choices):
        vectors.choice[j] = number[vectors.choice[j]]
    for point in range(counters[POINTS]):
        points.best[point] = number[points.best[point]]
    for node in range(len(vectors.default)):
        vectors.default[node] = number[vectors.default[node]]
    counters[VECTORS] = new
    counters[VALUES] = values
    counters[CHOICES] = choices


@kernel
def _mark_needed(model: Compiled, vectors: Vectors, root_vector: int, n_vectors: int, stack: Any) -> None:
    """Mark the vectors that the start's leads to, over any number of steps."""
    for k in range(n_vectors):
        vectors.needed[k] = False
    vectors.needed[root_vector] = True
    stack[0] = root_vector
    height = 1
    while height > 0:
        height -= 1
        k = stack[height]
        row = vectors.block[k] * model.reward.shape[1] + vectors.action[k]
        first = vectors.choice_start[k]
        for j in range(first, first + model.next_start[row + 1] - model.next_start[row]):
            chosen = vectors.choice[j]
            if not vectors.needed[chosen]:
                vectors.needed[chosen] = True
                stack[height] = chosen
                height += 1


@kernel
def mark_certified(model: Compiled, vectors: Vectors, n_vectors: int, most: float, out: Any) -> None:
    """Fill out with the vectors that are at most `most` above their plans, and all that they lead to too."""
    n_actions = model.reward.shape[1]
    for k in range(n_vectors):
        out[k] = vectors.fall[k] <= most
    changed = True
    while changed:
        changed = False
        for k in range(n_vectors):
            if out[k]:
                row = vectors.block[k] * n_actions + vectors.action[k]
                first = vectors.choice_start[k]
                for j in range(first, first + model.next_start[row + 1] - model.next_start[row]):
                    out[k] &= out[vectors.choice[j]]
                changed |= not out[k]

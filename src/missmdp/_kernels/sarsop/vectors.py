"""α-vectors: which is best where, and what their plans are worth.

A vector remembers its plan: an action and, for each node that can follow, a vector to go on with. So it can be
evaluated again when those it leads to have changed: that is a sparse product instead of a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import CHOICES, VALUES, VECTORS, WORK, Compiled, Points, Scratch, Vectors

__all__ = [
    "best_vector",
    "choose_defaults",
    "evaluate_plan",
    "evaluate_vectors",
    "plan_size",
    "refresh_values",
    "search_values",
    "start_blind",
]


@inner
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


@inner
def evaluate_plan(
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


@inner
def plan_size(model: Compiled, block: int, action: int) -> int:
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
        evaluate_plan(model, vectors, scratch, block, action, choice, scratch.level)
        most = 0.0
        for c in range(size):
            change = scratch.level[c] - vectors.values[vectors.start[k] + c]
            rise = max(rise, change)
            most = max(most, -change)
            vectors.values[vectors.start[k] + c] = scratch.level[c]
        vectors.fall[k] = most
        if vectors.needed[k]:
            largest = max(largest, most)
        counters[WORK] += plan_size(model, block, action)
    return rise, largest

"""Which vectors to keep, and which of them make a policy."""

from __future__ import annotations

from typing import Any

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    CHOICES,
    NEAR,
    POINTS,
    VALUES,
    VECTORS,
    Compiled,
    Points,
    Scratch,
    Vectors,
)
from missmdp._kernels.sarsop.lower import best_vector, choose_defaults
from missmdp._kernels.sarsop.successors import clear, gather, spread


@inner
def _redirect(
    model: Compiled, points: Points, vectors: Vectors, scratch: Scratch, counters: Any, k: int, keep: Any
) -> None:
    """Let vector k lead to vectors that are best at some point, where that costs nothing at the belief it was made for.

    Only those are in the lists of the components now, and have keep = 1. Nodes that are impossible there do not count.
    Where the belief is not known any more, everything stays as it is.
    """
    row = vectors.component[k] * model.reward.shape[1] + vectors.action[k]
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
            offset = vectors.start[old] - model.component_start[vectors.component[old]]
            value = 0.0
            for i in range(n):
                value += scratch.prob[i] * vectors.values[offset + scratch.support[i]]
            new, better = best_vector(
                model, vectors, model.node_component[node], scratch.support, scratch.prob, n, counters
            )
            if better >= value:
                vectors.choice[first + j] = new
    clear(model, scratch, n_touched)


@inner
def _relink(vectors: Vectors, n_vectors: int, keep: Any, least: int) -> None:
    for component in range(len(vectors.first_in_component)):
        vectors.first_in_component[component] = -1
    for k in range(n_vectors):
        if keep[k] >= least:
            vectors.next_in_component[k] = vectors.first_in_component[vectors.component[k]]
            vectors.first_in_component[vectors.component[k]] = k


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
    redirect: bool,
) -> None:
    """Keep the vectors that are best at some point, and those that they cannot do without.

    With `redirect`, plans change so that they can do without more. Also marks those that the start needs.
    `number` and `stack` are working space, one entry per vector.
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
        if redirect:
            _redirect(model, points, vectors, scratch, counters, k, number)
        row = vectors.component[k] * n_actions + vectors.action[k]
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


@inner
def _compact(model: Compiled, points: Points, vectors: Vectors, counters: Any, number: Any) -> None:
    """Move the vectors with number ≥ 0 together; afterwards number[k] is where k went."""
    n_actions = model.reward.shape[1]
    new, values, choices = 0, 0, 0
    for k in range(counters[VECTORS]):
        if number[k] < 0:
            continue
        component, action = vectors.component[k], vectors.action[k]
        row = component * n_actions + action
        first, first_choice = vectors.start[k], vectors.choice_start[k]
        vectors.component[new] = component
        vectors.action[new] = action
        vectors.origin[new] = vectors.origin[k]
        vectors.start[new] = values
        vectors.choice_start[new] = choices
        for j in range(model.component_start[component + 1] - model.component_start[component]):
            vectors.values[values] = vectors.values[first + j]
            vectors.planned[values] = vectors.planned[first + j]
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
    if len(vectors.near) > 0:
        for entry in range(len(model.component_of), counters[NEAR]):
            vectors.near[entry, 0] = number[vectors.near[entry, 0]]
    counters[VECTORS] = new
    counters[VALUES] = values
    counters[CHOICES] = choices


@inner
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
        row = vectors.component[k] * model.reward.shape[1] + vectors.action[k]
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
                row = vectors.component[k] * n_actions + vectors.action[k]
                first = vectors.choice_start[k]
                for j in range(first, first + model.next_start[row + 1] - model.next_start[row]):
                    out[k] &= out[vectors.choice[j]]
                changed |= not out[k]

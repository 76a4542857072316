"""Where a search with bounds goes: to the action of the highest upper bound, and the observation of the widest gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.beliefs import Belief
from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.online.expanding import (
    EXPANSIONS,
    NODES,
    PARTICLES,
    SAMPLED,
    BoundedModel,
    Limits,
    Tree,
    Work,
    add_bounds,
    believe,
    best_bounds,
    expand,
    reduce_to,
    uniform_of,
)
from missmdp._kernels.random import WEYL, mix

ROOT = 0
PART = 0.95
"""Of the gap at the root: what a node may have, as seen from there, and not be looked at (Somani et al., 2013)."""
CLOSED = 1e-9
"""Of the bounds at the root: a gap that is rounding."""


@inner
def _plant(model: BoundedModel, tree: Tree, work: Work, belief: Belief, limits: Limits, u: float) -> Any:
    """Begin a tree at a belief; return how many particles stand for it, which are left in `work`.

    The bounds of the root are those that are known without a search, true ones, of the whole belief. With none of it
    outside terminal states, 0 is returned, and there is nothing to search.
    """
    tree.counters[:] = 0
    tree.counters[NODES] = 1
    tree.edge[ROOT], tree.expansion[ROOT], tree.chance[ROOT] = -1, -1, 1.0
    work.total[:] = 0.0
    size = np.int64(0)
    for i in range(belief.size[0]):
        state, weight = np.int64(belief.state[i]), belief.weight[i]
        if not model.terminal[state]:
            add_bounds(model, work, state, weight)
            work.state[size], work.weight[size] = state, weight
            size += 1
    upper, lower = best_bounds(model, work)
    tree.upper[ROOT], tree.lower[ROOT] = upper, lower
    tree.known[0], tree.known[1] = lower, upper
    kept = reduce_to(work.state, work.weight, size, limits.particles, u)
    if kept < size:
        tree.counters[SAMPLED] = 1
    return kept


@inner
def _has_room(model: BoundedModel, tree: Tree, limits: Limits) -> bool:
    """Return whether one more expansion fits, however large; rounding may leave one more than asked for."""
    found = min(limits.listed, len(model.terminal))
    particles = tree.counters[PARTICLES] + model.n_actions * (limits.particles + 1) + found
    return (
        tree.counters[EXPANSIONS] < len(tree.owner)
        and tree.counters[NODES] + model.n_actions * (limits.branches + 1) <= len(tree.upper)
        and particles <= len(tree.part_state)
    )


@inner
def _widest(model: BoundedModel, tree: Tree, allowed: float, max_depth: int) -> Any:
    """Return the node where the search goes on; −1 if there is none, or only beyond the depth."""
    n_actions = model.n_actions
    node = np.int64(ROOT)
    depth = 0
    while tree.expansion[node] >= 0:
        if depth == max_depth:
            return -1
        first = tree.expansion[node] * n_actions
        best = first
        for edge in range(first, first + n_actions):
            if tree.edge_upper[edge] > tree.edge_upper[best]:
                best = edge
        depth += 1
        allowed /= max(model.discount, 1e-300)
        widest, most, node, other = 0.0, 0.0, -1, -1
        for child in range(tree.edge_first[best], tree.edge_first[best] + tree.edge_children[best]):
            gap = tree.upper[child] - tree.lower[child]
            if tree.chance[child] * (gap - allowed) > widest:
                widest, node = tree.chance[child] * (gap - allowed), child
            if tree.chance[child] * gap > most:
                most, other = tree.chance[child] * gap, child
        if node < 0:  # only where a sample stands for all
            node = other
        if node < 0:
            return -1
    return node


@inner
def _back_up(model: BoundedModel, tree: Tree, node: Any, upper: Any, lower: Any) -> None:
    """Tell all nodes above that the bounds of a node were `upper` and `lower`, and are others now."""
    n_actions = model.n_actions
    while node != ROOT:
        edge = tree.edge[node]
        scale = model.discount * tree.chance[node]
        tree.edge_upper[edge] += scale * (tree.upper[node] - upper)
        tree.edge_lower[edge] += scale * (tree.lower[node] - lower)
        node = tree.owner[edge // n_actions]
        upper, lower = tree.upper[node], tree.lower[node]
        first = tree.expansion[node] * n_actions
        high, low = -np.inf, -np.inf
        for i in range(first, first + n_actions):
            high, low = max(high, tree.edge_upper[i]), max(low, tree.edge_lower[i])
        tree.upper[node], tree.lower[node] = min(upper, high), max(lower, low)


@kernel
def grow(
    model: BoundedModel,
    tree: Tree,
    work: Work,
    belief: Belief,
    limits: Limits,
    max_depth: int,
    key: Any,
    count: int,
) -> int:
    """Expand up to `count` nodes; return how many, which is fewer where the gap is closed or there is no room.

    The first is the root, which is `belief`; a tree without expansions is begun anew. Expansion i draws from
    mix(key + i WEYL), however many there are in one call.
    """
    size = np.int64(0)
    if tree.counters[EXPANSIONS] == 0:
        size = _plant(model, tree, work, belief, limits, uniform_of(key))
        if size == 0:
            return 0
    for done in range(count):
        if not _has_room(model, tree, limits):
            return done
        node = np.int64(ROOT)
        if tree.counters[EXPANSIONS] > 0:
            upper, lower = tree.upper[ROOT], tree.lower[ROOT]
            if upper - lower <= CLOSED * (abs(upper) + abs(lower)):
                return done
            node = _widest(model, tree, PART * (upper - lower), max_depth)
            if node < 0:
                return done
            size = believe(model, tree, work, node)
        upper, lower = tree.upper[node], tree.lower[node]
        expand(model, tree, work, node, size, limits, mix(key + np.uint64(tree.counters[EXPANSIONS]) * WEYL))
        _back_up(model, tree, node, upper, lower)
    return count

"""Where a search with bounds goes: to the action of the highest upper bound, and the observation of the widest gap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
)
from missmdp._kernels.random import WEYL, mix

ROOT = 0


@kernel
def plant(model: BoundedModel, tree: Tree, work: Work, belief: Belief, limits: Limits, u: float, out: NDArray[Any]) -> int:
    """Begin a tree at a belief; return how many particles stand for it, which are left in `work`.

    `out` (2, A) gets the bounds of the actions that are known without a search: true ones, of the whole belief.
    """
    n_actions = model.n_actions
    tree.counters[:] = 0
    tree.counters[NODES] = 1
    tree.edge[ROOT], tree.expansion[ROOT], tree.chance[ROOT] = -1, -1, 1.0
    work.total[:] = 0.0
    size, total = 0, 0.0
    for i in range(belief.size[0]):
        state, weight = np.int64(belief.state[i]), belief.weight[i]
        if model.terminal[state]:
            continue
        add_bounds(model, work, state, weight)
        work.state[size], work.weight[size] = state, weight
        size += 1
        total += weight
    for a in range(n_actions):
        out[0, a], out[1, a] = work.total[a], work.total[n_actions + a]
    tree.upper[ROOT], tree.lower[ROOT] = best_bounds(model, work)
    kept = reduce_to(work.state, work.weight, size, limits.particles, u)
    if kept < size:
        tree.counters[SAMPLED] = 1
    return kept


@inner
def _widest(model: BoundedModel, tree: Tree, allowed: float, max_depth: int) -> int:
    """Return the node where the search goes on; −1 if all gaps are small."""
    n_actions = model.n_actions
    node = ROOT
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
        allowed /= model.discount
        widest, node = 0.0, -1
        for child in range(tree.edge_first[best], tree.edge_first[best] + tree.edge_children[best]):
            excess = tree.chance[child] * (tree.upper[child] - tree.lower[child] - allowed)
            if excess > widest:
                widest, node = excess, child
        if node < 0:
            return -1
    return node


@inner
def _back_up(model: BoundedModel, tree: Tree, node: int, upper: float, lower: float) -> None:
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
    limits: Limits,
    at_root: Limits,
    root_size: int,
    max_depth: int,
    part: float,
    key: Any,
    count: int,
) -> int:
    """Expand up to `count` nodes; return how many, which is fewer where the gap is closed or there is no room."""
    for done in range(count):
        node = ROOT
        if tree.expansion[ROOT] >= 0:
            node = _widest(model, tree, part * (tree.upper[ROOT] - tree.lower[ROOT]), max_depth)
        if node < 0:
            return done
        x = mix(key + np.uint64(tree.counters[EXPANSIONS]) * WEYL)
        upper, lower = tree.upper[node], tree.lower[node]
        if node == ROOT:
            expand(model, tree, work, ROOT, root_size, at_root, x)
            continue
        size = believe(model, tree, work, node)
        expand(model, tree, work, node, size, limits, x)
        _back_up(model, tree, node, upper, lower)
    return count

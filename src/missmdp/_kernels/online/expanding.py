"""What follows a belief: weighted particles for each action, and a child for each observation or for some of them.

A belief is a list of states with weights. Where the successors of a belief, or its observations, are few, all are
listed. Otherwise a few stand for all, without bias: those of high probability stand for themselves, and the others are
drawn with probabilities in proportion to theirs (Fearnhead and Clifford, 2003). The counter `SAMPLED` tells one from
the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner
from missmdp._kernels.random import WEYL, mix

_S11 = np.uint64(11)
_UNIT = 2.0**-53
_TINY = 1e-250
"""What is less probable than this is left out, before it underflows."""

NODES, EXPANSIONS, PARTICLES, SAMPLED, LENGTH = 0, 1, 2, 3, 4
"""Places in `Tree.counters`: how many there are, whether anything was sampled; and how many places there are."""


class BoundedModel(NamedTuple):
    """The model that is searched, with bounds for every state and action."""

    start: NDArray[np.int64]
    """T(· | s, a) has its targets at start[s · n_actions + a] …"""
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    seen_start: NDArray[np.int64]
    """O(· | s, a) has its observations, in order, at seen_start[s · n_watched + w] …; w is a, or 0 if O does not
    depend on the action."""
    seen: NDArray[np.int32]
    seen_probability: NDArray[np.float64]
    terminal: NDArray[np.bool_]
    bounds: NDArray[np.float64]
    """For each state s: Q(s, a) of the upper bound U; Y(s, a), which is worth a and then the simple policy; U(s); then
    the values of other policies that do not see the state; shape (S, 2A + 1 + n)."""
    simple: NDArray[np.int32]
    """What the simple policy does on each observation, shape (Z,)."""
    n_actions: int
    n_watched: int
    discount: float


class Limits(NamedTuple):
    """How much is kept of a belief."""

    particles: int
    branches: int
    """Children per action."""
    listed: int
    """Successors, or pairs of a successor and an observation, that are all looked at; beyond that they are drawn."""


class Work(NamedTuple):
    """Room to work; `mass` and `chance` are 0 between calls."""

    state: NDArray[np.int32]
    """A belief: the first n, shape (S,)."""
    weight: NDArray[np.float64]
    mass: NDArray[np.float64]
    """Shape (S,)."""
    touched: NDArray[np.int32]
    """Shape (S,)."""
    chance: NDArray[np.float64]
    """Shape (Z,)."""
    seen: NDArray[np.int32]
    """Observations, and their probabilities, shape (Z,)."""
    share: NDArray[np.float64]
    total: NDArray[np.float64]
    """Sums over a belief, as `BoundedModel.bounds` has them, shape (2A + 1 + n,)."""


class Tree(NamedTuple):
    """Nodes are beliefs after an observation. Expansion e has the edges e · A …, one per action."""

    upper: NDArray[np.float64]
    """Of each node; shape (nodes,)."""
    lower: NDArray[np.float64]
    chance: NDArray[np.float64]
    """The probability of the node's observation after the edge that it hangs on, terminal states left out."""
    edge: NDArray[np.int64]
    """That edge; −1 for the root."""
    seen: NDArray[np.int32]
    expansion: NDArray[np.int32]
    """Which expansion has the edges of the node; −1 for none."""
    owner: NDArray[np.int64]
    """The node of an expansion, shape (expansions,)."""
    edge_upper: NDArray[np.float64]
    """Shape (expansions · A,)."""
    edge_lower: NDArray[np.float64]
    edge_first: NDArray[np.int64]
    """The first child of each edge; they follow each other."""
    edge_children: NDArray[np.int32]
    part_first: NDArray[np.int64]
    """The first particle of each edge, before the observation; they follow each other."""
    parts: NDArray[np.int32]
    part_state: NDArray[np.int32]
    part_weight: NDArray[np.float64]
    """Sums to the probability that the episode goes on."""
    counters: NDArray[np.int64]
    known: NDArray[np.float64]
    """(lower, upper) of the root before it was searched."""


@inner
def uniform_of(x: Any) -> float:
    """Return a number in [0, 1) from a random word."""
    return np.float64(mix(x) >> _S11) * _UNIT


@inner
def reduce_to(index: NDArray[np.int32], weight: NDArray[np.float64], size: Any, most: int, u: float) -> int:
    """Leave at most `most` of the first `size` pairs of index and weight, without bias; return how many.

    Each keeps its weight, or has the probability weight/c to stay with weight c. The sum of the weights stays.
    """
    if size <= most:
        return size
    kept, small = 0, 0.0
    for i in range(size):
        small += weight[i]
    level = small / most
    while True:
        large, rest = 0, 0.0
        for i in range(size):
            if weight[i] >= level:
                large += 1
            else:
                rest += weight[i]
        if large <= kept or large >= most:  # rounding could go round in circles
            break
        kept, level = large, rest / (most - large)
    out = 0
    due = u * level
    for i in range(size):
        if weight[i] >= level:
            index[out], weight[out] = index[i], weight[i]
            out += 1
            continue
        due -= weight[i]
        if due < 0.0:
            due += level
            index[out], weight[out] = index[i], level
            out += 1
    return out


@inner
def likelihood(model: BoundedModel, state: Any, action: Any, seen: Any) -> Any:
    """Return O(z | s, a)."""
    row = state * model.n_watched + (action if model.n_watched > 1 else 0)
    low, high = model.seen_start[row], model.seen_start[row + 1]
    while low < high:
        middle = (low + high) // 2
        if model.seen[middle] < seen:
            low = middle + 1
        else:
            high = middle
    if low < model.seen_start[row + 1] and model.seen[low] == seen:
        return model.seen_probability[low]
    return 0.0


@inner
def add_bounds(model: BoundedModel, work: Work, state: Any, weight: float) -> None:
    """Add the bounds of a state to work.total."""
    for k in range(len(work.total)):
        work.total[k] += weight * model.bounds[state, k]


@inner
def best_bounds(model: BoundedModel, work: Work) -> tuple[float, float]:
    """Return the upper and the lower bound of the belief whose sums are in work.total."""
    upper, lower = -np.inf, -np.inf
    for k in range(model.n_actions):
        upper = max(upper, work.total[k])
    for k in range(model.n_actions, len(work.total)):
        if k != 2 * model.n_actions:
            lower = max(lower, work.total[k])
    return min(upper, work.total[2 * model.n_actions]), lower


@inner
def believe(model: BoundedModel, tree: Tree, work: Work, node: Any) -> Any:
    """Fill work.state, .weight and .total with the belief at a node below the root; return its size."""
    edge = tree.edge[node]
    action = edge % model.n_actions
    first = tree.part_first[edge]
    size, total = 0, 0.0
    for j in range(first, first + tree.parts[edge]):
        state = np.int64(tree.part_state[j])
        mass = tree.part_weight[j] * likelihood(model, state, action, np.int64(tree.seen[node]))
        if mass > 0.0:
            work.state[size], work.weight[size] = state, mass
            size += 1
            total += mass
    work.total[:] = 0.0
    for i in range(size):
        work.weight[i] /= total
        add_bounds(model, work, np.int64(work.state[i]), work.weight[i])
    return size


@inner
def _move(
    model: BoundedModel, work: Work, size: int, action: int, limits: Limits, x: Any
) -> tuple[int, bool]:
    """Fill work.touched and work.mass with the successors that are not terminal; return how many, and if all."""
    entries = 0
    for i in range(size):
        row = np.int64(work.state[i]) * model.n_actions + action
        entries += model.start[row + 1] - model.start[row]
    found = 0
    every = entries <= limits.listed
    due = 0.0 if every else uniform_of(x)  # the next draw, in units of a particle
    for i in range(size):
        row = np.int64(work.state[i]) * model.n_actions + action
        weight = work.weight[i]
        scaled = weight * limits.particles
        draws = 0
        if not every:
            if due >= scaled:
                due -= scaled
                continue
            draws = np.int64(np.ceil(scaled - due))
            due += draws - scaled
            x += WEYL
        place, step = uniform_of(x), 0.0
        place, step = (place / draws, 1.0 / draws) if draws > 0 else (0.0, 0.0)
        for j in range(model.start[row], model.start[row + 1]):
            share = model.probability[j] * weight
            if not every:
                place -= model.probability[j]
                last = j == model.start[row + 1] - 1
                hits = 0
                while draws > 0 and (place < 0.0 or last):
                    place += step
                    draws -= 1
                    hits += 1
                if hits == 0:
                    continue
                share = hits / limits.particles
            state = model.target[j]
            if share >= _TINY and not model.terminal[state]:
                if work.mass[state] == 0.0:
                    work.touched[found] = state
                    found += 1
                work.mass[state] += share
    return found, every


@inner
def _list_observations(
    model: BoundedModel, tree: Tree, work: Work, edge: int, limits: Limits, x: Any
) -> tuple[Any, bool]:
    """Fill work.seen and work.share with observations after an edge; return how many, and if all."""
    action = edge % model.n_actions
    watched = action if model.n_watched > 1 else 0
    first, last = tree.part_first[edge], tree.part_first[edge] + tree.parts[edge]
    entries = 0
    total = 0.0
    for j in range(first, last):
        row = np.int64(tree.part_state[j]) * model.n_watched + watched
        entries += model.seen_start[row + 1] - model.seen_start[row]
        total += tree.part_weight[j]
    found = np.int64(0)
    if entries <= limits.listed:
        for j in range(first, last):
            row = np.int64(tree.part_state[j]) * model.n_watched + watched
            for i in range(model.seen_start[row], model.seen_start[row + 1]):
                z = model.seen[i]
                share = tree.part_weight[j] * model.seen_probability[i]
                if share < _TINY:
                    continue
                if work.chance[z] == 0.0:
                    work.seen[found] = z
                    found += 1
                work.chance[z] += share
        for i in range(found):
            z = work.seen[i]
            work.share[i] = work.chance[z]
            work.chance[z] = 0.0
        kept = reduce_to(work.seen, work.share, found, limits.branches, uniform_of(x))
        return kept, kept == found
    each = total / limits.branches
    due = each * uniform_of(x)
    for j in range(first, last):
        due -= tree.part_weight[j]
        while due < 0.0:
            due += each
            x += WEYL
            z = _draw_observation(
                model, np.int64(tree.part_state[j]) * model.n_watched + watched, uniform_of(x)
            )
            if work.chance[z] == 0.0:
                work.seen[found] = z
                found += 1
            work.chance[z] += each
    for i in range(found):
        z = work.seen[i]
        work.share[i] = work.chance[z]
        work.chance[z] = 0.0
    return found, False


@inner
def _draw_observation(model: BoundedModel, row: Any, u: float) -> Any:
    last = model.seen_start[row + 1] - 1
    for i in range(model.seen_start[row], last):
        u -= model.seen_probability[i]
        if u < 0.0:
            return model.seen[i]
    return model.seen[last]


@inner
def _add_child(
    model: BoundedModel, tree: Tree, work: Work, edge: int, seen: Any, chance: float
) -> tuple[Any, Any]:
    """Add a node; return what it adds to the bounds of its edge, beyond what is known without a search."""
    n_actions = model.n_actions
    action = edge % n_actions
    first = tree.part_first[edge]
    work.total[:] = 0.0
    mass = 0.0
    for j in range(first, first + tree.parts[edge]):
        state = np.int64(tree.part_state[j])
        weight = tree.part_weight[j] * likelihood(model, state, action, np.int64(seen))
        if weight > 0.0:
            mass += weight
            add_bounds(model, work, state, weight)
    if mass < _TINY:
        return 0.0, 0.0
    upper, lower = best_bounds(model, work)
    node = tree.counters[NODES]
    tree.counters[NODES] += 1
    tree.upper[node], tree.lower[node] = upper / mass, lower / mass
    tree.chance[node] = chance
    tree.edge[node], tree.seen[node], tree.expansion[node] = edge, seen, -1
    scale = model.discount * chance / mass
    return (
        scale * (upper - work.total[2 * n_actions]),
        scale * (lower - work.total[n_actions + model.simple[seen]]),
    )


@inner
def expand(model: BoundedModel, tree: Tree, work: Work, node: Any, size: Any, limits: Limits, x: Any) -> None:
    """Add what follows a node whose belief is in `work`; its bounds are those of the edges then.

    The bounds of an edge start from those of `BoundedModel.bounds`, which are exact for the belief. Children are only
    asked by how much they differ from what these assume, so draws add little noise.
    """
    n_actions = model.n_actions
    expansion = tree.counters[EXPANSIONS]
    tree.counters[EXPANSIONS] += 1
    tree.owner[expansion] = node
    tree.expansion[node] = expansion
    first = expansion * n_actions
    for a in range(n_actions):
        tree.edge_upper[first + a], tree.edge_lower[first + a] = work.total[a], work.total[n_actions + a]
    for a in range(n_actions):
        edge = first + a
        found, every = _move(model, work, size, a, limits, x)
        begin = tree.counters[PARTICLES]
        for i in range(found):
            state = work.touched[i]
            tree.part_state[begin + i], tree.part_weight[begin + i] = state, work.mass[state]
            work.mass[state] = 0.0
        kept = reduce_to(
            tree.part_state[begin:], tree.part_weight[begin:], found, limits.particles, uniform_of(x + WEYL)
        )
        tree.part_first[edge], tree.parts[edge] = begin, kept
        tree.counters[PARTICLES] += kept
        tree.edge_first[edge] = tree.counters[NODES]
        shown, all_seen = _list_observations(model, tree, work, edge, limits, x + WEYL + WEYL)
        if not (every and kept == found and all_seen):
            tree.counters[SAMPLED] = 1
        for i in range(shown):
            up, low = _add_child(model, tree, work, edge, work.seen[i], work.share[i])
            tree.edge_upper[edge] += up
            tree.edge_lower[edge] += low
        tree.edge_children[edge] = tree.counters[NODES] - tree.edge_first[edge]
    upper, lower = -np.inf, -np.inf
    for edge in range(first, first + n_actions):
        upper, lower = max(upper, tree.edge_upper[edge]), max(lower, tree.edge_lower[edge])
    tree.upper[node], tree.lower[node] = min(tree.upper[node], upper), max(tree.lower[node], lower)

"""A finite controller in a miss-MDP: values of (node, class of states), with nature on either side.

Nature may move up to ε(s) of the probability of the patterns of state s, each time anew: from those after which the
controller does best to the one after which it does worst, or the other way round. With ε = 0 that is the value itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel


class Product(NamedTuple):
    """Shapes: K nodes, C classes of states with the same future, A actions, S states."""

    action: NDArray[np.int64]
    """(K,), −1 for a root that waits for the first observation."""
    node_start: NDArray[np.int64]
    node_sight: NDArray[np.int64]
    successor: NDArray[np.int64]
    """As in `ControllerPlan`."""
    root: int
    n_sights: int
    start: NDArray[np.int64]
    """(C · A + 1,): what follows class c and action a is start[c · A + a] …"""
    state: NDArray[np.int32]
    prob: NDArray[np.float64]
    """γ T(s′ | s, a); terminal states are left out."""
    class_of: NDArray[np.int64]
    """(S,), −1 for terminal states."""
    seen_start: NDArray[np.int64]
    """(S + 1,): the patterns of state s with a probability or a sight, or that are counted, are seen_start[s] …"""
    seen_sight: NDArray[np.int64]
    seen_prob: NDArray[np.float64]
    seen_listed: NDArray[np.bool_]
    """Whether the pattern is one that is counted."""
    seen_default: NDArray[np.int64]
    """The node where a plan has none for the sight."""
    other_start: NDArray[np.int64]
    """(S + 1,): where the other patterns of state s lead, from every node."""
    other_node: NDArray[np.int64]


class Against(NamedTuple):
    """What is earned, and what nature may do."""

    reward: NDArray[np.float64]
    """(C, A)"""
    charge: NDArray[np.float64]
    """(S,): earned besides when state s is entered, and observed."""
    epsilon: NDArray[np.float64]
    """(S,): how much probability nature may move."""
    unlisted: NDArray[np.float64]
    """(S,): how much of it to patterns that nobody counts."""
    sign: float
    """1 if nature makes the value small, −1 if large."""
    beyond: NDArray[np.float64]
    """(S,): sign × the worst value after patterns that are not listed, infinite where all are."""


@inner
def _spread(product: Product, node: int, next_of: Any, stamp: Any) -> None:
    for j in range(product.node_start[node], product.node_start[node + 1]):
        next_of[product.node_sight[j]] = product.successor[j]
        stamp[product.node_sight[j]] = node


@inner
def _follows(sight: Any, default: Any, node: int, next_of: Any, stamp: Any) -> int:
    return int(next_of[sight]) if sight >= 0 and stamp[sight] == node else int(default)


@inner
def _elsewhere(product: Product, against: Against, values: Any) -> Any:
    """Return sign × the worst value after patterns that lead to the same node from everywhere, shape (S,)."""
    worst = against.beyond.copy()
    for s in range(len(worst)):
        if against.epsilon[s] > 0.0:
            c = product.class_of[s]
            for j in range(product.other_start[s], product.other_start[s + 1]):
                worst[s] = min(worst[s], against.sign * values[product.other_node[j], c])
    return worst


@inner
def _moved(level: Any, n: int, budget: float, lowest: float) -> float:
    """Take probability from where values are highest to where they are lowest, and return what that costs."""
    cost = 0.0
    while budget > 0.0:
        best = -1
        for i in range(n):
            if level[1, i] > 0.0 and (best < 0 or level[0, i] > level[0, best]):
                best = i
        if best < 0 or level[0, best] <= lowest:
            break
        moved = min(budget, level[1, best])
        cost += moved * (level[0, best] - lowest)
        level[1, best] -= moved
        budget -= moved
    return cost


@inner
def _after(
    product: Product,
    against: Against,
    node: int,
    s: int,
    elsewhere: float,
    values: Any,
    next_of: Any,
    stamp: Any,
    level: Any,
) -> float:
    """Return the value after the observation of state s at a node; level[2, patterns] is scratch."""
    c = product.class_of[s]
    first, n = product.seen_start[s], product.seen_start[s + 1] - product.seen_start[s]
    lowest, total = np.inf, 0.0
    for i in range(n):
        j = first + i
        value = (
            against.sign
            * values[_follows(product.seen_sight[j], product.seen_default[j], node, next_of, stamp), c]
        )
        level[0, i], level[1, i] = value, product.seen_prob[j]
        total += level[1, i] * value
        if product.seen_listed[j]:
            lowest = min(lowest, value)
        else:
            elsewhere = min(elsewhere, value)
    budget = against.epsilon[s]
    if elsewhere < lowest:
        moved = min(budget, against.unlisted[s])
        total -= _moved(level, n, moved, elsewhere)
        budget -= moved
    return float(against.sign * (total - _moved(level, n, budget, lowest)) + against.charge[s])


@inner
def _widest(start: NDArray[np.int64]) -> int:
    """Return the most entries of any row."""
    most = 0
    for row in range(len(start) - 1):
        most = max(most, start[row + 1] - start[row])
    return most


@kernel
def sweep_pairs(product: Product, against: Against, needed: Any, values: Any) -> tuple[float, float]:
    """Bring values[K, C] up to date where needed[K, C], in place; return the largest rise and the largest fall."""
    n_actions, n_states = against.reward.shape[1], len(product.class_of)
    next_of, stamp = np.empty(product.n_sights, np.int64), np.full(product.n_sights, -1, np.int64)
    known, at = np.empty(n_states), np.full(n_states, -1, np.int64)
    level = np.empty((2, _widest(product.seen_start)))
    # As of now for the whole sweep: it does not matter for a bound whether a value is this sweep's or the last one's.
    elsewhere = _elsewhere(product, against, values)
    rise, fall = 0.0, 0.0
    for node in range(len(product.action) - 1, -1, -1):
        action = product.action[node]
        if action < 0:
            continue
        _spread(product, node, next_of, stamp)
        for c in range(needed.shape[1]):
            if not needed[node, c]:
                continue
            value = against.reward[c, action]
            row = c * n_actions + action
            for j in range(product.start[row], product.start[row + 1]):
                s = product.state[j]
                if at[s] != node:
                    known[s] = _after(product, against, node, s, elsewhere[s], values, next_of, stamp, level)
                    at[s] = node
                value += product.prob[j] * known[s]
            rise = max(rise, value - values[node, c])
            fall = max(fall, values[node, c] - value)
            values[node, c] = value
    return rise, fall


@kernel
def start_value(product: Product, against: Against, initial: NDArray[np.float64], values: Any) -> float:
    """Return the value at the start, b₀ = initial[S]."""
    next_of, stamp = np.empty(product.n_sights, np.int64), np.full(product.n_sights, -1, np.int64)
    level = np.empty((2, _widest(product.seen_start)))
    _spread(product, product.root, next_of, stamp)
    elsewhere = _elsewhere(product, against, values)
    total = 0.0
    for s in range(len(initial)):
        if initial[s] > 0.0 and product.class_of[s] >= 0:
            if product.action[product.root] < 0:
                total += initial[s] * _after(
                    product, against, product.root, s, elsewhere[s], values, next_of, stamp, level
                )
            else:
                total += initial[s] * values[product.root, product.class_of[s]]
    return total


@inner
def _meet(node: int, c: int, needed: Any, stack: Any, height: int) -> int:
    if not needed[node, c]:
        needed[node, c] = True
        stack[height, 0], stack[height, 1] = node, c
        height += 1
    return height


@inner
def _enter(
    product: Product,
    epsilon: Any,
    node: int,
    s: int,
    needed: Any,
    stack: Any,
    height: int,
    next_of: Any,
    stamp: Any,
) -> int:
    """Mark what can follow the observation of state s at a node."""
    c = product.class_of[s]
    for j in range(product.seen_start[s], product.seen_start[s + 1]):
        if product.seen_prob[j] > 0.0 or epsilon[s] > 0.0:
            follows = _follows(product.seen_sight[j], product.seen_default[j], node, next_of, stamp)
            height = _meet(follows, c, needed, stack, height)
    if epsilon[s] > 0.0:
        for j in range(product.other_start[s], product.other_start[s + 1]):
            height = _meet(product.other_node[j], c, needed, stack, height)
    return height


@kernel
def reach_pairs(
    product: Product,
    epsilon: NDArray[np.float64],
    initial: NDArray[np.float64],
    n_actions: int,
    needed: Any,
    stack: Any,
) -> int:
    """Mark in needed[K, C] the pairs that can be met from the start on, and return how many; stack[K · C, 2]."""
    next_of, stamp = np.empty(product.n_sights, np.int64), np.full(product.n_sights, -1, np.int64)
    height, count = 0, 0
    _spread(product, product.root, next_of, stamp)
    for s in range(len(initial)):
        if initial[s] > 0.0 and product.class_of[s] >= 0:
            if product.action[product.root] < 0:
                height = _enter(product, epsilon, product.root, s, needed, stack, height, next_of, stamp)
            else:
                height = _meet(product.root, product.class_of[s], needed, stack, height)
    while height > 0:
        height -= 1
        count += 1
        node, c = stack[height, 0], stack[height, 1]
        if product.action[node] < 0:
            continue
        _spread(product, node, next_of, stamp)
        row = c * n_actions + product.action[node]
        for j in range(product.start[row], product.start[row + 1]):
            height = _enter(product, epsilon, node, product.state[j], needed, stack, height, next_of, stamp)
    return count

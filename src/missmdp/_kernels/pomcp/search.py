"""PO-UCT: simulations that descend the tree, add one node to it, and end with random actions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.pomcp.alias import AliasRows, pick
from missmdp._kernels.random import WEYL, mix

ROOT = 0
"""The node of the current history."""
_FREE = -1
_HALF = np.uint64(32)


class SearchTree(NamedTuple):
    """A tree over histories. Edge node · n_actions + a is action a after the history of a node."""

    value: NDArray[np.float64]
    """Q(h, a): the mean return of an edge, shape (nodes · A,)."""
    visits: NDArray[np.int32]
    """N(h, a), shape (nodes · A,)."""
    total: NDArray[np.int32]
    """N(h), the sum of its edges' visits, shape (nodes,)."""
    slot_key: NDArray[np.int64]
    """Open addressing: edge · n_observations + z, or −1 where free, shape (a power of two,)."""
    slot_node: NDArray[np.int32]
    """The child to which the key leads."""
    path: NDArray[np.int64]
    """The nodes on the way of the simulation at work, shape (depth,)."""
    chosen: NDArray[np.int64]
    """The actions taken there, shape (depth,)."""
    earned: NDArray[np.float64]
    """The rewards for them, shape (depth,)."""
    size: NDArray[np.int64]
    """How many nodes there are, shape (1,)."""


@inner
def clear_tree(tree: SearchTree, n_actions: int) -> None:
    """Leave nothing but a root that was never visited."""
    for slot in range(len(tree.slot_key)):
        tree.slot_key[slot] = _FREE
    tree.size[0] = 0
    _add_node(tree, n_actions)


@inner
def _add_node(tree: SearchTree, n_actions: int) -> int:
    node = int(tree.size[0])
    tree.size[0] = node + 1
    tree.total[node] = 0
    for edge in range(node * n_actions, (node + 1) * n_actions):
        tree.value[edge] = 0.0
        tree.visits[edge] = 0
    return node


@inner
def find_or_add(tree: SearchTree, key: Any, n_actions: int) -> tuple[int, bool]:
    """Return the child to which a key leads, and whether it is new."""
    mask = len(tree.slot_key) - 1
    slot = np.int64((np.uint64(key) * WEYL) >> _HALF) & mask
    while tree.slot_key[slot] != _FREE:
        if tree.slot_key[slot] == key:
            return int(tree.slot_node[slot]), False
        slot = (slot + 1) & mask
    node = _add_node(tree, n_actions)
    tree.slot_key[slot] = key
    tree.slot_node[slot] = node
    return node, True


@inner
def choose_action(
    tree: SearchTree,
    node: int,
    n_actions: int,
    reach: NDArray[np.float64],
    shrink: NDArray[np.float64],
    x: Any,
) -> int:
    """Return UCB1's action at a node; ties, such as among actions never tried, are broken by mix(x).

    UCB1 is Q + reach[N(h)] · shrink[N(h, a)] with reach[N] = c √(ln N) and shrink[n] = 1/√n.
    """
    first = node * n_actions
    wide = float(reach[tree.total[node]])
    best, chosen, ties = -np.inf, 0, 0
    for a in range(n_actions):
        score = _score(tree.value[first + a], tree.visits[first + a], wide, shrink)
        if score > best:
            best, chosen, ties = score, a, 1
        elif score == best:
            ties += 1
    if ties > 1:
        left = _below(mix(x), ties)
        while left > 0:
            chosen += 1
            if _score(tree.value[first + chosen], tree.visits[first + chosen], wide, shrink) == best:
                left -= 1
    return chosen


@inner
def _score(value: float, visits: int, wide: float, shrink: NDArray[np.float64]) -> float:
    return np.inf if visits == 0 else value + wide * shrink[visits]


@inner
def _below(word: Any, n: int) -> Any:
    """Return a random integer in 0 .. n − 1."""
    return np.int64(((word >> _HALF) * np.uint64(n)) >> _HALF)


@inner
def best_action(tree: SearchTree, n_actions: int) -> int:
    """Return the action of highest mean at the root among those tried: the first of these, and 0 if there are none."""
    chosen = 0
    best = -np.inf
    for a in range(n_actions):
        if tree.visits[a] > 0 and tree.value[a] > best:
            best, chosen = tree.value[a], a
    return chosen


class GenerativeModel(NamedTuple):
    """The model that a search draws from: states, actions and observations are indices."""

    initial: AliasRows
    """One row: b₀."""
    step: AliasRows
    """Row s · n_actions + a: T(· | s, a)."""
    seen: AliasRows
    """Row s′ · n_watched + w: O(· | s′, a), where w is a, or 0 where O does not depend on the action."""
    wander: AliasRows
    """Row s: a uniformly random action and where it leads, s′ · 2^action_bits + a; a stands for all actions that
    earn the same in s."""
    reward: NDArray[np.float64]
    """ρ(s, a), shape (S, A)."""
    terminal: NDArray[np.bool_]
    n_actions: int
    n_watched: int
    n_observations: int
    action_bits: int
    discount: float


class SearchRules(NamedTuple):
    """How to search; both tables run over the numbers of visits, 0 .. tree_queries."""

    max_depth: int
    reach: NDArray[np.float64]
    """c √(ln N) for the visits N of a node; 0 for N = 0."""
    shrink: NDArray[np.float64]
    """1/√n for the visits n of an edge; 0 for n = 0."""


@kernel
def plant(model: GenerativeModel, tree: SearchTree) -> None:
    """Clear a tree for a new decision."""
    clear_tree(tree, model.n_actions)


@kernel
def grow(
    model: GenerativeModel,
    rules: SearchRules,
    tree: SearchTree,
    roots: NDArray[np.int32],
    key: Any,
    first: int,
    count: int,
) -> None:
    """Run `count` simulations, one from each state in `roots`; they are number first, first + 1, … of this decision.

    Simulation i draws mix(x + WEYL), mix(x + 2 WEYL), … with x = mix(key + i WEYL), whatever the others drew.
    """
    n_actions = model.n_actions
    for i in range(count):
        state = np.int64(roots[i])
        if model.terminal[state]:
            continue
        x = mix(key + np.uint64(first + i) * WEYL)
        node = ROOT
        depth = 0
        tail = 0.0
        while True:
            x += WEYL
            action = choose_action(tree, node, n_actions, rules.reach, rules.shrink, x)
            tree.path[depth] = node
            tree.chosen[depth] = action
            tree.earned[depth] = model.reward[state, action]
            depth += 1
            if depth == rules.max_depth:
                break
            x += WEYL
            state = np.int64(pick(model.step, state * n_actions + action, mix(x)))
            if model.terminal[state]:
                break
            x += WEYL
            watched = action if model.n_watched > 1 else 0
            seen = np.int64(pick(model.seen, state * model.n_watched + watched, mix(x)))
            key_of_child = (node * n_actions + action) * model.n_observations + seen
            node, new = find_or_add(tree, key_of_child, n_actions)
            if new:
                tail = _wander(model, state, rules.max_depth - depth, x)
                break
        _back_up(tree, n_actions, model.discount, depth, tail)


@kernel
def decided(model: GenerativeModel, tree: SearchTree) -> int:
    """Return the action that a tree speaks for."""
    return best_action(tree, model.n_actions)


@inner
def _back_up(tree: SearchTree, n_actions: int, discount: float, depth: int, tail: float) -> None:
    """Count a simulation of some depth along its path; `tail` is what it earned after that."""
    total = tail
    for d in range(depth - 1, -1, -1):
        node = tree.path[d]
        edge = node * n_actions + tree.chosen[d]
        total = tree.earned[d] + discount * total
        tree.total[node] += 1
        visits = tree.visits[edge] + 1
        tree.visits[edge] = visits
        tree.value[edge] += (total - tree.value[edge]) / visits


@inner
def _wander(model: GenerativeModel, state: Any, steps: int, x: Any) -> float:
    """Return what random actions earn in some steps, discounted."""
    mask = (np.uint64(1) << np.uint64(model.action_bits)) - np.uint64(1)
    shift = np.uint64(model.action_bits)
    total = 0.0
    worth = 1.0
    here = np.uint64(state)
    for _ in range(steps):
        x += WEYL
        outcome = pick(model.wander, here, mix(x))
        total += worth * model.reward[here, outcome & mask]
        worth *= model.discount
        here = outcome >> shift
        if model.terminal[here]:
            break
    return total

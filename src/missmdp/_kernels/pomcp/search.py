"""PO-UCT: simulations that descend the tree, add one node to it, and end with random actions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.pomcp.alias import AliasRows, pick
from missmdp._kernels.pomcp.tree import ROOT, Tree, best_action, choose_action, clear_tree, find_or_add
from missmdp._kernels.random import WEYL, mix

__all__ = ["GenerativeModel", "SearchRules", "decided", "grow", "plant"]


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
def plant(model: GenerativeModel, tree: Tree) -> None:
    """Clear a tree for a new decision."""
    clear_tree(tree, model.n_actions)


@kernel
def grow(
    model: GenerativeModel,
    rules: SearchRules,
    tree: Tree,
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
def decided(model: GenerativeModel, tree: Tree) -> int:
    """Return the action that a tree speaks for."""
    return best_action(tree, model.n_actions)


@inner
def _back_up(tree: Tree, n_actions: int, discount: float, depth: int, tail: float) -> None:
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

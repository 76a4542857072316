"""The search tree: histories as nodes, struct of arrays, children found by hashing (edge, observation)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner
from missmdp._kernels.random import WEYL, mix

__all__ = ["ROOT", "Tree", "best_action", "choose_action", "clear_tree", "find_or_add"]

ROOT = 0
"""The node of the current history."""
_FREE = -1
_HALF = np.uint64(32)


class Tree(NamedTuple):
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
def clear_tree(tree: Tree, n_actions: int) -> None:
    """Leave nothing but a root that was never visited."""
    for slot in range(len(tree.slot_key)):
        tree.slot_key[slot] = _FREE
    tree.size[0] = 0
    _add_node(tree, n_actions)


@inner
def _add_node(tree: Tree, n_actions: int) -> int:
    node = int(tree.size[0])
    tree.size[0] = node + 1
    tree.total[node] = 0
    for edge in range(node * n_actions, (node + 1) * n_actions):
        tree.value[edge] = 0.0
        tree.visits[edge] = 0
    return node


@inner
def find_or_add(tree: Tree, key: Any, n_actions: int) -> tuple[int, bool]:
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
    tree: Tree, node: int, n_actions: int, reach: NDArray[np.float64], shrink: NDArray[np.float64], x: Any
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
def best_action(tree: Tree, n_actions: int) -> int:
    """Return the action of highest mean at the root among those tried: the first of these, and 0 if there are none."""
    chosen = 0
    best = -np.inf
    for a in range(n_actions):
        if tree.visits[a] > 0 and tree.value[a] > best:
            best, chosen = tree.value[a], a
    return chosen

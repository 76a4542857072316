"""The arrays that a search works on: made once per agent, or per task of a simulation."""

from __future__ import annotations

import numpy as np

from missmdp._kernels.beliefs import Belief
from missmdp._kernels.pomcp.deciding import Mind, Particles
from missmdp._kernels.pomcp.search import SearchTree

__all__ = ["new_mind", "new_tree", "search_bytes"]


def new_mind(
    n_states: int, n_actions: int, *, max_depth: int, tree_queries: int, particles: int, at_once: int
) -> Mind:
    """Return working space for decisions.

    Parameters
    ----------
    n_states, n_actions
        The size of the policy's own model.
    max_depth, tree_queries
        The size of a search.
    particles
        How many particles there are; 0 to search from the exact belief.
    at_once
        How many simulations are run in one call of a kernel.
    """
    return Mind(
        belief=Belief(
            state=np.empty(n_states, dtype=np.int32),
            weight=np.empty(n_states),
            predicted=np.zeros(n_states),
            touched=np.empty(n_states, dtype=np.int32),
            size=np.zeros(2, dtype=np.int64),
        ),
        particles=Particles(
            state=np.empty(particles, dtype=np.int32),
            spare=np.empty(particles, dtype=np.int32),
            size=np.zeros(1, dtype=np.int64),
        ),
        cumulative=np.empty(n_states),
        roots=np.empty(at_once, dtype=np.int32),
        tree=new_tree(n_actions, tree_queries, max_depth),
    )


def new_tree(n_actions: int, tree_queries: int, max_depth: int) -> SearchTree:
    """Return a tree with room for one node per query besides the root; nothing is in it, not even a root."""
    nodes = tree_queries + 1
    return SearchTree(
        value=np.empty(nodes * n_actions),
        visits=np.empty(nodes * n_actions, dtype=np.int32),
        total=np.empty(nodes, dtype=np.int32),
        slot_key=np.empty(_slots(nodes), dtype=np.int64),
        slot_node=np.empty(_slots(nodes), dtype=np.int32),
        path=np.empty(max_depth, dtype=np.int64),
        chosen=np.empty(max_depth, dtype=np.int64),
        earned=np.empty(max_depth),
        size=np.zeros(1, dtype=np.int64),
    )


def search_bytes(n_actions: int, *, max_depth: int, tree_queries: int, particles: int) -> dict[str, int]:
    """Return how much memory a search takes for each of these options; models come on top."""
    nodes = tree_queries + 1
    tables = 16 * nodes + 4 * tree_queries  # UCB1's, and where simulations start
    return {
        "tree_queries": nodes * (12 * n_actions + 4) + 12 * _slots(nodes) + tables,
        "particles": 8 * particles,
        "max_depth": 24 * max_depth,
    }


def _slots(nodes: int) -> int:
    """Return a power of two that leaves at least half of the slots free."""
    return 1 << (2 * nodes - 1).bit_length()

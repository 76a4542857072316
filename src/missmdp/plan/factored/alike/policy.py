"""What is deployed of a controller whose sites are alike: a policy with memory, node by node and action by action."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.memory import AlikeMemory
from missmdp.plan.factored.alike.multisets import ranks
from missmdp.plan.factored.alike.steps import ACTED, Places
from missmdp.plan.factored.policy import MemoryPolicy


def memory_policy(memory: AlikeMemory) -> MemoryPolicy:
    """Return what a controller does in its model; moves that cannot be leave nodes as they are."""
    alike, n_nodes = memory.alike, len(memory.beliefs)
    parts, n = alike.parts, alike.n_sites
    n_scenes = alike.n_scenes
    shape = (parts.n_actions, n_scenes, n_scenes, n_nodes, n_nodes)
    steps = [np.array(np.broadcast_to(np.eye(n_nodes), shape)) for _ in range(n)]
    orbits = np.full((parts.n_actions, n), -1)
    for key, move in memory.moves.items():
        kind = alike.kinds[key.kind]
        for acted, action in enumerate(kind.actions):
            for site in range(n):
                if not kind.on_one or (key.role == ACTED) == (site == acted):
                    steps[site][action, key.scene, key.after] = move
            if kind.on_one:
                orbits[action] = kind.actions
    return MemoryPolicy(
        parts.model,
        [memory.beliefs] * n,
        steps,
        [memory.first] * n,
        np.array([_actions(memory, choices) for choices in memory.choices]),
        orbits if (orbits >= 0).any() else None,
    )


def _actions(memory: AlikeMemory, choices: Places) -> NDArray[np.int32]:
    """Return the action at each node of each site, shape (N, …, N)."""
    alike, n_nodes = memory.alike, len(memory.beliefs)
    n = alike.n_sites
    of_kind = np.array([kind.actions if kind.on_one else kind.actions * n for kind in alike.kinds])
    table = np.empty((n_nodes,) * n, dtype=np.int32)
    rest = np.indices(table.shape[1:], dtype=np.int64).reshape(n - 1, -1).T
    for first in range(n_nodes):
        nodes = np.insert(rest, 0, first, axis=1)
        order = np.argsort(nodes, axis=1, kind="stable")
        chosen = choices[ranks(np.take_along_axis(nodes, order, axis=1), n_nodes)]
        kind, position = np.divmod(chosen, n)
        site = np.take_along_axis(order, position[:, None], axis=1)[:, 0]
        table[first] = of_kind[kind, site].reshape(table.shape[1:])
    return table

"""What a finite controller does, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError

__all__ = ["NO_ACTION", "NO_SIGHT", "ControllerPlan", "stacked_plan"]

NO_ACTION = -1
"""The action of a root that waits for the first observation."""
NO_SIGHT = -1
"""The sight of observations that are never made in the controller's own model."""


@dataclass(frozen=True, eq=False)
class ControllerPlan:
    """An action per node, and a node to go on with per observation.

    Observations that mean the same to every node are one *sight*. Shapes: K nodes, E entries, Z observations.
    """

    action: NDArray[np.int64]
    """Index of each node's action, shape (K,); `NO_ACTION` for a root that waits for the first observation."""
    start: NDArray[np.int64]
    """The entries of node k are start[k] … start[k + 1] − 1, shape (K + 1,)."""
    sight: NDArray[np.int64]
    """The sight that an entry is for, ascending within a node, shape (E,)."""
    successor: NDArray[np.int64]
    """The node that follows, shape (E,)."""
    root: int
    """Where episodes begin."""
    sight_of: NDArray[np.int64]
    """The sight of each observation after each action, or in one row where that makes no difference, shape (…, Z)."""

    @property
    def n_nodes(self) -> int:
        """K."""
        return len(self.action)

    def after(self, node: int, sight: int) -> int | None:
        """Return the node that follows a node on a sight, or None where the plan has none."""
        first, last = int(self.start[node]), int(self.start[node + 1])
        place = first + int(np.searchsorted(self.sight[first:last], sight))
        return int(self.successor[place]) if place < last and self.sight[place] == sight else None

    def check(self, n_vectors: int, n_actions: int, n_observations: int) -> None:
        """Raise `ModelError` where something does not fit together; nodes begin with one for each vector."""
        k = self.n_nodes
        inside = (
            self.start.shape == (k + 1,)
            and self.start[0] == 0
            and self.start[-1] == len(self.sight) == len(self.successor)
            and (np.diff(self.start) >= 0).all()
            and ((self.successor >= 0) & (self.successor < k)).all()
            and ((self.action >= NO_ACTION) & (self.action < n_actions)).all()
            and 0 <= self.root < k
            and n_vectors <= k <= n_vectors + 1
            and self.sight_of.ndim == 2
            and self.sight_of.shape[0] in (1, n_actions)
            and self.sight_of.shape[1] == n_observations
            and (np.flatnonzero(self.action == NO_ACTION) == self.root).all()
        )
        if not inside:
            raise ModelError("the parts of a controller do not fit together")
        within = np.ones(len(self.sight), dtype=np.bool_)
        within[self.start[:-1][np.diff(self.start) > 0]] = False
        if (np.diff(self.sight, prepend=-1)[within] <= 0).any():
            raise ModelError("the sights of a controller's node must be in ascending order, each once")


def stacked_plan(
    actions: list[int],
    rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    root: int,
    sight_of: NDArray[np.int64],
) -> ControllerPlan:
    """Return the plan of nodes that are given one by one: actions, and (sights, successors) in any order."""
    order = [np.argsort(sights, kind="stable") for sights, _ in rows]
    empty = np.empty(0, dtype=np.int64)
    return ControllerPlan(
        action=np.array(actions, dtype=np.int64),
        start=np.concatenate([[0], np.cumsum([len(sights) for sights, _ in rows])]).astype(np.int64),
        sight=np.concatenate([empty, *(s[o] for (s, _), o in zip(rows, order, strict=True))]).astype(
            np.int64
        ),
        successor=np.concatenate([empty, *(n[o] for (_, n), o in zip(rows, order, strict=True))]).astype(
            np.int64
        ),
        root=root,
        sight_of=sight_of,
    )

"""What a finite controller does, as arrays; also from α-vectors without plans."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import condition
from missmdp.checks import checked_integer
from missmdp.errors import ModelError, ParameterError
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import as_integers
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.value_function import NO_VECTOR

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

    def __post_init__(self) -> None:
        for name, axes in {"action": 1, "start": 1, "sight": 1, "successor": 1, "sight_of": 2}.items():
            array = as_integers(getattr(self, name), name)
            if array.ndim != axes:
                raise ParameterError(
                    name, array.shape, f"an array with {axes} {'axis' if axes == 1 else 'axes'}"
                )
            object.__setattr__(self, name, np.ascontiguousarray(array, dtype=np.int64))
        checked_integer("root", self.root)

    @property
    def n_nodes(self) -> int:
        """K."""
        return len(self.action)

    def after(self, node: int, sight: int) -> int | None:
        """Return the node that follows a node on a sight, or None where the plan has none."""
        first, last = int(self.start[node]), int(self.start[node + 1])
        place = first + int(np.searchsorted(self.sight[first:last], sight))
        return int(self.successor[place]) if place < last and self.sight[place] == sight else None

    def check(self, n_vectors: int, pomdp: POMDP) -> None:
        """Raise `ModelError` where something does not fit together; nodes begin with one for each vector."""
        k, n_actions = self.n_nodes, pomdp.n_actions
        # Observations that leave one class of states possible are known by its number, the others are numbered on.
        most = pomdp.n_states + self.sight_of.size
        inside = (
            self.start.shape == (k + 1,)
            and self.start[0] == 0
            and self.start[-1] == len(self.sight) == len(self.successor)
            and (self.start[1:] >= self.start[:-1]).all()
            and _within(self.successor, 0, k)
            and _within(self.action, NO_ACTION, n_actions)
            and 0 <= self.root < k
            and n_vectors <= k <= n_vectors + 1
            and self.sight_of.shape in ((1, pomdp.n_observations), (n_actions, pomdp.n_observations))
            and _within(self.sight_of, NO_SIGHT, most)
            and _within(self.sight, 0, most)
            and (np.flatnonzero(self.action == NO_ACTION) == self.root).all()
        )
        if not inside:
            raise ModelError("the parts of a controller do not fit together")
        within = np.ones(len(self.sight), dtype=np.bool_)
        within[self.start[:-1][np.diff(self.start) > 0]] = False
        if (np.diff(self.sight, prepend=-1)[within] <= 0).any():
            raise ModelError("the sights of a controller's node must be in ascending order, each once")


def _within(array: NDArray[np.int64], least: int, below: int) -> bool:
    return not array.size or bool(array.min() >= least and array.max() < below)


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


def followed_plan(policy: AlphaVectorPolicy) -> ControllerPlan:
    """Return a plan for every vector that the policy can come to.

    From the start on, beliefs are met breadth first. The first one at which a vector is best stands for it: what
    follows the vector's node is what the policy does after that belief. Others may go elsewhere, so the controller
    can be worth less than the policy; vectors that are never met have no plan.
    """
    return _Walk(policy).plan()


class _Walk:
    def __init__(self, policy: AlphaVectorPolicy) -> None:
        self.policy = policy
        self.values = policy.value_function
        self.actions = [int(a) for component in policy.components for a in component.actions]
        none = np.empty(0, dtype=np.int64)
        self.rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = [(none, none)] * len(self.actions)
        self.met: set[int] = set()
        self.waiting: deque[tuple[int, NDArray[np.float64]]] = deque()

    def plan(self) -> ControllerPlan:
        root = self._start()
        while self.waiting:
            node, belief = self.waiting.popleft()
            action = self.actions[node]
            self.rows[node] = self._follow(self.values.predicted(belief, action), action)
        sights = np.arange(self.policy.pomdp.n_observations)[None, :]
        return stacked_plan(self.actions, self.rows, root, sights)

    def _start(self) -> int:
        initial = self.policy.pomdp.initial
        if self.policy.observe_initial:
            self.actions.append(NO_ACTION)
            self.rows.append(self._follow(initial, 0))
            return len(self.actions) - 1
        decision = self.values.decide(initial)
        if decision.vector != NO_VECTOR:
            self._meet(decision.vector, initial)
            return decision.vector
        # The start spans components: a lookahead decides, and no vector.
        self.actions.append(decision.action)
        self.rows.append(self._follow(self.values.predicted(initial, decision.action), decision.action))
        return len(self.actions) - 1

    def _follow(
        self, predicted: NDArray[np.float64], action: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the observations that can be made, and the vectors that are best then."""
        outcomes = self.values.outcomes(predicted, action)
        seen = np.flatnonzero(outcomes.vector != NO_VECTOR)
        for z in seen[np.argsort(-outcomes.probability[seen], kind="stable")].tolist():
            vector = int(outcomes.vector[z])
            if vector not in self.met:
                belief = np.empty(len(predicted))
                condition(predicted, self.values.likelihood(z, action), belief)
                self._meet(vector, belief)
        return seen, outcomes.vector[seen]

    def _meet(self, vector: int, belief: NDArray[np.float64]) -> None:
        self.met.add(vector)
        self.waiting.append((vector, belief))

"""A finite controller from α-vectors without plans: each vector is followed from the first belief that it decides."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import condition
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite.plan import NO_ACTION, ControllerPlan, stacked_plan
from missmdp.plan.value_function import NO_VECTOR

__all__ = ["followed_plan"]


def followed_plan(policy: AlphaVectorPolicy) -> ControllerPlan:
    """Return a plan for every vector that the policy can come to.

    From the start on, beliefs are met breadth first. The first one at which a vector is best stands for it: what
    follows the vector's node is what the policy does after that belief. Others may go elsewhere, so that the
    controller can be worth less than the policy; vectors that are never met have no plan.
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

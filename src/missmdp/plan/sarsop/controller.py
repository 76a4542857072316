"""The vectors of a search as they were at one time, and the policy that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop.arrays import CHOICES, VALUES, VECTORS, Vectors
from missmdp._kernels.sarsop.pruning import mark_certified
from missmdp.plan.finite.plan import NO_ACTION, ControllerPlan, stacked_plan
from missmdp.plan.sarsop.compile import Compilation
from missmdp.plan.value_function import ComponentVectors


@dataclass(frozen=True, eq=False)
class Controller:
    """Vectors, each with an action and a vector to go on with for each observation."""

    vectors: Vectors
    fall: float
    """How much the vectors that the start needs fell in the last sweep, at most."""

    @classmethod
    def copy(cls, vectors: Vectors, counters: NDArray[np.int64], fall: float) -> Controller:
        """Return a copy of the vectors in use."""
        ends = {
            "values": counters[VALUES],
            "planned": counters[VALUES],
            "choice": counters[CHOICES],
            "default": 0,
            "first_in_component": 0,
            "near": 0,
        }
        parts = {
            name: array[: ends.get(name, counters[VECTORS])].copy()
            for name, array in zip(Vectors._fields, vectors, strict=True)
        }
        return cls(Vectors(**parts), fall)

    def policy_vectors(self, compiled: Compilation) -> list[ComponentVectors]:
        """Return the vectors over states, component by component, each at most the value of its plan.

        Vectors that are above their plans by more than `fall`, or lead to such, are left out; the others are all
        lowered by γ fall/(1 − γ), which makes up for it. A component without any gets a vector that holds everywhere.
        """
        vectors = self.vectors
        margin = compiled.discount * self.fall / (1.0 - compiled.discount)
        found: list[ComponentVectors] = []
        for b, (states, ours) in enumerate(
            zip(compiled.component_states, self._kept(compiled), strict=False)
        ):
            places = compiled.class_of[states] - compiled.arrays.component_start[b]
            values = vectors.values[vectors.start[ours][:, None] + places[None, :]]
            actions = vectors.action[ours].astype(np.int64)
            if not len(ours):
                values, actions = np.full((1, len(states)), compiled.lowest), np.zeros(1, dtype=np.int64)
            found.append(ComponentVectors(states, values - margin, actions))
        return found

    def plan(self, compiled: Compilation, *, observe_initial: bool) -> ControllerPlan:
        """Return the plans of the vectors of `policy_vectors`, and where they start.

        The value of that controller at the start is at least the lower bound: of all vectors that are certified it
        takes the best.
        """
        kept = self._kept(compiled)
        n_components = len(compiled.component_states)
        number = np.full(len(self.vectors.component), -1, dtype=np.int64)
        actions: list[int] = []
        order: list[int] = []
        for ours in kept[:n_components]:
            number[ours] = len(order) + np.arange(len(ours))
            # A component without any gets one node without a plan, like its vector in `policy_vectors`.
            order += ours.tolist() or [-1]
            actions += self.vectors.action[ours].tolist() or [0]
        if len(kept) > n_components:
            first = self.vectors.start[kept[n_components]]
            order.append(int(kept[n_components][np.argmax(self.vectors.values[first])]))
            actions.append(NO_ACTION if observe_initial else int(self.vectors.action[order[-1]]))
            root = len(order) - 1
        else:
            root = self._best_at_start(compiled, kept, number)
        rows = [self._choices(compiled, k, number) for k in order]
        return stacked_plan(actions, rows, root, compiled.node_of)

    def _kept(self, compiled: Compilation) -> list[NDArray[np.int64]]:
        """Return the certified vectors of each component, that of the start included if it has one."""
        vectors = self.vectors
        kept = np.empty(len(vectors.component), dtype=np.bool_)
        mark_certified(compiled.arrays, vectors, len(kept), self.fall, kept)
        order = np.flatnonzero(kept)
        order = order[np.argsort(vectors.component[order], kind="stable")]
        n_components = len(compiled.arrays.component_start) - 1
        return np.split(order, np.searchsorted(vectors.component[order], np.arange(1, n_components)))

    def _best_at_start(
        self, compiled: Compilation, kept: list[NDArray[np.int64]], number: NDArray[np.int64]
    ) -> int:
        """Return the node that is best at a start inside one component."""
        support = np.flatnonzero(compiled.start)
        component = int(compiled.arrays.component_of[support[0]])
        places = support - compiled.arrays.component_start[component]
        ours = kept[component]
        worth = self.vectors.values[self.vectors.start[ours][:, None] + places] @ compiled.start[support]
        return int(number[ours[np.argmax(worth)]])

    def _choices(
        self, compiled: Compilation, vector: int, number: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the observations that can follow a vector, and the nodes to go on with."""
        if vector < 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        model, vectors = compiled.arrays, self.vectors
        row = int(vectors.component[vector]) * model.reward.shape[1] + int(vectors.action[vector])
        begin, end = int(model.next_start[row]), int(model.next_start[row + 1])
        first = int(vectors.choice_start[vector])
        return model.next_node[begin:end].astype(np.int64), number[
            vectors.choice[first : first + end - begin]
        ]

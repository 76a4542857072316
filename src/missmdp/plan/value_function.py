"""The value function that α-vectors stand for, over arrays and indices.

Inside one component V(b) = max_α Σ_s α(s) b(s), where terminal states count 0. For a belief that spans components
there are no vectors, and V is the one-step lookahead max_a ρ(b, a) + γ Σ_z P(z | b, a) V(τ(b, a, z)), whose
posteriors are inside one component each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.alpha import NOWHERE, SEVERAL, component_of, look_ahead
from missmdp._kernels.beliefs import predict
from missmdp.model.pomdp import POMDP
from missmdp.plan.components import ComponentVectors, checked_components, checked_labels, vector_table

__all__ = ["NO_VECTOR", "Columns", "Decision", "Outcomes", "ValueFunction"]

NO_VECTOR = -1
"""The vector of decisions that no vector made: by lookahead, or where everything has ended."""


class Decision(NamedTuple):
    """What to do at a belief."""

    action: int
    """Index of the action."""
    value: float
    """V(b)."""
    vector: int
    """Number of the vector that decided, counted over all components, or `NO_VECTOR`."""


class Outcomes(NamedTuple):
    """What can be seen next. Sums of `probability` and of `value` are 1 and the expected value."""

    probability: NDArray[np.float64]
    """P(z), shape (Z,)."""
    value: NDArray[np.float64]
    """P(z) · V(b_z), shape (Z,)."""
    vector: NDArray[np.int64]
    """The best vector at b_z, or `NO_VECTOR` where z is impossible or everything has ended, shape (Z,)."""
    total: float
    """Σ_z P(z) · V(b_z)."""


class ValueFunction:
    """V, and the decisions that go with it.

    Parameters
    ----------
    pomdp
        The model.
    components
        The vectors of each component.
    """

    def __init__(self, pomdp: POMDP, components: Sequence[ComponentVectors]) -> None:
        self.pomdp = pomdp
        self.components = checked_components(components, pomdp)
        self.table = vector_table(self.components, checked_labels(self.components, pomdp))
        self.columns = tuple(_columns(matrix) for matrix in pomdp.observation)
        # Terminal states are worth 0, whatever a table of rewards has in their rows.
        self.reward = np.where(pomdp.terminal[:, None], 0.0, pomdp.reward)

    @property
    def n_vectors(self) -> int:
        """The number of vectors in all components."""
        return int(self.table.first[-1])

    def place_of(self, vector: int) -> tuple[int, int]:
        """Return the component of a vector and its row there."""
        component = int(np.searchsorted(self.table.first, vector, side="right")) - 1
        return component, vector - int(self.table.first[component])

    def decide(self, belief: NDArray[np.float64]) -> Decision:
        """Return what to do at a belief; of equal choices the first. Where everything has ended, action 0."""
        k = component_of(belief, self.table.label)
        if k == NOWHERE:
            return Decision(0, 0.0, NO_VECTOR)
        if k == SEVERAL:
            values = self.action_values(belief)
            best = int(np.argmax(values))
            return Decision(best, float(values[best]), NO_VECTOR)
        component = self.components[k]
        scores = component.values @ belief[component.states]
        best = int(np.argmax(scores))
        return Decision(int(component.actions[best]), float(scores[best]), int(self.table.first[k]) + best)

    def action_values(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the one-step lookahead ρ(b, a) + γ Σ_z P(z | b, a) V(τ(b, a, z)) of every action, shape (A,)."""
        future = [self.after(belief, a).total for a in range(self.pomdp.n_actions)]
        return self.immediate(belief) + self.pomdp.discount * np.array(future)

    def immediate(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ρ(b, a) for every action, shape (A,)."""
        return np.asarray(belief @ self.reward, dtype=np.float64)

    def predicted(self, belief: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return Σ_s T(· | s, a) b(s), shape (S,)."""
        matrix = self.pomdp.transition[action]
        out = np.empty(self.pomdp.n_states)
        predict(matrix.indptr, matrix.indices, matrix.data, belief, out)
        return out

    def after(self, belief: NDArray[np.float64], action: int) -> Outcomes:
        """Return what can be seen after an action."""
        return self.outcomes(self.predicted(belief, action), action)

    def outcomes(self, predicted: NDArray[np.float64], action: int) -> Outcomes:
        """Return what can be seen where the state is distributed as predicted, after an action."""
        columns = self._columns_after(action)
        probability, value = np.empty((2, self.pomdp.n_observations))
        vector = np.empty(self.pomdp.n_observations, dtype=np.int64)
        total = look_ahead(
            predicted,
            columns.start,
            columns.state,
            columns.probability,
            self.table,
            probability,
            value,
            vector,
        )
        return Outcomes(probability, value, vector, total)

    def likelihood(self, observation: int, action: int) -> NDArray[np.float64]:
        """Return O(z | s′, a) for every state, shape (S,)."""
        columns = self._columns_after(action)
        inside = slice(int(columns.start[observation]), int(columns.start[observation + 1]))
        out = np.zeros(self.pomdp.n_states)
        out[columns.state[inside]] = columns.probability[inside]
        return out

    def _columns_after(self, action: int) -> Columns:
        return self.columns[action if len(self.columns) > 1 else 0]


class Columns(NamedTuple):
    """O by observation: the states that can give z are state[start[z]] … state[start[z + 1] − 1]."""

    start: NDArray[np.int64]
    state: NDArray[np.int64]
    probability: NDArray[np.float64]


def _columns(matrix: sparse.csr_array) -> Columns:
    columns = sparse.csc_array(matrix)
    return Columns(
        np.asarray(columns.indptr, dtype=np.int64), np.asarray(columns.indices, dtype=np.int64), columns.data
    )

"""The value function that α-vectors stand for, over arrays and indices.

Connect every state that is not terminal with every observation that it can give: what hangs together is a
*component*. After any observation the belief lives on one component, terminal states aside, and so do the
α-vectors. With a missingness function the components are at least the valuations of the always-observed
features; a POMDP without structure has one component.

Inside one component V(b) = max_α Σ_s α(s) b(s), where terminal states count 0. For a belief that spans components
there are no vectors, and V is the one-step lookahead max_a ρ(b, a) + γ Σ_z P(z | b, a) V(τ(b, a, z)), whose
posteriors are inside one component each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from missmdp._kernels.alpha import NOWHERE, SEVERAL, VectorTable, component_of, look_ahead
from missmdp._kernels.beliefs import predict
from missmdp.errors import ModelError
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import LARGEST_VALUE, as_floats

NO_VECTOR = -1
"""The vector of decisions that no vector made: by lookahead, or where everything has ended."""


@dataclass(frozen=True, eq=False)
class ComponentVectors:
    """The α-vectors of one component."""

    states: NDArray[np.int64]
    """Indices of the component's states, ascending, shape (n,)."""
    values: NDArray[np.float64]
    """One vector per row, shape (vectors, n)."""
    actions: NDArray[np.int64]
    """Index of each vector's action, shape (vectors,)."""

    def __len__(self) -> int:
        return len(self.values)


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


class Columns(NamedTuple):
    """O by observation: the states that can give z are state[start[z]] … state[start[z + 1] − 1]."""

    start: NDArray[np.int64]
    state: NDArray[np.int64]
    probability: NDArray[np.float64]


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
        belief = self._checked(belief)
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
        return np.asarray(self._checked(belief) @ self.reward, dtype=np.float64)

    def predicted(self, belief: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return Σ_s T(· | s, a) b(s), shape (S,)."""
        matrix = self.pomdp.transition[action]
        out = np.empty(self.pomdp.n_states)
        predict(matrix.indptr, matrix.indices, matrix.data, self._checked(belief), out)
        return out

    def after(self, belief: NDArray[np.float64], action: int) -> Outcomes:
        """Return what can be seen after an action."""
        return self.outcomes(self.predicted(belief, action), action)

    def outcomes(self, predicted: NDArray[np.float64], action: int) -> Outcomes:
        """Return what can be seen where the state is distributed as predicted, after an action."""
        predicted = self._checked(predicted)
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

    def _checked(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a belief as kernels read it: one float for every state, whatever they sum to."""
        array = belief if belief.dtype == np.float64 else as_floats(belief, "a belief")
        if array.shape != (self.pomdp.n_states,):
            raise ModelError(f"a belief must have shape ({self.pomdp.n_states},), got {array.shape}")
        return array

    def _columns_after(self, action: int) -> Columns:
        return self.columns[action if len(self.columns) > 1 else 0]


def state_components(pomdp: POMDP) -> list[NDArray[np.int64]]:
    """Return the finest components of a model, as indices of states, in the order of their first states."""
    going_on = np.flatnonzero(~pomdp.terminal)
    # One matrix may stand for several actions.
    different = list({id(matrix): matrix for matrix in pomdp.observation}.values())
    gives = sparse.hstack([matrix[going_on] for matrix in different], format="csr")
    size = sum(gives.shape)
    ends = np.append(gives.indptr, np.full(size - len(going_on), gives.indptr[-1]))
    one_way = sparse.csr_array((gives.data, gives.indices + len(going_on), ends), shape=(size, size))
    component = csgraph.connected_components(one_way, directed=False)[1][: len(going_on)]
    _, first, number = np.unique(component, return_index=True, return_inverse=True)
    # Numbered by first state; a stable sort keeps the states of each component in order.
    rank = np.argsort(np.argsort(first))[number]
    order = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))[:-1] if len(rank) else np.zeros(0, dtype=np.int64)
    return np.split(going_on[order], ends) if len(rank) else []


def checked_components(components: Sequence[ComponentVectors], pomdp: POMDP) -> tuple[ComponentVectors, ...]:
    """Return the components as arrays that cannot be changed; raise `ModelError` where shapes or indices are wrong."""
    return tuple(
        _checked_component(component, f"component {k}", pomdp) for k, component in enumerate(components)
    )


def _checked_component(component: object, what: str, pomdp: POMDP) -> ComponentVectors:
    if not isinstance(component, ComponentVectors):
        raise ModelError(f"{what}: expected ComponentVectors, got {type(component).__name__}")
    states = _indices(component.states, pomdp.n_states, f"{what}: states")
    if len(states) == 0:
        raise ModelError(f"{what} has no states")
    if (np.diff(states) <= 0).any():
        raise ModelError(f"{what}: states must be in ascending order, each once")
    values = as_floats(component.values, f"{what}: values")
    if values.ndim != 2 or values.shape[1] != len(states) or len(values) == 0:
        raise ModelError(
            f"{what}: values must have shape (vectors, {len(states)}) with at least one vector, got {values.shape}"
        )
    wrong = values[~(np.abs(values) <= LARGEST_VALUE)]
    if wrong.size:
        size = f" and at most {LARGEST_VALUE:g} in size" if np.isfinite(wrong[0]) else ""
        raise ModelError(f"{what}: every value must be finite{size}, got {wrong[0]}")
    actions = _indices(component.actions, pomdp.n_actions, f"{what}: actions")
    if len(actions) != len(values):
        raise ModelError(f"{what}: {len(actions)} actions for {len(values)} vectors")
    values = np.ascontiguousarray(values)
    for array in (states, values, actions):
        array.setflags(write=False)
    return ComponentVectors(states, values, actions)


def _indices(given: Any, size: int, what: str) -> NDArray[np.int64]:
    array = np.asarray(given)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ModelError(f"{what} must be a row of indices, got shape {array.shape} of {array.dtype}")
    odd = array[(array < 0) | (array >= size)]
    if odd.size:
        raise ModelError(f"{what}: the index {odd[0]} is out of range; there are {size}")
    return array.astype(np.int64)


def checked_labels(components: Sequence[ComponentVectors], pomdp: POMDP) -> NDArray[np.int64]:
    """Return the component of every state, `NOWHERE` for terminal ones, shape (S,).

    Raises
    ------
    ModelError
        If components overlap, leave out a state, hold a terminal one, or if an observation leaves it open in which
        component the state is.
    """
    label = np.full(pomdp.n_states, NOWHERE, dtype=np.int64)
    for k, component in enumerate(components):
        twice = component.states[label[component.states] != NOWHERE]
        if twice.size:
            raise ModelError(
                f"the state {pomdp.states[int(twice[0])]!r} is in component {label[twice[0]]} and in component {k}"
            )
        label[component.states] = k
    ended = np.flatnonzero(pomdp.terminal & (label != NOWHERE))
    if ended.size:
        state = int(ended[0])
        raise ModelError(
            f"the state {pomdp.states[state]!r} is terminal, worth 0, and in no component; "
            f"it is in component {label[state]}"
        )
    absent = np.flatnonzero(~pomdp.terminal & (label == NOWHERE))
    if absent.size:
        more = f" (and {absent.size - 1} more states)" if absent.size > 1 else ""
        raise ModelError(f"no component has the state {pomdp.states[int(absent[0])]!r}{more}")
    _check_separation(label, pomdp)
    return label


def _check_separation(label: NDArray[np.int64], pomdp: POMDP) -> None:
    """Raise unless every observation decides the component."""
    for matrix in pomdp.observation:
        state = np.repeat(np.arange(pomdp.n_states), np.diff(matrix.indptr))
        inside = label[state] != NOWHERE
        state, seen = state[inside], matrix.indices[inside]
        component_seen = np.full(pomdp.n_observations, NOWHERE, dtype=np.int64)
        component_seen[seen] = label[state]
        odd = np.flatnonzero(component_seen[seen] != label[state])
        if odd.size:
            z, one = int(seen[odd[0]]), int(state[odd[0]])
            other = int(state[(seen == z) & (label[state] == component_seen[z])][0])
            raise ModelError(
                f"the observation {pomdp.observations[z]!r} can come from {pomdp.states[one]!r} and from "
                f"{pomdp.states[other]!r}, which are in components {label[one]} and {label[other]}; "
                "they must be in one component"
            )


def vector_table(components: Sequence[ComponentVectors], label: NDArray[np.int64]) -> VectorTable:
    """Return the vectors of all components as the kernels take them."""
    place = np.zeros(len(label), dtype=np.int64)
    for component in components:
        place[component.states] = np.arange(len(component.states))
    sizes = np.array([component.values.size for component in components], dtype=np.int64)
    flat = [component.values.reshape(-1) for component in components]
    return VectorTable(
        label=label,
        place=place,
        first=np.concatenate([[0], np.cumsum([len(component) for component in components])]).astype(np.int64),
        width=np.array([len(component.states) for component in components], dtype=np.int64),
        offset=np.cumsum(sizes) - sizes,
        values=np.concatenate(flat) if flat else np.empty(0),
    )


def _columns(matrix: sparse.csr_array) -> Columns:
    columns = sparse.csc_array(matrix)
    return Columns(
        np.asarray(columns.indptr, dtype=np.int64), np.asarray(columns.indices, dtype=np.int64), columns.data
    )

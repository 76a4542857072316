"""α-vectors, component by component.

Connect every state that is not terminal with every observation that it can give: the connected components
are *components*. After any observation the belief lives on one component, terminal states aside, and so do the
α-vectors. With a missingness function the components are at least the valuations of the always-observed
features; a POMDP without structure has one component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from missmdp._kernels.alpha import NOWHERE, VectorTable
from missmdp.errors import ModelError
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import as_floats

__all__ = ["ComponentVectors", "checked_components", "checked_labels", "state_components", "vector_table"]


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


def state_components(pomdp: POMDP) -> list[NDArray[np.int64]]:
    """Return the finest components of a model, as indices of states, in the order of their first states."""
    going_on = np.flatnonzero(~pomdp.terminal)
    gives = sparse.hstack([matrix[going_on] for matrix in pomdp.observation], format="csr")
    both_ways = sparse.block_array([[None, gives], [gives.T, None]], format="csr")
    component = csgraph.connected_components(both_ways, directed=False)[1][: len(going_on)]
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
    if not np.isfinite(values).all():
        raise ModelError(f"{what}: every value must be finite, got {values[~np.isfinite(values)][0]}")
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

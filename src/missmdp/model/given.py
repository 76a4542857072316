"""What users give instead of functions: names, matrices and arrays, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.model.checks import as_floats, call
from missmdp.model.enumeration import probability_pairs, truth
from missmdp.model.space import FeatureSpace, is_missing, plain
from missmdp.model.states import StateSpace

__all__ = [
    "checked_actions",
    "given_initial",
    "given_matrices",
    "given_states",
    "given_terminal",
    "one_of",
]


def checked_actions(actions: Iterable[Any]) -> tuple[Any, ...]:
    """Return the names of the actions, distinct and usable as names."""
    if isinstance(actions, str | bytes):
        raise ModelError(f"actions must be a list of names, got the string {actions!r}")
    try:
        listed = tuple(plain(action) for action in actions)
    except TypeError:
        raise ModelError(f"actions must be a list of names, got {actions!r}") from None
    if not listed:
        raise ModelError("a model needs at least one action")
    for position, action in enumerate(listed):
        if is_missing(action):
            raise ModelError(f"{action!r} cannot be an action: in data it stands for 'no action'")
        try:
            hash(action)
        except TypeError:
            raise ModelError(f"the action {action!r} is not hashable; use strings or numbers") from None
        if action in listed[:position]:
            raise ModelError(f"the action {action!r} is listed twice")
    return listed


def given_states(
    space: FeatureSpace, states: Sequence[Any] | StateSpace | None, max_states: int
) -> StateSpace:
    """Return the states that rows and columns of matrices stand for."""
    if isinstance(states, StateSpace):
        if states.features != space:
            raise ModelError("states= is over other features than the model's")
        return states
    if states is not None:
        if isinstance(states, str) or not isinstance(states, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"states= must be a list of states, got {states!r}")
        codes = [space.encode(state) for state in states]
        if not codes:
            raise ModelError("states= is empty; a model needs at least one state")
        return StateSpace(space, np.array(codes))
    count = math.prod(int(size) for size in space.sizes)
    if count > max_states:
        raise ModelError(
            f"the features have {count:.3g} combinations, more than max_states={max_states:,}; "
            "list the states that the matrices stand for in states="
        )
    return StateSpace(space, np.stack(np.unravel_index(np.arange(count), tuple(space.sizes)), axis=1))


def given_matrices(transition: Any, actions: tuple[Any, ...], n_states: int) -> list[sparse.csr_array]:
    """Return one sparse (S, S) matrix per action."""
    if isinstance(transition, Mapping):
        named = cast("Mapping[Any, Any]", transition)
        for action in named:
            if action not in actions:
                raise ModelError(f"transition has a matrix for {action!r}, which is not an action")
        for action in actions:
            if action not in named:
                raise ModelError(f"transition has no matrix for the action {action!r}")
        listed = [named[action] for action in actions]
    elif isinstance(transition, Sequence | np.ndarray) and not isinstance(transition, str):
        listed = list(cast("Sequence[Any]", transition))
    else:
        raise ModelError(
            "transition must be a function (state, action) → {next state: probability}, "
            f"or one (S, S) matrix per action, got {type(transition).__name__}"
        )
    if len(listed) != len(actions):
        raise ModelError(f"transition has {len(listed)} matrices for {len(actions)} actions")
    matrices: list[sparse.csr_array] = []
    for action, given in zip(actions, listed, strict=True):
        dense = (
            cast("Any", given)
            if sparse.issparse(given)
            else as_floats(given, f"the matrix of action {action!r}")
        )
        if dense.ndim != 2 or dense.shape != (n_states, n_states):
            raise ModelError(
                f"the matrix of action {action!r} has shape {dense.shape}, expected ({n_states}, {n_states}) "
                f"for {n_states} states"
            )
        matrix = cast("sparse.csr_array", sparse.csr_array(dense, dtype=np.float64))
        try:
            # Indices out of range would crash the interpreter further down.
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise ModelError(f"the matrix of action {action!r} is malformed ({error})") from error
        matrices.append(matrix)
    return matrices


def given_initial(space: StateSpace, initial: Any) -> NDArray[np.float64]:
    """Return the initial distribution as an array, not yet checked for its sum, shape (S,)."""
    if isinstance(initial, Mapping) or _is_pairs(initial):
        return space.distribution(probability_pairs(initial, "the initial distribution"))
    array = as_floats(initial, "initial")
    if array.shape != (len(space),):
        raise ModelError(
            f"initial must be {{state: probability}} or have shape ({len(space)},), got {array.shape}"
        )
    return array


def _is_pairs(initial: Any) -> bool:
    return isinstance(initial, list) and len(cast("list[Any]", initial)) > 0 and isinstance(initial[0], tuple)


def given_terminal(space: StateSpace, terminal: Any) -> NDArray[np.bool_]:
    """Return which states are terminal, shape (S,)."""
    if terminal is None:
        return np.zeros(len(space), dtype=np.bool_)
    given: Any = terminal
    if isinstance(terminal, np.ndarray) or _is_flags(terminal):
        mask: NDArray[Any] = np.array(given)
        if mask.shape != (len(space),) or mask.dtype != np.bool_:
            raise ModelError(
                f"terminal must be a function of the state, a collection of states, or a boolean array of shape "
                f"({len(space)},), got shape {mask.shape} of {mask.dtype}"
            )
        return mask
    function: Callable[[Any], Any] = given if callable(given) else one_of(given, space.features)
    return np.array([truth(call(function, "terminal", state), state) for state in space.states])


def _is_flags(terminal: Any) -> bool:
    return isinstance(terminal, list) and all(isinstance(flag, bool) for flag in cast("list[Any]", terminal))


def one_of(states: Any, features: FeatureSpace) -> Callable[[Any], bool]:
    """Return whether a state is one of a collection, as a function of the state."""
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise ModelError(
            f"terminal must be a function of the state or a collection of states, got {states!r}"
        )
    try:
        codes = {features.encode(state) for state in cast("Iterable[Any]", states)}
    except ModelError as error:
        raise ModelError(f"terminal: {error}") from None
    return lambda state: features.encode(state) in codes

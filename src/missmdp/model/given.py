"""What users give to describe an MDP: functions, names, matrices and arrays, checked one by one."""

from __future__ import annotations

import logging
import math
from array import array as Column  # noqa: N812
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import Argument, ModelError, ParameterError
from missmdp.model.probabilities import as_floats, call, number
from missmdp.model.space import FeatureSpace, StateSpace, is_missing, plain
from missmdp.progress import show_progress

_log = logging.getLogger(__name__)

Distribution = Mapping[Any, float] | Iterable[tuple[Any, float]]
"""{state: probability}, or pairs (state, probability) in which a state may occur more than once."""


class Enumeration(NamedTuple):
    """What the functions say, as arrays over the reachable states in order of rank."""

    space: StateSpace
    transition: list[sparse.csr_array]
    """One (S, S) matrix per action; rows of terminal states are empty."""
    initial: NDArray[np.float64]
    terminal: NDArray[np.bool_]


def enumerate_reachable(
    features: FeatureSpace,
    actions: Sequence[Any],
    transition: Callable[[Any, Any], Distribution],
    initial: Distribution,
    terminal: Callable[[Any], bool] | None,
    *,
    max_states: int,
    progress: bool | None,
) -> Enumeration:
    """Return the states reachable from the initial ones, and the transitions between them.

    States are found breadth first and then put in order of rank, so that the result does not depend
    on the order in which the functions name successors. Entries of probability zero are no successors.
    """
    found = _Found(features, max_states)
    start = _successors(found, initial, "the initial distribution")
    if not start:
        raise ModelError("the initial distribution is empty: no state has positive probability")
    is_terminal: list[bool] = []
    entries = [_Entries(Column("q"), Column("q"), Column("d")) for _ in actions]
    with show_progress("Enumerating states", enabled=progress) as advance:
        while (index := len(is_terminal)) < len(found.codes):
            state = features.decode(found.codes[index])
            is_terminal.append(terminal is not None and truth(call(terminal, "terminal", state), state))
            if not is_terminal[index]:
                for action, matrix in zip(actions, entries, strict=True):
                    distribution = call(transition, "transition", state, action)
                    if not _add_plain(distribution, found, matrix):
                        what = f"transition({state!r}, {action!r})"
                        for successor, weight in _successors(found, distribution, what):
                            matrix.columns.append(successor)
                            matrix.weights.append(weight)
            for matrix in entries:
                matrix.ends.append(len(matrix.columns))
            advance()

    _log.info("enumerated %d reachable states", len(found.codes))
    return _in_order_of_rank(found, start, entries, is_terminal)


class _Entries(NamedTuple):
    """The transitions of one action, state by state as they were found."""

    ends: Column[int]
    """Where the entries of each state end."""
    columns: Column[int]
    weights: Column[float]


_PLAIN = ({float}, {np.float64})
"""The types of probabilities that need no conversion."""


def _add_plain(distribution: Any, found: _Found, entries: _Entries) -> bool:
    """Add what a transition function gave, if it is usual and all right; most of the time goes into this.

    Usual is a dict, or a list of pairs, with known or new states as keys and floats above 0. Anything else is left to
    `_successors`, which says what is wrong with it.
    """
    states: Iterable[Any]
    weights: list[float]
    if type(distribution) is dict:
        states, weights = cast("dict[Any, Any]", distribution), [*distribution.values()]
    elif type(distribution) is list:
        pairs = cast("list[Any]", distribution)
        if {*map(type, pairs)} != {tuple} or {*map(len, pairs)} != {2}:
            return False
        states, weights = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        return False
    if {*map(type, weights)} not in _PLAIN or not min(weights) > 0.0:
        return False
    try:
        columns = [*map(found.known.__getitem__, states)]
    except (KeyError, TypeError):
        return False
    entries.columns.extend(columns)
    entries.weights.extend(weights)
    return True


def _in_order_of_rank(
    found: _Found,
    start: list[tuple[int, float]],
    entries: list[_Entries],
    is_terminal: list[bool],
) -> Enumeration:
    """Return what was found, with states in order of rank; `entries` are those of each action."""
    features = found.features
    codes = np.array(found.codes, dtype=features.code_dtype)
    order = np.argsort(features.rank(codes), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    shape = (len(order), len(order))
    matrices: list[sparse.csr_array] = []
    for ends, columns, weights in entries:
        row = np.repeat(place, np.diff(np.asarray(ends), prepend=0))
        column = place[np.asarray(columns)]
        matrices.append(sparse.csr_array(sparse.coo_array((np.asarray(weights), (row, column)), shape=shape)))
    start_array = np.zeros(len(order))
    for successor, weight in start:
        start_array[place[successor]] += weight
    return Enumeration(
        StateSpace(features, codes[order]),
        matrices,
        start_array,
        np.array(is_terminal, dtype=np.bool_)[order],
    )


class _Found:
    """The states found so far, by their codes and by the tuples that the user's functions gave."""

    def __init__(self, features: FeatureSpace, max_states: int) -> None:
        self.features = features
        self.codes: list[tuple[int, ...]] = []
        self._by_codes: dict[tuple[int, ...], int] = {}
        self.known: dict[Any, int] = {}
        """The index of each state by what the functions called it."""
        self._max_states = max_states

    def index(self, state: Any) -> int:
        hashable = not isinstance(state, dict | list | np.ndarray)
        known = self.known.get(state) if hashable else None
        if known is not None:
            return known
        codes = self.features.encode(state)
        known = self._by_codes.get(codes)
        if known is None:
            known = len(self.codes)
            if known >= self._max_states:
                allowed = f"{np.prod(self.features.sizes.astype(float)):.3g}"
                raise ModelError(
                    f"more than {self._max_states:,} states are reachable (the features allow {allowed}); raise ",
                    Argument("max_states"),
                    " if that is meant",
                )
            self.codes.append(codes)
            self._by_codes[codes] = known
        if hashable:
            self.known[state] = known
        return known


def _successors(found: _Found, distribution: Any, what: str) -> list[tuple[int, float]]:
    successors: list[tuple[int, float]] = []
    for state, weight in probability_pairs(distribution, what):
        if weight != 0.0:
            try:
                successors.append((found.index(state), weight))
            except ModelError as error:
                raise ModelError(f"{what}: ", *error.args) from None
    return successors


def probability_pairs(distribution: Any, what: str, of: str = "state") -> list[tuple[Any, float]]:
    """Return (state, probability) pairs, or of whatever it is, from a mapping or from an iterable of such pairs.

    Signs are checked here, since a negative probability could hide in a sum; sums are checked later.
    """
    checked: list[tuple[Any, float]] = []
    for state, probability in _pairs(distribution, what, of):
        weight = number(probability, "{}: the probability of {!r}", what, state)
        if weight < 0.0:
            raise ModelError(f"{what}: the probability of {state!r} is negative ({weight:g})")
        checked.append((state, weight))
    return checked


def _pairs(distribution: Any, what: str, of: str) -> Iterable[tuple[Any, Any]]:
    if isinstance(distribution, Mapping):
        return cast("Mapping[Any, Any]", distribution).items()
    pairs: list[Any] | None = None
    if isinstance(distribution, Iterable) and not isinstance(distribution, str):
        pairs = cast("list[Any]", call(list, what, cast("Iterable[Any]", distribution)))
    if pairs is None or any(
        not isinstance(pair, tuple | list) or len(cast("Any", pair)) != 2 for pair in pairs
    ):
        raise ModelError(
            f"{what}: expected {{{of}: probability}} or a list of ({of}, probability) pairs, "
            f"got {type(cast('object', distribution)).__name__} ({distribution!r})"
        )
    return pairs


def truth(value: Any, state: Any) -> bool:
    """Return what `terminal` said of a state, which must be a plain True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(cast("bool | np.bool_", value))
    raise ModelError(f"terminal({state!r}) must be True or False, got {value!r}")


def checked_actions(actions: Iterable[Any]) -> tuple[Any, ...]:
    """Return the names of the actions, distinct and usable as names."""
    if isinstance(actions, str | bytes):
        raise ParameterError(
            "actions", actions, "a list of names", f"expected a list of names, got the string {actions!r}"
        )
    try:
        listed = tuple(plain(action) for action in actions)
    except TypeError:
        raise ParameterError("actions", actions, "a list of names") from None
    if not listed:
        raise ParameterError("actions", listed, "a list of names", "a model needs at least one action")
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


def all_states(space: FeatureSpace, max_states: int, *instead: str | Argument) -> StateSpace:
    """Return all combinations of values; raise `ModelError`, with what to do instead, if they are too many."""
    count = math.prod(int(size) for size in space.sizes)
    if count > max_states:
        most = Argument("max_states", max_states)
        raise ModelError(f"the features have {count:.3g} combinations, more than ", most, "; ", *instead)
    _ = space.weights  # raises where features with one value are more than an array has axes
    return StateSpace(space, _all_codes(space))


def _all_codes(space: FeatureSpace) -> NDArray[np.signedinteger[Any]]:
    """Return all combinations of values, the last feature changing fastest, in the smallest type, shape (S, n)."""
    sizes = tuple(map(int, space.sizes))
    codes = np.empty((*sizes, len(sizes)), dtype=space.code_dtype)
    for i, size in enumerate(sizes):
        codes[..., i] = np.arange(size).reshape([-1 if j == i else 1 for j in range(len(sizes))])
    return codes.reshape(-1, len(sizes))


def given_states(
    space: FeatureSpace, states: Sequence[Any] | StateSpace | None, max_states: int
) -> StateSpace:
    """Return the states that rows and columns of matrices stand for."""
    if isinstance(states, StateSpace):
        if states.features != space:
            raise ParameterError("states", states, "states", "they are over other features than the model's")
        return states
    if states is not None:
        if isinstance(states, str) or not isinstance(states, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError("states", states, "a list of states")
        codes = [space.encode(state) for state in states]
        if not codes:
            raise ParameterError("states", states, "a list of states", "a model needs at least one state")
        return StateSpace(space, np.array(codes))
    return all_states(
        space, max_states, "list the states that the matrices stand for in ", Argument("states")
    )


def given_matrices(transition: Any, actions: tuple[Any, ...], n_states: int) -> list[sparse.csr_array]:
    """Return one sparse (S, S) matrix per action."""
    if isinstance(transition, Mapping):
        named = cast("Mapping[Any, Any]", transition)
        for action in named:
            if action not in actions:
                problem = f"there is a matrix for {action!r}, which is not an action"
                raise ParameterError("transition", action, "one matrix per action", problem)
        for action in actions:
            if action not in named:
                problem = f"there is no matrix for the action {action!r}"
                raise ParameterError("transition", action, "one matrix per action", problem)
        listed = [named[action] for action in actions]
    elif isinstance(transition, Sequence | np.ndarray) and not isinstance(transition, str):
        listed = list(cast("Sequence[Any]", transition))
    else:
        expected = "a function (state, action) → {next state: probability}, or one (S, S) matrix per action"
        problem = f"expected {expected}, got {type(transition).__name__}"
        raise ParameterError("transition", transition, expected, problem)
    if len(listed) != len(actions):
        problem = f"{len(listed)} matrices for {len(actions)} actions"
        raise ParameterError("transition", len(listed), "one matrix per action", problem)
    shape = (n_states, n_states)
    return [
        given_matrix("transition", given, shape, f"the matrix of action {action!r}")
        for action, given in zip(actions, listed, strict=True)
    ]


def given_matrix(name: str, given: Any, shape: tuple[int, int], what: str) -> sparse.csr_array:
    """Return a dense matrix, or a sparse one of any kind, as a CSR matrix of floats that is safe to compute with.

    Compiled code follows indices and pointers wherever they lead, so they are checked before anything else is done.

    Parameters
    ----------
    name
        The argument, for errors.
    given
        The matrix.
    shape
        What its shape must be.
    what
        Which matrix it is, in words.
    """
    matrix: Any = given if sparse.issparse(given) else as_floats(given, what)
    if matrix.shape != shape:
        problem = f"{what} has shape {matrix.shape}, expected {shape}"
        raise ParameterError(name, matrix.shape, f"of shape {shape}", problem)
    if matrix.dtype.kind not in "biuf":
        raise ModelError(f"{what}: expected a matrix of numbers, got {matrix.dtype}")
    if sparse.issparse(matrix):
        try:
            matrix = _checked_sparse(matrix)
        except (ValueError, TypeError, IndexError) as error:
            raise ModelError(f"{what} is malformed ({error})") from error
    return cast("sparse.csr_array", sparse.csr_array(matrix, dtype=np.float64))


def _checked_sparse(matrix: Any) -> Any:
    """Return a sparse matrix as CSR, CSC or COO, with all indices inside; raise `ValueError` if they are not.

    scipy's own check (`check_format`) lets pointers pass that go up and end at 0.
    """
    height, width = matrix.shape
    match matrix.format:
        case "csr" | "csc":
            major, minor = (height, width) if matrix.format == "csr" else (width, height)
            form = sparse.csr_array if matrix.format == "csr" else sparse.csc_array
            _check_pointers(matrix.indptr, matrix.indices, len(matrix.data), major, minor)
            return form((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        case "bsr":
            rows, columns = matrix.blocksize
            _check_pointers(matrix.indptr, matrix.indices, len(matrix.data), height // rows, width // columns)
        case _:
            pass
    entries: Any = matrix.tocoo()
    return sparse.coo_array((entries.data, (entries.row, entries.col)), shape=matrix.shape)


def _check_pointers(
    indptr: NDArray[Any], indices: NDArray[Any], n_entries: int, major: int, minor: int
) -> None:
    """Raise `ValueError` unless every row has its part of the entries, whose indices are below `minor`."""
    for name, array in (("pointers", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"its {name} must be a row of integers")
    if len(indptr) != major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"its pointers must be {major + 1} numbers that rise from 0")
    if len(indices) != n_entries or indptr[-1] > n_entries:
        raise ValueError(
            f"its pointers end at {indptr[-1]}, with {len(indices)} indices of {n_entries} entries"
        )
    if len(indices) and (indices.min() < 0 or indices.max() >= minor):
        wrong = int(indices.min()) if indices.min() < 0 else int(indices.max())
        raise ValueError(f"it has the index {wrong}; indices go from 0 to {minor - 1}")


def given_initial(space: StateSpace, initial: Any) -> NDArray[np.float64]:
    """Return the initial distribution as an array, not yet checked for its sum, shape (S,)."""
    if isinstance(initial, Mapping) or _is_pairs(initial):
        return space.distribution(probability_pairs(initial, "the initial distribution"))
    array = as_floats(initial, "initial")
    if array.shape != (len(space),):
        raise ParameterError("initial", array.shape, f"{{state: probability}} or of shape ({len(space)},)")
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
            expected = f"a function of the state, a collection of states, or a boolean array of shape ({len(space)},)"
            problem = f"expected {expected}, got shape {mask.shape} of {mask.dtype}"
            raise ParameterError("terminal", given, expected, problem)
        return mask
    function: Callable[[Any], Any] = given if callable(given) else one_of(given, space.features)
    return np.array([truth(call(function, "terminal", state), state) for state in space.states])


def _is_flags(terminal: Any) -> bool:
    return isinstance(terminal, list) and all(isinstance(flag, bool) for flag in cast("list[Any]", terminal))


def one_of(states: Any, features: FeatureSpace) -> Callable[[Any], bool]:
    """Return whether a state is one of a collection, as a function of the state."""
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise ParameterError("terminal", states, "a function of the state or a collection of states")
    given = cast("Iterable[Any]", states)
    try:
        codes = {features.encode(state) for state in given}
    except ModelError as error:
        raise ParameterError("terminal", given, "a collection of states", str(error)) from None
    return lambda state: features.encode(state) in codes

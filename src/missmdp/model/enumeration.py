"""Enumerate the reachable states of an MDP that is given by functions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.model.checks import call, number
from missmdp.model.space import FeatureSpace
from missmdp.model.states import StateSpace
from missmdp.progress import show_progress

__all__ = ["Distribution", "Enumeration", "enumerate_reachable", "probability_pairs", "truth"]


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
    rows: list[list[int]] = [[] for _ in actions]
    columns: list[list[int]] = [[] for _ in actions]
    weights: list[list[float]] = [[] for _ in actions]

    with show_progress("Enumerating states", enabled=progress) as advance:
        index = 0
        while index < len(found.codes):
            state = features.decode(found.codes[index])
            is_terminal.append(terminal is not None and truth(call(terminal, "terminal", state), state))
            if not is_terminal[index]:
                for a, action in enumerate(actions):
                    what = f"transition({state!r}, {action!r})"
                    for successor, weight in _successors(
                        found, call(transition, "transition", state, action), what
                    ):
                        rows[a].append(index)
                        columns[a].append(successor)
                        weights[a].append(weight)
            index += 1
            advance()

    _log.info("enumerated %d reachable states", len(found.codes))
    codes = np.array(found.codes, dtype=features.code_dtype)
    order = np.argsort(features.rank(codes), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    shape = (len(order), len(order))
    matrices = [
        sparse.csr_array(sparse.coo_array((w, (place[r], place[c])), shape=shape))
        if r
        else sparse.csr_array(shape, dtype=np.float64)
        for r, c, w in zip(rows, columns, weights, strict=True)
    ]
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
        self._by_key: dict[Any, int] = {}
        self._max_states = max_states

    def index(self, state: Any) -> int:
        hashable = not isinstance(state, dict | list | np.ndarray)
        known = self._by_key.get(state) if hashable else None
        if known is not None:
            return known
        codes = self.features.encode(state)
        known = self._by_codes.get(codes)
        if known is None:
            known = len(self.codes)
            if known >= self._max_states:
                raise ModelError(
                    f"more than {self._max_states:,} states are reachable (the features allow "
                    f"{np.prod(self.features.sizes.astype(float)):.3g}); raise max_states if that is meant"
                )
            self.codes.append(codes)
            self._by_codes[codes] = known
        if hashable:
            self._by_key[state] = known
        return known


def _successors(found: _Found, distribution: Any, what: str) -> list[tuple[int, float]]:
    successors: list[tuple[int, float]] = []
    for state, weight in probability_pairs(distribution, what):
        if weight != 0.0:
            try:
                successors.append((found.index(state), weight))
            except ModelError as error:
                raise ModelError(f"{what}: {error}") from None
    return successors


def probability_pairs(distribution: Any, what: str) -> list[tuple[Any, float]]:
    """Return (state, probability) pairs, from a mapping or from an iterable of such pairs.

    Signs are checked here, since a negative probability could hide in a sum; sums are checked later.
    """
    checked: list[tuple[Any, float]] = []
    for state, probability in _pairs(distribution, what):
        weight = number(probability, "{}: the probability of {!r}", what, state)
        if weight < 0.0:
            raise ModelError(f"{what}: the probability of {state!r} is negative ({weight:g})")
        checked.append((state, weight))
    return checked


def _pairs(distribution: Any, what: str) -> Iterable[tuple[Any, Any]]:
    if isinstance(distribution, Mapping):
        return cast("Mapping[Any, Any]", distribution).items()
    pairs: list[Any] | None = None
    if isinstance(distribution, Iterable) and not isinstance(distribution, str):
        pairs = cast("list[Any]", call(list, what, cast("Iterable[Any]", distribution)))
    if pairs is None or any(
        not isinstance(pair, tuple | list) or len(cast("Any", pair)) != 2 for pair in pairs
    ):
        raise ModelError(
            f"{what}: expected {{state: probability}} or a list of (state, probability) pairs, "
            f"got {type(cast('object', distribution)).__name__} ({distribution!r})"
        )
    return pairs


def truth(value: Any, state: Any) -> bool:
    """Return what `terminal` said of a state, which must be a plain True or False."""
    if isinstance(value, bool | np.bool_):
        return bool(cast("bool | np.bool_", value))
    raise ModelError(f"terminal({state!r}) must be True or False, got {value!r}")

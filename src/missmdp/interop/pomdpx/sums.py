"""Rewards as sums of functions of a few features each, found in the rewards of all states."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.model.factors import Scope

_ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Of the largest reward: what is left is due to rounding if it is smaller."""


def sum_of_functions(reward: NDArray[np.float64], sizes: Sequence[int]) -> list[Scope]:
    """Return functions of few features, and of the action, that add up to a reward.

    Parameters
    ----------
    reward
        ρ, shape (S, A), over all combinations of values, the last feature changing fastest.
    sizes
        How many values each feature has.

    Returns
    -------
    list of Scope
        Tables of shape (*sizes of the features, A), none of whose features are all among those of another. If the
        whole is no larger than its parts, it is one function of all features.
    """
    whole = reward.reshape(*sizes, -1)
    rest = whole.copy()
    least = _ROUNDING * float(np.abs(reward).max(initial=0.0))
    scopes: list[tuple[int, ...]] = []
    while True:
        worst = int(np.argmax(np.abs(rest)))
        place = tuple(map(int, np.unravel_index(worst, rest.shape)))
        if abs(float(rest[place])) <= least:
            break
        features = _what_matters(rest, place, least)
        scopes.append(features)
        # This is only a difference so far; `_tables` computes the functions once all sets of features are known.
        rest -= _broadcast(_slice(rest, features), features, sizes)
        if sum(_volume(scope, sizes) for scope in _largest(scopes)) >= math.prod(sizes):
            return [Scope(tuple(range(len(sizes))), whole)]
    return _tables(whole, _largest(scopes), sizes)


def _what_matters(rest: NDArray[np.float64], place: tuple[int, ...], least: float) -> tuple[int, ...]:
    """Return as few features as possible that leave something unexplained if all others have their first value."""
    at = list(place)
    for axis in range(len(at) - 1):
        value, at[axis] = at[axis], 0
        if abs(float(rest[tuple(at)])) <= least:
            at[axis] = value
    return tuple(axis for axis in range(len(at) - 1) if at[axis] > 0)


def _slice(table: NDArray[np.float64], features: tuple[int, ...]) -> NDArray[np.float64]:
    """Return a table where all features but some have their first value."""
    last = table.ndim - 1
    return table[tuple(slice(None) if axis in features or axis == last else 0 for axis in range(table.ndim))]


def _broadcast(
    table: NDArray[np.float64], features: tuple[int, ...], sizes: Sequence[int]
) -> NDArray[np.float64]:
    return Scope(features, table.copy()).over_states(sizes)


def _largest(scopes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the sets of features that are not part of another, in order."""
    distinct = sorted(set(scopes))
    return [one for one in distinct if not any(set(one) < set(other) for other in distinct)]


def _volume(features: tuple[int, ...], sizes: Sequence[int]) -> int:
    return math.prod(sizes[feature] for feature in features)


def _tables(
    whole: NDArray[np.float64], scopes: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> list[Scope]:
    """Return the functions: each is its slice of the whole, less the functions before it."""
    found: list[Scope] = []
    for features in scopes:
        table = _slice(whole, features).copy()
        for scope in found:
            table -= _slice(np.broadcast_to(scope.over_states(sizes), whole.shape), features)
        found.append(Scope(features, table))
    return found

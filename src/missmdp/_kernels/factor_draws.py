"""Draws of next states and observations: from rows over whole states, or feature by feature where those are too large.

Which of the two is decided by type when a kernel is compiled, so models that fit pay nothing for those that do not.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from missmdp._kernels.jit import inner
from missmdp._kernels.random import DRAW_PATTERN, DRAW_STATE, RowSampler, bits, draw, nth_uniform, uniform


class Tables(NamedTuple):
    """Several draws, each from a table by the values of some features."""

    first: NDArray[np.int64]
    """The first row of each draw in `rows`, shape (draws,)."""
    start: NDArray[np.int64]
    """Draw i depends on the features parent[start[i]] .. parent[start[i + 1]], the last changing fastest."""
    parent: NDArray[np.int64]
    label: NDArray[np.int64]
    """The row of `labels` that says the group of each state instead, or −1, shape (draws,)."""
    labels: NDArray[np.int32]
    """Shape (…, S)."""
    rows: RowSampler


class ValueDraws(NamedTuple):
    """The next value of each feature; a row is group · n_actions + a."""

    tables: Tables
    codes: NDArray[np.int32]
    """The values of each state, shape (S, n); states are all combinations, in order."""
    sizes: NDArray[np.int64]
    """The number of values of each feature, shape (n,)."""


class PatternDraws(NamedTuple):
    """Which features of each part are missing; a target is a row of `missing`."""

    tables: Tables
    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    weights: NDArray[np.int64]
    """What one step of each feature's code adds to the rank of an observation, shape (n,)."""
    missing: NDArray[np.bool_]
    """Shape (patterns of all parts, n)."""


@inner
def _group(tables: Tables, i: int, codes: NDArray[np.int32], sizes: NDArray[np.int64], state: int) -> int:
    """Return the group of a state in one of the draws."""
    if tables.label[i] >= 0:
        return int(tables.labels[tables.label[i], state])
    row = 0
    for j in range(tables.start[i], tables.start[i + 1]):
        row = row * sizes[tables.parent[j]] + codes[state, tables.parent[j]]
    return row


@inner
def _next_by_value(draws: ValueDraws, n_actions: int, key: Any, step: int, state: int, action: int) -> int:
    random = bits(key, step, DRAW_STATE)
    following = np.int64(0)
    for i in range(len(draws.sizes)):
        group = _group(draws.tables, i, draws.codes, draws.sizes, state)
        row = draws.tables.first[i] + group * n_actions + action
        value = draw(draws.tables.rows, row, nth_uniform(random, i))
        following = following * draws.sizes[i] + value
    return following  # pyright: ignore[reportReturnType]


@inner
def _seen_by_part(draws: PatternDraws, n_watched: int, key: Any, step: int, state: int, action: int) -> int:
    random = bits(key, step, DRAW_PATTERN)
    rank = np.int64(0)
    for i in range(len(draws.sizes)):
        rank += (draws.codes[state, i] + 1) * draws.weights[i]
    for i in range(len(draws.tables.first)):
        row = draws.tables.first[i] + _group(draws.tables, i, draws.codes, draws.sizes, state)
        pattern = draw(draws.tables.rows, row, nth_uniform(random, i))
        for j in range(len(draws.sizes)):
            if draws.missing[pattern, j]:
                rank -= (draws.codes[state, j] + 1) * draws.weights[j]
    return rank  # pyright: ignore[reportReturnType]


@inner
def _code_of_rank(draws: PatternDraws, seen_codes: NDArray[np.integer[Any]], seen: int, feature: int) -> int:
    return int(seen // draws.weights[feature] % (draws.sizes[feature] + 1) - 1)


@inner
def _next_row(rows: RowSampler, n_actions: int, key: Any, step: int, state: int, action: int) -> int:
    return draw(rows, state * n_actions + action, uniform(key, step, DRAW_STATE))


@inner
def _seen_row(rows: RowSampler, n_watched: int, key: Any, step: int, state: int, action: int) -> int:
    watched = action if n_watched > 1 else 0
    return draw(rows, state * n_watched + watched, uniform(key, step, DRAW_PATTERN))


@inner
def _code_in_list(rows: RowSampler, seen_codes: NDArray[np.integer[Any]], seen: int, feature: int) -> int:
    return seen_codes[seen, feature]


def _is_rows(kind: Any) -> bool:
    """Return whether a type of numba is that of a `RowSampler`."""
    return kind.instance_class is RowSampler


def draw_next(draws: Any, n_actions: int, key: Any, step: int, state: int, action: int) -> int:
    """Return the state at `step` after an action in the state before it; for kernels."""
    raise NotImplementedError


def draw_seen(draws: Any, n_watched: int, key: Any, step: int, state: int, action: int) -> int:
    """Return the observation at `step` of a state; for kernels."""
    raise NotImplementedError


def code_seen(draws: Any, seen_codes: NDArray[np.integer[Any]], seen: int, feature: int) -> int:
    """Return the code of a feature in an observation; for kernels."""
    raise NotImplementedError


@cast("Any", overload)(draw_next)
def _draw_next(draws: Any, n_actions: Any, key: Any, step: Any, state: Any, action: Any) -> Any:
    chosen = _next_row if _is_rows(draws) else _next_by_value

    def drawn(draws: Any, n_actions: Any, key: Any, step: Any, state: Any, action: Any) -> Any:
        return chosen(draws, n_actions, key, step, state, action)

    return drawn


@cast("Any", overload)(draw_seen)
def _draw_seen(draws: Any, n_watched: Any, key: Any, step: Any, state: Any, action: Any) -> Any:
    chosen = _seen_row if _is_rows(draws) else _seen_by_part

    def drawn(draws: Any, n_watched: Any, key: Any, step: Any, state: Any, action: Any) -> Any:
        return chosen(draws, n_watched, key, step, state, action)

    return drawn


@cast("Any", overload)(code_seen)
def _code_seen(draws: Any, seen_codes: Any, seen: Any, feature: Any) -> Any:
    chosen = _code_in_list if _is_rows(draws) else _code_of_rank

    def code(draws: Any, seen_codes: Any, seen: Any, feature: Any) -> Any:
        return chosen(draws, seen_codes, seen, feature)

    return code

"""The factors of dynamics that were given as matrices, or as functions of the state.

The next values of features are independent given the state and the action if every row of T is the product of its
marginals. The parents of a feature are then those on which its marginal depends. Rows of terminal states say nothing,
since terminal states are absorbing whatever T says: they are ignored, and so is what a table would say of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.memory import free_memory
from missmdp.model.factors import Factors, Scope
from missmdp.model.space import StateSpace

_EQUAL = 1e-10
"""Probabilities that differ by less than this part of them are equal up to rounding."""
_CHUNK = 2_000_000
"""Entries of a matrix that are looked at together."""


def find_factors(
    space: StateSpace,
    actions: Sequence[Any],
    transition: Sequence[sparse.csr_array],
    terminal: NDArray[np.bool_],
) -> Factors | None:
    """Return T feature by feature; None if next values depend on each other, or if states are not all combinations.

    Also None if it would take more memory than is free to find out: T is then used as it was given.

    Parameters
    ----------
    space
        The states. Factors speak of all combinations of values in order, the last feature changing fastest.
    actions
        The names of the actions.
    transition
        One (S, S) matrix per action, without stored zeros.
    terminal
        Which states are terminal, shape (S,).
    """
    sizes = tuple(map(int, space.features.sizes))
    n_states = math.prod(sizes)
    if (
        len(space) != n_states
        or (space.features.rank(space.codes)[1:] <= space.features.rank(space.codes)[:-1]).any()
    ):
        return None
    # The marginals, and as much again while parents that do not matter are left out.
    if 16.0 * n_states * len(actions) * sum(sizes) > free_memory():
        return None
    marginals = [np.zeros((n_states, len(actions), size)) for size in sizes]
    for a, matrix in enumerate(transition):
        if not _marginals(matrix, sizes, ~terminal, [table[:, a] for table in marginals]):
            return None
    scopes = [_fewest_parents(i, table, sizes, terminal) for i, table in enumerate(marginals)]
    names = space.features.names
    tables = {names[i]: ([names[p] for p in scope.parents], scope.table) for i, scope in enumerate(scopes)}
    factors = Factors(space.features, actions, tables)
    products = all(_is_product(factors, a, matrix, ~terminal) for a, matrix in enumerate(transition))
    return factors if products else None


def _entries(
    matrix: sparse.csr_array, live: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Yield the rows, columns and values of a matrix in its live rows, some at a time."""
    n_rows = len(live)
    pointers: NDArray[np.int64] = matrix.indptr.astype(np.int64)
    start = 0
    while start < n_rows:
        limit = int(pointers[start]) + _CHUNK
        stop = int(np.searchsorted(pointers, limit, side="right")) - 1
        stop = min(max(stop, start + 1), n_rows)
        part = slice(int(pointers[start]), int(pointers[stop]))
        row = np.repeat(np.arange(start, stop), np.diff(pointers[start : stop + 1]))
        kept = live[row]
        yield row[kept], matrix.indices[part][kept].astype(np.int64), matrix.data[part][kept]
        start = stop


def _marginals(
    matrix: sparse.csr_array,
    sizes: Sequence[int],
    live: NDArray[np.bool_],
    out: Sequence[NDArray[np.float64]],
) -> bool:
    """Fill in the distribution of each feature after each live state, (S, values) each; False if rows have gaps.

    A product of marginals has as many entries as the product of their numbers of entries. That is quickly seen.
    """
    n_states = len(live)
    for row, column, value in _entries(matrix, live):
        place = column
        for table, size in zip(out[::-1], sizes[::-1], strict=True):
            place, code = np.divmod(place, size)
            first, last = (int(row[0]), int(row[-1]) + 1) if len(row) else (0, 0)
            sums = np.bincount((row - first) * size + code, weights=value, minlength=(last - first) * size)
            table[first:last] += sums.reshape(-1, size)
    counts = np.ones(n_states)
    for table in out:
        counts *= (table > 0.0).sum(axis=1)
    return bool((counts == np.diff(matrix.indptr))[live].all())


def _fewest_parents(
    feature: int, table: NDArray[np.float64], sizes: Sequence[int], terminal: NDArray[np.bool_]
) -> Scope:
    """Return a feature's next value given as few features as possible, none of which can be left out.

    Parameters
    ----------
    feature
        Which feature it is; its own value is the last to be left out.
    table
        Its next value after each state, shape (S, A, values); rows of terminal states are ignored.
    sizes
        The number of values of each feature.
    terminal
        Which states are terminal, shape (S,).
    """
    table[terminal] = np.nan
    left = table.reshape(*sizes, *table.shape[1:])
    parents: list[int] = []
    for axis in sorted(range(len(sizes)), key=lambda i: (i == feature, i)):
        low, high = (
            np.fmin.reduce(left, axis=axis, keepdims=True),
            np.fmax.reduce(left, axis=axis, keepdims=True),
        )
        if ((high - low) > _EQUAL * high).any():
            parents.append(axis)
        else:
            left = _first(left, axis) if terminal.any() else left.take([0], axis=axis)
    parents.sort()
    left = left.reshape(*(sizes[p] for p in parents), *table.shape[1:]).copy()
    # Where all states are terminal, anything would do.
    left[np.isnan(left).any(axis=-1)] = np.eye(left.shape[-1])[0]
    return Scope(tuple(parents), left)


def _first(table: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the first values along an axis that are not NaN; the axis stays, with length 1."""
    place = np.isnan(table).argmin(axis=axis, keepdims=True)
    return np.take_along_axis(table, place, axis=axis)


def _is_product(factors: Factors, action: int, matrix: sparse.csr_array, live: NDArray[np.bool_]) -> bool:
    """Return whether the live rows of a matrix are the products of the factors, up to rounding."""
    sizes = factors.sizes
    for row, column, value in _entries(matrix, live):
        now, after = np.unravel_index(row, sizes), np.unravel_index(column, sizes)
        product = np.ones(len(row))
        for i, scope in enumerate(factors.scopes):
            product *= scope.table[(*(now[p] for p in scope.parents), action, after[i])]
        if (np.abs(product - value) > 10.0 * _EQUAL * value).any():
            return False
    return True

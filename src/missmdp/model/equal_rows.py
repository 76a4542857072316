"""Rows of transition matrices that are equal: states with the same future."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class EqualRows(NamedTuple):
    """Classes of equal rows, numbered as they first occur: N rows, C classes."""

    number: NDArray[np.int64]
    """The class of each row, −1 for rows that were not looked at, shape (N,)."""
    first: NDArray[np.int64]
    """The first row of each class, shape (C,)."""


def canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a copy of a matrix in which equal rows have equal entries: no zeros, sorted."""
    kept = sparse.csr_array(matrix, copy=True)
    kept.eliminate_zeros()
    kept.sort_indices()
    return kept


def equal_rows(
    matrices: Sequence[sparse.csr_array],
    beside: Sequence[NDArray[Any]] = (),
    rows: Iterable[int] | None = None,
) -> EqualRows:
    """Return the classes of rows that are equal bit for bit in all matrices.

    Parameters
    ----------
    matrices
        In canonical form, N rows each.
    beside
        Arrays whose rows must be equal too, shape (N, …) each.
    rows
        The rows to look at, in order; all by default.
    """
    size = matrices[0].shape[0]
    looked_at = np.arange(size) if rows is None else np.fromiter(rows, dtype=np.int64)
    keys = np.zeros(size, dtype=np.uint64)
    for m, matrix in enumerate(matrices):
        keys = _mixed(keys ^ _row_keys(matrix), m)
    for b, array in enumerate(beside):
        for column in _bits(array).T:
            keys = _mixed(keys ^ column, -1 - b)
    _, first, number = np.unique(keys[looked_at], return_index=True, return_inverse=True)
    # Numbered as they first occur.
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    firsts = looked_at[first[order]]
    numbers = np.full(size, -1, dtype=np.int64)
    numbers[looked_at] = rank[number]
    if not _are_equal(matrices, beside, looked_at, firsts[rank[number]]):
        return _by_content(matrices, beside, looked_at)
    return EqualRows(numbers, firsts)


def _mixed(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Return keys scrambled, each on its own."""
    x = keys + np.uint64((0x9E3779B97F4A7C15 * (salt + 1_000_003)) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _row_keys(matrix: sparse.csr_array) -> NDArray[np.uint64]:
    """Return a key per row that equal rows share."""
    entries = _mixed(_mixed(matrix.indices.astype(np.uint64), 0) ^ matrix.data.view(np.uint64), 1)
    totals = np.append(np.uint64(0), np.cumsum(entries, dtype=np.uint64))
    return totals[matrix.indptr[1:]] - totals[matrix.indptr[:-1]]


def _bits(array: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the rows of an array of numbers as bits, shape (N, …)."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return (flat.astype(np.int64) if flat.dtype.kind in "iub" else flat.astype(np.float64)).view(np.uint64)


def _are_equal(
    matrices: Sequence[sparse.csr_array],
    beside: Sequence[NDArray[Any]],
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
) -> bool:
    """Return whether each row equals its other one, everywhere."""
    rows, others = rows[rows != others], others[rows != others]
    for array in beside:
        bits = _bits(array)
        if (bits[rows] != bits[others]).any():
            return False
    for matrix in matrices:
        sizes = np.diff(matrix.indptr)
        if (sizes[rows] != sizes[others]).any():
            return False
        within = np.arange(int(sizes[rows].sum())) - np.repeat(
            np.cumsum(sizes[rows]) - sizes[rows], sizes[rows]
        )
        one = np.repeat(matrix.indptr[rows].astype(np.int64), sizes[rows]) + within
        other = np.repeat(matrix.indptr[others].astype(np.int64), sizes[rows]) + within
        if (matrix.indices[one] != matrix.indices[other]).any():
            return False
        bits = matrix.data.view(np.uint64)
        if (bits[one] != bits[other]).any():
            return False
    return True


def _by_content(
    matrices: Sequence[sparse.csr_array], beside: Sequence[NDArray[Any]], rows: NDArray[np.int64]
) -> EqualRows:
    """Return the classes row by row; keys that differing rows share are all but impossible."""
    numbers: dict[bytes, int] = {}
    number = np.full(matrices[0].shape[0], -1, dtype=np.int64)
    first: list[int] = []
    for row in rows.tolist():
        key = [array[row].tobytes() for array in beside]
        for matrix in matrices:
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            key += [matrix.indices[entries].tobytes(), matrix.data[entries].tobytes()]
        number[row] = numbers.setdefault(b"|".join(key), len(first))
        if number[row] == len(first):
            first.append(row)
    return EqualRows(number, np.array(first, dtype=np.int64))

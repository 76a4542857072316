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
    numbers: dict[bytes, int] = {}
    number = np.full(size, -1, dtype=np.int64)
    first: list[int] = []
    for row in range(size) if rows is None else rows:
        key = [array[row].tobytes() for array in beside]
        for matrix in matrices:
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            key += [matrix.indices[entries].tobytes(), matrix.data[entries].tobytes()]
        number[row] = numbers.setdefault(b"|".join(key), len(first))
        if number[row] == len(first):
            first.append(row)
    return EqualRows(number, np.array(first, dtype=np.int64))

"""Null spaces of sparse matrices, part by part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from missmdp.errors import ModelError
from missmdp.learn.identifiability.spans import TOLERANCE, triangle

__all__ = ["NullSpace", "null_space"]

_MOST_COLUMNS = 4000
"""Columns of a part that hangs together, above which an answer is refused."""

_NOISE = 1e-13
"""Entries below this are rounding, and do not join what is apart."""


@dataclass(frozen=True, eq=False)
class NullSpace:
    """The directions that a matrix takes to zero."""

    basis: sparse.csc_array
    """Orthonormal columns, shape (columns of the matrix, dimension)."""
    margin: float
    """The smallest singular value that counts, as a share of the largest in its part."""

    @property
    def dimension(self) -> int:
        """How many directions there are."""
        return int(self.basis.shape[1])


def null_space(matrix: sparse.csr_array) -> NullSpace:
    """Return the null space of a matrix whose parts that do not hang together are small.

    Raises
    ------
    ModelError
        If a part is too large for dense linear algebra.
    """
    matrix = sparse.csr_array(matrix, copy=True)
    matrix.data[np.abs(matrix.data) < _NOISE] = 0.0
    matrix.eliminate_zeros()
    total = matrix.shape[1]
    matrix, left = _without_plain_zeros(matrix)
    n_rows = matrix.shape[0]
    joined = sparse.block_array([[None, matrix], [matrix.T, None]], format="csr")
    _, part = csgraph.connected_components(joined, directed=False)
    row_lists, column_lists = _by_part(part[:n_rows]), _by_part(part[n_rows:])
    margin, count = 1.0, 0
    row: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    column: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    value: list[NDArray[np.float64]] = [np.zeros(0)]
    for number, columns in column_lists.items():
        own = matrix[row_lists.get(number, [])][:, columns].toarray()
        basis, least = _dense_null_space(own)
        margin = min(margin, least)
        d = len(basis)
        row.append(np.tile(left[columns], d))
        column.append(np.repeat(np.arange(count, count + d), len(columns)))
        value.append(basis.reshape(-1))
        count += d
    entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    return NullSpace(sparse.csc_array(sparse.coo_array(entries, shape=(total, count))), margin)


def _without_plain_zeros(matrix: sparse.csr_array) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Return the matrix without columns that a row with nothing else makes zero, and which columns are left."""
    left = np.arange(matrix.shape[1])
    while True:
        alone = np.flatnonzero(np.diff(matrix.indptr) == 1)
        zero = np.unique(matrix.indices[matrix.indptr[alone]])
        if not len(zero):
            return matrix, left
        kept = np.delete(np.arange(matrix.shape[1]), zero)
        matrix = sparse.csr_array(matrix[:, kept])
        matrix = sparse.csr_array(matrix[np.flatnonzero(np.diff(matrix.indptr))])
        left = left[kept]


def _by_part(part: NDArray[np.int32]) -> dict[int, NDArray[np.int64]]:
    order = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    return {int(part[places[0]]): places for places in np.split(order, cuts) if len(places)}


def _dense_null_space(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return an orthonormal basis, shape (dimension, columns), and the margin."""
    columns = matrix.shape[1]
    if len(matrix) == 0:
        return np.eye(columns), 1.0
    if columns == 1:
        return np.zeros((0, 1)), 1.0
    if columns > _MOST_COLUMNS:
        raise ModelError(
            f"{columns:,} probabilities hang together, too many to say which are identified "
            f"(at most {_MOST_COLUMNS:,}); a structure with fewer may do"
        )
    if len(matrix) > columns:
        matrix = triangle(matrix)
    _, size, basis = np.linalg.svd(matrix, full_matrices=True)
    top = float(size[0])
    rank = int((size > TOLERANCE * top).sum())
    return basis[rank:], float(size[rank - 1] / top)

"""What histories can say of M at one observation: spans of vectors over the states that show it.

Given a known pair (s, a), the probability of the observation z is Σ_{s′} T(s′ | s, a) M(z | s′): a linear function of
M(z | ·) for every row of T that occurs. The span of these rows over the states of z is what one step says. A history
that was followed through other observations weighs the states of z by some combination of rows, and what comes after
weighs them by some combination of columns of T: whatever is orthogonal to all products of the two can never be learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from missmdp.errors import ModelError
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.model.mdp import FactoredMDP

TOLERANCE = 1e-9
"""Singular values below this share of the largest count as zero."""

_MOST_ENTRIES = 60_000_000
"""Entries of a dense matrix above which an answer is refused (480 MB)."""

_MOST_COLUMNS = 4000
"""Columns of a part that hangs together, above which an answer is refused."""

_NOISE = 1e-13
"""Entries below this are rounding, and do not join what is apart."""


@dataclass(frozen=True, eq=False)
class Span:
    """A linear space of functions on some states."""

    basis: NDArray[np.float64]
    """Orthonormal rows, shape (dimension, states)."""
    margin: float
    """The smallest singular value that counts, as a share of the largest."""
    noise: float = 0.0
    """The largest that does not count."""

    @property
    def full(self) -> bool:
        """Whether it holds every function."""
        return len(self.basis) == self.basis.shape[1]


def row_span(matrix: NDArray[np.float64]) -> Span:
    """Return the span of a matrix's rows."""
    if matrix.shape[1] == 1:
        return Span(np.ones((int(matrix.any()), 1)), 1.0)
    if matrix.shape[0] > matrix.shape[1]:
        matrix = triangle(matrix)
    _, size, basis = np.linalg.svd(matrix, full_matrices=False)
    top = float(size.max(initial=0.0))
    kept = int((size > TOLERANCE * top).sum()) if top > 0.0 else 0
    # Where all functions are spanned, the plainest basis leaves other matrices sparse.
    plain = np.eye(kept) if kept == matrix.shape[1] else basis[:kept]
    noise = float(size[kept] / top) if 0 < kept < len(size) else 0.0
    return Span(plain, float(size[kept - 1] / top) if kept else 1.0, noise)


def triangle(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a matrix with as many rows as columns, the same null space and the same singular values."""
    _, upper = np.linalg.qr(matrix)
    return upper


def known_rows(mdp: FactoredMDP, seen: PossibleObservations) -> sparse.csc_array:
    """Return b₀ and the rows of T whose state and action are known now and then, shape (rows, S)."""
    return _rows(mdp, seen.known)


def left_rows(mdp: FactoredMDP, seen: PossibleObservations) -> sparse.csc_array:
    """Return b₀ and all rows of T that are used, known or not, shape (rows, S)."""
    return _rows(mdp, seen.left)


def _rows(mdp: FactoredMDP, chosen: Sequence[NDArray[np.int64]]) -> sparse.csc_array:
    parts = [sparse.csr_array(mdp.initial[None, :])]
    parts += [sparse.csr_array(matrix[states]) for matrix, states in zip(mdp.transition, chosen, strict=True)]
    return sparse.csc_array(sparse.vstack(parts, format="csc"))


def one_step_spans(rows: sparse.csc_array, members: Iterable[NDArray[np.int64]]) -> list[Span]:
    """Return the span of the rows over each group of states."""
    filled = np.diff(rows.indptr) > 0
    return [
        Span(np.ones((int(filled[states[0]]), 1)), 1.0)
        if len(states) == 1
        else row_span(_restricted(rows, states))
        for states in members
    ]


def widest_spans(
    mdp: FactoredMDP,
    seen: PossibleObservations,
    rows: sparse.csc_array,
    chosen: Iterable[int],
    generator: np.random.Generator,
) -> dict[int, Span]:
    """Return for each chosen observation the span of all that histories of any length could say of it."""
    columns = [sparse.csc_array(matrix.T) for matrix in mdp.transition]
    spans: dict[int, Span] = {}
    for z in chosen:
        states = seen.members[z]
        actions = np.flatnonzero(seen.allowed[z])
        # States with the same transitions have the same future: one of each will do.
        classes = np.concatenate([np.zeros((1, len(states)), np.int64), seen.row_class[actions][:, states]])
        _, first, place = np.unique(classes, axis=1, return_index=True, return_inverse=True)
        after = [_restricted(columns[a], states[first]) for a in actions]
        future = row_span(np.concatenate([np.ones((1, len(first))), *after])).basis[:, place.reshape(-1)]
        past = row_span(_restricted(rows, states)).basis
        spans[z] = row_span(_products(past, future, generator))
    return spans


def _products(
    one: NDArray[np.float64], other: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return products of functions that span all of them, shape (products, states)."""
    count = len(one) * len(other)
    most = 2 * one.shape[1] + 8
    if count <= most:
        return (one[:, None, :] * other[None, :, :]).reshape(count, -1)
    # Random pairs span the same space almost surely.
    return (generator.normal(size=(most, len(one))) @ one) * (
        generator.normal(size=(most, len(other))) @ other
    )


def _restricted(rows: sparse.csc_array, states: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the columns of some states, without rows of zeros."""
    part = sparse.csr_array(rows[:, states])
    part = part[np.flatnonzero(np.diff(part.indptr))]
    if part.shape[0] * part.shape[1] > _MOST_ENTRIES:
        raise ModelError(
            f"{part.shape[1]:,} states look the same where features are missing, and {part.shape[0]:,} transitions "
            "lead to them: too many to say what is identified; ask about a model with fewer features that go missing"
        )
    return part.toarray()


def stacked(
    spans: Sequence[Span], members: Sequence[NDArray[np.int64]], offsets: NDArray[np.int64], n_columns: int
) -> sparse.csr_array:
    """Return the bases as rows of one matrix, where group j's states are columns offsets[j] + state."""
    row: list[NDArray[np.int64]] = []
    column: list[NDArray[np.int64]] = []
    value: list[NDArray[np.float64]] = []
    count = 0
    for span, states, offset in zip(spans, members, offsets, strict=True):
        d, n = len(span.basis), len(states)
        row.append(np.repeat(np.arange(count, count + d), n))
        column.append(np.tile(states + offset, d))
        value.append(span.basis.reshape(-1))
        count += d
    entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    return sparse.csr_array(sparse.coo_array(entries, shape=(count, n_columns)))


@dataclass(frozen=True, eq=False)
class NullSpace:
    """The directions that a matrix takes to zero."""

    basis: sparse.csc_array
    """Orthonormal columns, shape (columns of the matrix, dimension)."""
    margin: float
    """The smallest singular value that counts, as a share of the largest in its part."""
    noise: float
    """The largest that does not count."""

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
    margin, noise, count = 1.0, 0.0, 0
    row: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    column: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    value: list[NDArray[np.float64]] = [np.zeros(0)]
    for number, columns in column_lists.items():
        own = matrix[row_lists.get(number, [])][:, columns].toarray()
        basis, least, rest = _dense_null_space(own)
        margin, noise = min(margin, least), max(noise, rest)
        d = len(basis)
        row.append(np.tile(left[columns], d))
        column.append(np.repeat(np.arange(count, count + d), len(columns)))
        value.append(basis.reshape(-1))
        count += d
    entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    return NullSpace(sparse.csc_array(sparse.coo_array(entries, shape=(total, count))), margin, noise)


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


def _dense_null_space(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, float]:
    """Return an orthonormal basis, shape (dimension, columns), the margin and the noise."""
    columns = matrix.shape[1]
    if len(matrix) == 0:
        return np.eye(columns), 1.0, 0.0
    if columns == 1:
        return np.zeros((0, 1)), 1.0, 0.0
    if columns > _MOST_COLUMNS:
        raise ModelError(
            f"{columns:,} probabilities hang together, too many to say which are identified "
            f"(at most {_MOST_COLUMNS:,}); 'mcar', 'smar' or a graph with fewer arrows has fewer"
        )
    if len(matrix) > columns:
        matrix = triangle(matrix)
    _, size, basis = np.linalg.svd(matrix, full_matrices=True)
    top = float(size[0])
    rank = int((size > TOLERANCE * top).sum())
    noise = float(size[rank] / top) if rank < len(size) else 0.0
    return basis[rank:], float(size[rank - 1] / top), noise

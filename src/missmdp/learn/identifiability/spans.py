"""What histories can say of M at one sight: spans of vectors over the states that show it.

Given a known pair (s, a), the probability of the sight z is Σ_{s′} T(s′ | s, a) M(z | s′): a linear function of
M(z | ·) for every row of T that occurs. The span of these rows over the states of z is what one step says. A history
that was followed through other sights weighs the states of z by some combination of rows, and what comes after weighs
them by some combination of columns of T: whatever is orthogonal to all products of the two can never be learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.learn.identifiability.sights import Sights
from missmdp.model.mdp import FactoredMDP

__all__ = [
    "TOLERANCE",
    "Span",
    "known_rows",
    "left_rows",
    "one_step_spans",
    "row_span",
    "stacked",
    "triangle",
    "widest_spans",
]

TOLERANCE = 1e-9
"""Singular values below this share of the largest count as zero."""

_MOST_ENTRIES = 60_000_000
"""Entries of a dense matrix above which an answer is refused (480 MB)."""


@dataclass(frozen=True, eq=False)
class Span:
    """A linear space of functions on some states."""

    basis: NDArray[np.float64]
    """Orthonormal rows, shape (dimension, states)."""
    margin: float
    """The smallest singular value that counts, as a share of the largest."""

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
    return Span(plain, float(size[kept - 1] / top) if kept else 1.0)


def triangle(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a matrix with as many rows as columns, the same null space and the same singular values."""
    _, upper = np.linalg.qr(matrix)
    return upper


def known_rows(mdp: FactoredMDP, sights: Sights) -> sparse.csc_array:
    """Return b₀ and the rows of T whose state and action are known now and then, shape (rows, S)."""
    return _rows(mdp, sights.known)


def left_rows(mdp: FactoredMDP, sights: Sights) -> sparse.csc_array:
    """Return b₀ and all rows of T that are used, known or not, shape (rows, S)."""
    return _rows(mdp, sights.left)


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
    sights: Sights,
    rows: sparse.csc_array,
    chosen: Iterable[int],
    generator: np.random.Generator,
) -> dict[int, Span]:
    """Return for each chosen sight the span of all that histories of any length could say of it."""
    columns = [sparse.csc_array(matrix.T) for matrix in mdp.transition]
    spans: dict[int, Span] = {}
    for z in chosen:
        states = sights.members[z]
        actions = np.flatnonzero(sights.allowed[z])
        # States with the same transitions have the same future: one of each will do.
        classes = np.concatenate([np.zeros((1, len(states)), np.int64), sights.row_class[actions][:, states]])
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
            "lead to them: too many to say what is identified"
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

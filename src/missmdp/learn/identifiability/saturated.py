"""What stays open in a saturated M, without linear algebra on all of its probabilities at once.

Of a saturated M(z | ·) histories can say no more than the widest span of its sight holds. A change of M that is
orthogonal to the spans of all sights, and adds up to nothing in every state, goes unnoticed. Sight by sight the
complements of the spans are small; what joins them are the states, one equation each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.sights import Sights
from missmdp.learn.identifiability.spans import TOLERANCE, Span
from missmdp.learn.identifiability.tangent import Tangent

__all__ = ["OpenDirections", "is_saturated", "open_in_saturated"]

_DRAWS = 3
"""Random directions: what any of the open ones moves, these move too, almost surely."""


class OpenDirections(NamedTuple):
    """The changes of M that no history shows."""

    dimension: int
    some: NDArray[np.float64]
    """Random ones, as directions in the space of parameters, shape (P, few)."""


def is_saturated(factors: Factors) -> bool:
    """Return whether every state has a distribution over all patterns of its own."""
    if len(factors.parts) != 1:
        return False
    (part,) = factors.parts
    n_patterns, n_states = part.label.shape
    return part.n_outcomes == n_patterns and part.n_groups == n_states and not part.after


def open_in_saturated(
    factors: Factors,
    sights: Sights,
    wide: Sequence[Span],
    tangent: Tangent,
    generator: np.random.Generator,
) -> OpenDirections:
    """Return the changes of a saturated M that histories of any length leave unnoticed.

    Parameters
    ----------
    wide
        All that histories could say at each sight.
    """
    (part,) = factors.parts
    n_states = part.label.shape[1]
    bases = [_complement(span.basis) for span in wide]
    columns = [_placed(basis, states, n_states) for basis, states in zip(bases, sights.members, strict=True)]
    sums = sparse.csr_array(sparse.hstack(columns, format="csr"))
    gram: NDArray[np.float64] = np.asarray((sums @ sums.T).todense(), dtype=np.float64)
    size, vectors = np.linalg.eigh(gram)
    kept = size > TOLERANCE * max(float(size[-1]), 1e-300)
    dimension = int(sums.shape[1] - kept.sum())
    drawn = generator.normal(size=(sums.shape[1], _DRAWS))
    range_ = vectors[:, kept]
    drawn -= sums.T @ (range_ @ ((range_.T @ (sums @ drawn)) / size[kept][:, None]))
    change = np.zeros((*part.label.shape, _DRAWS))
    start = 0
    for basis, states, pattern in zip(bases, sights.members, sights.pattern, strict=True):
        change[pattern, states] += basis @ drawn[start : start + basis.shape[1]]
        start += basis.shape[1]
    # Entries are listed by group and outcome; outcomes are patterns, and every group is one state.
    state_of = np.empty(part.n_groups, dtype=np.int64)
    state_of[part.label[0]] = np.arange(n_states)
    pattern_of = np.argsort(part.outcome)
    moved = change[pattern_of[tangent.outcome], state_of[tangent.group]]
    return OpenDirections(dimension, np.asarray(tangent.entries.T @ moved))


def _complement(basis: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis of what is orthogonal to some orthonormal rows, columns, shape (states, rest)."""
    count, width = basis.shape
    if count == width:
        return np.zeros((width, 0))
    if count == 0:
        return np.eye(width)
    full, _ = np.linalg.qr(basis.T, mode="complete")
    return np.ascontiguousarray(full[:, count:])


def _placed(basis: NDArray[np.float64], states: NDArray[np.int64], n_states: int) -> sparse.coo_array:
    """Return columns over some states as columns over all."""
    count = basis.shape[1]
    row: NDArray[np.int64] = np.repeat(states, count)
    column: NDArray[np.int64] = np.tile(np.arange(count, dtype=np.int64), len(states))
    return sparse.coo_array((basis.reshape(-1), (row, column)), shape=(n_states, count))

"""M near a random point of a structure: its table, and how that changes with the structure's parameters.

Of a saturated M(z | ·) histories can say no more than the widest span of its observation holds. A change of M that is
orthogonal to the spans of all observations, and adds up to nothing in every state, goes unnoticed. One observation
at a time, the complements of the spans are small; what joins them are the states, one equation each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.spans import TOLERANCE, Span

_EVEN = 4.0
"""Concentration of the random distributions: all patterns are well possible."""

_DRAWS = 3
"""Random directions: what any of the open ones moves, these move too, almost surely."""


@dataclass(frozen=True, eq=False)
class Tangent:
    """M at a point, K patterns and S states, and its derivatives by P free parameters."""

    table: NDArray[np.float64]
    """P(pattern | state), shape (K, S)."""
    jacobian: sparse.csr_array
    """∂ table / ∂ parameters, shape (K · S, P), rows by pattern, then state."""
    entries: sparse.csr_array
    """How the entries that people know (probabilities of outcomes, or effects) change with free parameters, (E, P)."""
    owner: NDArray[np.int64]
    """The factor of each of these entries, shape (E,)."""
    group: NDArray[np.int64]
    """Its group in the factor, or which effect it is, shape (E,)."""
    outcome: NDArray[np.int64]
    """Which outcome it is the probability of, shape (E,)."""

    @property
    def n_parameters(self) -> int:
        """P."""
        return int(self.jacobian.shape[1])


def tangent_of(
    structure: Factors | Logistic, reachable: NDArray[np.bool_], generator: np.random.Generator
) -> Tangent:
    """Return M at a random point where all patterns are possible; parameters that reachable states have.

    Parameters
    ----------
    structure
        The structure.
    reachable
        Which states count, shape (S,).
    generator
        Draws the point.
    """
    if isinstance(structure, Factors):
        return tangent_at(structure, reachable, random_point(structure, generator))
    return _of_logistic(structure, reachable, generator)


def random_point(factors: Factors, generator: np.random.Generator) -> list[NDArray[np.float64]]:
    """Return random probabilities for each factor, shape (G, O) each."""
    return [
        generator.dirichlet(np.full(part.n_outcomes, _EVEN), size=part.n_groups) for part in factors.parts
    ]


def tangent_at(
    factors: Factors, reachable: NDArray[np.bool_], thetas: Sequence[NDArray[np.float64]]
) -> Tangent:
    """Return M with these probabilities, shape (G, O) for each factor."""
    table = factors.table(thetas)
    places = np.arange(table.size).reshape(table.shape)
    by_entry: list[sparse.csr_array] = []
    free: list[sparse.csr_array] = []
    owner: list[NDArray[np.int64]] = []
    group: list[NDArray[np.int64]] = []
    outcome: list[NDArray[np.int64]] = []
    for f, (part, theta) in enumerate(zip(factors.parts, thetas, strict=True)):
        used = np.unique(part.label[:, reachable])
        place = np.full(part.n_groups, -1)
        place[used] = np.arange(len(used))
        inside = place[part.label] >= 0
        column = place[part.label] * part.n_outcomes + part.outcome[:, None]
        value = table / part.spread(theta)
        shape = (table.size, len(used) * part.n_outcomes)
        entries = (value[inside], (places[inside], column[inside]))
        by_entry.append(sparse.csr_array(sparse.coo_array(entries, shape=shape)))
        free.append(_simplex(len(used), part.n_outcomes))
        owner.append(np.full(shape[1], f))
        group.append(np.repeat(used, part.n_outcomes))
        outcome.append(np.tile(np.arange(part.n_outcomes), len(used)))
    entries = sparse.csr_array(sparse.block_diag(free, format="csr"))
    return Tangent(
        table,
        sparse.csr_array(sparse.hstack(by_entry, format="csr") @ entries),
        entries,
        np.concatenate(owner),
        np.concatenate(group),
        np.concatenate(outcome),
    )


def _simplex(n_groups: int, n_outcomes: int) -> sparse.csr_array:
    """Return how probabilities of each group change with all but the first, shape (G · O, G · (O − 1))."""
    one = np.concatenate([np.full((1, n_outcomes - 1), -1.0), np.eye(n_outcomes - 1)])
    return sparse.csr_array(sparse.kron(sparse.eye_array(n_groups), one, format="csr"))


def _of_logistic(model: Logistic, reachable: NDArray[np.bool_], generator: np.random.Generator) -> Tangent:
    missing = model.blocks.missing
    table = np.ones((len(missing), len(reachable)))
    slopes: list[NDArray[np.float64]] = []
    kept: list[NDArray[np.int64]] = []
    for i, design in enumerate(model.designs):
        # Of effects that reachable states cannot tell apart, only some are kept: M is in question, not they.
        kept.append(_independent_columns(design[reachable]))
        count = len(kept[-1])
        used: NDArray[np.float64] = design[:, kept[-1]]
        rate: NDArray[np.float64] = 1.0 / (
            1.0 + np.exp(-(used @ generator.normal(size=count)) / math.sqrt(count))
        )
        table *= np.where(missing[:, i : i + 1], rate, 1.0 - rate)
        change = np.where(missing[:, i : i + 1], 1.0 - rate, -rate)
        slopes.append((change[:, :, None] * used).reshape(table.size, -1))
    jacobian = sparse.csr_array(table.reshape(-1, 1) * np.concatenate(slopes, axis=1))
    return Tangent(
        table,
        jacobian,
        sparse.csr_array(sparse.eye_array(sum(map(len, kept)))),
        np.repeat(np.arange(len(kept)), [len(columns) for columns in kept]),
        np.concatenate(kept),
        np.ones(sum(map(len, kept)), dtype=np.int64),
    )


def _independent_columns(design: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return columns of full rank that span all others, in order."""
    result: Any = linalg.qr(design, mode="r", pivoting=True)
    size = np.abs(np.diag(np.asarray(result[0], dtype=np.float64)))
    order = np.asarray(result[1], dtype=np.int64)
    return np.sort(order[: int((size > TOLERANCE * size[0]).sum())])


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
    seen: PossibleObservations,
    wide: Sequence[Span],
    tangent: Tangent,
    generator: np.random.Generator,
) -> OpenDirections:
    """Return the changes of a saturated M that histories of any length leave unnoticed.

    Parameters
    ----------
    wide
        All that histories could say at each observation.
    """
    (part,) = factors.parts
    n_states = part.label.shape[1]
    bases = [_complement(span.basis) for span in wide]
    columns = [_placed(basis, states, n_states) for basis, states in zip(bases, seen.members, strict=True)]
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
    for basis, states, pattern in zip(bases, seen.members, seen.pattern, strict=True):
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

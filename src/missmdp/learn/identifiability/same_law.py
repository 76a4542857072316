"""Another T, b₀ and M with the same law of histories of any length, close to the first.

Where ranks at a point are lower than nearby, derivatives do not say whether what is open can really move. So the
point is moved along an open direction, and brought back to the same law of single steps by the Gauss–Newton method.
Whether two models share the laws of all histories is then a question of linear algebra: the pairs of their forward
vectors span a space of few dimensions, and it is enough to compare on a basis of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.moving import DynamicsStructure, Moving
from missmdp.learn.identifiability.one_step import one_step_law, rows_of
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.tangent import Tangent, tangent_at

_STEPS = (0.04, 0.01)
"""By how much the probability that moves most is moved."""
_NEWTON_STEPS = 12
_SAME = 1e-13
"""Largest difference of single steps' laws."""
_ALSO_SAME = 1e-8
"""Largest difference of longer histories, on vectors of length 1."""
_NEW = 1e-8
"""What is less than this share of a vector is rounding."""
_MOST_PARAMETERS = 400
"""Parameters above which nothing is looked for."""
_MOST_NUMBERS = 2_000_000
"""Numbers in the Jacobian, or in forward vectors, above which nothing is looked for."""


class Place(NamedTuple):
    """T, b₀ and M at a point."""

    tangent: Tangent
    moving: Moving


def others_along(
    factors: Factors,
    thetas: list[NDArray[np.float64]],
    reachable: NDArray[np.bool_],
    dynamics: DynamicsStructure,
    seen: PossibleObservations,
    known: NDArray[np.bool_],
    open_: NDArray[np.float64],
) -> tuple[Place, Place] | None:
    """Return T, b₀ and M, and others next to them with the same law of all histories, or None if none were found.

    Two were found then along one direction, and the one further away is returned.

    Parameters
    ----------
    thetas
        M's probabilities at the point.
    dynamics
        T and b₀ at the point.
    known
        Which states are seen in full before which actions, shape (S, A).
    open_
        Directions, orthonormal columns, shape (P, directions).
    """
    if len(open_) > _MOST_PARAMETERS or not open_.shape[1]:
        return None
    n_gaps = factors.n_parameters(reachable)

    def at(by: NDArray[np.float64]) -> Place | None:
        moved = [theta.copy() for theta in thetas]
        start = 0
        for part, theta in zip(factors.parts, moved, strict=True):
            used = np.unique(part.label[:, reachable])
            own = by[start : start + len(used) * (part.n_outcomes - 1)].reshape(len(used), -1)
            theta[used, 1:] += own
            theta[used, 0] -= own.sum(axis=1)
            start += own.size
        moving = dynamics.raised(by[n_gaps:])
        if moving is None or min(float(theta.min(initial=1.0)) for theta in moved) <= 0.0:
            return None
        return Place(tangent_at(factors, reachable, moved), moving)

    begin = at(np.zeros(len(open_)))
    if begin is None:
        return None
    law, jacobian = _one_step(begin, seen, known)
    if jacobian.shape[0] * jacobian.shape[1] > _MOST_NUMBERS:
        return None
    weights = np.random.default_rng(1).normal(size=int(open_.shape[1]))
    mixture: NDArray[np.float64] = np.einsum("pd,d->p", open_, weights)
    for direction in np.concatenate([mixture[:, None], open_[:, :3]], axis=1).T:
        along: NDArray[np.float64] = direction / np.abs(direction).max()
        found = [_same_steps(at, step * along, law, seen, known) for step in _STEPS]
        others = [other for other in found if other is not None and _same_law(begin, other, seen)]
        if len(others) == len(_STEPS):
            return begin, others[0]
    return None


def _one_step(
    place: Place, seen: PossibleObservations, known: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], sparse.csr_array]:
    return one_step_law(seen, place.tangent, *rows_of(place.moving, known))


def _same_steps(
    at: Callable[[NDArray[np.float64]], Place | None],
    by: NDArray[np.float64],
    law: NDArray[np.float64],
    seen: PossibleObservations,
    known: NDArray[np.bool_],
) -> Place | None:
    """Return the point next to one that was moved that has the law of single steps, if there is one."""
    first = by
    for _ in range(_NEWTON_STEPS):
        place = at(by)
        if place is None:
            return None
        now, jacobian = _one_step(place, seen, known)
        off = now - law
        if np.abs(off).max() < _SAME:
            return place if np.abs(by).max() > 0.5 * np.abs(first).max() else None
        # The rank is lower at the solution than next to it: small singular values are left alone.
        by = by - np.linalg.lstsq(jacobian.toarray(), off, rcond=1e-3)[0]
    return None


def _same_law(one: Place, other: Place, seen: PossibleObservations) -> bool:
    """Return whether two models have the same law of histories of any length, under every sequence of actions."""
    n_states = one.tangent.table.shape[1]
    places = (one, other)
    matrices = [
        [_matrix(place.moving, a, n_states) for a in range(seen.allowed.shape[1])] for place in places
    ]
    first = np.zeros((1, 2, n_states))
    for i, place in enumerate(places):
        first[0, i, place.moving.starts] = place.moving.start_value
    tables = np.stack([place.tangent.table for place in places])
    held: dict[int, NDArray[np.float64]] = {}
    waiting = [first]
    count = 0
    while waiting:
        before = waiting.pop()
        for z, states in enumerate(seen.members):
            after = before[:, :, states] * tables[:, seen.pattern[z], states]
            new = _new(after.reshape(len(after), -1), held.get(z))
            if not len(new):
                continue
            pairs = new.reshape(len(new), 2, -1)
            sums = pairs.sum(axis=2)
            if np.abs(sums[:, 0] - sums[:, 1]).max() > _ALSO_SAME:
                return False
            held[z] = new if z not in held else np.concatenate([held[z], new])
            count += new.size
            if count > _MOST_NUMBERS:
                return False
            waiting += [
                np.stack([pairs[:, i] @ matrices[i][a][states] for i in (0, 1)], axis=1)
                for a in np.flatnonzero(seen.allowed[z])
            ]
    return True


def _new(vectors: NDArray[np.float64], held: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return what vectors add to a space, as orthonormal rows."""
    top = float(np.linalg.norm(vectors))
    if held is not None:
        for _ in range(2):
            vectors = vectors - (vectors @ held.T) @ held
    _, size, basis = np.linalg.svd(vectors, full_matrices=False)
    return basis[size > _NEW * top] if top > 0.0 else basis[:0]


def _matrix(moving: Moving, action: int, n_states: int) -> NDArray[np.float64]:
    entries = moving.entries
    mine = entries.action == action
    found = np.zeros((n_states, n_states))
    found[entries.before[mine], entries.after[mine]] = entries.value[mine]
    return found

"""Another M with the same law of observations, far from the first: what derivatives cannot see.

If two M agree on all that histories of any length could say at each observation, all their laws agree: exchange one
for the other, one factor M(z_t | s_t) of a history's probability at a time, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from missmdp.learn.em.structures import Factors
from missmdp.learn.identifiability.tangent import random_point, tangent_at

_POINTS = 6
"""M for which another one is looked for; some may have none."""
_STARTS = 5
"""Places from which it is looked for."""
_MOST_PARAMETERS = 100
"""Parameters up to which it is looked for."""
_MOST_ENTRIES = 10_000
"""Patterns times states up to which it is looked for."""
_SAME = 1e-12
"""Largest difference between two laws that are the same."""
_FAR = 1e-3
"""Largest difference between two M that may be the same."""


class SameLaw(NamedTuple):
    """Two M with the same law, as probabilities of each factor, shape (G, O) each."""

    one: list[NDArray[np.float64]]
    other: list[NDArray[np.float64]]
    difference: NDArray[np.float64]
    """Between them, in free parameters, shape (P,)."""


def counterexample(
    factors: Factors, reachable: NDArray[np.bool_], widest: sparse.csr_array, generator: np.random.Generator
) -> SameLaw | None:
    """Return two M with the same law, or None if none were found.

    Parameters
    ----------
    factors, reachable
        The structure, and which states count, shape (S,).
    widest
        All that histories could say, as functions of M, shape (rows, K · S).
    """
    if factors.n_parameters(reachable) > _MOST_PARAMETERS or widest.shape[1] > _MOST_ENTRIES:
        return None
    for _ in range(_POINTS):
        point = random_point(factors, generator)
        here = tangent_at(factors, reachable, point)
        law = widest @ here.table.reshape(-1)
        for _ in range(_STARTS):
            other = _solve(factors, reachable, widest, law, random_point(factors, generator))
            there = tangent_at(factors, reachable, other)
            off = np.abs(widest @ there.table.reshape(-1) - law).max()
            if off < _SAME and np.abs((there.table - here.table)[:, reachable]).max() > _FAR:
                difference = _free(factors, reachable, other) - _free(factors, reachable, point)
                return SameLaw(point, other, difference)
    return None


def _solve(
    factors: Factors,
    reachable: NDArray[np.bool_],
    widest: sparse.csr_array,
    law: NDArray[np.float64],
    start: Sequence[NDArray[np.float64]],
) -> list[NDArray[np.float64]]:
    """Return probabilities whose law is as close to a given one as it gets from a start, by Levenberg–Marquardt."""
    shapes = [theta.shape for theta in start]
    cuts = np.cumsum([theta.size for theta in start])[:-1]

    def probabilities(logits: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        parts = [part.reshape(shape) for part, shape in zip(np.split(logits, cuts), shapes, strict=True)]
        powers = [np.exp(part - part.max(axis=1, keepdims=True)) for part in parts]
        return [power / power.sum(axis=1, keepdims=True) for power in powers]

    def miss(logits: NDArray[np.float64]) -> NDArray[np.float64]:
        return widest @ factors.table(probabilities(logits)).reshape(-1) - law

    def slope(logits: NDArray[np.float64]) -> NDArray[np.float64]:
        thetas = probabilities(logits)
        table = factors.table(thetas)
        columns: list[NDArray[np.float64]] = []
        for part, theta in zip(factors.parts, thetas, strict=True):
            # ∂ log θ[g, o] / ∂ logit[g, o′] = 1[o = o′] − θ[g, o′]
            change = np.zeros((*table.shape, *theta.shape))
            pattern, state = np.indices(table.shape)
            change[pattern, state, part.label] = -theta[part.label]
            change[pattern, state, part.label, part.outcome[:, None]] += 1.0
            columns.append((table[:, :, None, None] * change).reshape(table.size, -1))
        return widest @ np.concatenate(columns, axis=1)

    first = np.concatenate([np.log(theta).reshape(-1) for theta in start])
    found = optimize.least_squares(miss, first, slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=100)
    return probabilities(np.asarray(found.x))


def _free(
    factors: Factors, reachable: NDArray[np.bool_], thetas: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the probabilities that are free parameters, in their order, shape (P,)."""
    used = [np.unique(part.label[:, reachable]) for part in factors.parts]
    return np.concatenate([theta[groups, 1:].reshape(-1) for theta, groups in zip(thetas, used, strict=True)])

"""A likelihood-ratio test: whether further effects explain more than chance would.

The chi-square distribution is a poor guide where there is little information on an effect: values that hardly occur,
or that always come with what is already explained. Further effects are therefore turned into directions that are
uncorrelated given the effects that are there, and those with little information are left out. That is decided under
what is tested, so that the test keeps its level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from missmdp.learn.diagnosis.effects import Effects
from missmdp.learn.em.iterate import EMFit, Evidence, Maximised, iterate

__all__ = ["Ratio", "likelihood_ratio"]

_LEAST = 10.0
"""Information on a direction from which it is tested: as much as 40 observations at a rate of one half have."""
_REST = 0.01
"""Nats that a fit may have left to gain."""
_TINY = 1e-30
"""A p-value below which a test need not be more exact."""
_STILL = 1e-3
"""Nats per iteration below which a fit has come to rest."""
_FIRST, _BETWEEN, _MOST_LEAPS = 15, 5, 25
"""Plain iterations at first and after each leap, and how many leaps there are at most."""


class Ratio(NamedTuple):
    """The result of a test; where p-values are tiny, the statistic may still be larger."""

    statistic: float
    freedom: int
    p_value: float


def fitted(
    evidence: Evidence,
    model: Effects,
    start: NDArray[np.float64],
    threads: int | None,
    plenty: float = math.inf,
) -> EMFit:
    """Return M fitted closely enough for a test: plain iterations, and leaps where they are slow.

    There are no leaps once the log-likelihood is above `plenty`.
    """
    fit = _plain(evidence, model, start, threads, _FIRST)
    for _ in range(_MOST_LEAPS):
        if fit.converged or fit.log_likelihood > plenty:
            break
        landed = _leap(evidence, model, fit, threads)
        again = replace(model, first=landed.parameters)
        fit = _plain(evidence, again, landed.table, threads, _BETWEEN)
    return fit


def _plain(
    evidence: Evidence, model: Effects, start: NDArray[np.float64], threads: int | None, most: int
) -> EMFit:
    enough = _STILL / evidence.n_steps
    return iterate(evidence, model, start, tolerance=enough, rest=_REST, max_iterations=most, threads=threads)


def _leap(evidence: Evidence, model: Effects, fit: EMFit, threads: int | None) -> Maximised:
    """Return where two iterations point to, far ahead; or where they end, if it is no better there.

    The extrapolation is that of squared iterative methods (Varadhan and Roland 2008).
    """
    one = model.maximise(fit.expected, fit.maximised)
    two = model.maximise(evidence.expect(one.table, threads).counts, one)
    here, there, beyond = (np.concatenate(point.parameters) for point in (fit.maximised, one, two))
    step = there - here
    bend = (beyond - there) - step
    size = float(np.linalg.norm(bend))
    length = max(float(np.linalg.norm(step)) / size, 1.0) if size > 0.0 else 1.0
    ends = np.cumsum([len(part) for part in two.parameters])[:-1]
    far = tuple(np.split(here + 2.0 * length * step + length**2 * bend, ends))
    landed = Maximised(model.table(far), 0.0, far)
    better = evidence.expect(landed.table, threads).log_likelihood > fit.log_likelihood
    return landed if better else two


def likelihood_ratio(
    evidence: Evidence,
    null: Effects,
    further: Sequence[NDArray[np.float64]],
    start: NDArray[np.float64],
    threads: int | None = None,
) -> Ratio | None:
    """Return the test of a structure against one with further effects; None if none can be told from those there.

    Parameters
    ----------
    null
        What is tested.
    further
        The further effects of each block, shape (G, q) each.
    start
        P(pattern | state) to begin with, shape (K, S).
    """
    narrow = fitted(evidence, null, start, threads)
    designs: list[NDArray[np.float64]] = []
    first: list[NDArray[np.float64]] = []
    freedom = 0
    for part, design, more, effect in zip(
        null.factors.parts, null.designs, further, narrow.maximised.parameters, strict=True
    ):
        directions = _directions(design, more, effect, part.counts(narrow.expected).sum(axis=1))
        freedom += directions.shape[1]
        designs.append(np.concatenate([design, directions], axis=1))
        first.append(np.concatenate([effect, np.zeros(directions.shape[1])]))
    if freedom == 0:
        return None
    wider = Effects(null.factors, tuple(designs), tuple(first))
    # Nobody needs to know a p-value far below this one exactly.
    plenty = narrow.log_likelihood + 0.5 * float(special.chdtri(float(freedom), _TINY))
    wide = fitted(evidence, wider, narrow.table, threads, plenty)
    statistic = 2.0 * max(wide.log_likelihood - narrow.log_likelihood, 0.0)
    return Ratio(statistic, freedom, float(special.chdtrc(float(freedom), statistic)))


def _directions(
    design: NDArray[np.float64],
    more: NDArray[np.float64],
    effect: NDArray[np.float64],
    visits: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the directions of further effects on which there is enough information, shape (G, d)."""
    if more.shape[1] == 0:
        return more
    odds = np.clip(design @ effect, -30.0, 30.0)
    weight = visits / (2.0 * np.cosh(0.5 * odds)) ** 2
    there = design.T @ (design * weight[:, None])
    cross = design.T @ (more * weight[:, None])
    # What is left of each further effect once those that are there have explained what they can.
    left = more.T @ (more * weight[:, None]) - cross.T @ np.linalg.pinv(there, 1e-9, True) @ cross
    values, vectors = np.linalg.eigh(left)
    return more @ vectors[:, values > _LEAST]

"""A likelihood-ratio test: whether further effects explain more than chance would.

The chi-square distribution is a poor guide where there is little information on an effect: values that hardly occur,
or that always come with what is already explained. Further effects are therefore turned into directions that are
uncorrelated given the effects that are there, and those with little information are left out. That is decided under
what is tested, so that the test keeps its level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from missmdp.learn.diagnosis.effects import Effects
from missmdp.learn.em.iterate import EMFit, Evidence, iterate

__all__ = ["Ratio", "likelihood_ratio"]

_LEAST = 10.0
"""Information on a direction from which it is tested: as much as 40 observations at a rate of one half have."""
_REST = 0.01
"""Nats that a fit may have left to gain."""
_MOST_ITERATIONS = 500


class Ratio(NamedTuple):
    """The result of a test."""

    statistic: float
    freedom: int
    p_value: float


def fitted(evidence: Evidence, model: Effects, start: NDArray[np.float64], threads: int | None) -> EMFit:
    """Return M fitted closely enough for a test."""
    return iterate(
        evidence, model, start, tolerance=1e-12, rest=_REST, max_iterations=_MOST_ITERATIONS, threads=threads
    )


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
    wide = fitted(evidence, Effects(null.factors, tuple(designs), tuple(first)), narrow.table, threads)
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

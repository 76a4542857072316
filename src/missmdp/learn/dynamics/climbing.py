"""The maximum of a smooth function from a start nearby, by a quasi-Newton method that begins with its curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_REST = 1e-4
"""Nats that may be left to gain, as the slope and the curvature tell."""

_MOST_STEPS = 100

_FLAT = 1e-7
"""Curvature, as a share of the largest, below which a direction counts as flat."""

_FARTHEST = 4.0
"""How far one step goes in any coordinate; all coordinates are log-odds."""


class Top(NamedTuple):
    """Where a climb ended."""

    where: NDArray[np.float64]
    value: float
    converged: bool


def climb(
    function: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    start: NDArray[np.float64],
    curvature: NDArray[np.float64],
    *,
    rest: float = _REST,
) -> Top:
    """Return the maximum of a function, which gives its value and its slopes.

    Parameters
    ----------
    function
        What is maximised.
    start
        Where to begin.
    curvature
        An estimate of minus the matrix of second derivatives there.
    rest
        Stop when less than this is left to gain.
    """
    here = start.copy()
    value, slope = function(here)
    inverse = pseudo_inverse(curvature)
    for _ in range(_MOST_STEPS):
        step = inverse @ slope
        if 0.5 * float(slope @ step) < rest:
            return Top(here, value, True)
        step *= min(1.0, _FARTHEST / float(np.abs(step).max()))
        rise, size = float(slope @ step), 1.0
        while True:
            there = here + size * step
            then, ahead = function(there)
            if then >= value + 1e-4 * size * rise:
                break
            size *= 0.4
            if size < 1e-6:
                return Top(here, value, False)
        moved, bend = there - here, slope - ahead
        here, value, slope = there, then, ahead
        along = float(moved @ bend)
        if along > 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(bend)):
            turned = inverse @ bend
            inverse += (1.0 + float(bend @ turned) / along) * np.outer(moved, moved) / along
            inverse -= (np.outer(turned, moved) + np.outer(moved, turned)) / along
    return Top(here, value, False)


def pseudo_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of a symmetric matrix that ought to be positive definite; flat directions stay out."""
    if not len(matrix):
        return matrix
    scale = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-12))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    size = np.abs(values)
    kept = size > _FLAT * float(size.max())
    inverse = (vectors[:, kept] / size[kept]) @ vectors[:, kept].T
    return np.asarray(inverse / np.outer(scale, scale), dtype=np.float64)

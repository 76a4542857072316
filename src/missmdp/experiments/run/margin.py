"""When learners that predict new data can be told apart: one rule for recommendations and reports."""

from __future__ import annotations

import math

from missmdp.evaluation.statistics import student_interval

__all__ = ["MUCH_OUTSIDE", "margin", "much_is_outside"]

MUCH_OUTSIDE = 0.1
"""The share of steps that could not be used from which on a comparison settles nothing."""


def margin(stderr: float | None, units: int, confidence: float) -> float:
    """Return how much worse a learner may be and still not be told apart from the best: half of Student's interval.

    Parameters
    ----------
    stderr
        The standard error of the difference; None or nan where there is none, so that anything may be chance.
    units
        How many episodes or blocks the difference is a mean of.
    confidence
        That of the interval.
    """
    if stderr is None or math.isnan(stderr) or units < 2:
        return math.inf
    return student_interval(0.0, stderr, units, confidence)[1]


def much_is_outside(outside: int, steps: int) -> bool:
    """Return whether so many steps could not be used that the others may say little."""
    return outside > MUCH_OUTSIDE * (outside + steps)

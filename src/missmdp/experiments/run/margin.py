"""When learners that predict new data can be told apart: one rule for recommendations and reports."""

from __future__ import annotations

import math

from missmdp.evaluation.value import student_interval

__all__ = ["MUCH_OUTSIDE", "NO_EVIDENCE", "margin", "much_is_outside"]

NO_EVIDENCE = 1.0
"""Nats over the whole log up to which a difference is none: the better one makes the log at most e times as likely."""

MUCH_OUTSIDE = 0.1
"""The share of steps that could not be used from which on a comparison settles nothing."""


def margin(stderr: float | None, units: int, confidence: float, steps: int) -> float:
    """Return how much worse a learner may be and still not be told apart from the best: half of Student's interval.

    Learners that learn the same but for how they smooth differ by next to nothing in every episode alike, which has
    no error and no meaning: less than one nat over the whole log never tells learners apart.

    Parameters
    ----------
    stderr
        The standard error of the difference; None or nan where there is none, so that anything may be chance.
    units
        How many episodes or blocks the difference is a mean of.
    confidence
        That of the interval.
    steps
        How many observations were scored.
    """
    if stderr is None or math.isnan(stderr) or units < 2:
        return math.inf
    return max(student_interval(0.0, stderr, units, confidence)[1], NO_EVIDENCE / max(steps, 1))


def much_is_outside(outside: int, steps: int) -> bool:
    """Return whether so many steps could not be used that the others may say little."""
    return outside > MUCH_OUTSIDE * (outside + steps)

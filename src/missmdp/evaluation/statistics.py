"""Means with their errors: standard errors and Student's intervals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.checks import checked_confidence

__all__ = ["standard_error", "student_interval"]


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean; nan for fewer than two values."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def student_interval(mean: float, stderr: float, count: int, confidence: float) -> tuple[float, float]:
    """Return Student's interval for a mean of `count` values; without a standard error it is unbounded."""
    confidence = checked_confidence(confidence)
    if math.isnan(stderr):
        return -math.inf, math.inf
    half = stderr * float(stats.t.ppf(0.5 + 0.5 * confidence, count - 1))
    return mean - half, mean + half

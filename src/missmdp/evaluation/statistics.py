"""Means with their errors: standard errors and Student's intervals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.data.arguments import checked_confidence

__all__ = ["decimals", "interval_text", "rounded_up", "signed", "standard_error", "student_interval"]


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


def decimals(stderr: float) -> int:
    """Return how many decimals a figure with that error deserves: two digits of the error, two decimals at least."""
    if not 0.0 < stderr < math.inf:
        return 4
    return min(12, max(2, 1 - math.floor(math.log10(stderr))))


def signed(value: float, places: int) -> str:
    """Return a number with that many decimals and a typographic minus; what is rounded to zero has no sign."""
    text = f"{abs(value):.{places}f}".replace("inf", "∞")
    return f"−{text}" if value < 0.0 and text.strip("0.") else text


def interval_text(interval: tuple[float, float], places: int) -> str:
    """Return an interval for people."""
    return f"[{signed(interval[0], places)}, {signed(interval[1], places)}]"


def rounded_up(value: float) -> str:
    """Return a bound with one digit that is not too small."""
    if not 0.0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** math.floor(math.log10(value))
    return f"{math.ceil(value / unit) * unit:.6g}"

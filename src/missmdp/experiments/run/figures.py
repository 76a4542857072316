"""Figures with their errors, as the sentences and tables of a run write them."""

from __future__ import annotations

import math

from missmdp.evaluation.statistics import decimals, signed

__all__ = ["ROUNDING", "places", "with_error"]

ROUNDING = 1e-9
"""Differences and errors up to this are those of the arithmetic."""


def with_error(value: float, stderr: float) -> str:
    """Return a figure with its standard error."""
    digits = places(stderr)
    error = "" if math.isnan(stderr) else f" ± {stderr:.{digits}f}"
    return f"{signed(value, digits)}{error}"


def places(stderr: float) -> int:
    """Return how many decimals a figure deserves; an error of the size of rounding is none."""
    return decimals(0.0 if stderr < ROUNDING else stderr)

"""Figures with their errors, as the sentences and tables of a run write them."""

from __future__ import annotations

import math

from missmdp.words import decimals, signed

__all__ = ["ROUNDING", "at_most", "no_more_than", "places", "with_error"]

ROUNDING = 1e-9
"""Differences and errors up to this are those of the arithmetic."""
_RELATIVE = 1e-8
"""So are errors up to this share of a figure."""


def with_error(value: float, stderr: float) -> str:
    """Return a figure with its standard error, if it has one beyond rounding."""
    digits = places(stderr, value)
    error = "" if math.isnan(stderr) or _is_rounding(stderr, value) else f" ± {stderr:.{digits}f}"
    return f"{signed(value, digits)}{error}"


def at_most(bound: float) -> str:
    """Return a bound between 0 and 1 with two digits that are not too small."""
    if not bound > 0.0:
        return "0"
    digits = 1 - math.floor(math.log10(bound))
    return f"{math.ceil(round(bound * 10.0**digits, 6)) / 10.0**digits:.2g}"


def no_more_than(bound: float) -> str:
    """Return a bound of any size with three digits that are not too small."""
    if not 0.0 < bound < math.inf:
        return signed(bound, 0)
    digits = 2 - math.floor(math.log10(bound))
    return f"{math.ceil(round(bound * 10.0**digits, 6)) / 10.0**digits:,.{max(digits, 0)}f}"


def places(stderr: float, value: float = 0.0) -> int:
    """Return how many decimals a figure deserves, at most six; an error of the size of rounding is none."""
    return min(6, decimals(0.0 if _is_rounding(stderr, value) else stderr))


def _is_rounding(stderr: float, value: float) -> bool:
    return stderr < max(ROUNDING, _RELATIVE * abs(value))

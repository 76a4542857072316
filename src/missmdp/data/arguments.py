"""Checks on the numbers that users give: counts, seeds and confidences."""

from __future__ import annotations

import operator
from typing import Any, cast

import numpy as np

from missmdp.errors import DataError

__all__ = ["checked_confidence", "checked_count", "checked_seed", "checked_whole"]


def checked_confidence(value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    if not isinstance(value, float | np.floating) or not 0.0 < float(cast("float", value)) < 1.0:
        raise DataError(f"confidence must be a number between 0 and 1, such as 0.95, got {value!r}")
    return float(cast("float", value))


def checked_count(value: Any, what: str) -> int:
    """Return an integer of at least 1."""
    return _integer(value, what, least=1)


def checked_seed(value: Any) -> int:
    """Return an integer of at least 0."""
    return checked_whole(value, "the seed")


def checked_whole(value: Any, what: str) -> int:
    """Return an integer of at least 0."""
    return _integer(value, what, least=0)


def _integer(value: Any, what: str, *, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise DataError(f"{what} must be an integer of at least {least}, got {value!r}")
    return number

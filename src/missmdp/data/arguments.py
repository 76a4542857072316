"""Checks on the numbers that users give: counts and seeds."""

from __future__ import annotations

import operator
from typing import Any

from missmdp.errors import DataError

__all__ = ["checked_count", "checked_seed", "checked_whole"]


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

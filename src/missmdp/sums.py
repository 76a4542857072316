"""Sums of numbers that are the same, bit by bit, on every version of Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add


def one_by_one(numbers: Iterable[float]) -> float:
    """Return the sum of numbers, each added to the sum of those before; `sum` rounds otherwise since Python 3.12."""
    return reduce(add, numbers, 0.0)

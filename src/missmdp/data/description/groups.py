"""Rows of a log in groups, by the step or by a feature's value, and how often features are missing in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.statistics import wilson_interval

VALUE_DIGITS, RANGE_DIGITS = 4, 2
"""The fewest significant digits of a value and of the ends of a range."""
EXACT_DIGITS = 3
"""With so many digits at most, two ranges do not share an end if that can be avoided."""


def value_labels(values: Sequence[Any]) -> list[str]:
    """Return values as text, floats with as few digits from four on as tell them apart."""
    distinct = len(set(values))
    for write in _writers(VALUE_DIGITS):
        labels = [write(value) for value in values]
        if len(set(labels)) == distinct:
            return labels
    return [str(value) for value in values]


def range_labels(ranges: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return ranges, each by its first and last value, as text; one with a single value is that value.

    Floats are rounded. Where three digits cannot keep the end of one range from the start of the next, the two
    may read the same, as in "0.12 – 0.18" and "0.18 – 0.25"; no two ranges start or end alike.
    """
    ends = [[write(end) for pair in ranges for end in pair] for write in _writers(RANGE_DIGITS)]
    several = [low != high for low, high in ranges]
    short = ends[: EXACT_DIGITS - RANGE_DIGITS + 1]
    apart = (texts for texts in short if _told_apart(texts, several, shared=False))
    chosen = next(apart, None) or next((texts for texts in ends if _told_apart(texts, several)), None)
    chosen = chosen or [str(end) for pair in ranges for end in pair]
    pairs = zip(chosen[::2], chosen[1::2], several, strict=True)
    return [f"{low} – {high}" if more else low for low, high, more in pairs]


def _told_apart(texts: Sequence[str], several: Sequence[bool], *, shared: bool = True) -> bool:
    """Return whether ranges read differently, given their ends in turn; they may be `shared` by neighbours."""
    lows, highs = texts[::2], texts[1::2]
    if any(low == high for low, high, more in zip(lows, highs, several, strict=True) if more):
        return False
    if shared:
        return len(set(lows)) == len(set(highs)) == len(lows)
    return len(set(texts)) == len(lows) + sum(several)


def _writers(digits: int) -> Iterator[Callable[[Any], str]]:
    """Yield ways to write a value, from short to exact."""
    for more in range(digits, 18):
        yield lambda value, more=more: _written(value, more, fewest=digits)


def _written(value: Any, digits: int, *, fewest: int) -> str:
    if isinstance(value, datetime):
        # Days, then minutes, then everything. Ranges of days may rather share a day than be told by minutes.
        forms = ("%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M")
        form = digits - fewest
        return value.strftime(forms[form]) if form < len(forms) else str(value)
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.{digits}g}"
    # 1.2e+03 is no shorter than 1234 and harder to read.
    return f"{value:.0f}" if "e" in text and 1.0 <= abs(value) < 1e6 else text


MOST_VALUES = 12
"""More values than these are put in groups."""
MOST_STEPS, STEP_GROUPS = 20, 16
"""More steps than the first are put in about as many groups as the second."""
OTHER = "other"
FEW_ROWS = 30
"""Groups with fewer rows than this are left out when values are compared."""


class Groups(NamedTuple):
    """Values in groups."""

    group_of: NDArray[np.int64]
    """The group of each value, −1 where the value does not occur, shape (values,)."""
    labels: tuple[str, ...]
    """What to call each group."""
    ordered: bool
    """Whether the groups go from small to large."""


@dataclass(frozen=True, eq=False)
class MissingBy:
    """How often each feature is missing in groups of rows."""

    what: str
    """What makes the groups: a feature's name, or "step"."""
    labels: tuple[str, ...]
    """Each group's value, range of values, or "other", shape (G,)."""
    rows: NDArray[np.int64]
    """The rows in each group; all have at least one, shape (G,)."""
    missing: NDArray[np.int64]
    """The rows of each group in which each feature is missing, shape (G, n)."""
    ordered: bool
    """Whether the groups go from small to large."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def rates(self) -> NDArray[np.float64]:
        """The share of each group's rows in which each feature is missing, shape (G, n)."""
        return self.missing / self.rows[:, None]

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The 95 % Wilson intervals of the rates, each of shape (G, n); see `wilson_interval`."""
        return wilson_interval(self.missing, self.rows[:, None])


def group_steps(counts: NDArray[np.int64]) -> Groups:
    """Return the steps 0, 1, … in groups, given how many rows each has."""
    used = np.flatnonzero(counts)
    most = len(used) if len(used) <= MOST_STEPS else STEP_GROUPS
    return _ranges(range(len(counts)), used, counts, most)


def group_values(values: Sequence[Any], counts: NDArray[np.int64]) -> Groups:
    """Return a feature's values in groups, given how many rows have each.

    Up to 12 values that occur are a group each. More are put in 12 ranges with about as many rows in each if
    they can be ordered, and otherwise the 12 most frequent are kept and the rest is one group.
    """
    used = np.flatnonzero(counts)
    order = _ordered(values, used)
    if order is not None and len(used) > MOST_VALUES:
        return _ranges(values, order, counts, MOST_VALUES)
    if len(used) <= MOST_VALUES:
        group_of = np.full(len(counts), -1, dtype=np.int64)
        group_of[used] = np.arange(len(used))
        ordered = order is not None and np.array_equal(order, used)
        return Groups(group_of, tuple(value_labels([values[code] for code in used.tolist()])), ordered)
    frequent = used[np.argsort(-counts[used], kind="stable")[:MOST_VALUES]]
    group_of = np.where(counts > 0, MOST_VALUES, -1)
    group_of[frequent] = np.arange(MOST_VALUES)
    return Groups(
        group_of, (*value_labels([values[code] for code in frequent.tolist()]), OTHER), ordered=False
    )


def _ordered(values: Sequence[Any], used: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the codes from the smallest value to the largest, None where values are names or do not compare."""
    if any(isinstance(values[code], str | bytes | bool | tuple) for code in used):
        return None
    try:
        return np.array(sorted(used.tolist(), key=lambda code: values[code]), dtype=np.int64)
    except TypeError:
        return None


def _ranges(values: Sequence[Any], order: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> Groups:
    """Return values in at most `most` ranges, each with about as many rows as the next.

    A value goes where the middle of its rows falls, so one with many rows is alone in its range.
    """
    rows = counts[order]
    middle = 2 * np.cumsum(rows) - rows
    slots = np.arange(len(order)) if len(order) <= most else middle * most // (2 * rows.sum())
    starts = np.flatnonzero(np.diff(slots, prepend=-1))
    group_of = np.full(len(counts), -1, dtype=np.int64)
    group_of[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    last = np.append(starts[1:], len(order)) - 1
    ends = zip(order[starts].tolist(), order[last].tolist(), strict=True)
    labels = range_labels([(values[first], values[final]) for first, final in ends])
    return Groups(group_of, tuple(labels), ordered=True)

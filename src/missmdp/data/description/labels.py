"""What to call values and ranges of values: as short as still tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

__all__ = ["range_labels", "value_labels"]

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

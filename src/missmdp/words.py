"""Numbers, shares, lists and foreign names in words: every layer formats what people read with these functions."""

from __future__ import annotations

import difflib
import math
import re
import reprlib
from collections.abc import Collection, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

UNKNOWN = "–"
"""What stands where nothing is known."""
ROUNDING = 1e-9
"""Differences and errors up to this are those of the arithmetic."""
LONGEST_VALUE = 200
"""Letters of a value that a message shows."""
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
"""Characters that steer a terminal, cannot be in a document, turn around the text after them, or are not seen: control
codes, halves of surrogate pairs, non-characters, and marks of direction and of no width."""
_PERCENT = "\u00a0%"
_ROUNDING = 1e-8
"""Errors up to this share of a figure are those of the arithmetic."""


def count(amount: float | None, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun."""
    if amount is None:
        return f"an unknown number of {plural or noun + 's'}"
    return f"{amount:,.0f} {noun if amount == 1 else plural or noun + 's'}"


def number(value: float | None, stderr: float | None = None) -> str:
    """Return a number with the decimals that its error deserves."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return _grouped(signed(value, _places(value, stderr)))


def plus(value: float | None, stderr: float | None = None) -> str:
    """Return a difference, with its sign."""
    text = number(value, stderr)
    return f"+{text}" if value is not None and value > 0.0 and text.strip("0.,") else text


def interval(low: float | None, high: float | None, stderr: float | None = None) -> str:
    """Return "low to high"; an end that is unknown is unbounded."""
    if low is None and high is None:
        return UNKNOWN
    ends = ["unbounded" if end is None else number(end, stderr) for end in (low, high)]
    return f"{ends[0]} to {ends[1]}"


def _places(value: float, stderr: float | None) -> int:
    if stderr is None or stderr <= _ROUNDING * abs(value):
        size = abs(value)
        return 2 if size >= 1.0 or size == 0.0 else min(6, 2 - math.floor(math.log10(size)))
    return min(6, decimals(stderr))


def _grouped(text: str) -> str:
    whole, point, rest = text.removeprefix("−").partition(".")
    sign = "−" if text.startswith("−") else ""
    return f"{sign}{int(whole):,}{point}{rest}" if whole.isdigit() else text


def short_number(value: float) -> str:
    """Return a number for an axis."""
    return f"{value:,.6g}".replace("-", "−")


def percent(share: float | None, places: int | None = None) -> str:
    """Return a share as a percentage; what is not all or nothing does not read so."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if places is None:
        places = 0 if 0.00995 <= share <= 0.9905 or share in (0.0, 1.0) else 1
    least = 0.1**places / 100
    if 0.0 < share < least / 2:
        return f"<{least:.{places}%}".replace("%", _PERCENT)
    if 1.0 - least / 2 < share < 1.0:
        return f">{1 - least:.{places}%}".replace("%", _PERCENT)
    return f"{signed(100.0 * share, places)}{_PERCENT}"


def rate_text(share: float) -> str:
    """Return a share as a percentage with one decimal, as in tables; what is not all or nothing does not read so."""
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1.0:
        return ">99.9%"
    return f"{share:.1%}"


def percent_range(low: float | None, high: float | None) -> str:
    """Return two shares as "59–74 %"."""
    ends = [percent(end) for end in (low, high)]
    return f"{ends[0].removesuffix(_PERCENT)}–{ends[1]}"


def share_text(share: float | None, stderr: float | None) -> str:
    """Return a normalised value as a percentage with the decimals that its error deserves."""
    if share is None:
        return UNKNOWN
    places = 1 if stderr is not None and 0.0 < stderr < 0.05 else 0
    return f"{signed(100.0 * share, places)}{_PERCENT}"


def points(share: float) -> str:
    """Return a probability as so many in a hundred."""
    amount = 100.0 * share
    return f"{amount:.1f} in 100" if amount >= 0.1 or amount == 0.0 else "less than 0.1 in 100"


def duration(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def rough_duration(seconds: float) -> str:
    """Return a time that is only known roughly, in the unit that fits."""
    if seconds < 90.0:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400.0:
        return f"{round(seconds / 60)} min"
    if seconds < 172_800.0:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"


def listed(items: Sequence[str], word: str = "and", most: int = 8) -> str:
    """Return items as a list in words, shortened if it is long."""
    shown = [*items[: most - 1], f"{len(items) - most + 1} more"] if len(items) > most else list(items)
    if len(shown) < 2:
        return shown[0] if shown else "nothing"
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def preview(values: Collection[Any], most: int = 8) -> str:
    """Return values as Python writes them, the first few of many."""
    first = ", ".join(shown(value) for value in islice(values, most))
    return first + (f", … ({len(values)} in all)" if len(values) > most else "")


def printable(text: str) -> str:
    r"""Return a text in which a terminal or browser finds nothing but text: what is not becomes visible.

    Line breaks and tabs stay.

    Examples
    --------
    >>> print(printable("\x1b[2J"))
    \x1b[2J
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_text(text: str) -> bool:
    """Return whether a file can hold a text: halves of surrogate pairs, as from bytes that are no UTF-8, are none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def label(value: object) -> str:
    """Return a name or value of others as it is, but on one line, printable, and of at most 200 letters."""
    return printable(shortened(str(value), LONGEST_VALUE)).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, letters: int) -> str:
    """Return a text as it is, or its two ends if it has too many letters; names often differ in the end."""
    if len(text) <= letters:
        return text
    ending = (letters - 1) // 2
    return f"{text[: letters - 1 - ending]}…{text[len(text) - ending :]}"


def shown(value: object) -> str:
    """Return a value as Python writes it, of at most 200 letters, whatever it is and however large."""
    try:
        text = _REPR.repr(value)
    except Exception:
        # Integers of more digits than Python writes, and objects of others.
        return f"<{type(value).__name__}>"
    return shortened(text, LONGEST_VALUE)


class _Repr(reprlib.Repr):
    """What `repr` gives for ordinary values, and the beginning of it for large ones."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxstring = self.maxother = self.maxlong = 2 * LONGEST_VALUE
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = LONGEST_VALUE // 2
        self.maxfrozenset = self.maxdeque = self.maxarray = LONGEST_VALUE // 2

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Return a dict with its keys in their order, which reprlib sorts."""
        if not x or level <= 0:
            return "{...}" if x else "{}"
        first = [
            f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}"
            for key in islice(x, self.maxdict)
        ]
        return f"{{{', '.join(first + ['...'] * (len(x) > self.maxdict))}}}"


_REPR = _Repr()


def sentence(text: str) -> str:
    """Return a text with a full stop at the end; it may begin with a name, which keeps its first letter."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """Return "; did you mean 'x'?" for the closest of the known names, or "" where none is close."""
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def closest(name: Any, known: Iterable[T]) -> T | None:
    """Return the one of the known names that was probably meant, or None where none is close."""
    lowered = {str(one).lower(): one for one in reversed(list(known))}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=1)
    return lowered[close[0]] if close else None


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


def with_error(value: float, stderr: float | None) -> str:
    """Return a figure with its standard error, if it has one beyond rounding."""
    digits = error_places(stderr, value)
    known = stderr is not None and not math.isnan(stderr) and not _is_rounding(stderr, value)
    return f"{signed(value, digits)} ± {stderr:.{digits}f}" if known else signed(value, digits)


def error_places(stderr: float | None, value: float = 0.0) -> int:
    """Return how many decimals a figure deserves, at most six; an error of the size of rounding is none."""
    if stderr is None:
        stderr = math.nan
    return min(6, decimals(0.0 if _is_rounding(stderr, value) else stderr))


def _is_rounding(stderr: float, value: float) -> bool:
    return stderr < max(ROUNDING, _ROUNDING * abs(value))


def at_most(bound: float) -> str:
    """Return a bound between 0 and 1 with two digits that are not too small."""
    if not bound > 0.0:
        return "0"
    digits = min(300, 1 - math.floor(math.log10(bound)))
    return f"{math.ceil(round(bound * 10.0**digits, 6)) / 10.0**digits:.2g}"


def no_more_than(bound: float) -> str:
    """Return a bound of any size with three digits that are not too small."""
    if not 0.0 < bound < math.inf:
        return signed(bound, 0)
    if bound < 1e-12:
        return f"{1.01 * bound:.3g}"
    digits = 2 - math.floor(math.log10(bound))
    return f"{math.ceil(round(bound * 10.0**digits, 6)) / 10.0**digits:,.{max(digits, 0)}f}"


def bound_above(bound: float) -> str:
    """Return an upper bound with three digits or two decimals, whichever is more, rounded up."""
    return _rounded_bound(bound, ROUND_CEILING)


def bound_below(bound: float) -> str:
    """Return a lower bound with three digits or two decimals, whichever is more, rounded down."""
    return _rounded_bound(bound, ROUND_FLOOR)


def _rounded_bound(bound: float, direction: str) -> str:
    if not math.isfinite(bound) or bound == 0.0:
        return signed(bound, 2)
    places = max(2, 2 - math.floor(math.log10(abs(bound)))) if abs(bound) < 1.0 else 2
    rounded = Decimal(repr(float(bound))).quantize(Decimal(1).scaleb(-places), rounding=direction)
    return signed(float(rounded), places)


def outward(lower: float, upper: float) -> tuple[str, str]:
    """Return two bounds with the decimals that it takes to tell them apart, two at least, rounded outwards."""
    gap = upper - lower
    places = 2 if not 0.0 < gap < math.inf else decimals(gap)
    return _rounded(lower, places, ROUND_FLOOR), _rounded(upper, places, ROUND_CEILING)


def _rounded(value: float, places: int, direction: str) -> str:
    if not abs(value) < 1e15:
        # So large that decimals mean nothing, or infinite.
        return significant(value, 17)
    text = f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=direction):f}"
    return f"−{text[1:]}" if text.startswith("-") else text


def gap_text(lower: float, upper: float) -> str:
    """Return how far bounds are apart, such as "gap 4.52, 23.40 %"; without a share where the lower one is near 0."""
    gap = upper - lower
    relative = 0.0 if gap == 0.0 else gap / abs(lower) if lower != 0.0 else math.inf
    share = f", {short(100 * relative)} %" if relative < 10.0 else ""
    return f"gap {short(gap)}{share}"


def short(value: float) -> str:
    """Return a number with two significant digits if it is small, and with few decimals if not."""
    return significant(value, 2) if abs(value) < 1.0 or math.isinf(value) else number(value)


def significant(value: float, digits: int = 4) -> str:
    """Return a number with that many significant digits and a typographic minus."""
    text = f"{value:.{digits}g}"
    return f"−{text[1:]}" if text.startswith("-") else text

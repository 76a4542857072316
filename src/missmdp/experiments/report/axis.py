"""Scales from numbers to pixels, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from missmdp.experiments.report.svg import Drawing, text_width, wrapped
from missmdp.words import short_number

__all__ = ["Axis", "Form", "padded", "percent_tick"]

_SMALL = 11.5
"""Size of the letters of an axis."""

Form = Callable[[float], str]
"""Writes a number of an axis."""


def percent_tick(value: float) -> str:
    """Return a share as a percentage for an axis."""
    return f"{short_number(round(100.0 * value, 6))}\u00a0%"


def padded(values: Iterable[float | None], *, part: float = 0.06) -> tuple[float, float]:
    """Return a range with all numbers in it and some room around; numbers that are unknown do not count."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    # What differs by rounding only is one number: ticks between would all read alike.
    apart = high - low if high - low > 1e-7 * max(abs(low), abs(high)) else 0.0
    room = part * apart or 0.1 * abs(high) or 1.0
    return low - room, high + room


@dataclass(frozen=True)
class Axis:
    """A linear scale from [low, high] to the pixels from start to end."""

    low: float
    high: float
    start: float
    end: float
    form: Form = short_number

    def at(self, value: float) -> float:
        """Return the pixel of a number; what lies outside is put at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Return whether a number lies inside, but for rounding."""
        slack = 1e-9 * (self.high - self.low)
        return self.low - slack <= value <= self.high + slack

    def ticks(self, most: int) -> list[float]:
        """Return round numbers inside, at most that many."""
        step = _step((self.high - self.low) / max(1, most))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]

    def fitting_ticks(self) -> list[float]:
        """Return as many ticks as there is room for their labels side by side, at most six."""
        for most in range(5, 1, -1):
            ticks = self.ticks(most)
            widest = max((text_width(self.form(tick), _SMALL) for tick in ticks), default=0.0)
            if widest + 14.0 <= abs(self.end - self.start) / max(1, len(ticks) - 1):
                return ticks
        return self.ticks(1)

    def draw_below(
        self, drawing: Drawing, bottom: float, bands: Sequence[tuple[float, float]], title: str = ""
    ) -> float:
        """Draw the axis with its labels, and grid lines through bands (top, bottom); return where all ends."""
        ticks = self.fitting_ticks()
        for top, end in bands:
            for tick in ticks:
                drawing.line(self.at(tick), top, self.at(tick), end, "grid")
        drawing.line(self.start, bottom, self.end, bottom, "axis")
        for tick in ticks:
            half = text_width(self.form(tick), _SMALL) / 2
            x = min(max(self.at(tick), half), drawing.width - half)
            drawing.text(x, bottom + 16.0, self.form(tick), "tick", anchor="middle")
        lines = wrapped(title, drawing.width, _SMALL)
        for position, line in enumerate(lines):
            half = text_width(line, _SMALL) / 2
            middle = min(max((self.start + self.end) / 2, half), drawing.width - half)
            drawing.text(middle, bottom + 34.0 + 15.0 * position, line, "tick", anchor="middle")
        return bottom + 22.0 + (3.0 + 15.0 * len(lines) if lines else 0.0)


def _step(least: float) -> float:
    """Return the smallest round number that is no smaller."""
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * factor >= least * (1 - 1e-9))

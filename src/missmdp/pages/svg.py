"""Small drawings as inline SVG, with scales and ticks; colours come from the style sheet, for light, dark and print."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from missmdp.pages.markup import Html, element, joined
from missmdp.sums import one_by_one
from missmdp.words import printable, short_number

WIDE, NARROW = 680.0, 328.0
"""Widths that every chart is drawn for: a page or screen, and a phone. Letters have the same size in both."""
TEXT = 12.5
"""Size of letters, in the units of a drawing, which are pixels."""

_THIN = frozenset("iljtfrI.,:;|!'`()[]{}·/\\ ")
_FAT = frozenset("mwMW@%—…ŒÆ")


def text_width(text: str, size: float = TEXT) -> float:
    """Return about how wide a text is at most, whatever sans-serif font the reader has."""
    return size * one_by_one(map(_letter_width, printable(text)))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if letter in _THIN:
        return 0.4
    if letter in _FAT or unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter.isupper():
        return 0.76
    return 0.64 if letter.isascii() else 0.8


def fitted(text: str, width: float, size: float = TEXT) -> str:
    """Return a text as it is, or its two ends if it is too wide; names often differ in the end."""
    text = printable(text)
    if text_width(text, size) <= width + 0.01:
        return text
    letters = max(2, int(len(text) * width / text_width(text, size)))
    while True:
        ending = (letters - 1) // 2
        shown = f"{text[: letters - 1 - ending]}…{text[len(text) - ending :]}"
        if letters <= 2 or text_width(shown, size) <= width:
            return shown
        letters -= 1


def wrapped(text: str, width: float, size: float = TEXT) -> list[str]:
    """Return a text in lines that are narrow enough, broken between words."""
    lines: list[str] = []
    for word in text.replace(" %", "\u00a0%").split(" ") if text else []:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, width, size))
    return lines


@dataclass
class Drawing:
    """An SVG that grows element by element."""

    width: float
    height: float = 0.0
    parts: list[Html] = field(default_factory=list[Html])

    def add(self, tag: str, *content: str, **attributes: str | float | None) -> None:
        """Add an element."""
        self.parts.append(element(tag, *content, **attributes))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """Add a line from (x1, y1) to (x2, y2)."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        style: str = "",
        *,
        anchor: str = "start",
        full: str | None = None,
    ) -> None:
        """Add a line of text with its baseline at y; `full` is shown where a mouse rests, if text had to be cut."""
        inside = [text] if full is None or full == text else [text, element("title", full)]
        self.add(
            "text",
            *inside,
            x=x,
            y=y,
            class_=style or None,
            text_anchor=None if anchor == "start" else anchor,
        )

    def mark(self, shape: str, x: float, y: float, style: str, hint: str | None = None) -> None:
        """Add a mark of about 9 pixels: a circle, square, triangle, wedge, hexagon, diamond, ring or cross."""
        content = [] if hint is None else [element("title", hint)]
        if shape in ("circle", "ring"):
            body = element("circle", cx=x, cy=y, r=4.5 if shape == "circle" else 4.0)
        elif shape == "square":
            body = element("rect", x=x - 4.0, y=y - 4.0, width=8.0, height=8.0)
        else:
            body = element("path", d=_PATHS[shape].format(x=round(x, 2), y=round(y, 2)))
        hollow = " hollow" if shape in ("ring", "cross") else ""
        self.add("g", *content, body, class_=f"mark {style}{hollow}")

    def to_html(self, key: str, title: str, description: str) -> Html:
        """Return the drawing with its title and description for those who cannot see it; `key` is unique on a page."""
        return element(
            "svg",
            element("title", title, id=f"{key}-title"),
            element("desc", description, id=f"{key}-desc"),
            joined(self.parts),
            viewBox=f"0 0 {self.width:g} {round(self.height, 1):g}",
            width=self.width,
            height=self.height,
            role="img",
            aria_labelledby=f"{key}-title {key}-desc",
        )


_PATHS = {
    "triangle": "M{x} {y}m0-5l5 9h-10z",
    "diamond": "M{x} {y}m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "wedge": "M{x} {y}m0 5l5-9h-10z",
    "hexagon": "M{x} {y}m-2.5-4.3h5l2.5 4.3l-2.5 4.3h-5l-2.5-4.3z",
    "cross": "M{x} {y}m-4-4l8 8m0-8l-8 8",
}

Draw = Callable[[float], Drawing]
"""Makes a drawing of a given width."""


@dataclass(frozen=True)
class Chart:
    """A drawing for every width, and what it shows in words."""

    key: str
    """Unique on a page; letters, digits and hyphens."""
    title: str
    description: str
    draw: Draw

    def to_html(self) -> Html:
        """Return the chart in two widths, of which the style sheet shows one."""
        return joined(
            element(
                "div",
                self.draw(width).to_html(f"{self.key}-{kind}", self.title, self.description),
                class_=f"chart {kind}",
            )
            for kind, width in (("wide", WIDE), ("narrow", NARROW))
        )


_SMALL = 11.5
"""Size of the letters of an axis."""

Form = Callable[[float], str]
"""Writes a number of an axis."""


def percent_tick(value: float) -> str:
    """Return a share as a percentage for an axis."""
    return f"{short_number(round(100.0 * value, 6))}\u00a0%"


_TINY, _HUGE = 1e-300, 1e300
"""Beyond these, differences and steps are not numbers any more."""


def padded(values: Iterable[float | None], *, part: float = 0.06) -> tuple[float, float]:
    """Return a range with all numbers in it and some room around; numbers that are unknown do not count."""
    known = [min(_HUGE, max(-_HUGE, value)) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    # What differs by rounding only is one number: ticks between would all read alike.
    apart = high - low if high - low > 1e-7 * max(abs(low), abs(high)) else 0.0
    room = max(_TINY, part * apart or 0.1 * abs(high) or 1.0)
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

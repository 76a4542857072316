"""Small drawings as inline SVG: colours come from the page's style sheet, so that they follow light, dark and print."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from missmdp.experiments.report.markup import Html, element, joined

__all__ = ["NARROW", "TEXT", "WIDE", "Chart", "Draw", "Drawing", "fitted", "text_width", "wrapped"]

WIDE, NARROW = 680.0, 328.0
"""Widths that every chart is drawn for: a page or screen, and a phone. Letters have the same size in both."""
TEXT = 12.5
"""Size of letters, in the units of a drawing, which are pixels."""

_THIN = frozenset("iljtfrI.,:;|!'`()[]{}·/\\ ")
_FAT = frozenset("mwMW@%—…ŒÆ")


def text_width(text: str, size: float = TEXT) -> float:
    """Return about how wide a text is at most, whatever sans-serif font the reader has."""
    return size * sum(map(_letter_width, text))


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
        """Add a mark of about 9 pixels: a circle, square, triangle, wedge, diamond, ring or cross."""
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

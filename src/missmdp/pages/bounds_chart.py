"""How a solver's bounds close in on each other over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from missmdp.pages.svg import Axis, Draw, Drawing, fitted, padded, text_width
from missmdp.words import short_number

_HEIGHT, _GAP = 130.0, 32.0
_EARLY, _LATE = 0.02, 3.0
"""Bounds count for the scale once their gap is this part of what it was first, or so many times what it is in the end;
before that they run out of the picture."""


@dataclass(frozen=True)
class BoundsPanel:
    """One search: what is solved, how it ended, and its bounds over time."""

    title: str
    text: str
    seconds: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    style: str

    def late(self) -> list[float]:
        """Return the bounds that the scale must hold."""
        gaps = [high - low for low, high in zip(self.lower, self.upper, strict=True)]
        most = max(_EARLY * gaps[0], _LATE * gaps[-1])
        kept = [i for i, gap in enumerate(gaps) if gap <= most]
        return [bound[i] for i in kept for bound in (self.lower, self.upper)]


def bounds_chart(panels: Sequence[BoundsPanel]) -> Draw:
    """Return a chart with a panel for every search, two beside each other where there is room."""

    def draw(width: float) -> Drawing:
        columns = 2 if width > 500.0 and len(panels) > 1 else 1
        each = (width - _GAP * (columns - 1)) / columns
        drawing = Drawing(width)
        tall = _HEIGHT + 88.0
        for position, panel in enumerate(panels):
            left = (each + _GAP) * (position % columns)
            _draw_panel(drawing, panel, left, tall * (position // columns), each)
        drawing.height = tall * -(-len(panels) // columns) - 10.0
        return drawing

    return draw


def _draw_panel(drawing: Drawing, panel: BoundsPanel, left: float, top: float, width: float) -> None:
    drawing.text(left, top + 14.0, fitted(panel.title, width / 1.06), "strong", full=panel.title)
    drawing.text(left, top + 31.0, fitted(panel.text, width), "soft", full=panel.text)
    top, bottom = top + 42.0, top + 42.0 + _HEIGHT
    y = Axis(*padded(panel.late(), part=0.15), bottom, top)
    ticks = y.ticks(4)
    margin = max(text_width(y.form(tick), 11.5) for tick in ticks) + 8.0
    last = max(panel.seconds[-1], 1e-3)
    x = Axis(0.0, last, left + margin, left + width - 2.0, lambda s: f"{short_number(s)} s")
    for tick in ticks:
        drawing.line(x.start, y.at(tick), x.end, y.at(tick), "grid")
        drawing.text(left + margin - 8.0, y.at(tick) + 4.0, y.form(tick), "tick", anchor="end")
    drawing.line(x.start, bottom, x.end, bottom, "axis")
    for tick in x.fitting_ticks():
        half = text_width(x.form(tick), 11.5) / 2
        place = min(max(x.at(tick), left + half), left + width - half)
        drawing.text(place, bottom + 16.0, x.form(tick), "tick", anchor="middle")
    upper = _steps(panel.seconds, panel.upper, x, y)
    lower = _steps(panel.seconds, panel.lower, x, y)
    area = " ".join([*upper, *reversed(lower)])
    drawing.add("polygon", points=area, class_=f"band {panel.style}")
    for corners, style in ((upper, "upper"), (lower, "lower")):
        drawing.add("path", d=f"M{' L'.join(corners)}", class_=f"curve {style} {panel.style}")


def _steps(seconds: Sequence[float], values: Sequence[float], x: Axis, y: Axis) -> list[str]:
    """Return the corners of a line that stays where it is until the next report; outside it runs along the edge."""
    corners: list[tuple[float, float]] = []
    for i, (second, value) in enumerate(zip(seconds, values, strict=True)):
        height = y.at(value)
        if i:
            corners.append((x.at(second), corners[-1][1]))
        corners.append((x.at(second), height))
    kept = [c for i, c in enumerate(corners) if i in (0, len(corners) - 1) or not _between(corners, i)]
    return [f"{a:.1f},{b:.1f}" for a, b in kept]


def _between(corners: Sequence[tuple[float, float]], i: int) -> bool:
    """Return whether a corner lies on the line between its neighbours, and so adds nothing."""
    (_, before), (_, here), (_, after) = corners[i - 1 : i + 2]
    return round(before, 1) == round(here, 1) == round(after, 1)

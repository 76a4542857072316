"""Charts of rows: dots with intervals, and bars; beside their labels on a page, below them on a phone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import accumulate, pairwise

from missmdp.pages.svg import Axis, Draw, Drawing, Form, fitted, padded, percent_tick, text_width, wrapped
from missmdp.words import short_number

_STACKED_BELOW = 500.0
"""Width below which labels stand above their rows."""
_GAP = 12.0
_LEAST_PLOT = 240.0
"""What the plot keeps where labels are long."""
_MOST_FIGURE = 0.34
"""The part of the width that figures may take."""
_LINE = 15.0


@dataclass(frozen=True)
class RowText:
    """What is written in a row: its label, the figure, and what the figure becomes where there is little room."""

    label: str
    figure: str
    short: str | None = None


@dataclass(frozen=True)
class RowLayout:
    """The columns of a chart of rows: label, plot, figure; or label and figure above the plot."""

    width: float
    start: float
    end: float
    """Where the plot is."""
    stacked: bool
    short: bool = False
    """Whether figures are short, in all rows, since in one there is no room for more."""

    @classmethod
    def of(cls, width: float, texts: Sequence[RowText]) -> RowLayout:
        """Return the layout for these texts."""
        if width < _STACKED_BELOW:
            full = max(
                (text_width(text.label) + _GAP + text_width(text.figure) for text in texts), default=0.0
            )
            return cls(width, 8.0, width - 8.0, stacked=True, short=full > width)
        figures = max((text_width(text.figure) for text in texts), default=0.0)
        labels = max((text_width(text.label) for text in texts), default=0.0)
        right = min(figures, _MOST_FIGURE * width) + _GAP
        left = min(labels, width - right - _GAP - _LEAST_PLOT) + _GAP
        return cls(width, left, width - max(right, 20.0), stacked=False)

    def figure(self, text: RowText) -> str:
        """Return the figure as it is shown."""
        if not self.stacked:
            return fitted(text.figure, self.width - self.end - _GAP)
        return text.short if self.short and text.short is not None else text.figure

    def lines(self, text: RowText) -> list[str]:
        """Return the label in one or two lines."""
        room = self.start - _GAP if not self.stacked else self.width - text_width(self.figure(text)) - _GAP
        lines = wrapped(text.label, room)
        return lines if len(lines) < 3 else [lines[0], fitted(" ".join(lines[1:]), room)]

    def height(self, text: RowText) -> float:
        """Return the height of a row."""
        return (42.0 if self.stacked else 25.0) + _LINE * (len(self.lines(text)) - 1)

    @property
    def heading(self) -> float:
        """The height of a heading."""
        return 28.0

    def middle(self, top: float, bottom: float) -> float:
        """Return the height at which the marks of a row are."""
        return bottom - 14.0 if self.stacked else (top + bottom) / 2

    def bands(self, rows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """Return where grid lines go, so they cross no letters: along rows (top, bottom), or their marks."""
        if self.stacked:
            return [(self.middle(*row) - 9.0, self.middle(*row) + 9.0) for row in rows]
        merged: list[tuple[float, float]] = []
        for top, bottom in rows:
            follows = bool(merged) and merged[-1][1] == top
            merged.append((merged.pop()[0] if follows else top, bottom))
        return merged

    def write(self, drawing: Drawing, top: float, bottom: float, text: RowText, style: str = "") -> None:
        """Write a row's label and figure."""
        lines = self.lines(text)
        first = top + 15.0 if self.stacked else (top + bottom - _LINE * (len(lines) - 1)) / 2 + 4.5
        for position, line in enumerate(lines):
            drawing.text(0.0, first + _LINE * position, line, style, full=_hint(text.label, lines))
        shown, baseline = self.figure(text), first if self.stacked else (top + bottom) / 2 + 4.5
        drawing.text(
            self.width,
            baseline,
            shown,
            f"value {style}".strip(),
            anchor="end",
            full=_hint(text.figure, [shown]),
        )

    def write_heading(self, drawing: Drawing, top: float, text: str) -> None:
        """Write a heading over rows; bold letters are a little wider."""
        drawing.text(0.0, top + 20.0, fitted(text, self.width / 1.06), "strong", full=text)


def _hint(whole: str, lines: Sequence[str]) -> str | None:
    """Return what was to be shown, where something of it is not."""
    return None if " ".join(lines).replace("\u00a0", " ") == whole.replace("\u00a0", " ") else whole


@dataclass(frozen=True)
class Bar:
    """A share of a whole."""

    label: str
    share: float
    text: str
    style: str = "missing"


def bar_chart(bars: Sequence[Bar], axis_title: str = "") -> Draw:
    """Return a chart of bars from 0 to 100 %, top to bottom as they are given."""

    def draw(width: float) -> Drawing:
        texts = [RowText(bar.label, bar.text) for bar in bars]
        layout = RowLayout.of(width, texts)
        axis = Axis(0.0, 1.0, layout.start, layout.end, percent_tick)
        drawing = Drawing(width)
        ends = list(accumulate(map(layout.height, texts), initial=0.0))
        rows = list(pairwise(ends))
        drawing.height = axis.draw_below(drawing, ends[-1] + 2.0, layout.bands(rows), axis_title)
        for bar, text, (top, bottom) in zip(bars, texts, rows, strict=True):
            layout.write(drawing, top, bottom, text)
            if bar.share > 0.0:
                drawing.add(
                    "rect",
                    x=layout.start,
                    y=layout.middle(top, bottom) - 6.0,
                    width=max(1.0, axis.at(bar.share) - layout.start),
                    height=12.0,
                    class_=f"bar {bar.style}",
                )
        return drawing

    return draw


@dataclass(frozen=True)
class Dot:
    """An estimate with its interval; an end that is None is unbounded."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    text: str
    """The figure in words, beside the dot."""
    _: KW_ONLY
    short: str | None = None
    """The same where there is little room."""
    style: str = "plain"
    shape: str = "circle"
    truth: float | None = None
    truth_range: tuple[float, float] | None = None
    """Where the truth lies, if it is not one number."""
    strong: bool = False

    @property
    def row(self) -> RowText:
        """What is written beside it."""
        return RowText(self.label, self.text, self.short)


@dataclass(frozen=True)
class Heading:
    """A line above rows."""

    text: str


def dot_chart(
    rows: Sequence[Dot | Heading],
    *,
    domain: tuple[float, float] | None = None,
    form: Form = short_number,
    axis_title: str = "",
    marks: Sequence[float] = (),
) -> Draw:
    """Return a chart of dots with intervals, top to bottom as they are given.

    Parameters
    ----------
    domain
        What the axis shows; by default all there is. Dots outside become arrows at the edge.
    form
        Writes the axis' numbers.
    marks
        Where thin lines go through all rows, such as at zero.
    """
    dots = [row for row in rows if isinstance(row, Dot)]
    shown = domain or padded(
        [x for dot in dots for x in (dot.value, dot.low, dot.high, dot.truth)] + [*marks]
    )

    def draw(width: float) -> Drawing:
        layout = RowLayout.of(width, [dot.row for dot in dots])
        axis = Axis(*shown, layout.start + 6.0, layout.end - 6.0, form)
        drawing = Drawing(width)
        heights = (layout.height(row.row) if isinstance(row, Dot) else layout.heading for row in rows)
        ends = list(accumulate(heights, initial=0.0))
        places = list(zip(rows, pairwise(ends), strict=True))
        bands = layout.bands([place for row, place in places if isinstance(row, Dot)])
        drawing.height = axis.draw_below(drawing, ends[-1] + 2.0, bands, axis_title)
        for number in filter(axis.holds, marks):
            for start, end in bands:
                drawing.line(axis.at(number), start, axis.at(number), end, "zero")
        for row, (top, bottom) in places:
            if isinstance(row, Heading):
                layout.write_heading(drawing, top, row.text)
            else:
                layout.write(drawing, top, bottom, row.row, "strong" if row.strong else "")
                _draw_dot(drawing, axis, row, layout.middle(top, bottom))
        return drawing

    return draw


def _draw_dot(drawing: Drawing, axis: Axis, dot: Dot, y: float) -> None:
    if dot.value is None:
        return
    low = axis.low if dot.low is None else dot.low
    high = axis.high if dot.high is None else dot.high
    if axis.at(high) - axis.at(low) > 0.5:
        drawing.line(axis.at(low), y, axis.at(high), y, f"whisker {dot.style}")
    if dot.truth_range is not None:
        drawing.line(
            axis.at(dot.truth_range[0]), y + 6.5, axis.at(dot.truth_range[1]), y + 6.5, "truth range"
        )
    if dot.truth is not None and axis.holds(dot.truth):
        drawing.line(axis.at(dot.truth), y - 8.0, axis.at(dot.truth), y + 8.0, "truth")
    if axis.holds(dot.value):
        drawing.mark(dot.shape, axis.at(dot.value), y, dot.style, f"{dot.label}: {dot.text}")
        return
    # It points to where the dot would be.
    side = math.copysign(1.0, dot.value - axis.high)
    x = axis.end if side > 0 else axis.start
    path = f"M{x + 6 * side:.2f} {y:.2f}l{-9 * side:g}-5v10z"
    drawing.add("path", d=path, class_=f"mark {dot.style}")

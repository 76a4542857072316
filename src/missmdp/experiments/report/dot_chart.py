"""Estimates as dots with intervals, the truth as a tick where it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import accumulate, pairwise

from missmdp.experiments.report.axis import Axis, Form, padded
from missmdp.experiments.report.row_layout import RowLayout, RowText
from missmdp.experiments.report.svg import Draw, Drawing
from missmdp.words import short_number

__all__ = ["Dot", "Heading", "dot_chart"]


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

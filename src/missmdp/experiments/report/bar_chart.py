"""Shares as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from missmdp.experiments.report.axis import Axis, percent_tick
from missmdp.experiments.report.row_layout import RowLayout
from missmdp.experiments.report.svg import Draw, Drawing

__all__ = ["Bar", "bar_chart"]


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
        layout = RowLayout.of(width, [bar.label for bar in bars], [bar.text for bar in bars])
        axis = Axis(0.0, 1.0, layout.start, layout.end, percent_tick)
        drawing = Drawing(width)
        bottom = layout.row * len(bars) + 2.0
        tops = [layout.row * position for position in range(len(bars))]
        drawing.height = axis.draw_below(drawing, bottom, layout.bands(tops), axis_title)
        for bar, top in zip(bars, tops, strict=True):
            layout.write(drawing, top, bar.label, bar.text)
            middle, right = layout.middle(top), axis.at(bar.share)
            if bar.share > 0.0:
                drawing.add(
                    "rect",
                    x=layout.start,
                    y=middle - 6.0,
                    width=max(1.0, right - layout.start),
                    height=12.0,
                    class_=f"bar {bar.style}",
                )
        return drawing

    return draw

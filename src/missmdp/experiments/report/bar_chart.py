"""Shares as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from missmdp.experiments.report.axis import Axis, percent_tick
from missmdp.experiments.report.row_layout import RowLayout, RowText
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

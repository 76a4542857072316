"""An m-graph in two columns: values on the left, whether they are missing on the right."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.pages.markup import element, joined
from missmdp.pages.svg import Draw, Drawing, fitted, text_width

_ROW, _RADIUS = 40.0, 7.0
_LEAST, _MOST = 110.0, 260.0
"""Between the two columns."""
_HEADINGS = ("the value of", "is it missing?")


def graph_chart(
    features: Sequence[str],
    can_go_missing: Sequence[str],
    edges: Sequence[tuple[str, str]],
    between: Sequence[tuple[str, str]] = (),
) -> Draw:
    """Return an m-graph: an arrow from X to R_Y where the value of X moves whether Y is missing.

    Parameters
    ----------
    features
        All features, in order.
    can_go_missing
        Those with an indicator R.
    edges
        Pairs (X, Y); those with X = Y are self-censoring, and red.
    between
        Pairs of features whose indicators depend on each other.
    """
    missing = [name for name in features if name in set(can_go_missing)]

    def draw(width: float) -> Drawing:
        widest = max(text_width(text) for text in (*_HEADINGS, *features))
        side = min(widest + 24.0, (width - _LEAST) / 2)
        middle = min(width - 2 * side, _MOST)
        left, right = (width - middle) / 2, (width + middle) / 2
        y = {name: 50.0 + _ROW * i for i, name in enumerate(features)}
        drawing = Drawing(width, 50.0 + _ROW * len(features) - 14.0)
        drawing.text(left + 8.0, 15.0, _HEADINGS[0], "tick", anchor="end")
        drawing.text(right - 8.0, 15.0, _HEADINGS[1], "tick")
        for a, b in between:
            _draw_arc(drawing, right, y[a], y[b])
        # Self-censoring edges last, on top of the others.
        for parent, child in sorted(edges, key=lambda edge: edge[0] == edge[1]):
            own = parent == child
            _draw_arrow(drawing, left, y[parent], right, y[child], "self" if own else "edge")
        for name in features:
            kind = "hidden" if name in missing else "seen"
            drawing.add("circle", cx=left, cy=y[name], r=_RADIUS, class_=f"node {kind}")
            shown = fitted(name, left - 18.0)
            drawing.text(left - 15.0, y[name] + 4.5, shown, anchor="end", full=name)
            if name in missing:
                drawing.add("circle", cx=right, cy=y[name], r=_RADIUS, class_="node indicator")
                shown = element("tspan", fitted(name, width - right - 30.0, 11.5), dy=3.0, class_="index")
                drawing.text(right + 15.0, y[name] + 4.5, joined(["R", shown]), full=f"is {name} missing?")
        return drawing

    return draw


def _draw_arrow(drawing: Drawing, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    x1, y1 = x1 + dx * (_RADIUS + 2), y1 + dy * (_RADIUS + 2)
    x2, y2 = x2 - dx * (_RADIUS + 3), y2 - dy * (_RADIUS + 3)
    bx, by = x2 - 9 * dx, y2 - 9 * dy
    head = f"M{x2:.1f} {y2:.1f}L{bx - 4 * dy:.1f} {by + 4 * dx:.1f}L{bx + 4 * dy:.1f} {by - 4 * dx:.1f}z"
    drawing.add(
        "g", element("line", x1=x1, y1=y1, x2=bx, y2=by), element("path", d=head), class_=f"arrow {style}"
    )


def _draw_arc(drawing: Drawing, x: float, y1: float, y2: float) -> None:
    reach = min(60.0, 18.0 + 0.3 * abs(y2 - y1))
    middle = (y1 + y2) / 2
    drawing.add("path", d=f"M{x:.1f} {y1:.1f}Q{x - reach:.1f} {middle:.1f} {x:.1f} {y2:.1f}", class_="joined")

"""The charts of a run's page: curves over dataset sizes, a panel per benchmark, in the page's own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from missmdp.experiments.reproduce.cells import registered
from missmdp.experiments.reproduce.curve_pictures import Curve
from missmdp.experiments.reproduce.findings import ComparedPolicy, holds
from missmdp.experiments.reproduce.pictures import LEFT, RIGHT
from missmdp.experiments.reproduce.style import POLICIES, SHAPES, power, size_text
from missmdp.experiments.reproduce.text import plus_minus
from missmdp.pages.markup import Html, element
from missmdp.pages.row_charts import Dot, Heading, dot_chart
from missmdp.pages.svg import Axis, Draw, Drawing, fitted, text_width
from missmdp.words import signed

_HEIGHT, _GAP = 128.0, 26.0
_DASHES = "5 3"


@dataclass(frozen=True)
class CurvesPanel:
    """One measure on one benchmark."""

    benchmark: str
    text: str
    """Below its name."""
    curves: tuple[Curve, ...]


def _style(policy: str) -> str:
    if policy in ("optimal", "prior", "random"):
        return f"is-{policy}"
    return f"is-{registered(policy).label}" if policy in SHAPES else "is-other"


def curves_chart(
    panels: Sequence[CurvesPanel], domain: tuple[float, float], marks: Sequence[float] = ()
) -> Draw:
    """Return a chart with a panel for every benchmark, three beside each other where there is room.

    Parameters
    ----------
    panels
        What to draw.
    domain
        What the vertical axes show. Means that lie below get an arrow.
    marks
        Heights of thin lines.
    """
    sizes = [size for panel in panels for curve in panel.curves for size in curve.sizes]
    first = math.floor(math.log10(min(sizes)))
    decades = first, max(first + 1, math.ceil(math.log10(max(sizes))))

    def draw(width: float) -> Drawing:
        columns = min(3 if width > 500.0 else 1, len(panels))
        each = (width - _GAP * (columns - 1)) / columns
        drawing, tall = Drawing(width), _HEIGHT + 76.0
        for position, panel in enumerate(panels):
            place = (each + _GAP) * (position % columns), tall * (position // columns)
            _draw_panel(drawing, panel, place, each, domain, decades, marks)
        drawing.height = tall * -(-len(panels) // columns)
        return drawing

    return draw


def _draw_panel(
    drawing: Drawing,
    panel: CurvesPanel,
    place: tuple[float, float],
    width: float,
    domain: tuple[float, float],
    decades: tuple[int, int],
    marks: Sequence[float],
) -> None:
    left, top = place
    drawing.text(left, top + 14.0, fitted(panel.benchmark, width / 1.06), "strong", full=panel.benchmark)
    drawing.text(left, top + 30.0, fitted(panel.text, width), "soft", full=panel.text)
    bottom = top + 40.0 + _HEIGHT
    y = Axis(*domain, bottom, top + 40.0)
    ticks = y.ticks(4)
    margin = max(text_width(y.form(tick), 11.5) for tick in ticks) + 7.0
    x = Axis(*decades, left + margin, left + width - 13.0)
    for tick in ticks:
        drawing.line(x.start, y.at(tick), x.end + 6.0, y.at(tick), "grid")
        drawing.text(left + margin - 7.0, y.at(tick) + 4.0, y.form(tick), "tick", anchor="end")
    for mark in marks:
        drawing.line(x.start, y.at(mark), x.end + 6.0, y.at(mark), "zero")
    drawing.line(x.start, bottom, x.end + 6.0, bottom, "axis")
    step = 1 if decades[1] - decades[0] < 4 else 2
    for exponent in range(decades[0], decades[1] + 1, step):
        drawing.text(x.at(exponent), bottom + 16.0, power(exponent), "tick", anchor="middle")
    for curve in panel.curves:
        _draw_curve(drawing, curve, x, y, holds=holds(curve.learner, panel.benchmark))


def _draw_curve(drawing: Drawing, curve: Curve, x: Axis, y: Axis, *, holds: bool) -> None:
    style = _style(curve.learner)
    if curve.runs > 1:
        low, high = ([pair[i] for pair in curve.quartiles] for i in (0, 1))
        area = [*_corners(curve.sizes, high, x, y), *reversed(_corners(curve.sizes, low, x, y))]
        drawing.add("polygon", points=" ".join(area), class_=f"band {style}")
    line = " L".join(_corners(curve.sizes, curve.mean, x, y))
    drawing.add("path", d=f"M{line}", class_=f"curve {style}", stroke_dasharray=None if holds else _DASHES)
    for size, mean in zip(curve.sizes, curve.mean, strict=True):
        hint = f"{curve.learner}, {size_text(size)} steps: {signed(mean, 3)}"
        place = x.at(math.log10(size))
        if y.holds(mean):
            drawing.mark(SHAPES[curve.learner], place, y.at(mean), style, hint)
        else:
            _draw_arrow(drawing, place, y, mean, style, hint)


def _draw_arrow(drawing: Drawing, place: float, y: Axis, mean: float, style: str, hint: str) -> None:
    """Point to where a mean would be that lies outside."""
    side = 1.0 if mean < y.low else -1.0
    path = f"M{place:.2f} {y.at(mean) + 7 * side:.2f}l-5{-9 * side:+g}h10z"
    drawing.add("g", element("title", hint), element("path", d=path), class_=f"mark {style}")


def _corners(sizes: Sequence[int], heights: Sequence[float], x: Axis, y: Axis) -> list[str]:
    """Return the corners of a line; outside it runs along the edge, which it meets where it should."""
    points = [(math.log10(size), height) for size, height in zip(sizes, heights, strict=True)]
    corners = points[:1]
    for (x0, y0), (x1, y1) in pairwise(points):
        for edge in sorted((y.low, y.high), reverse=y0 > y1):
            if min(y0, y1) < edge < max(y0, y1):
                corners.append((x0 + (edge - y0) / (y1 - y0) * (x1 - x0), edge))
        corners.append((x1, y1))
    return [f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in corners]


def curves_key(panels: Sequence[CurvesPanel]) -> list[Html]:
    """Return what the marks, lines and areas mean."""
    drawn = [(panel.benchmark, curve) for panel in panels for curve in panel.curves]
    entries = [_mark_entry(name) for name in dict.fromkeys(curve.learner for _, curve in drawn)]
    if not all(holds(curve.learner, benchmark) for benchmark, curve in drawn):
        entries.append(element("span", element("span", class_="dash dashed"), "its assumption does not hold"))
    return entries


def _mark_entry(policy: str) -> Html:
    drawing = Drawing(14.0)
    drawing.mark(SHAPES[policy], 7.0, 7.0, _style(policy))
    icon = element("svg", *drawing.parts, viewBox="0 0 14 14", width=14.0, height=14.0, aria_hidden="true")
    return element("span", icon, POLICIES[policy])


def policies_chart(found: dict[str, list[ComparedPolicy]]) -> Draw:
    """Return a chart of normalised values: a heading per benchmark, a dot per policy, a stroke for the best seed."""
    rows: list[Dot | Heading] = []
    for benchmark, ones in found.items():
        rows.append(Heading(benchmark))
        rows += [_dot(one, strong=holds(one.policy, benchmark)) for one in ones]
    return dot_chart(
        rows, domain=(LEFT, RIGHT), axis_title="normalised value: 1 optimal, 0 prior", marks=(0.0, 1.0)
    )


def _dot(one: ComparedPolicy, *, strong: bool) -> Dot:
    end = one.policy in ("optimal", "prior")
    error = 0.0 if end or one.stderr is None else one.stderr
    text = signed(one.normalised, 0) if end else plus_minus(one.normalised, one.stderr)
    return Dot(
        POLICIES[one.policy],
        one.normalised,
        one.normalised - error,
        one.normalised + error,
        text,
        style=_style(one.policy),
        shape=SHAPES.get(one.policy, "diamond"),
        truth=one.best,
        strong=strong,
    )

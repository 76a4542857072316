"""The picture of a policy graph: decisions in columns by depth, colours by action, thickness by probability."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from missmdp.model.picture import INK, check_picture_name, draw_text, save_picture
from missmdp.plan.graph_dot import node_colours
from missmdp.plan.graph_layout import BEND, LABEL_LINE, NODE_LINE, Box, EdgePlace, Layout, Point, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from missmdp.plan.graph import PolicyGraph

__all__ = ["draw_graph"]

LINE = "#8A8A8A"
SMALLEST = 4.5
"""Least width of a picture, for its title and notes."""
NOTE_LETTER, NOTE_LINE = 0.068, 0.16


def draw_graph(graph: PolicyGraph, path: Path, *, title: str | None = None) -> Path:
    """Draw a policy graph into an SVG, PNG or PDF file and return its path."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    layout = lay_out(graph)
    width = max(SMALLEST, layout.right - layout.left)
    notes = [line for note in graph.notes for line in textwrap.wrap(note, int((width - 0.3) / NOTE_LETTER))]
    bottom = layout.bottom - NOTE_LINE * (len(notes) + 0.5 if notes else 0)
    top = layout.top + (0.35 if title else 0.0)
    middle = (layout.left + layout.right) / 2
    figure = Figure(figsize=(width, top - bottom))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(middle - width / 2, middle + width / 2)
    axes.set_ylim(bottom, top)
    if title:
        draw_text(axes, middle, top - 0.25, title, fontsize=11)
    for edge in layout.edges:
        _draw_edge(axes, edge)
    _draw_nodes(axes, graph, layout)
    for edge in layout.edges:
        _draw_label(axes, edge)
    for number, line in enumerate(notes):
        draw_text(axes, middle, layout.bottom - (number + 0.25) * NOTE_LINE, line, fontsize=7.5)
    return save_picture(figure, path)


def _draw_nodes(axes: Axes, graph: PolicyGraph, layout: Layout) -> None:
    from matplotlib.patches import FancyBboxPatch

    for box, lines, colour in zip(layout.nodes, layout.node_lines, node_colours(graph), strict=True):
        axes.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2, box.y - box.height / 2),
                box.width,
                box.height,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.7,
                zorder=3,
            )
        )
        for number, line in enumerate(lines):
            y = box.y + ((len(lines) - 1) / 2 - number) * NODE_LINE
            style = {"fontsize": 9, "weight": "bold"} if number == 0 else {"fontsize": 7.5}
            draw_text(axes, box.x, y, line, zorder=4, **style)


def _draw_edge(axes: Axes, place: EdgePlace) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Outline

    if place.cubic:
        vertices, codes = list(place.points), [Outline.MOVETO, *[Outline.CURVE4] * 3]
    else:
        vertices, codes = [place.points[0]], [Outline.MOVETO]
        for before, corner, after in zip(place.points, place.points[1:], place.points[2:], strict=False):
            vertices += [_towards(corner, before), corner, _towards(corner, after)]
            codes += [Outline.LINETO, Outline.CURVE3, Outline.CURVE3]
        vertices.append(place.points[-1])
        codes.append(Outline.LINETO)
    axes.add_patch(
        FancyArrowPatch(
            path=Outline(vertices, codes),
            arrowstyle="-|>",
            mutation_scale=8,
            color=LINE,
            linewidth=0.6 + 1.4 * place.edge.probability,
            zorder=1,
        )
    )


def _towards(corner: Point, other: Point) -> Point:
    """Return the point on the way from a corner to another, where its rounding ends."""
    x, y = other[0] - corner[0], other[1] - corner[1]
    length = (x * x + y * y) ** 0.5
    share = min(BEND / length, 0.5) if length > 0.0 else 0.0
    return corner[0] + share * x, corner[1] + share * y


def _draw_label(axes: Axes, place: EdgePlace) -> None:
    from matplotlib.patches import Rectangle

    box: Box = place.label
    corner = (box.x - box.width / 2, box.y - box.height / 2)
    axes.add_patch(Rectangle(corner, box.width, box.height, facecolor="white", linewidth=0, zorder=2))
    for number, line in enumerate(place.lines):
        y = box.y + ((len(place.lines) - 1) / 2 - number) * LABEL_LINE
        draw_text(axes, box.x, y, line, fontsize=7, zorder=5)

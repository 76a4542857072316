"""Pictures of searches and of policy graphs."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from missmdp.errors import MissMDPError
from missmdp.model.picture import (
    INK,
    check_picture_name,
    draw_text,
    picture_lines,
    picture_text,
    save_picture,
)
from missmdp.plan.graph_layout import (
    BEND,
    LABEL_LINE,
    NODE_LINE,
    Box,
    EdgePlace,
    Layout,
    Point,
    lay_out,
    node_colours,
)
from missmdp.words import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from missmdp.plan.graph import PolicyGraph
    from missmdp.plan.trace import Trace

LOWER, UPPER, BETWEEN = "#6C8EBF", "#B5473C", "#EEEEEE"


def draw_trace(trace: Trace, path: Path, *, title: str | None = None) -> Path:
    """Draw a trace into an SVG, PNG or PDF file and return its path; the same trace gives the same file."""
    check_picture_name(path)
    if not len(trace):
        raise MissMDPError(f"{path}: nothing to draw, the trace has no rows")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_bounds(above, trace)
    _draw_gap(below, trace)
    if title:
        figure.suptitle(picture_text(title), fontsize=11, color=INK, parse_math=False)
    return save_picture(figure, path)


def _draw_bounds(axes: Axes, trace: Trace) -> None:
    axes.fill_between(trace.seconds, trace.lower, trace.upper, step="post", color=BETWEEN, linewidth=0)
    axes.step(trace.seconds, trace.upper, where="post", color=UPPER, label="upper bound")
    axes.step(trace.seconds, trace.lower, where="post", color=LOWER, label="lower bound")
    axes.set_ylabel("value at the start", color=INK)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)
    _plain(axes)


def _draw_gap(axes: Axes, trace: Trace) -> None:
    from matplotlib.ticker import LogFormatter

    share = 100.0 * trace.relative_gap
    if (np.isfinite(share) & (share > 0.0)).any():
        axes.step(trace.seconds, np.where(share > 0.0, share, np.nan), where="post", color=INK)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.4)))
        axes.tick_params(which="minor", colors=INK, labelsize=8.5)
        axes.set_ylabel("relative gap (%)", color=INK)
    else:
        # No logarithm of zero: where the lower bound is 0, or the gap has closed, the gap itself.
        axes.step(trace.seconds, trace.gap, where="post", color=INK)
        axes.set_ylabel("gap", color=INK)
    axes.set_xlabel("seconds", color=INK)
    _plain(axes)


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)


LINE = "#8A8A8A"
SMALLEST = 4.5
"""Least width of a picture, for its title and notes."""
TITLE_LETTER, NOTE_LETTER, NOTE_LINE = 0.1, 0.068, 0.16


def draw_graph(graph: PolicyGraph, path: Path, *, title: str | None = None) -> Path:
    """Draw a policy graph into an SVG, PNG or PDF file and return its path."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    layout = lay_out(graph)
    width = max(SMALLEST, layout.right - layout.left)
    notes = [line for note in graph.notes for line in picture_lines(note, int((width - 0.3) / NOTE_LETTER))]
    bottom = layout.bottom - NOTE_LINE * (len(notes) + 0.5 if notes else 0)
    top = layout.top + (0.35 if title else 0.0)
    middle = (layout.left + layout.right) / 2
    figure = Figure(figsize=(width, top - bottom))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(middle - width / 2, middle + width / 2)
    axes.set_ylim(bottom, top)
    if title:
        fitting = shortened(picture_text(title), int(width / TITLE_LETTER))
        draw_text(axes, middle, top - 0.25, fitting, fontsize=11)
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

"""The picture of an m-graph: features in columns, S above R above Z, in the paper's colours."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missmdp.errors import MissMDPError
from missmdp.model.archive import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from missmdp.model.mgraph import MissingnessGraph

__all__ = ["draw_mgraph", "node_colour"]

PURPLE, GREEN, BLUE, GOLD = "#9773A6", "#81B367", "#6C8EBF", "#D6B656"
"""S that can go missing, S always observed, R, Z: the paper's colours."""
RED, GRAY, INK = "#B5473C", "#C9C9C9", "#333333"

INCH = 0.62
"""Inches per unit of the drawing."""
RADIUS, RING = 0.34, 0.09
ROW = 1.5
"""Height of R above Z, and of S above R unless long edges need more."""
LETTER = 0.155
"""Width of a letter of a feature's name."""
BOTTOM, KEY_LEVEL, NAME_LEVEL = -1.35, -1.1, -0.62
LEAST_WIDTH = 7.6
OPTIONS: dict[str, dict[str, Any]] = {
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": None}},
    ".png": {"format": "png", "metadata": {"Software": None}, "dpi": 200},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}
"""By the file's ending; without dates and versions, so that the same graph gives the same file."""


def node_colour(graph: MissingnessGraph, kind: str, feature: str) -> str:
    """Return the colour of a node."""
    if kind == "S":
        return PURPLE if feature in graph.can_go_missing else GREEN
    return BLUE if kind == "R" else GOLD


def draw_mgraph(graph: MissingnessGraph, path: Path, *, title: str | None = None) -> Path:
    """Draw an m-graph into an SVG, PNG or PDF file and return its path; the same graph gives the same file."""
    if path.suffix.lower() not in OPTIONS:
        raise MissMDPError(f"{path}: a picture's name must end in {', '.join(OPTIONS)}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    column = max(2.2, LETTER * max((len(name) for name in graph.features), default=0) + 0.3)
    x = {name: column * position for position, name in enumerate(graph.features)}
    right = max(x.values(), default=0.0)
    span = max((abs(x[a] - x[b]) / column for a, b in graph.edges), default=0.0)
    # High enough that a straight edge clears the nodes in the columns between.
    level = {"S": ROW + max(ROW, span * (RADIUS + RING + 0.08)), "R": ROW, "Z": 0.0}
    width = max(right + column + 1.0, LEAST_WIDTH)
    top = level["S"] + (1.4 if title else 0.9)
    figure = Figure(figsize=(INCH * width, INCH * (top - BOTTOM)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim((right - width) / 2, (right + width) / 2)
    axes.set_ylim(BOTTOM, top)
    if title:
        _text(axes, right / 2, level["S"] + 0.9, title, fontsize=11)
    _draw_edges(axes, graph, x, level, column)
    _draw_nodes(axes, graph, x, level)
    _draw_key(axes, graph, right / 2)
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "missmdp", "svg.fonttype": "path"}):
        figure.savefig(buffer, **OPTIONS[path.suffix.lower()])
    write_atomically(path, buffer.getvalue())
    return path


def _text(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    full: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "parse_math": False, **style}
    axes.text(x, y, text, **full)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    *,
    bend: float = 0.0,
    ring: float = 0.0,
    style: str = "-|>",
) -> None:
    """Draw an arrow between two nodes; `ring` is what the first has around it."""
    from matplotlib.patches import FancyArrowPatch

    points = INCH * 72.0
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=(RADIUS + ring) * points + 1.0,
            shrinkB=RADIUS * points + 1.0,
            mutation_scale=11,
            linewidth=1.1 if colour == GRAY else 1.5,
            color=colour,
            zorder=1 if colour == GRAY else 2,
        )
    )


def _draw_edges(
    axes: Axes, graph: MissingnessGraph, x: dict[str, float], level: dict[str, float], column: float
) -> None:
    ring = {name: 0.0 if name in graph.can_go_missing else RING for name in graph.features}
    for name in graph.features:
        s, r, z = ((x[name], level[kind]) for kind in "SRZ")
        if name in graph.can_go_missing:
            # Past its own R node, the proxy edge from S to Z swings out to the left.
            _arrow(axes, s, z, GRAY, bend=1.26 / level["S"])
            _arrow(axes, r, z, GRAY)
        else:
            _arrow(axes, s, z, GRAY, ring=RING)
    for parent, child in graph.edges:
        start, end = (x[parent], level["S"]), (x[child], level["R"])
        _arrow(axes, start, end, RED if parent == child else INK, ring=ring[parent])
    for a, b in graph.dependent:
        bend = 0.0 if x[b] - x[a] < 1.5 * column else 0.2
        _arrow(axes, (x[a], level["R"]), (x[b], level["R"]), BLUE, style="-", bend=bend)


def _draw_nodes(axes: Axes, graph: MissingnessGraph, x: dict[str, float], level: dict[str, float]) -> None:
    from matplotlib.patches import Circle

    for name in graph.features:
        goes_missing = name in graph.can_go_missing
        for kind in "SRZ" if goes_missing else "SZ":
            place = (x[name], level[kind])
            colour = node_colour(graph, kind, name)
            axes.add_patch(
                Circle(place, RADIUS, facecolor=colour, edgecolor="white", linewidth=1.2, zorder=3)
            )
            _text(axes, *place, kind, color="white", fontsize=11, weight="bold", zorder=4)
            if kind == "S" and not goes_missing:
                around = Circle(
                    place, RADIUS + RING, facecolor="none", edgecolor=colour, linewidth=1.2, zorder=3
                )
                axes.add_patch(around)
        _text(axes, x[name], NAME_LEVEL, name, fontsize=9)


def _draw_key(axes: Axes, graph: MissingnessGraph, middle: float) -> None:
    from matplotlib.patches import Circle

    entries = [("always observed", GREEN), ("can go missing", PURPLE), ("indicator", BLUE), ("record", GOLD)]
    if graph.self_censoring:
        entries.append(("self-censoring", RED))
    widths = [0.3 + 0.112 * len(text) for text, _ in entries]
    left = middle - (sum(widths) + 0.2 * (len(entries) - 1)) / 2
    for (text, colour), width in zip(entries, widths, strict=True):
        axes.add_patch(Circle((left + 0.1, KEY_LEVEL), 0.09, facecolor=colour, edgecolor="none"))
        _text(axes, left + 0.28, KEY_LEVEL, text, ha="left", fontsize=7.5)
        left += width + 0.2

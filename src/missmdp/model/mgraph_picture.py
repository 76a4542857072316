"""The picture of an m-graph: features in columns, S above R above Z, in the paper's colours."""

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

COLUMN, ROW, RADIUS = 2.2, 1.5, 0.34
LEVEL = {"S": 2 * ROW, "R": ROW, "Z": 0.0}
FORMATS = {".svg": "svg", ".png": "png", ".pdf": "pdf"}


def node_colour(graph: MissingnessGraph, kind: str, feature: str) -> str:
    """Return the colour of a node."""
    if kind == "S":
        return PURPLE if feature in graph.can_go_missing else GREEN
    return BLUE if kind == "R" else GOLD


def draw_mgraph(graph: MissingnessGraph, path: Path, *, title: str | None = None) -> Path:
    """Draw an m-graph into an SVG, PNG or PDF file and return its path; the same graph gives the same file."""
    if path.suffix.lower() not in FORMATS:
        raise MissMDPError(f"{path}: a picture's name must end in {', '.join(FORMATS)}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = max(len(graph.features), 1)
    width = COLUMN * (columns - 1) + 3.2
    height = LEVEL["S"] + 2.0 + (0.4 if title else 0.0) + 0.35
    figure = Figure(figsize=(0.62 * max(width, 7.6), 0.62 * height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_aspect("equal")
    axes.set_axis_off()
    middle = COLUMN * (columns - 1) / 2
    half = max(width, 7.6) / 2
    axes.set_xlim(middle - half, middle + half)
    axes.set_ylim(-1.35, height - 1.35)
    if title:
        axes.text(middle, LEVEL["S"] + 0.85, title, ha="center", va="center", fontsize=11, color=INK)
    x = {name: COLUMN * position for position, name in enumerate(graph.features)}
    _draw_edges(axes, graph, x)
    _draw_nodes(axes, graph, x)
    _draw_key(axes, graph, middle)
    options: dict[str, Any] = {"format": FORMATS[path.suffix.lower()]}
    if options["format"] == "svg":
        options["metadata"] = {"Date": None, "Creator": None}
    elif options["format"] == "png":
        options.update(dpi=200, metadata={"Software": None})
    else:
        options["metadata"] = {"CreationDate": None, "Creator": None, "Producer": None}
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "missmdp", "svg.fonttype": "path"}):
        figure.savefig(buffer, **options)
    write_atomically(path, buffer.getvalue())
    return path


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    *,
    bend: float = 0.0,
    style: str = "-|>",
) -> None:
    from matplotlib.patches import FancyArrowPatch

    points = axes.transData.transform([(0.0, 0.0), (RADIUS, 0.0)])
    shrink = (points[1][0] - points[0][0]) * 72.0 / axes.figure.dpi + 1.0
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=shrink,
            shrinkB=shrink,
            mutation_scale=11,
            linewidth=1.1 if colour == GRAY else 1.5,
            color=colour,
            zorder=1 if colour == GRAY else 2,
        )
    )


def _draw_edges(axes: Axes, graph: MissingnessGraph, x: dict[str, float]) -> None:
    for name in graph.features:
        goes_missing = name in graph.can_go_missing
        # Past its own R node, the proxy edge from S to Z swings out to the left.
        _arrow(axes, (x[name], LEVEL["S"]), (x[name], LEVEL["Z"]), GRAY, bend=0.42 if goes_missing else 0.0)
        if goes_missing:
            _arrow(axes, (x[name], LEVEL["R"]), (x[name], LEVEL["Z"]), GRAY)
    for parent, child in graph.edges:
        colour = RED if parent == child else INK
        _arrow(axes, (x[parent], LEVEL["S"]), (x[child], LEVEL["R"]), colour)
    order = {name: position for position, name in enumerate(graph.features)}
    for a, b in graph.dependent:
        near = order[b] - order[a] == 1
        _arrow(axes, (x[a], LEVEL["R"]), (x[b], LEVEL["R"]), BLUE, style="-", bend=0.0 if near else 0.35)


def _draw_nodes(axes: Axes, graph: MissingnessGraph, x: dict[str, float]) -> None:
    from matplotlib.patches import Circle

    for name in graph.features:
        for kind in "SRZ":
            if kind == "R" and name not in graph.can_go_missing:
                continue
            place = (x[name], LEVEL[kind])
            colour = node_colour(graph, kind, name)
            axes.add_patch(
                Circle(place, RADIUS, facecolor=colour, edgecolor="white", linewidth=1.2, zorder=3)
            )
            if kind == "S" and name not in graph.can_go_missing:
                axes.add_patch(
                    Circle(place, RADIUS + 0.09, facecolor="none", edgecolor=colour, linewidth=1.2, zorder=3)
                )
            axes.text(
                *place, kind, ha="center", va="center", color="white", fontsize=11, weight="bold", zorder=4
            )
        axes.text(x[name], LEVEL["Z"] - 0.62, name, ha="center", va="center", fontsize=9, color=INK)


def _draw_key(axes: Axes, graph: MissingnessGraph, middle: float) -> None:
    entries = [("always observed", GREEN), ("can go missing", PURPLE), ("indicator", BLUE), ("record", GOLD)]
    widths = [0.45 + 0.125 * len(text) for text, _ in entries]
    left = middle - (sum(widths) + 0.25 * (len(entries) - 1)) / 2
    from matplotlib.patches import Circle

    for (text, colour), width in zip(entries, widths, strict=True):
        axes.add_patch(Circle((left + 0.12, -1.1), 0.1, facecolor=colour, edgecolor="none"))
        axes.text(left + 0.3, -1.1, text, ha="left", va="center", fontsize=7.5, color=INK)
        left += width + 0.25

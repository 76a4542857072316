"""Pictures: what all of them share, and the picture of an m-graph."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import io
import textwrap
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missmdp.errors import MissMDPError
from missmdp.files import write_atomically
from missmdp.sums import one_by_one
from missmdp.words import printable, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from missmdp.model.mgraph import MissingnessGraph

INK = "#333333"
"""The colour of text and thin lines."""
OPTIONS: dict[str, dict[str, Any]] = {
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": None}},
    ".png": {"format": "png", "metadata": {"Software": None}, "dpi": 200},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}
"""By the file's ending; without dates and versions, so the same picture gives the same file."""

LONGEST_TEXT = 500
"""Letters of a text in a picture: whoever writes a novel into a name does not get it drawn."""

_LOCK = threading.Lock()
"""matplotlib's settings belong to the whole process."""


def check_picture_name(path: Path) -> None:
    """Raise `MissMDPError` unless the file's ending is one that we can draw; call it before long work."""
    if path.suffix.lower() not in OPTIONS:
        raise MissMDPError(f"{path}: a picture's name must end in {', '.join(OPTIONS)}")


def draw_text(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write text on one line, centred and in ink unless `style` says otherwise; dollar signs are dollar signs."""
    full: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "parse_math": False, **style}
    axes.text(x, y, picture_text(text), **full)


def picture_text(text: str) -> str:
    """Return a text for a picture: on one line, without what cannot be in an SVG, and never too long to draw."""
    return printable(shortened(" ".join(text.split()), LONGEST_TEXT))


def picture_lines(text: str, letters: int) -> list[str]:
    """Return a text for a picture in lines of at most so many letters."""
    return textwrap.wrap(printable(shortened(text, 4 * LONGEST_TEXT)), letters)


def draw_box(axes: Axes, x: float, y: float, width: float, height: float, colour: str, **style: Any) -> None:
    """Fill a rectangle that has a corner at (x, y)."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, linewidth=0, **style))


def save_picture(figure: Figure, path: Path) -> Path:
    """Write a figure to an SVG, PNG or PDF file, at once or not at all, and return its path."""
    import matplotlib as mpl

    check_picture_name(path)
    buffer = io.BytesIO()
    with (
        _LOCK,
        mpl.rc_context({"svg.hashsalt": "missmdp", "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        # Letters that the font lacks become boxes; the rest of the picture is still worth having.
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from (current )?font", category=UserWarning
        )
        figure.savefig(buffer, **OPTIONS[path.suffix.lower()])
    write_atomically(path, buffer.getvalue())
    return path


PURPLE, GREEN, BLUE, GOLD = "#9773A6", "#81B367", "#6C8EBF", "#D6B656"
"""S that can go missing, S always observed, R, Z: the paper's colours."""
RED, GRAY = "#B5473C", "#C9C9C9"

INCH = 0.62
"""Inches per unit of the drawing."""
RADIUS, RING = 0.34, 0.09
ROW = 1.5
"""Height of R above Z, and of S above R unless long edges need more."""
TITLE_LETTER, NAME_LETTER, SMALL_LETTER, LINE = 0.17, 0.155, 0.112, 0.3
"""Width of a letter of the title, of a name and of small print, and the height of a line."""
NAME_WIDTH, NAME_LETTERS = 16, 160
"""Letters after which a feature's name is broken, and after which its middle is left out."""
KEY_GAP = 0.2


def node_colour(graph: MissingnessGraph, kind: str, feature: str) -> str:
    """Return the colour of a node."""
    if kind == "S":
        return PURPLE if feature in graph.can_go_missing else GREEN
    return BLUE if kind == "R" else GOLD


def draw_mgraph(graph: MissingnessGraph, path: Path, *, title: str | None = None) -> Path:
    """Draw an m-graph into an SVG, PNG or PDF file and return its path; the same graph gives the same file."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    layout = _layout(graph, title)
    figure = Figure(figsize=(INCH * layout.width, INCH * (layout.top - layout.bottom)))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(layout.middle - layout.width / 2, layout.middle + layout.width / 2)
    axes.set_ylim(layout.bottom, layout.top)
    if title:
        fitting = shortened(picture_text(title), int(layout.width / TITLE_LETTER))
        draw_text(axes, layout.middle, layout.level["S"] + 0.9, fitting, fontsize=11)
    _draw_edges(axes, graph, layout)
    _draw_nodes(axes, graph, layout)
    _draw_key(axes, layout)
    for number, line in enumerate(layout.notes):
        draw_text(axes, layout.middle, layout.key_level - (number + 1.4) * LINE, line, fontsize=7.5)
    return save_picture(figure, path)


@dataclass(frozen=True)
class _Layout:
    """Where everything goes, in units of the drawing."""

    column: float
    x: dict[str, float]
    level: dict[str, float]
    names: dict[str, list[str]]
    key: list[tuple[str, str, str]]
    """What the key explains: text, colour, and kind of mark."""
    notes: list[str]
    key_level: float
    width: float
    bottom: float
    top: float

    @property
    def middle(self) -> float:
        return max(self.x.values(), default=0.0) / 2


def _layout(graph: MissingnessGraph, title: str | None) -> _Layout:
    names = {name: _broken(name) for name in graph.features}
    longest = max((len(line) for lines in names.values() for line in lines), default=0)
    column = max(2.2, NAME_LETTER * longest + 0.3)
    x = {name: column * position for position, name in enumerate(graph.features)}
    right = max(x.values(), default=0.0)
    span = max((abs(x[a] - x[b]) / column for a, b in graph.edges), default=0.0)
    # High enough that a straight edge clears the nodes in the columns between.
    level = {"S": ROW + max(ROW, span * (RADIUS + RING + 0.08)), "R": ROW, "Z": 0.0}
    key = _key(graph)
    width = max(right + column + 1.0, one_by_one(map(_key_width, key)) + KEY_GAP * len(key) + 0.6)
    notes = [line for note in graph.notes for line in picture_lines(note, int((width - 0.6) / SMALL_LETTER))]
    key_level = -0.78 - LINE * max((len(lines) for lines in names.values()), default=1)
    bottom = key_level - 0.25 - (LINE * (len(notes) + 0.8) if notes else 0.0)
    return _Layout(
        column, x, level, names, key, notes, key_level, width, bottom, level["S"] + (1.4 if title else 0.9)
    )


def _broken(name: str) -> list[str]:
    """Return a name in lines, broken after spaces and underscores if it can be."""
    lines = textwrap.wrap(shortened(printable(name), NAME_LETTERS).replace("_", "_ "), NAME_WIDTH) or [""]
    return [line.replace("_ ", "_") for line in lines]


def _key(graph: MissingnessGraph) -> list[tuple[str, str, str]]:
    entries = [("always observed", GREEN, "ring")] if graph.always_observed else []
    if graph.can_go_missing:
        entries += [("can go missing", PURPLE, "dot"), ("indicator", BLUE, "dot")]
    entries.append(("record", GOLD, "dot"))
    if graph.self_censoring:
        entries.append(("self-censoring", RED, "line"))
    if graph.dependent:
        entries.append(("dependent", BLUE, "line"))
    return entries


def _key_width(entry: tuple[str, str, str]) -> float:
    return 0.3 + SMALL_LETTER * len(entry[0])


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


def _draw_edges(axes: Axes, graph: MissingnessGraph, layout: _Layout) -> None:
    x, level = layout.x, layout.level
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
        distance = x[b] - x[a]
        # An arc below the R nodes between, and above the Z nodes.
        bend = 0.0 if distance < 1.5 * layout.column else 1.2 / distance
        _arrow(axes, (x[a], level["R"]), (x[b], level["R"]), BLUE, style="-", bend=bend)


def _draw_nodes(axes: Axes, graph: MissingnessGraph, layout: _Layout) -> None:
    from matplotlib.patches import Circle

    for name in graph.features:
        goes_missing = name in graph.can_go_missing
        for kind in "SRZ" if goes_missing else "SZ":
            place = (layout.x[name], layout.level[kind])
            colour = node_colour(graph, kind, name)
            axes.add_patch(
                Circle(place, RADIUS, facecolor=colour, edgecolor="white", linewidth=1.2, zorder=3)
            )
            draw_text(axes, *place, kind, color="white", fontsize=11, weight="bold", zorder=4)
            if kind == "S" and not goes_missing:
                axes.add_patch(
                    Circle(place, RADIUS + RING, facecolor="none", edgecolor=colour, linewidth=1.2, zorder=3)
                )
        for number, line in enumerate(layout.names[name]):
            draw_text(axes, layout.x[name], -0.62 - LINE * number, line, fontsize=9)


def _draw_key(axes: Axes, layout: _Layout) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle

    y = layout.key_level
    left = layout.middle - (one_by_one(map(_key_width, layout.key)) + KEY_GAP * (len(layout.key) - 1)) / 2
    for entry in layout.key:
        text, colour, mark = entry
        if mark == "line":
            axes.add_line(Line2D([left, left + 0.2], [y, y], color=colour, linewidth=1.5))
        else:
            axes.add_patch(Circle((left + 0.1, y), 0.08, facecolor=colour, edgecolor="none"))
        if mark == "ring":
            axes.add_patch(Circle((left + 0.1, y), 0.115, facecolor="none", edgecolor=colour, linewidth=0.8))
        draw_text(axes, left + 0.28, y, text, ha="left", fontsize=7.5)
        left += _key_width(entry) + KEY_GAP

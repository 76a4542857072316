"""The paper's Figure 3: total variation and normalised value over dataset size; and the map of a Predator benchmark."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from missmdp.benchmarks.predator import MAPS, Board
from missmdp.experiments.reproduce.findings import holds, kind_of
from missmdp.experiments.reproduce.style import (
    COLOURS,
    MARKS,
    QUIET,
    SMALL,
    draw_key,
    plain_axes,
    power,
    write_title,
)
from missmdp.experiments.reproduce.summary import Rows, Summary
from missmdp.model.picture import INK, draw_box, draw_text
from missmdp.words import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {"atv": "average TV", "wtv": "worst TV", "normalised": "normalised value"}
"""Name of a column → what it is called."""
LOWEST = -1.0
"""Values are drawn down to here: a learner that assumes what does not hold may be far below."""
_BAND = 0.18
_DASHES = (3.2, 1.6)
"""Of learners that assume what does not hold."""


@dataclass(frozen=True)
class Curve:
    """One learner on one benchmark."""

    learner: str
    sizes: tuple[int, ...]
    mean: tuple[float, ...]
    quartiles: tuple[tuple[float, float], ...]
    """Lower and upper, of the runs of each size."""
    runs: int
    """The most runs of any size."""


def curves(summary: Summary, benchmark: str, measure: str) -> list[Curve]:
    """Return a measure over dataset sizes, one curve per learner that has any."""
    table = summary.values if measure == "normalised" else summary.learning
    found: list[Curve] = []
    for learner in summary.config.learners:
        rows = sorted(
            (
                row
                for row in table
                if row["benchmark"] == benchmark and row["learner"] == learner and row[measure] is not None
            ),
            key=lambda row: row["size"],
        )
        if rows:
            found.append(_curve(learner, rows, measure))
    return found


def _curve(learner: str, rows: Rows, measure: str) -> Curve:
    return Curve(
        learner,
        tuple(row["size"] for row in rows),
        tuple(row[measure] for row in rows),
        tuple((row[f"{measure}_q25"], row[f"{measure}_q75"]) for row in rows),
        max(row["runs"] for row in rows),
    )


def curves_figure(summary: Summary, benchmarks: Sequence[str]) -> Figure | None:
    """Return a figure with a column per benchmark and a row per measure; None if there is nothing to draw."""
    found = {
        (benchmark, measure): curves(summary, benchmark, measure)
        for benchmark in benchmarks
        for measure in MEASURES
    }
    columns = [name for name in benchmarks if any(found[name, measure] for measure in MEASURES)]
    rows = [measure for measure in MEASURES if any(found[name, measure] for name in columns)]
    if not rows:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(5.4, 1.1 + 1.75 * len(columns)), 0.9 + 1.5 * len(rows)))
    figure.set_layout_engine("constrained", w_pad=0.03, h_pad=0.04)
    grid = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
    for i, measure in enumerate(rows):
        for j, benchmark in enumerate(columns):
            _draw_panel(grid[i, j], found[benchmark, measure], measure, benchmark)
        grid[i, 0].set_ylim(*limits(measure, [found[name, measure] for name in columns]))
        grid[i, 0].set_ylabel(MEASURES[measure], color=INK, fontsize=SMALL + 1)
    for j, benchmark in enumerate(columns):
        write_title(grid[0, j], benchmark, kind_of(benchmark))
        _label_sizes(grid[-1, j], summary)
    _draw_key(figure, found)
    return figure


def map_figure(summary: Summary, benchmark: str) -> Figure | None:
    """Return a figure of one Predator benchmark: its map, and the measures side by side; None without any."""
    found = {(benchmark, measure): curves(summary, benchmark, measure) for measure in MEASURES}
    shown = [measure for measure in MEASURES if found[benchmark, measure]]
    if not shown:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 + 2.35 * len(shown), 2.75))
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.04)
    board, *panels = figure.subplots(1, 1 + len(shown))
    draw_map(board, benchmark)
    write_title(board, benchmark, kind_of(benchmark))
    for axes, measure in zip(panels, shown, strict=True):
        _draw_panel(axes, found[benchmark, measure], measure, benchmark)
        _label_sizes(axes, summary)
        axes.set_ylim(*limits(measure, [found[benchmark, measure]]))
        axes.set_title(MEASURES[measure], fontsize=SMALL + 1, color=INK)
    _draw_key(figure, found)
    return figure


def _draw_panel(axes: Axes, panel: Sequence[Curve], measure: str, benchmark: str) -> None:
    plain_axes(axes)
    axes.set_xscale("log")
    if measure == "normalised":
        for level in (0.0, 1.0):
            axes.axhline(level, color=QUIET, linewidth=0.9, zorder=1.5)
    for curve in panel:
        # Marks at zero are shown as a whole; only values can lie far outside.
        _draw_curve(axes, curve, holds=holds(curve.learner, benchmark), clipped=measure == "normalised")
    if measure == "normalised":
        _mark_clipped(axes, panel)
    if not panel:
        axes.text(0.5, 0.5, "not run yet", transform=axes.transAxes, ha="center", color=QUIET, fontsize=SMALL)


_LEAST, _MOST = 1e-9, 1e9
"""The least height of total variation that is drawn, which may be 0 throughout, and the most of normalised values."""


def limits(measure: str, panels: Sequence[Sequence[Curve]]) -> tuple[float, float]:
    """Return what is drawn of a measure, the same for all panels of a row."""
    drawn = [curve for panel in panels for curve in panel]
    if measure == "normalised":
        return LOWEST, min(_MOST, max(1.15, 1.05 * max(max(curve.mean) for curve in drawn)))
    highest = max(max(*curve.mean, *(high for _, high in curve.quartiles)) for curve in drawn)
    return 0.0, max(_LEAST, 1.05 * highest)


def _draw_curve(axes: Axes, curve: Curve, *, holds: bool, clipped: bool) -> None:
    colour = COLOURS[curve.learner]
    if curve.runs > 1:
        low, high = zip(*curve.quartiles, strict=True)
        axes.fill_between(curve.sizes, low, high, color=colour, alpha=_BAND, linewidth=0)
    axes.plot(
        curve.sizes,
        curve.mean,
        color=colour,
        marker=MARKS[curve.learner],
        markersize=4.0,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linewidth=1.5,
        linestyle="-" if holds else (0, _DASHES),
        label=curve.learner,
        clip_on=clipped,
        zorder=3,
    )


def _mark_clipped(axes: Axes, panel: Sequence[Curve]) -> None:
    """Point down, with the number, where a mean is below what is shown."""
    lines: Counter[int] = Counter()
    for curve in panel:
        colour = COLOURS[curve.learner]
        for size, mean in zip(curve.sizes, curve.mean, strict=True):
            if mean >= LOWEST:
                continue
            axes.plot([size], [LOWEST], marker="v", markersize=5, color=colour, clip_on=False, zorder=5)
            axes.annotate(
                signed(mean, 1),
                (size, LOWEST),
                xytext=(0, 5 + 8 * lines[size]),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL - 1.5,
                color=colour,
            )
            lines[size] += 1


def _label_sizes(axes: Axes, summary: Summary) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    sizes = (*summary.config.sizes, *summary.config.value_sizes)
    first, last = (len(str(size)) - 1 for size in (min(sizes), max(sizes)))
    step = 1 if last - first < 4 else 2
    axes.set_xlim(0.6 * min(sizes), 1.7 * max(sizes))
    axes.xaxis.set_major_locator(FixedLocator([10.0**exponent for exponent in range(first, last + 1, step)]))
    axes.xaxis.set_major_formatter(lambda value, _: power(len(f"{value:.0f}") - 1))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("steps of data", color=INK, fontsize=SMALL)


def _draw_key(figure: Figure, found: Mapping[tuple[str, str], Sequence[Curve]]) -> None:
    """Draw one key for all panels: which learner is which, and what else is drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = [(benchmark, curve) for (benchmark, _), group in found.items() for curve in group]
    learners = dict.fromkeys(curve.learner for _, curve in drawn)
    entries: list[Any] = [
        Line2D([], [], color=COLOURS[name], marker=MARKS[name], markersize=5, linewidth=1.5, label=name)
        for name in learners
    ]
    if not all(holds(curve.learner, benchmark) for benchmark, curve in drawn):
        entries.append(
            Line2D(
                [],
                [],
                color=QUIET,
                linewidth=1.5,
                linestyle=(0, _DASHES),
                label="its assumption does not hold",
            )
        )
    if max(curve.runs for _, curve in drawn) > 1:
        entries.append(Patch(color=QUIET, alpha=_BAND, linewidth=0, label="middle half of runs"))
    if any(measure == "normalised" and group for (_, measure), group in found.items()):
        entries.append(Line2D([], [], color=QUIET, linewidth=0.9, label="1 optimal, 0 prior"))
    draw_key(figure, entries, None if figure.get_figwidth() > 8.5 else 3)


_GROUND = {".": "#F3EFE2", "J": "#7FA87A", "^": "#B9B4AC", "#": "#4A4A4A"}
_WORDS = {".": "plains", "J": "jungle", "^": "mountain", "#": "blocked"}


def draw_map(axes: Axes, benchmark: str) -> None:
    """Draw the map of a Predator benchmark, with a key below."""
    board = Board(MAPS[benchmark.removeprefix("predator-")])
    for row, letters in enumerate(board.rows):
        for column, letter in enumerate(letters):
            draw_box(axes, column + 0.03, row + 0.03, 0.94, 0.94, _GROUND[letter])
            if letter == "^":
                draw_text(axes, column + 0.5, row + 0.5, "▲", fontsize=SMALL, color="#77716A")
    found = [letter for letter in _WORDS if any(letter in row for row in board.rows)]
    step = board.width / len(found)
    for i, letter in enumerate(found):
        draw_box(axes, i * step + 0.05, board.height + 0.25, 0.3, 0.3, _GROUND[letter])
        place = (i * step + 0.45, board.height + 0.41)
        draw_text(axes, *place, _WORDS[letter], ha="left", fontsize=SMALL - 1, color=INK)
    axes.set_xlim(0.0, board.width)
    axes.set_ylim(board.height + 0.7, 0.0)
    axes.set_aspect("equal", anchor="N")
    axes.axis("off")


# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

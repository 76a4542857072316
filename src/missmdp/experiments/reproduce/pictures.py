"""The pictures of a run: the paper's figures, and dots for the values of all policies."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.curve_pictures import curves_figure, map_figure
from missmdp.experiments.reproduce.findings import (
    ComparedPolicy,
    common_size,
    compared_policies,
    kind_of,
    mdp_of,
)
from missmdp.experiments.reproduce.style import (
    COLOURS,
    MARKS,
    POLICIES,
    QUIET,
    SMALL,
    draw_key,
    plain_axes,
    size_text,
    write_title,
)
from missmdp.experiments.reproduce.summary import Summary, summarise
from missmdp.model.picture import INK, check_picture_name, save_picture
from missmdp.words import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = "figures"
"""The folder in a run's folder."""
_APPENDIX = "predator-mnar-unid"
"""The benchmark with a figure of its own, in the paper's appendix."""
_SELECTED = ("icu-smar", "predator-smar")
"""Benchmarks whose baselines are in the paper's main figure."""


def draw_figures(
    run: str | Path | Summary, formats: Sequence[str] = (".svg",), folder: str | Path | None = None
) -> list[Path]:
    """Draw what a run has found so far and return the files; the same cells give the same bytes.

    Parameters
    ----------
    run
        The folder of a run, or its summary.
    formats
        Endings of files: .svg, .png, .pdf.
    folder
        Where figures go; by default the folder "figures" in the run's.

    Raises
    ------
    MissMDPError
        If the folder has no run in it, nothing is finished, or an ending is not known.
    """
    for ending in formats:
        check_picture_name(Path(f"figure{ending}"))
    summary = run if isinstance(run, Summary) else summarise(run)
    target = summary.folder / FIGURES if folder is None else Path(folder)
    if not summary.finished:
        raise MissMDPError(
            f"{summary.folder}: nothing to draw, none of {len(summary.cells):,} cells is finished"
        )
    figures = {name: figure for name, figure in _figures(summary).items() if figure is not None}
    return [
        save_picture(figure, target / f"{name}{ending}")
        for name, figure in figures.items()
        for ending in dict.fromkeys(formats)
    ]


def _figures(summary: Summary) -> dict[str, Figure | None]:
    benchmarks = summary.config.benchmarks
    selected = [name for name in benchmarks if name in _SELECTED]
    return {
        "learning-curves": curves_figure(summary, [name for name in benchmarks if name != _APPENDIX]),
        _APPENDIX: map_figure(summary, _APPENDIX),
        "baselines": baselines_figure(summary, benchmarks),
        "baselines-selected": baselines_figure(summary, selected)
        if len(benchmarks) > len(selected)
        else None,
        "nothing-missing": nothing_missing_figure(summary),
    }


LEFT, RIGHT = -2.0, 1.2
"""What is drawn of the scale on which prior is 0 and optimal 1; random behaviour is far to the left."""
_COLUMNS = 3


def baselines_figure(summary: Summary, benchmarks: Sequence[str]) -> Figure | None:
    """Return a figure with a panel per benchmark; None if no benchmark has values on a scale."""
    found = {name: compared_policies(summary, name) for name in benchmarks}
    shown = {name: panel for name, panel in found.items() if panel}
    if not shown:
        return None
    from matplotlib.figure import Figure

    policies = _in_order(one.policy for panel in shown.values() for one in panel)
    columns = min(_COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(max(5.4, 1.1 + 2.75 * columns), 0.5 + rows * (0.8 + 0.21 * len(policies))))
    figure.set_layout_engine("constrained", w_pad=0.04, h_pad=0.05)
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, (name, panel) in zip(grid.flat, shown.items(), strict=False):
        size = common_size(summary, name)
        write_title(
            axes, name, kind_of(name) if size is None else f"{kind_of(name)}; {size_text(size)} steps"
        )
        _draw_scale(axes, panel, policies)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    drawn = [one for panel in shown.values() for one in panel]
    draw_key(
        figure,
        [
            *_dot_entries(best=any(one.best is not None for one in drawn)),
            *([_entry("further left", marker="<")] if any(one.normalised < LEFT for one in drawn) else []),
            _line("1 optimal, 0 prior"),
        ],
    )
    return figure


def nothing_missing_figure(summary: Summary) -> Figure | None:
    """Return a figure of policies where nothing goes missing, beside the optimum; None if there are none."""
    rows = [row for row in summary.baselines if row["missing"] == "nothing"]
    panels = list(dict.fromkeys(row["benchmark"] for row in rows))
    if not panels:
        return None
    from matplotlib.figure import Figure

    policies = _in_order(row["policy"] for row in rows)
    figure = Figure(figsize=(max(5.4, 0.9 + 2.5 * len(panels)), 1.35 + 0.24 * len(policies)))
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axes, benchmark in zip(grid.flat, panels, strict=True):
        _label_rows(axes, policies, "value")
        axes.set_title(mdp_of(benchmark), fontsize=SMALL + 1.5, color=INK, fontweight="bold")
        for row in rows:
            if row["benchmark"] == benchmark:
                best = row["best"] if row["seeds"] > 1 else None
                _draw_dot(axes, policies.index(row["policy"]), "", row["value"], row["stderr"], best)
                axes.axvline(row["optimum"], color=QUIET, linewidth=0.9, zorder=1.5)
        axes.margins(x=0.08)
    several = any(row["seeds"] > 1 for row in rows)
    draw_key(figure, [*_dot_entries(best=several), _line("optimum, exact")])
    return figure


def _in_order(policies: Iterable[str]) -> list[str]:
    found = set(policies)
    return [name for name in POLICIES if name in found]


def _draw_scale(axes: Axes, panel: Sequence[ComparedPolicy], policies: Sequence[str]) -> None:
    _label_rows(axes, policies, "normalised value")
    axes.set_xlim(LEFT, RIGHT)
    for level in (0.0, 1.0):
        axes.axvline(level, color=QUIET, linewidth=0.9, zorder=1.5)
    for one in panel:
        y = policies.index(one.policy)
        if one.normalised < LEFT:
            colour = COLOURS.get(one.policy, INK)
            axes.plot([LEFT + 0.06], [y], marker="<", markersize=5, color=colour, linewidth=0)
        else:
            _draw_dot(axes, y, one.policy, one.normalised, one.stderr, one.best)
        _write_number(axes, one, y)


def _label_rows(axes: Axes, policies: Sequence[str], measure: str) -> None:
    plain_axes(axes, grid="x")
    axes.set_xlabel(measure, color=INK, fontsize=SMALL)
    axes.set_ylim(len(policies) - 0.4, -0.6)
    axes.set_yticks(range(len(policies)), [POLICIES[name] for name in policies])
    axes.tick_params(axis="y", length=0)


def _draw_dot(
    axes: Axes, y: float, policy: str, mean: float, stderr: float | None, best: float | None
) -> None:
    colour, error = COLOURS.get(policy, INK), stderr or 0.0
    axes.plot([mean - error, mean + error], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    axes.plot([mean], [y], marker=MARKS.get(policy, "D"), markersize=4.5, color=colour, linewidth=0)
    if best is not None:
        axes.plot([best], [y], marker="|", markersize=10, markeredgewidth=1.4, color=colour, linewidth=0)


def _write_number(axes: Axes, one: ComparedPolicy, y: float) -> None:
    text = signed(one.normalised, 0 if one.policy in ("optimal", "prior") else 2)
    if one.stderr and one.policy not in ("optimal", "prior"):
        text += f" ± {one.stderr:.2f}"
    axes.annotate(
        text,
        (1.0, y),
        xytext=(4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center_baseline",
        fontsize=SMALL - 1,
        color=COLOURS.get(one.policy, INK),
    )


def _dot_entries(*, best: bool) -> list[Any]:
    dot = _entry("mean ± standard error", marker="D", markersize=4.5, linewidth=1.6)
    return [dot, *([_entry("best seed", marker="|", markersize=10, markeredgewidth=1.4)] if best else [])]


def _line(label: str) -> Any:
    return _entry(label, color=QUIET, linewidth=0.9)


def _entry(label: str, **style: Any) -> Any:
    from matplotlib.lines import Line2D

    full: dict[str, Any] = {"color": INK, "linewidth": 0, "markersize": 5.5, **style}
    return Line2D([], [], label=label, **full)

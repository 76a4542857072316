"""The pictures of a run, from its finished cells alone: the paper's figures, and what they leave out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from missmdp.errors import MissMDPError
from missmdp.experiments.reproduce.curves import board_figure, curves_figure
from missmdp.experiments.reproduce.dots import baselines_figure, nothing_missing_figure
from missmdp.experiments.reproduce.summary import Summary, summarise
from missmdp.model.picture import check_picture_name, save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "draw_figures"]

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
    target = summary.store.folder / FIGURES if folder is None else Path(folder)
    if not summary.finished:
        raise MissMDPError(
            f"{summary.store.folder}: nothing to draw, none of {len(summary.cells):,} cells is finished"
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
        _APPENDIX: board_figure(summary, _APPENDIX),
        "baselines": baselines_figure(summary, benchmarks),
        "baselines-selected": baselines_figure(summary, selected)
        if len(benchmarks) > len(selected)
        else None,
        "nothing-missing": nothing_missing_figure(summary),
    }

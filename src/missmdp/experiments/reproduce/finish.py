"""What a finished run is turned into: tables, figures and a page."""

from __future__ import annotations

from pathlib import Path

from missmdp.experiments.reproduce.figures import draw_figures
from missmdp.experiments.reproduce.page import write_page
from missmdp.experiments.reproduce.summary import write_tables

__all__ = ["write_everything"]


def write_everything(folder: str | Path) -> None:
    """Write tables, figures and report.html from the cells of a folder."""
    write_tables(folder)
    draw_figures(folder)
    write_page(Path(folder))

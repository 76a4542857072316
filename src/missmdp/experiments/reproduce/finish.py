"""What a finished run is turned into besides tables: figures and a page."""

from __future__ import annotations

from pathlib import Path

from missmdp.experiments.reproduce.figures import draw_figures
from missmdp.experiments.reproduce.page import write_page
from missmdp.experiments.reproduce.summary import summarise

__all__ = ["draw_and_write"]


def draw_and_write(folder: str | Path) -> None:
    """Draw the figures and write report.html from the cells of a folder."""
    summary = summarise(folder)
    draw_figures(summary)
    write_page(summary)

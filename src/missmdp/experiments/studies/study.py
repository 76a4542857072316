"""A study: a list of cells, the rows that finished cells become, and tables for people made from these rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from missmdp.experiments.grid.cell import Cell, CellResult
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.tables import write_table
from missmdp.files import read_text

Rows = list[dict[str, str]]
"""Rows of a .csv file: column → what is written there."""
Finished = Mapping[Any, CellResult]
"""Finished cells, in the order of the grid."""


@dataclass(frozen=True)
class Study:
    """A grid, and what becomes of it."""

    name: str
    says: str
    """What it finds out, in a few words."""
    page: str
    """The page of docs/results with its tables."""
    cells: Callable[[], list[Cell]]
    """In the order in which they are done: whenever a run is stopped, what is there is balanced."""
    rows: Callable[[Finished], dict[str, Rows]]
    """Name of a .csv file → its rows."""
    tables: Callable[[Mapping[str, Rows]], dict[str, str]]
    """Mark in the page → table in Markdown, for the rows that there are."""
    draw: Callable[[Mapping[str, Rows], Path], list[Path]] | None = None
    """Draws the rows into a folder; returns the files."""
    template: str = ""
    """What the page is made of, as long as there is none."""


def write_study(study: Study, folder: str | Path) -> dict[str, Rows]:
    """Write the rows of a study's finished cells to FOLDER/tables as .csv files, and return those that there are."""
    store = CellStore(Path(folder) / "cells")
    store.check()
    finished = {cell: result for cell in study.cells() if (result := store.read(cell)) is not None}
    found = {name: rows for name, rows in study.rows(finished).items() if rows}
    for name, rows in found.items():
        write_table(rows, Path(folder) / "tables" / f"{name}.csv")
    return found


def read_rows(paths: Iterable[Path]) -> dict[str, Rows]:
    """Return the rows of .csv files, by their names without ending."""
    found: dict[str, Rows] = {}
    for path in paths:
        found[path.stem] = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    return found

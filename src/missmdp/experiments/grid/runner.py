"""Do what is missing of a grid, and keep each cell when it is finished."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from missmdp.experiments.grid.cell import Cell, run_cell
from missmdp.experiments.grid.executors import Failed, Finished, Work, execute
from missmdp.experiments.grid.store import CellStore
from missmdp.files import held_folder
from missmdp.progress import show_progress

_log = logging.getLogger(__name__)

Report = Callable[[int, int, Cell, float], None]
"""Is told (finished, all, the last cell, seconds so far)."""


@dataclass(frozen=True, eq=False)
class GridRun:
    """A run of a grid, as far as it got."""

    folder: Path
    cells: int
    found: int
    """Cells that were there from before."""
    finished: int
    """Cells that were run now."""
    failed: dict[str, str]
    """Name → what it raised."""
    status: Literal["finished", "interrupted", "failed"]
    seconds: float

    def __str__(self) -> str:
        done = self.found + self.finished
        text = f"{done:,} of {self.cells:,} cells in {self.folder} ({self.found:,} from before)"
        if self.status == "finished":
            return f"{text}; tables in {self.folder / 'tables'}"
        if self.status == "interrupted":
            return f"{text}; interrupted: run it again to resume"
        name, reason = next(iter(self.failed.items()))
        return f"{text}; {len(self.failed)} failed, the first of them {name}: {reason}"


def run_cells(
    cells: Sequence[Cell],
    folder: str | Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool | None = None,
    report: Report | None = None,
    work: Work = run_cell,
) -> GridRun:
    """Do the cells that the folder does not have yet; it may be stopped at any time, and another call goes on.

    The folder is held meanwhile: another call there, by any process, is refused.

    Parameters
    ----------
    cells
        All that is wanted.
    folder
        Finished cells go to the folder "cells" in it.
    workers
        How many processes; by default one per core.
    dask
        The address of a Dask scheduler to run cells there instead.
    progress
        Whether to show progress; by default on a terminal.
    report
        Called when a cell is finished.
    work
        What to do with a cell; another function than its own is for tests.
    """
    folder = Path(folder)
    count = (os.cpu_count() or 1) if workers is None else workers
    with held_folder(folder):
        store = CellStore(folder / "cells")
        store.check()
        store.check_writable()
        store.sweep()
        missing = store.missing(cells)
        with (
            show_progress("Running cells", len(missing), enabled=progress) as advance,
            closing(execute(missing, workers=count, dask=dask, work=work)) as results,
        ):

            def tell(finished: int, cell: Cell, seconds: float) -> None:
                advance()
                if report is not None:
                    report(finished, len(missing), cell, seconds)

            done = _keep(results, store, tell)
    return GridRun(folder, len(cells), len(cells) - len(missing), *done)


def _keep(
    results: Iterable[Finished], store: CellStore, tell: Callable[[int, Cell, float], None]
) -> tuple[int, dict[str, str], Literal["finished", "interrupted", "failed"], float]:
    """Keep cells as they are finished; return how many, what went wrong, how it ended, and the seconds it took."""
    began, finished, failed = time.monotonic(), 0, dict[str, str]()
    status: Literal["finished", "interrupted", "failed"] = "finished"
    try:
        for cell, result in results:
            if isinstance(result, Failed):
                _log.error("%s failed: %s", cell.name, result.reason)
                failed[cell.name] = result.reason
                continue
            store.write(cell, result)
            finished += 1
            tell(finished, cell, time.monotonic() - began)
    except KeyboardInterrupt:
        status = "interrupted"
    if failed:
        status = "failed"
    return finished, failed, status, time.monotonic() - began

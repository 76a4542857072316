"""Run what is missing of a grid, keep each cell when it is finished, and write the tables."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from missmdp.experiments.baselines import check_baseline
from missmdp.experiments.reproduce.cells import Cell, all_cells, benchmark_model
from missmdp.experiments.reproduce.config import ReproduceConfig, profile
from missmdp.experiments.reproduce.executors import Failed, Work, execute
from missmdp.experiments.reproduce.store import CellStore
from missmdp.experiments.reproduce.summary import Summary, summarise, write_tables
from missmdp.experiments.reproduce.work import run_cell
from missmdp.progress import show_progress

__all__ = ["Report", "Reproduction", "reproduce"]

_log = logging.getLogger(__name__)

Report = Callable[[int, int, Cell, float], None]
"""Is told (finished, all, the last cell, seconds so far)."""


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A run, as far as it got."""

    folder: Path
    config: ReproduceConfig
    cells: int
    found: int
    """Cells that were there from before."""
    finished: int
    """Cells that were run now."""
    failed: dict[str, str]
    """Name → what it raised."""
    status: Literal["finished", "interrupted", "failed"]
    seconds: float

    def summary(self) -> Summary:
        """Return what the finished cells say, as rows."""
        return summarise(self.folder)

    def __str__(self) -> str:
        done = self.found + self.finished
        text = f"{done:,} of {self.cells:,} cells in {self.folder} ({self.found:,} from before)"
        if self.status == "finished":
            return f"{text}; tables in {self.folder / 'tables'}"
        if self.status == "interrupted":
            return f"{text}; interrupted: run it again to go on"
        name, reason = next(iter(self.failed.items()))
        return f"{text}; {len(self.failed)} failed, the first of them {name}: {reason}"


def reproduce(
    config: ReproduceConfig | str,
    folder: str | Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool | None = None,
    report: Report | None = None,
    work: Work = run_cell,
) -> Reproduction:
    """Run the cells of a configuration that the folder does not have yet, and write the tables.

    It may be stopped at any time, also by force: another call goes on, and ends with the same tables, byte for byte,
    where solving is limited by trials rather than by seconds. A call with another configuration uses what fits.

    Parameters
    ----------
    config
        What to run; or the name of a profile: "smoke", "small" or "paper".
    folder
        Where finished cells, tables and the configuration go.
    workers
        How many processes; by default one per core.
    dask
        The address of a Dask scheduler to run cells there instead.
    progress
        Whether to show progress; by default on a terminal.
    report
        Called when a cell is finished.
    work
        What to do with a cell; another function than our own is for tests.
    """
    config = profile(config) if isinstance(config, str) else config
    for benchmark in config.benchmarks:
        for name in config.of(benchmark).baselines:
            check_baseline(name, benchmark_model(benchmark))
    store = CellStore(folder)
    store.check_writable()
    store.sweep()
    store.write_config(config)
    cells = all_cells(config)
    missing = [cell for cell in cells if store.read(cell) is None]
    began, finished, failed = time.monotonic(), 0, dict[str, str]()
    status: Literal["finished", "interrupted", "failed"] = "finished"
    count = (os.cpu_count() or 1) if workers is None else workers
    with (
        show_progress("Reproducing", len(missing), enabled=progress) as advance,
        closing(execute(missing, workers=count, dask=dask, work=work)) as results,
    ):
        try:
            for cell, result in results:
                if isinstance(result, Failed):
                    _log.error("%s failed: %s", cell.name, result.reason)
                    failed[cell.name] = result.reason
                    continue
                store.write(cell, result)
                finished += 1
                advance()
                if report is not None:
                    report(finished, len(missing), cell, time.monotonic() - began)
        except KeyboardInterrupt:
            status = "interrupted"
    if failed:
        status = "failed"
    if status == "finished":
        write_tables(store.folder)
    return Reproduction(
        store.folder,
        config,
        len(cells),
        len(cells) - len(missing),
        finished,
        failed,
        status,
        time.monotonic() - began,
    )

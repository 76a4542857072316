"""Run the paper's experiments: do what is missing, then write the tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from missmdp.checks import checked_instance
from missmdp.experiments.baselines import check_baseline
from missmdp.experiments.grid.cell import run_cell
from missmdp.experiments.grid.executors import Work
from missmdp.experiments.grid.runner import GridRun, Report, run_cells
from missmdp.experiments.reproduce.cells import benchmark_model
from missmdp.experiments.reproduce.config import CONFIG, ReproduceConfig, profile
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.summary import Summary, summarise, write_tables
from missmdp.files import held_folder


@dataclass(frozen=True, eq=False)
class Reproduction(GridRun):
    """A run, as far as it got."""

    config: ReproduceConfig

    def summary(self) -> Summary:
        """Return what the finished cells say, as rows."""
        return summarise(self.folder)


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

    It may be stopped at any time, even by force: another call goes on, and ends with the same tables, byte for byte,
    where solving is limited by trials rather than by seconds. A call with another configuration uses what fits.
    One call at a time can write to a folder; others are refused.

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
        What to do with a cell; another function than its own is for tests.
    """
    config = checked_instance(
        "config",
        profile(config) if isinstance(config, str) else config,
        ReproduceConfig,
        "a ReproduceConfig, or the name of a profile",
    )
    for benchmark in config.benchmarks:
        for name in config.of(benchmark).baselines:
            check_baseline(name, benchmark_model(benchmark))
    with held_folder(folder):
        config.save(Path(folder) / CONFIG)
        done = run_cells(
            all_cells(config), folder, workers=workers, dask=dask, progress=progress, report=report, work=work
        )
        if done.status == "finished":
            write_tables(folder)
    return Reproduction(**vars(done), config=config)

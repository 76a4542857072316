"""The command `reproduce`: the paper's experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.reproduce_options import ConfiguredCommand, given_settings

if TYPE_CHECKING:
    from missmdp.experiments.reproduce.config import ReproduceConfig

__all__ = ["reproduce"]

EPILOG = """\b
Examples:
  missmdp reproduce --profile smoke
  missmdp reproduce --profile small -o results --dry-run
  missmdp reproduce --profile small -o results --workers 4
  missmdp reproduce -o results                                # goes on where it was
  missmdp reproduce --benchmarks icu-smar --sizes 100,1e4 --runs 5 --value-sizes 1e4 -o mine
  missmdp reproduce --config mine.toml --dask tcp://cluster:8786 -o mine
  missmdp plot results
  missmdp report results

\b
Profiles:
  smoke  whether everything works, in under three minutes
  small  all benchmarks and learners, in about an hour on two cores
  paper  everything as in the paper's appendix: more than a day on two cores
"""


@click.command(cls=ConfiguredCommand, epilog=EPILOG)
@click.option(
    "--profile",
    type=click.Choice(["smoke", "small", "paper"]),
    help="A ready-made configuration.  [default: that of the folder, else small]",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="TOML",
    help="A file of settings, named as the options below with _ for -; what it does not say is as in the profile.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where everything goes; a run that is there is gone on with.  [default: reproduce-PROFILE]",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one per core]")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster instead, as in tcp://host:8786.")
@click.option("--dry-run", is_flag=True, help="Say what would run and how long it may take; run nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Print one line in the end, and no progress.")
def reproduce(
    profile: str | None,
    config_file: Path | None,
    folder: Path | None,
    workers: int | None,
    dask: str | None,
    dry_run: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Reproduce the paper's experiments: benchmarks × learners × dataset sizes × runs, and the baselines.

    Work is cut into cells, each seeded from its own key. A finished cell is kept in FOLDER/cells; whatever ends the
    run, also by force, the same command goes on with it and ends with the same tables. In the end FOLDER has tables
    (.csv and .parquet), figures and report.html. Options override the file, and the file the profile.
    """
    from missmdp.cli.printing_reproduce import GridProgress, print_plan, print_reproduction
    from missmdp.experiments.reproduce.page import draw_and_write
    from missmdp.experiments.reproduce.plan import all_cells
    from missmdp.experiments.reproduce.runner import reproduce as run

    if workers is not None and dask is not None:
        raise click.UsageError("--workers is for processes here, --dask for a cluster; give one of them")
    target = Path(f"reproduce-{profile or 'small'}") if folder is None else folder
    config = _config(profile, config_file, target, given_settings(settings))
    if dry_run:
        print_plan(all_cells(config), target, workers)
        return
    with GridProgress(all_cells(config), target, enabled=not quiet) as progress:
        done = run(config, target, workers=workers, dask=dask, progress=False, report=progress)
    if done.status == "finished":
        draw_and_write(target)
    if quiet:
        click.echo(str(done))
    else:
        print_reproduction(done)
    if done.status == "interrupted":
        raise KeyboardInterrupt
    if done.failed:
        raise click.ClickException(str(done))


def _config(
    profile: str | None, config_file: Path | None, folder: Path, settings: dict[str, Any]
) -> ReproduceConfig:
    from missmdp.experiments.reproduce.config import PROFILES, ReproduceConfig, is_reproduction

    if profile is None and config_file is None and is_reproduction(folder):
        config = ReproduceConfig.of_run(folder)
    else:
        config = PROFILES[profile or "small"]
    if config_file is not None:
        config = ReproduceConfig.load(config_file, config)
    asked: dict[str, dict[str, Any]] = settings.pop("only", {})
    chosen = settings.get("benchmarks", config.benchmarks)
    # What is asked for on the command line is meant for all benchmarks, also those with settings of their own.
    only = {
        benchmark: {name: value for name, value in own.items() if name not in settings}
        for benchmark, own in config.only.items()
        if benchmark in chosen
    }
    for benchmark, own in asked.items():
        only[benchmark] = {**only.get(benchmark, {}), **own}
    return replace(config, **settings, only={name: own for name, own in only.items() if own})

"""The commands `reproduce` and `plot`: the paper's experiments and their figures."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import echo
from missmdp.cli.options import Whole, quiet_option
from missmdp.files import held_folder

if TYPE_CHECKING:
    from missmdp.experiments.grid.runner import GridRun
    from missmdp.experiments.reproduce.config import ReproduceConfig

__all__ = ["ConfiguredCommand", "given_settings", "plot", "reproduce"]


class ConfiguredCommand(click.Command):
    """A command with an option for each field of `ReproduceConfig`, and --only for those of single benchmarks.

    They are made when they are needed, since the configuration knows benchmarks and baselines, which take long to load.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all options."""
        return [*super().get_params(ctx)[:-1], *_config_options(), *super().get_params(ctx)[-1:]]


@lru_cache
def _config_options() -> tuple[click.Option, ...]:
    from missmdp.experiments.reproduce.config import ReproduceConfig

    only = click.Option(
        ["--only"],
        multiple=True,
        metavar="BENCHMARK.SETTING=VALUE",
        help="A setting for one benchmark, such as predator-mcar.max_trials=12; repeat for more.",
    )
    return (*(_option(known) for known in fields(ReproduceConfig) if known.name != "only"), only)


def _option(known: Any) -> click.Option:
    from missmdp.experiments.reproduce.config import field_type

    kind, several, optional = field_type(known)
    flag = f"--{known.name.replace('_', '-')}"
    if kind is bool:
        return click.Option(
            [f"{flag}/--no-{flag[2:]}", known.name], default=None, help=known.metadata["help"]
        )
    words = {int: "N", float: "X", str: "NAME"}[kind]
    metavar = f"{words},…" if several else f"{words}|none" if optional else words
    return click.Option([flag, known.name], metavar=metavar, help=known.metadata["help"])


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return what was typed, as settings; options that were not given are left out."""
    from missmdp.experiments.reproduce.config import ReproduceConfig

    names = {known.name: known for known in fields(ReproduceConfig)}
    found = {
        name: _value(names[name], text)
        for name, text in options.items()
        if name != "only" and text is not None
    }
    only: dict[str, dict[str, Any]] = {}
    for item in options["only"]:
        left, equals, text = item.partition("=")
        benchmark, dot, name = left.partition(".")
        name = name.replace("-", "_")
        if not (equals and dot) or name not in names or name == "only":
            raise click.UsageError(
                f"--only {item}: expected BENCHMARK.SETTING=VALUE, as in predator-mcar.max_trials=12"
            )
        only.setdefault(benchmark, {})[name] = _value(names[name], text)
    return {**found, **({"only": only} if only else {})}


def _value(known: Any, text: Any) -> Any:
    from missmdp.experiments.reproduce.config import field_type

    kind, several, optional = field_type(known)
    if isinstance(text, bool) or (optional and text.lower() == "none"):
        return text if isinstance(text, bool) else None
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise click.UsageError(f"{known.name}: expected true or false, got {text!r}")
        return text.lower() == "true"
    if several and text.lower() == "none":
        return ()
    words = [word.strip() for word in text.split(",") if word.strip()] if several else [text]
    values = [_number(known.name, kind, word) for word in words]
    return tuple(values) if several else values[0]


def _number(name: str, kind: type, word: str) -> Any:
    """Return a word as what the field takes; 1e5 and 10_000 are whole numbers too."""
    if kind is str:
        return word
    try:
        value = float(word.replace("_", ""))
    except ValueError:
        raise click.UsageError(f"--{name.replace('_', '-')}: {word!r} is not a number") from None
    if kind is float:
        return value
    if not value.is_integer():
        raise click.UsageError(f"--{name.replace('_', '-')}: {word!r} is not a whole number")
    return int(value)


REPRODUCE_HELP = """\b
Examples:
  missmdp reproduce --profile smoke
  missmdp reproduce --profile small -o results --dry-run
  missmdp reproduce --profile small -o results --workers 4
  missmdp reproduce -o results                                # resumes the run
  missmdp reproduce --benchmarks icu-smar --sizes 100,1e4 --runs 5 --value-sizes 1e4 -o mine
  missmdp reproduce --config mine.toml --dask tcp://cluster:8786 -o mine
  missmdp reproduce --study diagnosis -o results
  missmdp plot results
  missmdp report results

\b
Profiles:
  smoke  a quick check that everything works: under three minutes
  small  all benchmarks and learners: about an hour on two cores
  paper  everything as in the paper's appendix: more than a day on two cores

\b
Studies beyond the paper (tables as .csv in FOLDER/tables):
  beyond        how far learning from the dynamics gets, beside the paper's learners: hours
  dynamics      how far dynamics learned from the log alone get, beside filling in its gaps: hours
  diagnosis     how often the type of missingness is named right: hours
  certificates  what can be certified from how much data: half an hour
  bounds        how often bounds hold: minutes
  learning      how close learners come, and what options do: minutes
"""


@click.command(cls=ConfiguredCommand, epilog=REPRODUCE_HELP)
@click.option(
    "--profile",
    type=click.Choice(["smoke", "small", "paper"]),
    help="A ready-made configuration.  [default: that of FOLDER, else small]",
)
@click.option(
    "--study",
    type=click.Choice(
        ["beyond", "dynamics", "diagnosis", "certificates", "bounds", "learning", "check-dynamics"]
    ),
    help="One of the studies beyond the paper instead; its settings are fixed.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="TOML",
    help="A file of settings, named like the options below with _ for -; the profile provides the rest.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where everything is written; an existing run is resumed.  [default: reproduce-PROFILE]",
)
@click.option("--workers", type=Whole(min=1), help="Number of processes.  [default: one per core]")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster instead, such as tcp://host:8786.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would run and how long it may take, and run nothing."
)
@quiet_option()
def reproduce(
    profile: str | None,
    study: str | None,
    config_file: Path | None,
    folder: Path | None,
    workers: int | None,
    dask: str | None,
    dry_run: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Reproduce the paper's experiments.

    These are benchmarks × learners × dataset sizes × runs, and the baselines. The work is divided into cells, each with
    a seed of its own. Finished cells are stored in FOLDER/cells. If the run is interrupted, even by force, the same
    command resumes it and ends with the same tables. At the end FOLDER contains tables (.csv and .parquet), figures and
    report.html. Options override the file of settings, and the file overrides the profile.
    """
    from missmdp.cli.printing_run import GridProgress, print_plan, print_reproduction
    from missmdp.experiments.reproduce.page import draw_and_write
    from missmdp.experiments.reproduce.plan import all_cells
    from missmdp.experiments.reproduce.runner import reproduce as run

    if workers is not None and dask is not None:
        raise click.UsageError(
            "--workers is for processes on this machine, --dask for a cluster; give one of them"
        )
    given = given_settings(settings)
    if study is not None:
        if profile is not None or config_file is not None or given:
            raise click.UsageError("--study has fixed settings; leave out --profile, --config and settings")
        _run_study(study, folder or Path(f"study-{study}"), workers, dask, dry_run=dry_run, quiet=quiet)
        return
    target = Path(f"reproduce-{profile or 'small'}") if folder is None else folder
    config = _config(profile, config_file, target, given)
    if dry_run:
        print_plan(all_cells(config), target, workers)
        return
    with held_folder(target):
        with GridProgress(all_cells(config), target, enabled=not quiet) as progress:
            done = run(config, target, workers=workers, dask=dask, progress=False, report=progress)
        if done.status == "finished":
            draw_and_write(target)
    if quiet:
        echo(str(done))
    else:
        print_reproduction(done)
    _raise_unless_finished(done)


def _run_study(
    name: str, folder: Path, workers: int | None, dask: str | None, *, dry_run: bool, quiet: bool
) -> None:
    from missmdp.cli.printing_run import GridProgress, print_plan
    from missmdp.experiments.grid.runner import run_cells
    from missmdp.experiments.studies.catalogue import STUDIES
    from missmdp.experiments.studies.study import write_study

    study = STUDIES[name]
    cells = study.cells()
    if dry_run:
        print_plan(cells, folder, workers)
        return
    with held_folder(folder):
        with GridProgress(cells, folder, enabled=not quiet) as progress:
            done = run_cells(cells, folder, workers=workers, dask=dask, progress=False, report=progress)
        write_study(study, folder)
    echo(str(done))
    _raise_unless_finished(done)


def _raise_unless_finished(done: GridRun) -> None:
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


PLOT_HELP = """\b
Examples:
  missmdp reproduce --profile smoke -o RUN
  missmdp plot RUN
  missmdp plot RUN --format pdf --format png -o paper/figures
"""
_FORMATS = ("svg", "png", "pdf")


@click.command(epilog=PLOT_HELP)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("svg",),
    show_default=True,
    type=click.Choice(_FORMATS),
    help="Format of the files; repeat for more.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where figures are written.  [default: RUN/figures]",
)
def plot(run: Path, formats: tuple[str, ...], folder: Path | None) -> None:
    """Draw the figures of a reproduction, finished or not.

    RUN is a folder written by `missmdp reproduce`. Nothing is run: the figures show the cells that are stored. The same
    cells always give the same files.
    """
    from missmdp.errors import MissMDPError
    from missmdp.experiments.reproduce.pictures import draw_figures
    from missmdp.experiments.reproduce.summary import summarise

    if folder is not None and folder.is_file():
        raise click.UsageError(f"{folder} is a file; figures need a folder")
    summary = summarise(run)
    paths = draw_figures(summary, [f".{ending}" for ending in formats], folder)
    done = f"{summary.finished:,} of {len(summary.cells):,} cells are finished"
    if not paths:
        raise MissMDPError(
            f"{run}: there is nothing to draw: {done}, none with total variation or normalised values"
        )
    for path in paths:
        echo(str(path))
    if summary.finished < len(summary.cells):
        echo(f"{done}; the figures show these", err=True)

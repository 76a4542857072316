"""The commands `run` and `report`: everything at once, and its page."""

from __future__ import annotations

import logging
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import echo
from missmdp.cli.options import (
    DATA_HELP,
    MDP_HELP,
    LearnerChoice,
    Number,
    Whole,
    behaviour_option,
    confidence_option,
    feature_blocks,
    grouped,
    learner_help,
    learner_option,
    quiet_option,
    seed_option,
    table_arguments,
    table_options,
)
from missmdp.errors import MissMDPError
from missmdp.files import held_folder
from missmdp.learn.registry import run_by_default

if TYPE_CHECKING:
    from missmdp.experiments.run.settings import RunSettings

__all__ = ["check_usage", "report", "run", "run_options", "run_settings"]

_LEARNING = ("smoothing", "unseen", "always_observed", "patterns", "blocks")
"""The parameters of learners that can be set for a run."""

run_options = grouped(
    click.option(
        "-o",
        "--output",
        "folder",
        type=click.Path(path_type=Path),
        default="missmdp-run",
        show_default=True,
        metavar="FOLDER",
        help="Where everything is written: an empty folder, or one with this same run in it.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace another run in FOLDER, which is then lost."),
    click.option(
        "--steps",
        type=Whole(min=1),
        help="Without DATA: number of observations to simulate.  [default: 10,000]",
    ),
    seed_option(),
    click.option(
        "--unknown-truth",
        is_flag=True,
        help="Ignore how values go missing in MODEL, as if only its MDP were known.",
    ),
    click.option(
        "--learner",
        "learners",
        multiple=True,
        type=LearnerChoice("auto"),
        help=f"How values go missing. {learner_help()} auto: the one that the diagnosis recommends. Repeat for more.  "
        f"[default: {', '.join(run_by_default())}]",
    ),
    confidence_option("Confidence of bounds and intervals."),
    behaviour_option,
    *(learner_option(name) for name in _LEARNING),
    click.option(
        "--diagnosis/--no-diagnosis",
        default=True,
        show_default=True,
        help="Find out why values are missing before learning.",
    ),
    click.option(
        "--folds",
        type=Whole(min=2),
        default=5,
        show_default=True,
        help="Number of parts of the log that are held out in turn to compare learners.",
    ),
    click.option(
        "--precision",
        type=Number(min=0.0),
        default=0.01,
        show_default=True,
        help="Solve to this relative gap between the bounds.",
    ),
    click.option(
        "--timeout",
        type=Number(min=0.0),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit for solving each model; there are up to six.",
    ),
    click.option("--max-trials", type=Whole(min=0), help="Maximum rounds of solving for each model."),
    click.option(
        "--episodes",
        type=Whole(min=2),
        default=2000,
        show_default=True,
        help="Episodes to evaluate each policy in.",
    ),
    click.option(
        "--sensitivity-episodes",
        type=Whole(min=0),
        default=300,
        show_default=True,
        help="Episodes in each of the changed models that show how much depends on the model; 0 for none.",
    ),
    click.option(
        "--certificate/--no-certificate",
        default=True,
        show_default=True,
        help="Bound how far from optimal the policy can really be.",
    ),
)
"""The options that say how a run is done."""


def check_usage(model: str, data: tuple[str, ...], folder: Path, options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together."""
    if data and options["steps"] is not None:
        raise click.UsageError("--steps is for simulating, but DATA was given; leave out one of the two")
    here = folder.resolve()
    for name in data:
        if Path(name).resolve().is_relative_to(here):
            raise click.UsageError(f"{name}: DATA must not be inside {folder}, the output folder")
    if Path(model).exists() and here in Path(model).resolve().parents:
        raise click.UsageError(f"{model}: MODEL must not be inside {folder}, the output folder")


def run_settings(options: dict[str, Any]) -> RunSettings:
    """Return how the run is done."""
    from missmdp.experiments.run.settings import RunSettings

    typed: dict[str, Any] = {
        **options,
        "blocks": feature_blocks(options["blocks"]),
        "learners": tuple(dict.fromkeys(options["learners"])),
    }
    names = [known.name for known in fields(RunSettings) if known.name in typed]
    return RunSettings(**{name: typed[name] for name in names if typed[name] not in (None, ())})


RUN_HELP = f"""\b
Examples:
  missmdp run icu-smar
  missmdp run icu-smar --steps 100000 --seed 7 -o big
  missmdp run ward/ "visits/*.csv" --episode patient --step hour -o ward-run
  missmdp run ward.mmdp log.parquet --unknown-truth --learner amcar --learner asmar
  missmdp run ward.mmdp log.parquet --learner auto

\b
FOLDER will contain:
  report.html         the results, for people
  policy.mmpolicy     the recommended policy
  certified.mmpolicy  the policy graph that the certificate is for, if there is one
  learners/LEARNER/   what each learner learned (.mmdp), its policy, and the bounds on its value over time
  tables/             the numbers, as .csv and .parquet
  run.json            everything, for programs
  log.parquet         the log, if it was simulated

{MDP_HELP} {DATA_HELP}
"""


@click.command(epilog=RUN_HELP)
@click.argument("model")
@click.argument("data", nargs=-1)
@run_options
@table_options
@quiet_option()
def run(
    model: str, data: tuple[str, ...], folder: Path, overwrite: bool, quiet: bool, **options: Any
) -> None:
    """Learn how values go missing, plan, and evaluate the policy.

    The log is read from DATA, or simulated from MODEL without DATA. A diagnosis explains why values are missing. Each
    learner then learns how they go missing, with guaranteed bounds or, for em, approximate intervals. The learner that
    predicts held-out data best is recommended. A policy is computed for each learned model. If it is known how values
    go missing, policies are evaluated in the true model, next to optimal, prior and random. If MODEL is only an MDP, or
    with --unknown-truth, they are evaluated in one world per learner, in which that learner is right. At the end, a
    certificate bounds how far from optimal the policy can be.

    Results are written to FOLDER as soon as they are available. Ctrl-C while solving continues with the best policy so
    far, and leaves out a diagnosis or certificate that it interrupts; a second Ctrl-C, or one at another time, ends the
    command.
    """
    from missmdp.cli.failures import Terminated
    from missmdp.cli.files import load_mdp
    from missmdp.cli.printing_run import print_kept, print_run, print_shortly, with_what_is_kept
    from missmdp.experiments.run.folder import RunFolder
    from missmdp.experiments.run.pipeline import run as run_all

    check_usage(model, data, folder, options)
    settings, table = run_settings(options), table_arguments(options)
    mdp, known = load_mdp(model)
    if known is None and not data:
        raise click.UsageError(
            f"{model} does not say how values go missing, so nothing can be simulated; give DATA"
        )
    # That simulating was interrupted is said below the table.
    logging.getLogger("missmdp.evaluation").addHandler(logging.NullHandler())
    where = RunFolder(folder)
    with held_folder(folder):
        before = where.made()
        try:
            result = run_all(
                mdp if known is None else known,
                list(data) or None,
                folder,
                settings,
                name=model,
                table=table if data else None,
                overwrite=overwrite,
                progress=not quiet,
            )
        except (KeyboardInterrupt, Terminated):
            print_kept(where, before)
            raise
        except (MissMDPError, OSError) as error:
            raise with_what_is_kept(error, where, before) from error
    (print_shortly if quiet else print_run)(result)
    if result.report_failed is not None:
        raise click.ClickException(f"the report could not be written: {result.report_failed}")


REPORT_HELP = """\b
Examples:
  missmdp run icu-smar -o ward         # writes ward/report.html, among others
  missmdp report ward                  # writes it again, from ward/run.json alone
  missmdp report results               # a folder of `missmdp reproduce`
  missmdp report --schema              # what run.json contains, as a JSON schema
"""


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the JSON schema of run.json and leave."""
    if wanted and not context.resilient_parsing:
        from missmdp.experiments.record.coding import record_schema

        echo(record_schema(), nl=False)
        context.exit()


@click.command(epilog=REPORT_HELP)
@click.argument(
    "folder", metavar="RUN", type=click.Path(exists=True, file_okay=False, readable=True, path_type=Path)
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of run.json and stop.",
)
def report(folder: Path) -> None:
    """Write the report of a run as one HTML page that works offline.

    RUN is a folder written by `missmdp run` or `missmdp reproduce`. Nothing is computed again; the same folder always
    gives the same page.
    """
    from missmdp.experiments.record.coding import RUN_FILE
    from missmdp.experiments.report.write import write_report
    from missmdp.experiments.reproduce.config import is_reproduction

    if (folder / RUN_FILE).exists():
        with held_folder(folder):
            path = write_report(folder)
    elif is_reproduction(folder):
        from missmdp.experiments.reproduce.page import write_page

        path = write_page(folder)
    else:
        raise click.UsageError(
            f"{folder} is not a folder of `missmdp run` (it has no {RUN_FILE}) or of `missmdp reproduce` "
            "(it has no config.toml)"
        )
    echo(str(path))

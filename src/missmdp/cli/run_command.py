"""The command `run`: from a model and data to a policy, and what it is worth."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from missmdp.cli.options import DATA_HELP, MDP_HELP, table_arguments, table_options
from missmdp.cli.run_options import check_usage, run_options, run_settings

__all__ = ["run"]

EPILOG = f"""\b
Examples:
  missmdp run icu-smar
  missmdp run icu-smar --steps 100000 --seed 7 -o big
  missmdp run ward/ "visits/*.csv" --episode patient --step hour -o ward-run
  missmdp run ward.mmdp log.parquet --unknown-truth --learner amcar --learner asmar
  missmdp run ward.mmdp log.parquet --learner auto

\b
FOLDER gets
  report.html        what was found, for people
  policy.mmpolicy    the policy that is recommended
  certified.mmpolicy the policy graph that the certificate is for, if there is one
  learners/LEARNER/  what it learned (.mmdp), its policy, and the bounds on its value over time
  tables/            the figures, as .csv and .parquet
  run.json           all of it, for programs
  log.parquet        the log, if it was simulated

{MDP_HELP} {DATA_HELP}
"""


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("data", nargs=-1)
@run_options
@table_options
@click.option("-q", "--quiet", is_flag=True, help="Print one line in the end, and no progress.")
def run(
    model: str, data: tuple[str, ...], folder: Path, overwrite: bool, quiet: bool, **options: Any
) -> None:
    """Learn how values go missing, plan, and say what the policy is worth: all in one.

    With DATA, these are read; without, MODEL is simulated. A diagnosis says why values are missing. Each learner learns
    how they go missing, with bounds or, for em, intervals that are no guarantee; one is recommended by how well it
    predicts what it has not seen. What each learned is solved. Where it is known how values go missing, policies are
    evaluated in the true model, beside optimal, prior and random. Where MODEL is an MDP only, or with --unknown-truth,
    they are evaluated in a world for each learner, in which that one is right. At last a certificate says how far from
    optimal the policy can be.

    Everything is written to FOLDER as soon as it is there. Ctrl-C while solving goes on with the best policy so far; a
    second one, or one elsewhere, ends the command.
    """
    from missmdp.cli.failures import Terminated
    from missmdp.cli.models import load_mdp
    from missmdp.cli.printing_run import print_kept, print_run, print_shortly, with_what_is_kept
    from missmdp.errors import MissMDPError
    from missmdp.experiments.run.folder import RunFolder
    from missmdp.experiments.run.pipeline import run as run_all

    check_usage(model, data, folder, options)
    settings, table = run_settings(options), table_arguments(options)
    mdp, known = load_mdp(model)
    if known is None and not data:
        raise click.UsageError(
            f"{model} does not say how values go missing, so that nothing can be simulated; give DATA"
        )
    # That simulating was interrupted is said below the table.
    logging.getLogger("missmdp.evaluation").addHandler(logging.NullHandler())
    where = RunFolder(folder)
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
        raise click.ClickException(f"there is no report: {result.report_failed}")

"""The command `missmdp learn`."""

from __future__ import annotations

import glob
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import AnswerIsNo
from missmdp.cli.learn_options import (
    bootstrap_draws,
    check_learner_options,
    learner_options,
    make_learner,
)
from missmdp.cli.options import DATA_HELP, MDP_HELP, Whole, table_arguments, table_options

if TYPE_CHECKING:
    from missmdp.learn.base import Estimator
    from missmdp.learn.bounds import Bound

__all__ = ["learn"]

EPILOG = f"""\b
Examples:
  missmdp learn icu-smar log.parquet
  missmdp learn ward/ "visits/*.csv" --learner amcar --episode patient --step hour -o learned.mmdp
  missmdp learn predator-smar log.csv --learner aimi --block x,y --assume smar
  missmdp learn icu-mnar-unid log.parquet --learner em
  missmdp learn models.py:ward log.csv --bins temperature=36.5,37.5,38.5 -o table.csv

{MDP_HELP} {DATA_HELP}
"""

_SUFFIXES = (".mmdp", ".csv", ".parquet", ".pq")


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@learner_options
@table_options
@click.option(
    "--validate/--no-validate",
    default=True,
    show_default=True,
    help="Hold every step against the model. Without it files are counted but never loaded, except for em.",
)
@click.option("--strict", is_flag=True, help="Stop if the log does not fit the model, rather than say so.")
@click.option("--most", type=Whole(min=0), default=20, show_default=True, help="Groups to list.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="An .mmdp file for the model with what was learned, or .csv or .parquet for the table; repeat.",
)
def learn(model: str, data: tuple[str, ...], outputs: tuple[Path, ...], **options: Any) -> None:
    """Learn from a log how values go missing, and how sure that is.

    Prints the learned probabilities with intervals that hold all at once with the confidence given, if what the
    learner assumes is true. Where the data speak against that, it says so. em (DynamicsEM) prints also the m-graph that
    it found; its intervals come from a bootstrap, and are no guarantee.
    """
    from missmdp.cli.models import load_mdp
    from missmdp.cli.output import check_outputs
    from missmdp.cli.printing_learned import print_learned
    from missmdp.data.counts import ObservationCounts
    from missmdp.data.dataset import Dataset
    from missmdp.errors import AssumptionWarning
    from missmdp.learn.table import write_learned
    from missmdp.model.missmdp import MissMDP

    check_learner_options(options)
    intervals = options["learner"].lower() != "em" or bootstrap_draws(options) > 0
    for output in outputs:
        if output.suffix.lower() != ".mmdp" and not intervals:
            raise click.UsageError(
                f"{output}: without intervals (--draws) there is no table, only an .mmdp file"
            )
        if output.suffix.lower() not in _SUFFIXES:
            raise click.UsageError(f"{output}: what was learned goes to an .mmdp, .csv or .parquet file")
        if output.resolve() in _inputs(data):
            raise click.UsageError(f"{output}: would be written over the log that is read")
    check_outputs(outputs, model=model)
    if options["strict"] and not options["validate"]:
        raise click.UsageError("--strict goes with --validate, not with --no-validate")
    mdp, known = load_mdp(model)
    learner = make_learner(options, mdp, known)
    source = data[0] if len(data) == 1 else list(data)
    table = table_arguments(options)
    if options["validate"]:
        from missmdp.cli.printing_learned import print_report
        from missmdp.data.validation import validate

        log = Dataset.from_table(source, mdp, **table)
        report = validate(log, mdp)
        print_report(report, log.notes)
        if options["strict"] and not report.ok:
            raise AnswerIsNo("the log does not fit the model, and --strict says to stop")
    elif options["learner"].lower() == "em":
        log = Dataset.from_table(source, mdp, **table)
    else:
        log = ObservationCounts.from_table(source, mdp, **table)
    with warnings.catch_warnings():
        # Printed below, as sentences.
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(log)
    bound = _bound(learner, options) if intervals else None
    print_learned(learner, log.n_steps, bound, known, most=options["most"])
    for output in outputs:
        if output.suffix.lower() == ".mmdp":
            name = known.name if known is not None else None
            MissMDP(mdp, learner.missingness_, name=name).save(output)
        elif bound is not None:
            write_learned(bound, mdp.space.features.names, output)
        click.echo(f"Written to {output}")


def _inputs(data: tuple[str, ...]) -> set[Path]:
    """Return the files that DATA stands for."""
    found: set[Path] = set()
    for name in data:
        path = Path(name)
        inside = path.rglob("*") if path.is_dir() else map(Path, glob.glob(name, recursive=True))
        found |= {file.resolve() for file in (path, *inside)}
    return found


def _bound(learner: Estimator, options: dict[str, Any]) -> Bound:
    """Return how sure what was learned is."""
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.learn.em.estimator import DynamicsEM

    if isinstance(learner, DynamicsEM):
        return learner.bound(options["confidence"], draws=bootstrap_draws(options), seed=options["seed"] or 0)
    assert isinstance(learner, MissingnessEstimator)
    return learner.bound(options["confidence"], options["method"] or "auto", behaviour=options["behaviour"])

"""The command `learn`: how values go missing in a log."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from missmdp.cli.failures import AnswerIsNo
from missmdp.cli.options import (
    DATA_HELP,
    FILE,
    MDP_HELP,
    LearnerChoice,
    Whole,
    behaviour_option,
    confidence_option,
    feature_blocks,
    grouped,
    learner_help,
    learner_option,
    learners_without_bound,
    table_arguments,
    table_options,
)
from missmdp.learn.registry import OPTIONS, find_learner, learners, learners_with
from missmdp.words import listed

if TYPE_CHECKING:
    from missmdp.data.counts import ObservationCounts
    from missmdp.data.dataset import Dataset
    from missmdp.learn.base import MissingnessEstimator
    from missmdp.model.mdp import FactoredMDP
    from missmdp.model.missmdp import MissMDP

__all__ = ["bootstrap_draws", "check_learner_options", "learn", "learner_options", "make_learner"]

# Spelled out, since importing them would load numpy for every command.
_METHODS = ("auto", "okamoto", "clopper-pearson", "weissman", "anytime")

_WITHOUT_BOUND = ", ".join(learners_without_bound())

learner_options = grouped(
    click.option(
        "--learner",
        type=LearnerChoice(),
        default="asmar",
        show_default=True,
        help=f"How values go missing. {learner_help()}",
    ),
    confidence_option(
        "Confidence that all intervals hold at once; of each interval where they come from a bootstrap."
    ),
    click.option(
        "--method", type=click.Choice(_METHODS), help="How guaranteed bounds are computed.  [default: auto]"
    ),
    behaviour_option,
    *(learner_option(name) for name in OPTIONS if name != "seed"),
    click.option(
        "--draws",
        type=Whole(min=0),
        help=f"{_WITHOUT_BOUND}: number of bootstrap samples for the intervals; 0 for no intervals.  [default: 100; 0 "
        "for logistic, where each takes long]",
    ),
    click.option(
        "--seed",
        type=Whole(min=0),
        help=f"{_WITHOUT_BOUND}: seed of the bootstrap and of random starts.  [default: 0]",
    ),
)
"""The options that say who learns. Only the first two have defaults: of the others, it is known which were typed."""


def check_learner_options(options: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options that do not go together."""
    drawing = learners_without_bound()
    bounded = tuple(label for label in learners() if label not in drawing)
    meant_for = {name: learners_with(name) for name in OPTIONS}
    meant_for.update(method=bounded, behaviour=bounded, draws=drawing, seed=drawing)
    for name, labels in meant_for.items():
        if options[name] not in (None, ()) and options["learner"] not in labels:
            flag = OPTIONS[name].typed if name in OPTIONS else f"--{name}"
            raise click.UsageError(f"{flag} is for --learner {listed(labels, 'or')}")
    if options["structure"] and options["graph"]:
        raise click.UsageError("give either --structure or --graph: an m-graph is a structure")
    feature_blocks(options["blocks"])


def make_learner(options: dict[str, Any], mdp: FactoredMDP, known: MissMDP | None) -> MissingnessEstimator:
    """Return the learner that was asked for, with options that go together."""
    given = {name: options[name] for name in OPTIONS}
    given["blocks"] = [[*block] for block in feature_blocks(options["blocks"])]
    given["graph"] = _graph(options["graph"], known)
    return find_learner(options["learner"]).make(mdp, **given)


def bootstrap_draws(options: dict[str, Any]) -> int:
    """Return how many logs to draw for intervals that come from a bootstrap."""
    if options["draws"] is not None:
        return options["draws"]
    return 0 if options["structure"] == "logistic" else 100


def _graph(graph: str | None, known: MissMDP | None) -> Any:
    from missmdp.model.mgraph import MissingnessGraph

    if graph is None:
        return None
    if graph != "model":
        return MissingnessGraph.from_dot(Path(graph))
    if known is None:
        raise click.UsageError("--graph model: this model does not say how values go missing")
    return known.mgraph()


LEARN_HELP = f"""\b
Examples:
  missmdp learn icu-smar log.parquet
  missmdp learn ward/ "visits/*.csv" --learner amcar --episode patient --step hour -o learned.mmdp
  missmdp learn predator-smar log.csv --learner aimi --block x,y --assume smar
  missmdp learn icu-mnar-unid log.parquet --learner em
  missmdp learn models.py:ward log.csv --bins temperature=36.5,37.5,38.5 -o table.csv

{MDP_HELP} {DATA_HELP}
"""

_SUFFIXES = (".mmdp", ".csv", ".parquet", ".pq")


@click.command(epilog=LEARN_HELP)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@learner_options
@table_options
@click.option(
    "--validate/--no-validate",
    default=True,
    show_default=True,
    help="Check every step against the model. Without it, files are counted without being loaded, except for em.",
)
@click.option("--strict", is_flag=True, help="Stop if the log does not fit the model; otherwise only say so.")
@click.option(
    "--most", type=Whole(min=0), default=20, show_default=True, help="List at most this many groups."
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    help="An .mmdp file for the model with what was learned, or a .csv or .parquet file for the table; repeat for "
    "more.",
)
def learn(model: str, data: tuple[str, ...], outputs: tuple[Path, ...], **options: Any) -> None:
    """Learn from a log how values go missing, with error bounds.

    Prints the learned probabilities with intervals. If the learner's assumptions are true, all intervals hold at once
    with the given confidence; a warning is printed if the data contradict the assumptions. em (DynamicsEM) also prints
    the m-graph that it found; its intervals come from a bootstrap and are approximate.
    """
    from missmdp.cli.files import check_outputs, is_log, load_mdp, write_all
    from missmdp.cli.printing_results import print_learned
    from missmdp.errors import AssumptionWarning
    from missmdp.learn.table import write_learned
    from missmdp.model.missmdp import MissMDP

    if is_log(model):
        raise click.UsageError(
            f"{model} is a log, not a model; `missmdp learn-model` learns the dynamics too"
        )
    check_learner_options(options)
    intervals = find_learner(options["learner"]).has_bound or bootstrap_draws(options) > 0
    _check_outputs(outputs, data, intervals=intervals)
    check_outputs(outputs, model=model)
    if options["strict"] and not options["validate"]:
        raise click.UsageError("--strict goes with --validate, not with --no-validate")
    mdp, known = load_mdp(model)
    learner = make_learner(options, mdp, known)
    log = _read_log(data, mdp, options, histories=learner.needs_histories)
    with warnings.catch_warnings():
        # Printed below, as sentences.
        warnings.simplefilter("ignore", AssumptionWarning)
        learner.fit(log)
        bound = (
            learner.bound(
                options["confidence"],
                options["method"] or "auto",
                behaviour=options["behaviour"],
                draws=bootstrap_draws(options),
                seed=options["seed"] or 0,
            )
            if intervals
            else None
        )
    print_learned(learner, log.n_steps, bound, known, most=options["most"])

    def write(output: Path) -> None:
        if output.suffix.lower() == ".mmdp":
            name = known.name if known is not None else None
            MissMDP(mdp, learner.missingness_, name=name).save(output)
        elif bound is not None:
            write_learned(bound, mdp.space.features.names, output)

    write_all(dict.fromkeys(outputs, write))


def _check_outputs(outputs: tuple[Path, ...], data: tuple[str, ...], *, intervals: bool) -> None:
    """Raise `click.UsageError` for a file that what is learned cannot go to."""
    from missmdp.cli.files import files_of_data

    for output in outputs:
        if output.suffix.lower() != ".mmdp" and not intervals:
            raise click.UsageError(
                f"{output}: without intervals (--draws) there is no table, only an .mmdp file"
            )
        if output.suffix.lower() not in _SUFFIXES:
            raise click.UsageError(f"{output}: the name must end in .mmdp, .csv or .parquet")
        if output.resolve() in files_of_data(data):
            raise click.UsageError(f"{output}: this would overwrite the log")


def _read_log(
    data: tuple[str, ...], mdp: FactoredMDP, options: dict[str, Any], *, histories: bool
) -> Dataset | ObservationCounts:
    """Return the log, after a word on what is odd about it; or its counts, where nothing needs more."""
    from missmdp.cli.printing_results import print_report
    from missmdp.data.counts import ObservationCounts
    from missmdp.data.dataset import Dataset
    from missmdp.data.validation import validate

    source = data[0] if len(data) == 1 else list(data)
    if not options["validate"] and not histories:
        return ObservationCounts.from_table(source, mdp, **table_arguments(options))
    log = Dataset.from_table(source, mdp, **table_arguments(options))
    if options["validate"]:
        report = validate(log, mdp)
        print_report(report, log.notes)
        if options["strict"] and not report.ok:
            raise AnswerIsNo("the log does not fit the model (--strict)")
    return log

"""The commands about models and logs.

`benchmarks`, `show`, `graph`, `coverage` and `export` take models; `collect`, `describe`, `validate` and `plan-data`
are about logs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from missmdp.cli.failures import as_typed, echo
from missmdp.cli.options import (
    CONFIDENCE,
    DATA_HELP,
    FILE,
    MDP_HELP,
    MODEL_HELP,
    POMDP_HELP,
    LearnerChoice,
    Number,
    Whole,
    confidence_option,
    learner_option,
    seed_option,
    table_arguments,
    table_options,
    threads_option,
)
from missmdp.learn.registry import find_learner

if TYPE_CHECKING:
    from missmdp.learn.base import CountingEstimator

__all__ = [
    "benchmarks",
    "collect",
    "coverage",
    "describe",
    "export",
    "graph",
    "plan_data",
    "show",
    "validate",
]


SHOW_HELP = f"""\b
Examples:
  missmdp show icu-smar
  missmdp show models.py:ward --steps 1000 --graph ward.svg

{MODEL_HELP}
"""
GRAPH_HELP = f"""\b
Examples:
  missmdp graph icu-mnar-unid -o icu.svg

{MODEL_HELP}
"""
COVERAGE_HELP = f"""\b
Examples:
  missmdp coverage predator-mcar --steps 10000

{MODEL_HELP}
"""
BENCHMARKS_HELP = """\b
Examples:
  missmdp benchmarks
"""


@click.command(epilog=BENCHMARKS_HELP)
def benchmarks() -> None:
    """List the benchmarks, the paper's examples, and families of any size."""
    from missmdp.cli.printing import print_benchmarks

    print_benchmarks()


@click.command(epilog=SHOW_HELP)
@click.argument("model")
@click.option("--steps", type=Whole(min=1), help="Also simulate this many observations.")
@seed_option("Seed of the simulation.")
@click.option("--graph", type=FILE, help="Also draw the m-graph to this .svg, .png or .pdf file.")
def show(model: str, steps: int | None, seed: int, graph: Path | None) -> None:
    """Show a model: its size, its type of missingness and its m-graph."""
    from missmdp.cli.files import check_picture, load_model
    from missmdp.cli.printing import print_model, print_simulation

    if graph is not None:
        check_picture(graph)
    loaded = load_model(model)
    mgraph = loaded.mgraph()
    print_model(loaded, mgraph, model)
    if steps is not None:
        from missmdp.data.collect import collect

        print_simulation(loaded, collect(loaded, steps, seed=seed))
    if graph is not None:
        mgraph.draw(graph, title=loaded.name or model)
        echo(f"\nm-graph drawn to {graph}")


@click.command(epilog=GRAPH_HELP)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="An .svg, .png, .pdf or .dot file.  [default: print DOT]",
)
def graph(model: str, output: Path | None) -> None:
    """Draw the m-graph of a model."""
    from missmdp.cli.files import check_picture, check_writable, load_model, print_data
    from missmdp.files import write_atomically

    as_dot = output is not None and output.suffix.lower() in (".dot", ".gv")
    if output is not None:
        (check_writable if as_dot else check_picture)(output)
    loaded = load_model(model)
    mgraph = loaded.mgraph()
    if output is None:
        print_data([mgraph.to_dot().encode()])
    elif as_dot:
        write_atomically(output, mgraph.to_dot().encode())
    else:
        mgraph.draw(output, title=loaded.name or model)
    if output is not None:
        echo(f"m-graph written to {output}")
    for note in mgraph.notes:
        echo(f"Note: {note}", err=True)


@click.command(epilog=COVERAGE_HELP)
@click.argument("model")
@click.option("--steps", type=Whole(min=1), default=100_000, show_default=True, help="Observations in a log.")
@click.option(
    "--visits",
    type=Number(min=0),
    default=10.0,
    show_default=True,
    help="Below this many expected visits, a state is rare.",
)
@click.option(
    "--most", type=Whole(min=0), default=10, show_default=True, help="List at most this many states."
)
def coverage(model: str, steps: int, visits: float, most: int) -> None:
    """List states that random behaviour hardly ever visits."""
    from missmdp.cli.files import load_model
    from missmdp.cli.printing import print_coverage
    from missmdp.data.coverage import behaviour_coverage

    print_coverage(behaviour_coverage(load_model(model)), steps=steps, visits=visits, most=most)


EXPORT_HELP = f"""\b
Examples:
  missmdp export icu-smar icu.pomdpx
  missmdp export tiger.pomdp tiger.pomdpx

{POMDP_HELP} OUT ends in .pomdp (the format of pomdp-solve, which most solvers read) or .pomdpx (the format of APPL, in
which the part that is always observed is separate).
"""


@click.command(epilog=EXPORT_HELP)
@click.argument("model")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--by-features/--as-a-whole",
    default=None,
    help="Whether each feature is a variable of a .pomdpx file.  [default: if the file would be large otherwise]",
)
def export(model: str, out: Path, by_features: bool | None) -> None:
    """Write a model as a .pomdp or .pomdpx file for other solvers."""
    from missmdp.cli.files import check_outputs, load_model_or_pomdp
    from missmdp.interop.model_files import SUFFIXES, write_model
    from missmdp.interop.outgoing import outgoing_pomdp
    from missmdp.interop.pomdpx.writer import writes_by_features

    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise click.UsageError(f"{out}: OUT must end in {' or '.join(SUFFIXES)}")
    if by_features and suffix != ".pomdpx":
        raise click.UsageError(f"{out}: with --by-features, OUT must end in .pomdpx")
    check_outputs([out], model=model)
    loaded = load_model_or_pomdp(model)
    write_model(loaded, out, by_features=by_features)
    if suffix == ".pomdpx" and writes_by_features(loaded, by_features):
        echo(
            f"{loaded.n_states:,} states and {loaded.n_actions:,} actions written to {out}, feature by feature; in the "
            "file, the first action comes before the first observation"
        )
        return
    pomdp = outgoing_pomdp(loaded)
    acts = (
        "; in the file, the first action comes before the first observation" if pomdp.observe_initial else ""
    )
    echo(
        f"{pomdp.n_states:,} states, {pomdp.n_actions:,} actions and {pomdp.n_observations:,} observations "
        f"written to {out}{acts}"
    )
    size = out.stat().st_size
    if size > _LARGE_FILE and suffix == ".pomdp" and writes_by_features(loaded, None):
        echo(f"The file has {size / 1e6:,.0f} MB; as .pomdpx, written feature by feature, it would be small.")


_LARGE_FILE = 50_000_000
"""Bytes of a .pomdp file above which its size is told, if there is a smaller form."""

DESCRIBE_HELP = """\b
Examples:
  missmdp describe log.csv
  missmdp describe visits/ --episode patient --step hour --picture missing.svg
  missmdp describe "2024-*.parquet" --most 20
  missmdp describe log.csv --ignore note --ignore nurse
"""
COLLECT_HELP = f"""\b
Examples:
  missmdp collect icu-smar --steps 10000 -o icu.parquet
  missmdp collect ward.mmdp --steps 500 --seed 7 -o - | head

{MODEL_HELP}
"""
VALIDATE_HELP = f"""\b
Examples:
  missmdp validate icu-smar log.parquet
  missmdp validate ward/ "visits/*.csv" --episode patient --step hour
  missmdp validate icu-smar log.parquet --no-dynamics

{MDP_HELP} {DATA_HELP}
"""


@click.command(epilog=DESCRIBE_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--picture", type=FILE, help="Also draw it to this .svg, .png or .pdf file.")
@click.option(
    "--most", type=Whole(min=0), default=10, show_default=True, help="List at most this many of each kind."
)
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave this column out; repeat for more.")
@table_options
def describe(
    data: tuple[str, ...],
    picture: Path | None,
    most: int,
    ignore: tuple[str, ...],
    **table: Any,
) -> None:
    """Describe what is missing in a log.

    Shows how often each feature is missing, what goes missing together, at which steps, and next to which values of
    other features. No model is needed.

    DATA is one or more CSV or Parquet files, folders of such files, or patterns such as "*.csv", with one row per
    step. The columns are the episode, the step, the action and the features; reward and terminated are left out, and so
    are columns of words that hardly ever recur, such as ids and notes. An empty cell is a missing value.
    """
    from missmdp.cli.files import check_picture
    from missmdp.cli.printing import print_description
    from missmdp.data.description.describe import describe

    if picture is not None:
        check_picture(picture)
    source = data[0] if len(data) == 1 else list(data)
    described = describe(source, ignore=ignore, **table_arguments(table))
    print_description(described, most=most)
    if picture is not None:
        described.draw(picture)
        echo(f"\nDrawn to {picture}")


@click.command(epilog=COLLECT_HELP)
@click.argument("model")
@click.option("-o", "--output", help="A .parquet or .csv file, or - to print CSV.")
@click.option("--steps", type=Whole(min=1), required=True, help="Number of observations.")
@seed_option("Seed of the simulation.")
@click.option("--horizon", type=Whole(min=1), help="Maximum number of observations per episode.")
@threads_option
def collect(
    model: str, output: str | None, steps: int, seed: int, horizon: int | None, threads: int | None
) -> None:
    """Simulate a log with random actions and write it to a file.

    A Parquet file also records that the actions did not depend on the observations, which makes the bounds of
    `missmdp learn` tighter; for a CSV file, pass --behaviour blind to `missmdp learn`.
    """
    from missmdp.cli.files import STANDARD_OUTPUT, dataset_writer, load_model
    from missmdp.cli.printing import print_collected
    from missmdp.data.collect import collect

    write = dataset_writer(output)
    dataset = collect(load_model(model), steps, seed=seed, horizon=horizon, threads=threads)
    write(dataset)
    # What is printed about a log must not get into a log that is printed.
    print_collected(dataset, output, stderr=output == STANDARD_OUTPUT)


@click.command(epilog=VALIDATE_HELP)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--dynamics/--no-dynamics",
    default=True,
    show_default=True,
    help="Also test whether the probabilities of MODEL fit the log.",
)
@click.option(
    "--level", type=CONFIDENCE, default=0.01, show_default=True, help="Significance level of these tests."
)
@threads_option
@table_options
def validate(
    model: str, data: tuple[str, ...], dynamics: bool, level: float, threads: int | None, **table: Any
) -> None:
    """Check whether a log fits a model.

    Looks for values that no feature has, for steps that are impossible in the model, and for states that were never
    visited. Then tests whether the transition probabilities fit the log, whatever made values go missing. The exit code
    is 1 if the log contains something unknown or impossible, or if a test rejects.
    """
    from missmdp.cli.files import load_mdp
    from missmdp.data.dataset import Dataset
    from missmdp.data.validation import validate
    from missmdp.errors import MissMDPError
    from missmdp.learn.dynamics.check import check_dynamics

    mdp, _ = load_mdp(model)
    source, options = data[0] if len(data) == 1 else list(data), table_arguments(table)
    report = validate(source, mdp, **options)
    echo(as_typed(report.describe()))
    fits = report.ok
    if dynamics and not (report.unknown_values or report.broken or report.impossible_observations.count):
        try:
            check = check_dynamics(
                Dataset.from_table(source, mdp, **options), mdp, level=level, threads=threads
            )
        except MissMDPError as error:
            echo(as_typed(f"The dynamics were not checked: {error}"))
        else:
            echo(check.describe())
            fits = fits and not check.rejected
    sys.exit(0 if fits else 1)


PLAN_HELP = f"""\b
Examples:
  missmdp plan-data icu-smar --epsilon 10
  missmdp plan-data predator-mcar --epsilon 0.05 --relative --learner amcar --timeout 0
  missmdp plan-data guess.mmdp --epsilon 2 --confidence 0.9 --always ward

{MODEL_HELP} Its missingness function is your expectation: the amount of data depends on it.
"""


@click.command("plan-data", epilog=PLAN_HELP)
@click.argument("model")
@click.option(
    "--epsilon",
    type=Number(min=0.0, min_open=True),
    required=True,
    help="How far from optimal the policy may be, in units of value.",
)
@click.option(
    "--relative",
    is_flag=True,
    help="Epsilon is a fraction of the difference in value between the best and the worst policy.",
)
@confidence_option("Probability with which the certificate must hold.")
@click.option(
    "--learner",
    type=LearnerChoice(only_bounded=True),
    default="asmar",
    show_default=True,
    help="The learner to use.",
)
@learner_option("always_observed")
@click.option(
    "--solver-gap",
    type=Number(min=0.0),
    default=0.0,
    show_default=True,
    help="Part of epsilon to set aside for the solver.",
)
@click.option(
    "--timeout",
    type=Number(min=0.0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit per model that is solved; 0 solves none and leaves out the sharpest answer.",
)
def plan_data(
    model: str,
    epsilon: float,
    relative: bool,
    confidence: float,
    learner: str,
    always_observed: tuple[str, ...],
    solver_gap: float,
    timeout: float,
) -> None:
    """Estimate how much data it takes to certify a policy.

    A policy is certified if, with the given confidence, it is within epsilon of the best policy. The estimate assumes
    that actions in the log are random and that values go missing as in the model. The exit code is 1 if no known number
    of samples is enough.
    """
    from missmdp.cli.failures import AnswerIsNo
    from missmdp.cli.files import load_model
    from missmdp.evaluation.certificate.plan_data import plan_data

    loaded = load_model(model)
    made = cast(
        "CountingEstimator", find_learner(learner).make(loaded.mdp, always_observed=list(always_observed))
    )
    found = plan_data(
        loaded,
        epsilon,
        confidence,
        learner=made,
        relative=relative,
        solver_gap=solver_gap,
        timeout=timeout,
    )
    echo(found.describe())
    if found.samples is None:
        raise AnswerIsNo("no known number of samples is enough")

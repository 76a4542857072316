"""The commands about models and logs.

`benchmarks`, `show`, `graph`, `coverage` and `export` take models; `collect`, `describe`, `validate` and `plan-data`
are about logs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from missmdp.cli.failures import as_typed
from missmdp.cli.options import DATA_HELP, MDP_HELP, MODEL_HELP, Number, Whole, table_arguments, table_options

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


@click.command()
def benchmarks() -> None:
    """List the benchmarks and the paper's examples."""
    from missmdp.cli.printing import print_benchmarks

    print_benchmarks()


@click.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option("--steps", type=Whole(min=1), help="Also simulate this many observations.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Seed of the simulation.")
@click.option("--graph", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the m-graph here.")
def show(model: str, steps: int | None, seed: int, graph: Path | None) -> None:
    """Show a model: its size, its type of missingness and why, its m-graph; optionally simulate it."""
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
        click.echo(f"\nm-graph drawn to {graph}")


@click.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An .svg, .png, .pdf or .dot file; without it, DOT is printed.",
)
def graph(model: str, output: Path | None) -> None:
    """Draw the m-graph of a model."""
    from missmdp.cli.files import check_picture, check_writable, load_model
    from missmdp.model.archive import write_atomically

    as_dot = output is not None and output.suffix.lower() in (".dot", ".gv")
    if output is not None:
        (check_writable if as_dot else check_picture)(output)
    loaded = load_model(model)
    mgraph = loaded.mgraph()
    if output is None:
        click.echo(mgraph.to_dot(), nl=False)
    elif as_dot:
        write_atomically(output, mgraph.to_dot().encode())
    else:
        mgraph.draw(output, title=loaded.name or model)
    if output is not None:
        click.echo(f"m-graph written to {output}")
    for note in mgraph.notes:
        click.echo(f"Note: {note}", err=True)


@click.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option("--steps", type=Whole(min=1), default=100_000, show_default=True, help="Size of a dataset.")
@click.option("--visits", type=Number(min=0), default=10.0, show_default=True, help="What counts as rare.")
@click.option("--most", type=Whole(min=0), default=10, show_default=True, help="How many states to list.")
def coverage(model: str, steps: int, visits: float, most: int) -> None:
    """Say which states uniformly random behaviour would hardly ever visit."""
    from missmdp.cli.files import load_model
    from missmdp.cli.printing import print_coverage
    from missmdp.data.coverage import behaviour_coverage

    print_coverage(behaviour_coverage(load_model(model)), steps=steps, visits=visits, most=most)


EXPORT_HELP = (
    "MODEL is a benchmark's name, an .mmdp file, module:function, or a .pomdp or .pomdpx file. OUT ends in .pomdp "
    "(the format of pomdp-solve, read by most solvers) or .pomdpx (the format of APPL, with what is always observed "
    "split off)."
)


@click.command(epilog=EXPORT_HELP)
@click.argument("model")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def export(model: str, out: Path) -> None:
    """Write a model as a .pomdp or .pomdpx file that other solvers read, or convert one into the other."""
    from missmdp.cli.files import check_outputs, load_model_or_pomdp
    from missmdp.interop.model_files import SUFFIXES, write_model
    from missmdp.interop.outgoing import outgoing_pomdp

    if out.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{out}: OUT must end in {' or '.join(SUFFIXES)}")
    check_outputs([out], model=model)
    loaded = load_model_or_pomdp(model)
    write_model(loaded, out)
    pomdp = outgoing_pomdp(loaded)
    acts = "; the file acts first, without the model's first observation" if pomdp.observe_initial else ""
    click.echo(
        f"{pomdp.n_states:,} states, {pomdp.n_actions:,} actions and {pomdp.n_observations:,} observations "
        f"written to {out}{acts}"
    )


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

{MDP_HELP} {DATA_HELP}
"""


@click.command(epilog=DESCRIBE_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Also draw an .svg, .png or .pdf."
)
@click.option(
    "--most", type=Whole(min=0), default=10, show_default=True, help="How many of each kind to list."
)
@click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; repeat.")
@table_options
def describe(
    data: tuple[str, ...],
    picture: Path | None,
    most: int,
    ignore: tuple[str, ...],
    **table: Any,
) -> None:
    """Describe what is missing in a log.

    How often features are missing, together with what, at which steps, and beside which values of others. No
    model is needed.

    DATA is one or more CSV or Parquet files, folders of these, or patterns such as "*.csv", with one row per
    step. Columns are the episode, the step, the action, and the features; reward and terminated are left out.
    Words that hardly ever recur, such as ids and notes, are left out as well. An empty cell is a missing value.
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
        click.echo(f"\nDrawn to {picture}")


@click.command(epilog=COLLECT_HELP)
@click.argument("model")
@click.option("-o", "--output", help="A .parquet or .csv file, or - to print CSV.")
@click.option("--steps", type=Whole(min=1), required=True, help="How many observations.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Seed of the simulation.")
@click.option("--horizon", type=Whole(min=1), help="The most observations per episode.")
@click.option("--threads", type=Whole(min=1), help="By default one per core; the result is the same.")
def collect(
    model: str, output: str | None, steps: int, seed: int, horizon: int | None, threads: int | None
) -> None:
    """Simulate a log under random actions, and write it to a file.

    Parquet files also say that behaviour was blind, which makes the bounds of `missmdp learn` tighter; for CSV files
    tell it with --behaviour blind.
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
@table_options
def validate(model: str, data: tuple[str, ...], **table: Any) -> None:
    """Say whether a log fits a model.

    Values that no feature has, steps that the model cannot make, states that were never visited. Ends with code 1
    if something in the log is impossible or unknown.
    """
    from missmdp.cli.files import load_mdp
    from missmdp.data.validation import validate

    mdp, _ = load_mdp(model)
    report = validate(data[0] if len(data) == 1 else list(data), mdp, **table_arguments(table))
    click.echo(as_typed(report.describe()))
    sys.exit(0 if report.ok else 1)


PLAN_HELP = f"""\b
Examples:
  missmdp plan-data icu-smar --epsilon 10
  missmdp plan-data predator-mcar --epsilon 0.05 --relative --learner amcar --timeout 0
  missmdp plan-data guess.mmdp --epsilon 2 --confidence 0.9 --always ward

{MODEL_HELP} Its missingness function is what you expect; how much data it takes depends on it.
"""


@click.command("plan-data", epilog=PLAN_HELP)
@click.argument("model")
@click.option(
    "--epsilon",
    type=Number(min=0.0, min_open=True),
    required=True,
    help="How far from optimal a policy may be, in units of value.",
)
@click.option(
    "--relative",
    is_flag=True,
    help="Epsilon is a share of the value of the best minus that of the worst controller.",
)
@click.option(
    "--confidence",
    type=Number(min=0.0, max=1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="The probability with which it is to hold.",
)
@click.option(
    "--learner",
    type=click.Choice(["amcar", "asmar", "aimi"], case_sensitive=False),
    default="asmar",
    show_default=True,
)
@click.option(
    "--always",
    "always_observed",
    multiple=True,
    metavar="FEATURE",
    help="Known to be always observed; repeat.",
)
@click.option(
    "--solver-gap", type=Number(min=0.0), default=0.0, show_default=True, help="Set aside for the solver."
)
@click.option(
    "--timeout",
    type=Number(min=0.0),
    default=30.0,
    show_default=True,
    help="Seconds for each model that is solved; with 0 none is, and the sharpest answer is left out.",
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
    """Say how much data it takes to certify a policy.

    That is, until with the confidence given the policy for what is learned is within epsilon of the best policy, if
    actions in the log are random and values go missing as in the model. Ends with code 1 if no number of samples that
    is known would do.
    """
    from missmdp.cli.failures import AnswerIsNo
    from missmdp.cli.files import load_model
    from missmdp.evaluation.certificate.plan_data import plan_data
    from missmdp.learn.aimi import AIMI
    from missmdp.learn.asmar import AMCAR, AsMAR

    loaded = load_model(model)
    made = {"amcar": AMCAR, "asmar": AsMAR, "aimi": AIMI}[learner.lower()](
        always_observed=list(always_observed) or None
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
    click.echo(found.describe())
    if found.samples is None:
        raise AnswerIsNo("no number of samples that is known is enough")

"""The command `missmdp`: parsing and printing only."""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path

import click

from missmdp._version import __version__
from missmdp.errors import MissMDPError

__all__ = ["cli", "main"]

MODEL_HELP = "MODEL is a benchmark's name, an .mmdp file, or module:function."
DATA_HELP = """\b
Examples:
  missmdp describe log.csv
  missmdp describe visits/ --episode patient --step hour --picture missing.svg
  missmdp describe "2024-*.parquet" --most 20
"""
COLLECT_HELP = f"""\b
Examples:
  missmdp collect icu-smar --steps 10000 -o icu.parquet
  missmdp collect ward.mmdp --steps 500 --seed 7 -o - | head

{MODEL_HELP}
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="missmdp")
def cli() -> None:
    """Decisions when part of the state goes missing.

    MODEL is always one of: a benchmark's name (see `missmdp benchmarks`), an .mmdp file, or module:function,
    a function without arguments that returns a MissMDP.

    Commands that find out how values go missing also take an MDP: module:function that returns a FactoredMDP, or
    a folder with the tables transitions, rewards, initial and optionally terminal (.csv or .parquet), and
    optionally discount.txt. Tables have one column per feature; transitions also action, next_<feature> and
    probability, rewards also action and reward, initial also probability.
    """


@cli.command()
def benchmarks() -> None:
    """List the benchmarks and the paper's examples."""
    from missmdp.cli.printing import print_benchmarks

    print_benchmarks()


@cli.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option("--steps", type=click.IntRange(min=1), help="Also simulate this many observations.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulation."
)
@click.option("--graph", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the m-graph here.")
def show(model: str, steps: int | None, seed: int, graph: Path | None) -> None:
    """Show a model: its size, its type of missingness and why, its m-graph; optionally simulate it."""
    from missmdp.cli.models import load_model
    from missmdp.cli.printing import print_model, print_simulation

    loaded = load_model(model)
    mgraph = loaded.mgraph()
    print_model(loaded, mgraph, model)
    if steps is not None:
        from missmdp.data.collect import collect

        print_simulation(loaded, collect(loaded, steps, seed=seed))
    if graph is not None:
        mgraph.draw(graph, title=loaded.name or model)
        click.echo(f"\nm-graph drawn to {graph}")


@cli.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An .svg, .png, .pdf or .dot file; without it, DOT is printed.",
)
def graph(model: str, output: Path | None) -> None:
    """Draw the m-graph of a model."""
    from missmdp.cli.models import load_model
    from missmdp.model.archive import write_atomically

    loaded = load_model(model)
    mgraph = loaded.mgraph()
    if output is None:
        click.echo(mgraph.to_dot(), nl=False)
    elif output.suffix.lower() in (".dot", ".gv"):
        write_atomically(output, mgraph.to_dot().encode())
    else:
        mgraph.draw(output, title=loaded.name or model)
    if output is not None:
        click.echo(f"m-graph written to {output}")
    for note in mgraph.notes:
        click.echo(f"Note: {note}", err=True)


@cli.command(epilog=MODEL_HELP)
@click.argument("model")
@click.option(
    "--steps", type=click.IntRange(min=1), default=100_000, show_default=True, help="Size of a dataset."
)
@click.option(
    "--visits", type=click.FloatRange(min=0), default=10.0, show_default=True, help="What counts as rare."
)
@click.option(
    "--most", type=click.IntRange(min=0), default=10, show_default=True, help="How many states to list."
)
def coverage(model: str, steps: int, visits: float, most: int) -> None:
    """Say which states uniformly random behaviour would hardly ever visit."""
    from missmdp.cli.models import load_model
    from missmdp.cli.printing import print_coverage
    from missmdp.data.coverage import behaviour_coverage

    print_coverage(behaviour_coverage(load_model(model)), steps=steps, visits=visits, most=most)


@cli.command(epilog=DATA_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Also draw an .svg, .png or .pdf."
)
@click.option(
    "--most", type=click.IntRange(min=0), default=10, show_default=True, help="How many of each kind to list."
)
@click.option("--episode", default="episode", show_default=True, help="Column of the episode.")
@click.option("--step", default="step", show_default=True, help="Column of the step.")
@click.option("--action", default="action", show_default=True, help="Column of the action.")
@click.option("--per-file", is_flag=True, help="Each file numbers its own episodes.")
def describe(
    data: tuple[str, ...],
    picture: Path | None,
    most: int,
    episode: str,
    step: str,
    action: str,
    per_file: bool,
) -> None:
    """Describe what is missing in a log.

    How often features are missing, together with what, at which steps, and beside which values of others. No
    model is needed.

    DATA is one or more CSV or Parquet files, folders of these, or patterns such as "*.csv", with one row per
    step. Columns are the episode, the step, the action, and the features; reward and terminated are left out.
    An empty cell is a missing value.
    """
    from missmdp.cli.printing_data import print_description
    from missmdp.data.describe import describe
    from missmdp.model.picture import check_picture_name

    if picture is not None:
        check_picture_name(picture)
    source = data[0] if len(data) == 1 else list(data)
    described = describe(source, episode=episode, step=step, action=action, per_file=per_file)
    print_description(described, most=most)
    if picture is not None:
        described.draw(picture)
        click.echo(f"\nDrawn to {picture}")


@cli.command(epilog=COLLECT_HELP)
@click.argument("model")
@click.option("-o", "--output", help="A .parquet or .csv file, or - to print CSV.")
@click.option("--steps", type=click.IntRange(min=1), required=True, help="How many observations.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulation."
)
@click.option("--horizon", type=click.IntRange(min=1), help="The most observations per episode.")
@click.option(
    "--threads", type=click.IntRange(min=1), help="By default one per core; the result is the same."
)
def collect(
    model: str, output: str | None, steps: int, seed: int, horizon: int | None, threads: int | None
) -> None:
    """Simulate a log under random actions, and write it to a file."""
    from missmdp.cli.models import load_model
    from missmdp.cli.output import STANDARD_OUTPUT, dataset_writer
    from missmdp.cli.printing_data import print_collected
    from missmdp.data.collect import collect

    write = dataset_writer(output)
    dataset = collect(load_model(model), steps, seed=seed, horizon=horizon, threads=threads)
    write(dataset)
    # What is printed about a log must not get into a log that is printed.
    print_collected(dataset, output, stderr=output == STANDARD_OUTPUT)


def _as_typed(message: str) -> str:
    """Return a message in which arguments that a Python user would pass are options that one can type."""
    return re.sub(
        r"\bpass (episode|step|action)='([^']*)'",
        lambda found: f"give --{found[1]} {shlex.quote(found[2])}",
        message,
    )


def main() -> None:
    """Run the command line; our own errors are a message, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Bars and dots are not worth failing for where the terminal or file cannot hold them.
            stream.reconfigure(errors="replace")
    try:
        cli(prog_name="missmdp")
    except (MissMDPError, OSError) as error:
        click.echo(f"Error: {_as_typed(str(error))}", err=True)
        sys.exit(1)

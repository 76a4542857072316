"""The command `missmdp`: parsing and printing only."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from missmdp._version import __version__
from missmdp.errors import MissMDPError

__all__ = ["cli", "main"]

MODEL_HELP = "MODEL is a benchmark's name, an .mmdp file, or module:function."


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="missmdp")
def cli() -> None:
    """Decisions when part of the state goes missing.

    MODEL is always one of: a benchmark's name (see `missmdp benchmarks`), an .mmdp file, or module:function,
    a function without arguments that returns a MissMDP.
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


def main() -> None:
    """Run the command line; our own errors are a message, not a traceback."""
    try:
        cli(prog_name="missmdp")
    except (MissMDPError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)

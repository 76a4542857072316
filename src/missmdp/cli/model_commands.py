"""The commands about models: `benchmarks`, `show`, `graph` and `coverage`."""

from __future__ import annotations

from pathlib import Path

import click

from missmdp.cli.options import MODEL_HELP, Number, Whole

__all__ = ["benchmarks", "coverage", "graph", "show"]


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
    from missmdp.cli.models import load_model
    from missmdp.cli.output import check_picture
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
    from missmdp.cli.models import load_model
    from missmdp.cli.output import check_picture, check_writable
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
    from missmdp.cli.models import load_model
    from missmdp.cli.printing import print_coverage
    from missmdp.data.coverage import behaviour_coverage

    print_coverage(behaviour_coverage(load_model(model)), steps=steps, visits=visits, most=most)

"""What the commands print."""

from __future__ import annotations

from itertools import islice

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from missmdp.benchmarks.registry import list_benchmarks, list_examples, load_benchmark
from missmdp.data.coverage import Coverage, behaviour_coverage
from missmdp.data.dataset import Dataset
from missmdp.errors import ModelError
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP

__all__ = [
    "make_console",
    "make_table",
    "print_benchmarks",
    "print_coverage",
    "print_model",
    "print_simulation",
]

PREVIEW_ROWS = 8


def make_console(*, stderr: bool = False) -> Console:
    """Return where to print."""
    # Not highlighted: numbers in states and names are not what the eye should jump to.
    return Console(highlight=False, soft_wrap=True, stderr=stderr)


def make_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table with these columns, without lines."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(escape(column), header_style="bold", justify="left")
    return table


def print_benchmarks() -> None:
    """Print the names of benchmarks and examples with their sizes and types."""
    table = make_table("name", "states", "observations", "type", "can go missing")
    for name in [*list_benchmarks(), *list_examples()]:
        model = load_benchmark(name)
        types = model.types()
        table.add_row(
            name,
            f"{model.n_states:,}",
            f"{model.n_observations:,}",
            types.name,
            ", ".join(types.can_go_missing),
        )
    make_console().print(table)


def print_model(model: MissMDP, graph: MissingnessGraph, name: str) -> None:
    """Print a model's size, its type of missingness, and what drives it."""
    console = make_console()
    mdp = model.mdp
    console.print(f"[bold]{escape(model.name or name)}[/bold]")
    sizes = ", ".join(f"{feature} ({len(values)})" for feature, values in model.features.items())
    size = make_table()
    size.show_header = False
    size.add_column()
    size.add_column()
    size.add_row("features", escape(sizes))
    size.add_row("actions", escape(", ".join(map(str, model.actions))))
    size.add_row(
        "states", f"{model.n_states:,}" + (f", {mdp.terminal.sum():,} terminal" if mdp.terminal.any() else "")
    )
    size.add_row("observations", _observations(model))
    size.add_row("discount", f"{model.discount:g}")
    console.print(size)
    console.print("\n[bold]Missingness[/bold]")
    console.print(escape(str(model.types())))
    console.print("\n[bold]m-graph[/bold]")
    for feature in graph.can_go_missing:
        parents = graph.parents(feature)
        depends = f"depends on {', '.join(parents)}" if parents else "is the same in every state"
        console.print(escape(f"P({feature} missing) {depends}"))
    for a, b in graph.dependent:
        console.print(escape(f"{a} and {b} do not go missing independently"))
    for note in graph.notes:
        console.print(escape(f"Note: {note}"))


def _observations(model: MissMDP) -> str:
    occur = f"{len(model.occurring_observations):,} that occur"
    try:
        return f"{model.n_observations:,} in Z, {occur}"
    except ModelError:
        return f"{occur}; too many in Z to count"


def print_simulation(model: MissMDP, dataset: Dataset) -> None:
    """Print what a simulated log looks like and how often features are missing in it."""
    console = make_console()
    console.print(
        f"\n[bold]{dataset.n_steps:,} simulated observations[/bold] in {dataset.n_episodes:,} episodes "
        f"(uniformly random actions, seed {dataset.seed})"
    )
    names = model.space.features.names
    log = make_table("step", *names, "action")
    for step, (observation, action) in enumerate(islice(dataset.episode(0), PREVIEW_ROWS)):
        values = ["·" if value is None else escape(str(value)) for value in observation]
        log.add_row(str(step), *values, "" if action is None else escape(str(action)))
    console.print(log)
    console.print("(· = missing)\n")
    share = behaviour_coverage(model).share
    rates = make_table("feature", "missing in the log", "expected")
    for name, rate in dataset.missing_rates().items():
        expected = float(share @ model.missingness.missing_rate(name))
        rates.add_row(escape(name), f"{rate:.1%}", f"{expected:.1%}")
    console.print(rates)


def print_coverage(coverage: Coverage, *, steps: int, visits: float, most: int) -> None:
    """Print whether behaviour is fair, and the rarest states."""
    console = make_console()
    console.print(escape(coverage.describe(steps, visits)))
    rare = coverage.rare(steps, visits)
    if not rare or not most:
        return
    features = coverage.model.space.features.names
    table = make_table(
        *features,
        f"expected visits in {steps:,}",
        title=f"\nThe rarest of {len(rare)} states below {visits:g} visits",
    )
    for state, expected in rare[:most]:
        table.add_row(
            *[escape(str(value)) for value in state],
            np.format_float_positional(expected, precision=3, trim="-"),
        )
    console.print(table)

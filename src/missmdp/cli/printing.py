"""How commands print tables and sentences, and what the commands about models and logs print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from missmdp.benchmarks.registry import FAMILIES, list_benchmarks, list_examples, load_benchmark
from missmdp.data.coverage import Coverage, behaviour_coverage
from missmdp.data.dataset import Dataset
from missmdp.data.description.description import FAMILY_LEVEL, Description
from missmdp.errors import ModelError
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP
from missmdp.terminal import Console, make_console
from missmdp.words import count, label, rate_text

__all__ = [
    "Column",
    "cell",
    "columns_width",
    "make_table",
    "print_benchmarks",
    "print_collected",
    "print_columns",
    "print_coverage",
    "print_description",
    "print_labelled",
    "print_model",
    "print_sentence",
    "print_simulation",
]

PREVIEW_ROWS = 8


def make_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table with these columns, without lines."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(cell(column), header_style="bold", justify="left")
    return table


def cell(value: object) -> Text:
    """Return a name or value for a table."""
    return Text(label(value))


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
    for name, family in FAMILIES.items():
        types = family.build(2).types()
        table.add_row(name, family.states, family.observations, types.name, family.can_go_missing)
    make_console().print(table)
    make_console().print("k is the number of machines, as in fleet-4.")


def print_model(model: MissMDP, graph: MissingnessGraph, name: str) -> None:
    """Print a model's size, its type of missingness, and what drives it."""
    console = make_console()
    mdp = model.mdp
    console.print(cell(model.name or name), style="bold")
    sizes = ", ".join(f"{label(feature)} ({len(values)})" for feature, values in model.features.items())
    size = make_table()
    size.show_header = False
    size.add_column()
    size.add_column()
    size.add_row("features", Text(sizes))
    size.add_row("actions", Text(", ".join(map(label, model.actions))))
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
        parents = [*map(label, graph.parents(feature))]
        depends = f"depends on {', '.join(parents)}" if parents else "is the same in every state"
        console.print(escape(f"P({label(feature)} missing) {depends}"))
    for a, b in graph.dependent:
        console.print(escape(f"{label(a)} and {label(b)} do not go missing independently"))
    for note in graph.notes:
        console.print(escape(f"Note: {note}"))


def _observations(model: MissMDP) -> str:
    occur = f"{model.missingness.count_occurring(model.mdp.reachable):,} that occur"
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
        values = ["·" if value is None else cell(value) for value in observation]
        log.add_row(str(step), *values, "" if action is None else cell(action))
    console.print(log)
    console.print("(· = missing)\n")
    share = behaviour_coverage(model).share
    rates = make_table("feature", "missing in the log", "expected")
    for name, rate in dataset.missing_rates().items():
        expected = float(share @ model.missingness.missing_rate(name))
        rates.add_row(cell(name), f"{rate:.1%}", f"{expected:.1%}")
    console.print(rates)


def print_coverage(coverage: Coverage, *, steps: int, visits: float, most: int) -> None:
    """Print whether behaviour is fair, and the rarest states."""
    console = make_console()
    console.print(escape(coverage.describe(steps, visits)))
    n_rare = coverage.count_rare(steps, visits)
    if not n_rare or not most:
        return
    features = coverage.model.space.features.names
    table = make_table(
        *features,
        f"expected visits in {steps:,}",
        title=f"\nThe rarest of {n_rare} states below {visits:g} visits",
    )
    for state, expected in coverage.rare(steps, visits, most):
        table.add_row(
            *map(cell, state),
            np.format_float_positional(expected, precision=3, trim="-") if expected else "not seen",
        )
    console.print(table)


Column = list[str]
"""A title and the cells below it."""
_LABELS = 14
"""Of the words on the left, as in `missmdp solve`."""
_NARROWEST, _WIDEST = 40, 100
"""Columns between which sentences are broken into lines."""


def columns_width(columns: Sequence[Column]) -> int:
    """Return how wide a table will be."""
    return sum(max(cell_len(label(text)) for text in column) for column in columns) + 2 * (len(columns) - 1)


def print_columns(columns: Sequence[Column]) -> None:
    """Print a table without lines: the first column to the left, the others to the right."""
    console = make_console()
    columns = [[*map(label, column)] for column in columns]
    widths = [max(map(cell_len, column)) for column in columns]
    for i, row in enumerate(zip(*columns, strict=True)):
        spaces = [" " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]
        cells = [
            text + space if place == 0 else space + text
            for place, (text, space) in enumerate(zip(row, spaces, strict=True))
        ]
        console.print(escape("  ".join(cells).rstrip()), style="bold" if i == 0 else None)


def print_labelled(heading: str, text: str, *, whole: bool = False) -> None:
    """Print a label on the left, and text beside it: in lines that fit, or whole."""
    console = make_console()
    space = " " * max(2, _LABELS - cell_len(label(heading)))
    for i, line in enumerate([text] if whole else _lines(text, console, _LABELS)):
        console.print(escape(f"{' ' * _LABELS if i else label(heading) + space}{line}"))


def print_sentence(text: str) -> None:
    """Print text in lines that fit."""
    console = make_console()
    for line in _lines(text, console):
        console.print(escape(line))


def _lines(text: str, console: Console, indent: int = 0) -> list[str]:
    """Return lines that are broken between words alone, so names of files stay whole."""
    width = max(_NARROWEST, min(_WIDEST, console.width)) if console.is_terminal else _WIDEST
    return textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False) or [""]


BLOCKS = "▁▂▃▄▅▆▇█"
BAR = 24
"""Letters of the longest bar."""


def print_description(described: Description, *, most: int) -> None:
    """Print how often features are missing, together with what, over steps, and by which values."""
    console = make_console()
    console.print(f"[bold]{described.size}[/bold]\n")
    _, *later = described.over_steps.labels
    steps = f"over steps 0 to {described.lengths[2] - 1}" if later else "at step 0"
    rates = make_table("feature", "missing", "95% interval", steps)
    lower, upper = described.intervals
    for i, name in enumerate(described.features):
        interval = f"{rate_text(float(lower[i]))} to {rate_text(float(upper[i]))}"
        strip = _strip(described.over_steps.rates[:, i].tolist()) if described.missing[i] else ""
        rates.add_row(cell(name), rate_text(float(described.rates[i])), interval, strip)
    console.print(rates)
    if most and described.can_go_missing:
        _print_patterns(described, most)
        _print_associations(described, most)
    for note in described.notes:
        console.print(escape(f"\nNote: {note}"))


def _print_patterns(described: Description, most: int) -> None:
    table = make_table("missing together", "rows", "share", "", title="\nWhat is missing together")
    patterns = described.together(most)
    longest = int(described.pattern_rows[0])
    for number, (names, rows) in enumerate(patterns):
        # No bar for all rarer patterns together, which may dwarf the frequent ones.
        bar = "█" * max(1, round(BAR * rows / longest)) if number < most else ""
        table.add_row(cell(names), f"{rows:,}", rate_text(rows / described.n_rows), bar)
    make_console().print(table)


def _print_associations(described: Description, most: int) -> None:
    console = make_console()
    found = described.strongest()
    if not found:
        console.print("\nNo feature is clearly missing more often at some values of another feature.")
        return
    more = f" (the {most} clearest of {len(found)})" if len(found) > most else ""
    table = make_table(
        "missing",
        "most often where",
        "",
        "least often where",
        "",
        title=f"\nRates by the value of another feature{more}",
    )
    for a in found[:most]:
        most_often, least_often = (f"{a.given} is {value}" for value in (a.highest, a.lowest))
        table.add_row(
            cell(a.feature),
            cell(most_often),
            rate_text(a.highest_rate),
            cell(least_often),
            rate_text(a.lowest_rate),
        )
    console.print(table)
    console.print(
        f"If rows were independent, chance alone would list something in fewer than {FAMILY_LEVEL:.0%} of logs. Rows "
        "of one episode are not independent, so treat this list and the intervals as indications. "
        "Single rows cannot show whether a value hides itself."
    )


def _strip(rates: Iterable[float]) -> str:
    """Return rates as a row of blocks, full ones for always missing."""
    return "".join(BLOCKS[min(int(rate * len(BLOCKS)), len(BLOCKS) - 1)] for rate in rates)


def print_collected(dataset: Dataset, where: str | None, *, stderr: bool = False) -> None:
    """Print what was simulated, where it went, and how often features are missing in it."""
    console = make_console(stderr=stderr)
    console.print(
        f"{count(dataset.n_steps, 'simulated observation')} in {count(dataset.n_episodes, 'episode')} "
        f"(uniformly random actions, seed {dataset.seed})"
        + ("" if stderr else f" written to {escape(str(where))}")
    )
    rates = make_table("feature", "missing")
    for name, rate in dataset.missing_rates().items():
        rates.add_row(cell(name), rate_text(rate))
    console.print(rates)

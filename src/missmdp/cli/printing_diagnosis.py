"""What `missmdp diagnose` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape

from missmdp.cli.printing import make_console, make_table
from missmdp.data.description.description import of, percent
from missmdp.learn.diagnosis.result import Diagnosis
from missmdp.learn.diagnosis.rows import ClassScore, Driver, NestedTest
from missmdp.learn.diagnosis.words import learner_name, p_words, type_words, variable_words

__all__ = ["print_diagnosis"]


def print_diagnosis(found: Diagnosis, notes: Iterable[str] = ()) -> None:
    """Print the type, what drives missingness, how sure that is, and which learner suits."""
    console = make_console()
    if found.blocks:
        console.print(f"[bold]{escape(type_words(found))}[/bold]")
        _print_drivers(console, found)
        _print_classes(console, found.classes)
        _print_tests(console, found.tests, found.own_tests)
        console.print(f"\n[bold]Learner: {learner_name(found.recommended)}[/bold]")
        console.print(escape(found.reason))
    else:
        console.print(f"Nothing is missing in {of(found.n_steps, 'observation')}.")
    for note in (*found.notes, *notes):
        console.print(escape(f"Note: {note}"))


def _print_drivers(console: Console, found: Diagnosis) -> None:
    table = make_table(
        "missing", "rate", "by", "lowest", "highest", "points apart", title="\nWhat drives missingness"
    )
    for block, rate in zip(found.blocks, found.rates, strict=True):
        own: Sequence[Driver | None] = [d for d in found.drivers if d.features == block] or [None]
        for number, driver in enumerate(own):
            first = (escape(", ".join(block)), percent(rate)) if number == 0 else ("", "")
            table.add_row(*first, *(_driver_cells(driver) if driver is not None else ("nothing",)))
    console.print(table)
    if any(driver.interval is not None for driver in found.drivers):
        console.print("All else as it was visited; 95% intervals from a bootstrap, which is no guarantee.")


def _driver_cells(driver: Driver) -> tuple[str, ...]:
    difference = f"{100.0 * driver.difference:.1f}"
    if driver.interval is not None:
        low, high = driver.interval
        difference += f" ({100.0 * low:.1f} to {100.0 * high:.1f})"
    return (
        escape(variable_words(driver)),
        escape(f"{percent(driver.lowest_rate)} at {driver.lowest}"),
        escape(f"{percent(driver.highest_rate)} at {driver.highest}"),
        difference,
    )


def _print_classes(console: Console, classes: Iterable[ClassScore]) -> None:
    table = make_table(
        "class of reasons", "parameters", "score below the best", title="\nWhich reasons explain the log best"
    )
    for row in classes:
        table.add_row(row.name, f"{row.n_parameters:,}", f"{row.behind:,.1f}")
    console.print(table)


def _print_tests(console: Console, chain: Sequence[NestedTest], own: Sequence[NestedTest]) -> None:
    tests = (*chain, *own)
    if not tests:
        return
    table = make_table(
        "tested",
        "against",
        "of",
        "",
        "",
        title=f"\nWhat the log speaks against, at a level of {tests[0].level:.4g}",
    )
    for test in tests:
        names = escape(", ".join(test.features)) if test in own else ""
        verdict = "rejected" if test.rejected else "not rejected"
        table.add_row(test.null, test.alternative, names, p_words(test.p_value), verdict)
    console.print(table)

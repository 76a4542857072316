"""What `missmdp run` prints."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import click

from missmdp.cli.columns import Column, columns_width, print_columns, print_sentence
from missmdp.cli.printing import make_console
from missmdp.cli.wording import what_is_wrong
from missmdp.errors import MissMDPError
from missmdp.experiments.record.record import RunRecord, ValueRecord
from missmdp.experiments.record.summary_text import summary_text
from missmdp.experiments.run.folder import RunFolder
from missmdp.experiments.run.result import RunResult
from missmdp.words import count, error_places, interval_text, with_error

__all__ = ["print_kept", "print_run", "print_shortly", "with_what_is_kept"]

_NOTHING = "–"
_KNOWS = {"optimal": "knows the truth", "prior": "½ everywhere", "random": _NOTHING}
"""What policies that learned nothing take for granted."""
_INTERVALS = 2
"""The place of intervals in the table."""
_IN_SHORT = {
    "amcar": "MCAR",
    "asmar": "simple MAR",
    "aimi": "no self-censoring",
    "em": "a structure, found",
}


def print_run(result: RunResult) -> None:
    """Print one table of what policies are worth, and what that means."""
    run, console = result.record, make_console()
    console.print()
    columns = _columns(run)
    for dispensable in (-1, _INTERVALS):
        # What is assumed is said below, and intervals are in the report too.
        if console.is_terminal and columns_width(columns) > console.width:
            del columns[dispensable]
    print_columns(columns)
    console.print()
    first, *others = summary_text(run)
    for sentence in [f"* {first}", *others, *_troubles(run)]:
        print_sentence(sentence)
    console.print()
    if result.report_failed is None:
        print_sentence(f"Report: {result.report}")
    print_sentence(f"Policy: {result.folder.policy}")
    if result.folder.certified.exists():
        print_sentence(f"Certified: {result.folder.certified}")


def print_shortly(result: RunResult) -> None:
    """Print one line."""
    run = result.record
    where = "in the true model" if run.truth_known else "if it is right"
    click.echo(f"{run.learner.name} is recommended: worth {_value(run.value)} {where}; see {result.report}")


def _columns(run: RunRecord) -> list[Column]:
    """Return the table: values in the truth, or where that is unknown in the world of each learner."""
    first, *others = run.ordered_worlds
    rows = first.rows
    title = "value" if run.truth_known else f"if {run.learner_name(first.world)} is right"
    columns = [
        [
            "policy",
            *(f"{row.policy} *" if row.policy == run.recommended.label else row.policy for row in rows),
        ],
        [title, *map(_value, rows)],
        [f"{100 * run.confidence:g} % interval", *map(_interval, rows)],
    ]
    if run.truth_known:
        columns.append(["normalised", *map(_normalised, rows)])
    columns += [
        [f"if {run.learner_name(world.world)} is right", *(_value(world.row(row.policy)) for row in rows)]
        for world in others
    ]
    return [*columns, ["assumes", *({**_IN_SHORT, **_KNOWS}.get(row.policy, _NOTHING) for row in rows)]]


def _value(row: ValueRecord | None) -> str:
    return _NOTHING if row is None else with_error(row.value, row.stderr)


def _interval(row: ValueRecord) -> str:
    if row.low is None or row.high is None:
        return _NOTHING
    return interval_text((row.low, row.high), error_places(row.stderr, row.value))


def _normalised(row: ValueRecord) -> str:
    if row.normalised is None:
        return _NOTHING
    if row.normalised_stderr == 0.0:
        return f"{row.normalised:g}"
    return with_error(row.normalised, row.normalised_stderr)


def _troubles(run: RunRecord) -> list[str]:
    """Return what should not be overlooked."""
    found = [] if run.data.gaps else ["Nothing is missing in the data, so there was nothing to learn."]
    found += [f"{one.label} could not learn from these data: {one.why.rstrip('.')}." for one in run.skipped]
    stopped = [
        policy
        for policy, search in run.searches.items()
        if search.status in ("interrupted", "timeout", "memory")
    ]
    if stopped:
        found.append(
            f"Not solved to the precision asked for: {', '.join(stopped)}; better policies may exist (--timeout)."
        )
    if run.data.problems:
        respects = count(len(run.data.problems), "respect")
        found.append(f"The log does not fit the model in {respects}: see the report.")
    if run.world.status == "interrupted":
        found.append("Evaluating was interrupted: values are of the episodes that were finished.")
    return found


def print_kept(folder: RunFolder, before: Mapping[str, int]) -> None:
    """Print what an interrupted run leaves, on standard error; `before` is what there was when it began."""
    kept = _kept(folder, before)
    if kept:
        # Whoever reads may have gone.
        with contextlib.suppress(OSError):
            click.echo(f"{kept[0].upper()}{kept[1:]}.", err=True)


def with_what_is_kept(
    error: MissMDPError | OSError, folder: RunFolder, before: Mapping[str, int]
) -> Exception:
    """Return the error with a word on what was made before it happened, if anything was."""
    message = what_is_wrong(error).replace("pass overwrite=True", "give --overwrite")
    kept = _kept(folder, before)
    return click.ClickException(f"{message} ({kept})" if kept else message)


def _kept(folder: RunFolder, before: Mapping[str, int]) -> str:
    made = [name for name, when in folder.made().items() if when != before.get(name)]
    inside = dict.fromkeys(f"{name.partition('/')[0]}/" if "/" in name else name for name in made)
    return f"what was made before is in {folder.path}: {', '.join(inside)}" if made else ""

"""What `run` and `reproduce` print."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from missmdp.cli.failures import echo, what_is_wrong
from missmdp.cli.printing import Column, columns_width, print_columns, print_sentence
from missmdp.errors import MissMDPError
from missmdp.experiments.grid.cell import Cell
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.record.summary_text import summary_text
from missmdp.terminal import make_console
from missmdp.words import count, error_places, interval_text, rough_duration, with_error

if TYPE_CHECKING:
    from missmdp.experiments.record.record import LeftOutRecord, RunRecord, ValueRecord
    from missmdp.experiments.reproduce.runner import Reproduction
    from missmdp.experiments.run.folder import RunFolder
    from missmdp.experiments.run.result import RunResult

__all__ = [
    "GridProgress",
    "print_kept",
    "print_plan",
    "print_reproduction",
    "print_run",
    "print_shortly",
    "with_what_is_kept",
]

_NOTHING = "–"
_KNOWS = {"optimal": "knows the truth", "prior": "½ everywhere", "random": _NOTHING}
"""What policies that learned nothing take for granted."""
_INTERVALS = 2
"""The place of intervals in the table."""


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
        echo(f"Report: {result.report}")
    echo(f"Policy: {result.folder.policy}")
    if result.folder.certified.exists():
        echo(f"Certified: {result.folder.certified}")


def print_shortly(result: RunResult) -> None:
    """Print one line."""
    run = result.record
    where = "in the true model" if run.truth_known else "if it is right"
    echo(f"{run.learner.name} is recommended: worth {_value(run.value)} {where}; see {result.report}")


def _columns(run: RunRecord) -> list[Column]:
    """Return the table: values in the truth, or where that is unknown in the world of each learner."""
    first, *others = run.ordered_worlds
    rows = first.rows
    short = {learner.label: learner.short for learner in run.learners}
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
    return [*columns, ["assumes", *({**short, **_KNOWS}.get(row.policy, _NOTHING) for row in rows)]]


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
    found += [f"{one.label} could not learn from this log: {one.why.rstrip('.')}." for one in run.skipped]
    found += [_left_out(one) for one in run.left_out]
    stopped = [
        policy
        for policy, search in run.searches.items()
        if search.status in ("interrupted", "timeout", "memory")
    ]
    if stopped:
        found.append(
            f"Not solved to the requested precision: {', '.join(stopped)}; a longer --timeout may find better policies."
        )
    exhausted = [policy for policy, search in run.searches.items() if search.status == "exhausted"]
    if exhausted:
        found.append(
            f"Not solved to the requested precision: {', '.join(exhausted)}; the solver has nothing more to try there."
        )
    if run.data.problems:
        respects = count(len(run.data.problems), "respect")
        found.append(f"The log does not fit the model in {respects}: see the report.")
    if run.world.status == "interrupted":
        found.append("The evaluation was interrupted: values are from the finished episodes.")
    return found


def _left_out(one: LeftOutRecord) -> str:
    """Return what was too much, in a sentence."""
    what = {
        "held-out": f"How well {one.label} predicts is not known",
        "policy": f"No policy was found for {one.label}",
        "control variate": "Policies were evaluated without a control variate",
        "sensitivity": "The sensitivity analysis was left out",
    }
    return f"{what[one.part]}: {one.why.rstrip('.')}."


def print_kept(folder: RunFolder, before: Mapping[str, int]) -> None:
    """Print what an interrupted run leaves, on standard error; `before` is what there was when it began."""
    kept = _kept(folder, before)
    if kept:
        # Whoever reads may have gone.
        with contextlib.suppress(OSError):
            echo(f"{kept[0].upper()}{kept[1:]}.", err=True)


def with_what_is_kept(
    error: MissMDPError | OSError, folder: RunFolder, before: Mapping[str, int]
) -> Exception:
    """Return the error with a word on what was made before it happened, if anything was."""
    message = what_is_wrong(error)
    kept = _kept(folder, before)
    return click.ClickException(f"{message} ({kept})" if kept else message)


def _kept(folder: RunFolder, before: Mapping[str, int]) -> str:
    made = [name for name, when in folder.made().items() if when != before.get(name)]
    inside = dict.fromkeys(f"{name.partition('/')[0]}/" if "/" in name else name for name in made)
    return f"finished work is in {folder.path}: {', '.join(inside)}" if made else ""


_EVERY = 30.0
"""Seconds between two lines where there is no terminal."""
_NONE = "–"
_KINDS = {"baseline": "baselines", "learning": "total variation", "value": "policies"}


def print_plan(cells: Sequence[Cell], folder: Path, workers: int | None) -> None:
    """Print what would run, and how long it may take."""
    missing = set(CellStore(folder / "cells").missing(cells))
    columns: list[Column] = [["benchmark"], ["work"], ["cells"], ["finished"], ["core time"]]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((getattr(cell, "benchmark", _NONE), cell.kind), []).append(cell)
    for benchmark in dict.fromkeys(benchmark for benchmark, _ in groups):
        for kind in dict.fromkeys(kind for _, kind in groups):
            own = groups.get((benchmark, kind), [])
            left = [cell for cell in own if cell in missing]
            if own:
                row = (
                    benchmark,
                    _KINDS.get(kind, kind),
                    f"{len(own):,}",
                    f"{len(own) - len(left):,}",
                    rough_duration(_expected(left)) if left else _NONE,
                )
                for column, text in zip(columns, row, strict=True):
                    column.append(text)
    print_columns(columns)
    processes = (os.cpu_count() or 1) if workers is None else workers
    echo()
    done = len(cells) - len(missing)
    print_sentence(f"{len(cells):,} cells, of which {done:,} are finished in {folder}.")
    if missing:
        print_sentence(
            f"The rest may take {rough_duration(_expected(missing) / processes)} with "
            f"{count(processes, 'process', 'processes')}, roughly. Nothing was run."
        )


def _expected(cells: Iterable[Cell]) -> float:
    return math.fsum(cell.expected_seconds() for cell in cells)


class GridProgress:
    """Progress over cells: a calm line on a terminal, a line every half minute elsewhere.

    Called with what `Report` is told. What is left is foreseen from how long cells take, so many small cells do not
    count as much as a few large ones.
    """

    def __init__(self, cells: Sequence[Cell], folder: Path, *, enabled: bool) -> None:
        store = CellStore(folder / "cells")
        self._left = _expected([cell for cell in cells if not store.path(cell).is_file()])
        self._enabled = enabled
        self._done = 0.0
        self._last = time.monotonic()
        self._display: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._enabled and sys.stderr.isatty():
            self._display = Progress(
                BarColumn(bar_width=30),
                TextColumn("{task.description}", markup=False),
                console=make_console(stderr=True, soft_wrap=False),
                transient=True,
            )
            self._task = self._display.add_task("starting", total=self._left)
            self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._display is not None:
            self._display.stop()

    def __call__(self, finished: int, wanted: int, cell: Cell, seconds: float) -> None:
        """Take note of a finished cell."""
        self._done += cell.expected_seconds()
        left = seconds * (self._left - self._done) / self._done
        text = f"{finished:,} of {wanted:,} cells, about {rough_duration(max(0.0, left))} left"
        if finished == wanted:
            text = f"{finished:,} of {wanted:,} cells after {rough_duration(seconds)}"
        if self._display is not None and self._task is not None:
            self._display.update(self._task, completed=self._done, description=f"{text}   {_shown(cell)}")
        elif self._enabled and (finished == wanted or time.monotonic() - self._last >= _EVERY):
            self._last = time.monotonic()
            echo(text, err=True)


def _shown(cell: Cell) -> str:
    size = getattr(cell, "size", 0)
    words = [
        getattr(cell, "benchmark", ""),
        getattr(cell, "policy", ""),
        f"{size:,} steps" if size else "",
    ]
    return " · ".join(word for word in words if word)


def print_reproduction(done: Reproduction) -> None:
    """Print what came out: normalised values at the largest size, and where everything is."""
    if done.status != "finished":
        print_sentence(str(done))
        return
    summary = done.summary()
    rows = summary.values
    if rows:
        columns: list[Column] = [
            ["benchmark"],
            ["learner"],
            ["steps"],
            ["runs"],
            ["ATV"],
            ["normalised value"],
            ["95 % interval"],
        ]
        distances = {(row["benchmark"], row["learner"], row["size"]): row["atv"] for row in summary.learning}
        for benchmark in done.config.benchmarks:
            own = [row for row in rows if row["benchmark"] == benchmark]
            largest = max((row["size"] for row in own), default=0)
            for row in own:
                if row["size"] == largest:
                    _add(columns, row, distances.get((benchmark, row["learner"], largest)))
        print_columns(columns)
        echo()
        print_sentence(
            "1 is the value of the optimal policy, 0 that of the prior's. Intervals are over runs."
        )
        if any(_NONE in column for column in columns):
            print_sentence(f"{_NONE} means that there are too few runs or episodes.")
    print_sentence(
        f"{done.cells:,} cells ({done.found:,} from before) in {rough_duration(done.seconds)}: tables, figures and "
        f"report.html are in {done.folder}"
    )


def _add(columns: list[Column], row: dict[str, object], distance: float | None) -> None:
    low, high = row["normalised_low"], row["normalised_high"]
    cells = (
        str(row["benchmark"]),
        str(row["learner"]),
        f"{row['size']:,}",
        str(row["runs"]),
        _NONE if distance is None else f"{distance:.3f}",
        _signed(row["normalised"]),
        _NONE if low is None else f"[{_signed(low)}, {_signed(high)}]",
    )
    for column, text in zip(columns, cells, strict=True):
        column.append(text)


def _signed(value: object) -> str:
    return f"{value:.2f}".replace("-", "−") if isinstance(value, float) else _NONE

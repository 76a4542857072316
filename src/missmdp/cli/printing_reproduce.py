"""What `missmdp reproduce` prints: the plan, progress, and what came out."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from missmdp.cli.columns import Column, print_columns, print_sentence
from missmdp.experiments.grid.cell import Cell
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.runner import Reproduction
from missmdp.words import count, rough_duration

__all__ = ["GridProgress", "print_plan", "print_reproduction"]

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
    click.echo()
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

    Called with what `Report` is told. What is left is foreseen from how long cells take, so that many small cells do
    not count as much as a few large ones.
    """

    def __init__(self, cells: Sequence[Cell], folder: Path, *, enabled: bool) -> None:
        self._left = _expected(CellStore(folder / "cells").missing(cells))
        self._enabled = enabled
        self._done = 0.0
        self._last = time.monotonic()
        self._display: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._enabled and sys.stderr.isatty():
            self._display = Progress(
                BarColumn(bar_width=30),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
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
            click.echo(text, err=True)


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
        click.echo()
        print_sentence(
            "1 is what the optimal policy is worth, 0 what the prior's is. Intervals are over runs."
        )
        if any(_NONE in column for column in columns):
            print_sentence(f"{_NONE} stands where there are too few runs or episodes to say anything.")
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

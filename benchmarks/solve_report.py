"""What was measured of a solver: tables and a picture of the gap over time, and the traces themselves."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from missmdp.model.picture import INK, check_picture_name, save_picture
from missmdp.plan.trace import Trace, TraceBuilder, TraceRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Measured",
    "draw_gaps",
    "fill_page",
    "gap_after",
    "markdown_tables",
    "plain_tables",
    "read_traces",
    "seconds_to",
    "write_traces",
]

REFERENCE = {
    "icu-smar": 0.082,
    "icu-mnar-id": 0.096,
    "icu-mnar-unid": 0.117,
    "predator-smar": 0.0084,
    "predator-mcar": 0.42,
    "predator scattered": 0.015,
}
"""The relative gap that APPL, the C++ SARSOP, has after 60 s: its factored `.pomdpx` form, one core of a
machine like ours, acting before the first observation. From the notes on the solver's design (SOLVER.md)."""
REFERENCE_SECONDS = 60.0
TIMES = (1, 2, 5, 6, 10, 20, 60, 180)
GAPS = (0.05, 0.01, 0.005, 0.001)
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"

Table = list[list[str]]
"""Rows of cells; the first is the head."""


class Measured(NamedTuple):
    """One model, solved."""

    name: str
    trace: Trace
    limit: float
    """Seconds that the search was given."""
    cpu_share: float
    """CPU time over wall time: below 1 where others used the machine, and all seconds are too long by that."""


def gap_after(trace: Trace, seconds: float) -> float:
    """Return the relative gap at some time, as of the last row until then; NaN before the first."""
    rows = int(np.searchsorted(trace.seconds, seconds, side="right"))
    return float(trace.relative_gap[rows - 1]) if rows else math.nan


def seconds_to(trace: Trace, gap: float) -> float:
    """Return the seconds until the relative gap was at most `gap`; NaN if it never was."""
    reached = np.flatnonzero(trace.relative_gap <= gap)
    return float(trace.seconds[reached[0]]) if len(reached) else math.nan


def gap_table(measured: Sequence[Measured]) -> Table:
    """Return the relative gap after some seconds, and the bounds at the end."""
    longest = max((one.limit for one in measured), default=0.0)
    times = [time for time in TIMES if time <= longest]
    table = [["model", *(f"{time} s" for time in times), "lower", "upper", "gap", "CPU"]]
    for one in measured:
        last = one.trace.rows()[-1]
        gaps = [_percent(gap_after(one.trace, time)) if time <= one.limit else "" for time in times]
        # Rounded outwards, so that they still hold.
        bounds = [f"{math.floor(1e3 * last.lower) / 1e3:.3f}", f"{math.ceil(1e3 * last.upper) / 1e3:.3f}"]
        gap, share = f"{last.upper - last.lower:.3g}", f"{100 * one.cpu_share:.0f} %"
        table.append([one.name, *gaps, *(_signed(bound) for bound in bounds), gap, share])
    return table


def time_table(measured: Sequence[Measured]) -> Table:
    """Return the seconds to some gaps, and to the reference's."""
    table = [
        ["model", *(f"{100 * gap:g} %" for gap in GAPS), "C++ SARSOP, 60 s", "seconds to that gap", "ended"]
    ]
    for one in measured:
        times = [_seconds(seconds_to(one.trace, gap)) for gap in GAPS]
        reference = REFERENCE.get(one.name)
        theirs = (
            ["", ""]
            if reference is None
            else [_percent(reference) + " %", _seconds(seconds_to(one.trace, reference))]
        )
        table.append([one.name, *times, *theirs, _seconds(float(one.trace.seconds[-1]))])
    return table


def plain_tables(measured: Sequence[Measured]) -> str:
    """Return both tables as text."""
    parts: list[str] = []
    for title, table in _titled(measured):
        widths = [max(len(cells[i]) for cells in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
            )
            for cells in table
        ]
        parts.append("\n".join([title, *lines]))
    return "\n\n".join(parts)


def markdown_tables(measured: Sequence[Measured]) -> str:
    """Return both tables in Markdown."""
    parts: list[str] = []
    for title, (head, *rows) in _titled(measured):
        rule = "|---|" + "---:|" * (len(head) - 1)
        lines = [f"| {' | '.join(cells)} |" for cells in ([f"`{row[0]}`", *row[1:]] for row in rows)]
        parts.append("\n".join([f"{title}:", "", f"| {' | '.join(head)} |", rule, *lines]))
    return "\n\n".join(parts)


def fill_page(measured: Sequence[Measured], page: Path) -> Path:
    """Write both tables between the marks of a page in Markdown, and return its path."""
    before, found, rest = page.read_text().partition(BEGIN)
    if not found or END not in rest:
        raise SystemExit(f"{page}: there are no lines {BEGIN} and {END} to write the tables between")
    page.write_text(f"{before}{BEGIN}\n{markdown_tables(measured)}\n{END}{rest.split(END, 1)[1]}")
    return page


def write_traces(measured: Sequence[Measured], path: Path) -> Path:
    """Write all traces to one CSV file, numbers in full, and return its path."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "limit", "cpu_share", *TraceRow._fields])
        for one in measured:
            writer.writerows([one.name, one.limit, one.cpu_share, *row] for row in one.trace.rows())
    return path


def read_traces(path: Path) -> list[Measured]:
    """Return what `write_traces` wrote."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    measured: list[Measured] = []
    for name, group in groupby(rows, key=lambda row: row["model"]):
        builder = TraceBuilder()
        for row in (group := list(group)):
            builder.append(
                **{
                    field: (int if kind == "int" else float)(row[field])
                    for field, kind in TraceRow.__annotations__.items()
                }
            )
        first = group[0]
        measured.append(Measured(name, builder.build(), float(first["limit"]), float(first["cpu_share"])))
    return measured


def draw_gaps(measured: Sequence[Measured], path: Path) -> Path:
    """Draw the relative gap of every model over time, logarithmic both ways, and return the file's path.

    A dot is a search that ended before its time.
    """
    check_picture_name(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    for i, one in enumerate(measured):
        _draw_gap(axes, one, f"C{i % 10}", "--" if one.name.endswith("prior") else ("-", ":")[i // 10 % 2])
    if any(one.name in REFERENCE for one in measured):
        label = f"C++ SARSOP, {REFERENCE_SECONDS:g} s"
        axes.plot([], [], "o", color=INK, markerfacecolor="none", label=label)
    # While there are no vectors but the first ones, the gap is anything.
    axes.set(xscale="log", yscale="log", xlim=(0.05, None), ylim=(None, 200.0))
    axes.set_xlabel("seconds", color=INK)
    axes.set_ylabel("relative gap (%)", color=INK)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(which="both", colors=INK, labelsize=8.5)
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8.5, labelcolor=INK)
    return save_picture(figure, path)


def _draw_gap(axes: Axes, one: Measured, colour: str, line: str) -> None:
    share = 100.0 * one.trace.relative_gap
    drawn = np.isfinite(share) & (share > 0.0)
    axes.step(
        one.trace.seconds[drawn],
        share[drawn],
        where="post",
        color=colour,
        linestyle=line,
        linewidth=1.3,
        label=one.name,
    )
    if drawn.any() and one.trace.relative_gap[-1] <= GAPS[-1]:
        axes.plot(one.trace.seconds[drawn][-1:], share[drawn][-1:], ".", color=colour)
    if one.name in REFERENCE:
        axes.plot(
            [REFERENCE_SECONDS], [100.0 * REFERENCE[one.name]], "o", color=colour, markerfacecolor="none"
        )


def _titled(measured: Sequence[Measured]) -> list[tuple[str, Table]]:
    return [
        ("Relative gap in % after so many seconds, and how the search ended", gap_table(measured)),
        ("Seconds until the relative gap was at most", time_table(measured)),
    ]


def _percent(gap: float) -> str:
    if not math.isfinite(gap):
        return "–" if math.isnan(gap) else "∞"
    if gap >= 1.0:
        return f"{100 * gap:.0f}" if gap < 10.0 else ">1000"
    return f"{100 * gap:.3g}"


def _seconds(seconds: float) -> str:
    return "–" if math.isnan(seconds) else f"{seconds:.1f}"


def _signed(number: str) -> str:
    return number.replace("-", "−")

"""The tables and the picture of `python -m benchmarks scale`."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from missmdp.model.picture import INK, check_picture_name, save_picture

BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
ENOUGH = 0.1
"""CPU seconds from which a cell tells how time grows; below, what every call takes is most of it."""

OVER = "ended by the limit of time"


class Cell(NamedTuple):
    """One step on one model."""

    model: str
    states: int
    step: str
    limit: float
    """CPU seconds that the step had."""
    seconds: float | None
    """CPU seconds that it took; None if it was not done."""
    wall: float | None
    memory: float | None
    """Peak of the process in MB; None if it was ended."""
    said: str
    """What came out, or why it was not done."""

    @property
    def family(self) -> str:
        """The name without its size: fleet for fleet-4."""
        return self.model.rpartition("-")[0]

    @property
    def size(self) -> int:
        """The number at the end: 4 for fleet-4."""
        return int(self.model.rpartition("-")[2])


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of a file."""

    def number(text: str) -> float | None:
        return float(text) if text else None

    with path.open(newline="") as file:
        return [
            Cell(
                row["model"],
                int(row["states"]),
                row["step"],
                float(row["limit"]),
                number(row["seconds"]),
                number(row["wall"]),
                number(row["memory"]),
                row["said"],
            )
            for row in csv.DictReader(file)
        ]


def write_cells(cells: Sequence[Cell], path: Path) -> Path:
    """Write cells to a file, and return its path."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Cell._fields, *cells])
    return path


def line(cell: Cell) -> str:
    """Return a cell as a line of text."""
    taken = "–" if cell.seconds is None else f"{cell.seconds:.2f} s"
    memory = "–" if cell.memory is None else f"{cell.memory:,.0f} MB"
    return f"{cell.model:<12} {cell.step:<10} {taken:>10} {memory:>10}  {cell.said}"


def markdown_tables(cells: Sequence[Cell]) -> str:
    """Return CPU seconds, memory, what the solver found, and what was not done and why."""
    models, steps = dict.fromkeys(cell.model for cell in cells), dict.fromkeys(cell.step for cell in cells)
    found = {(cell.model, cell.step): cell for cell in cells}
    states = {model: max(cell.states for cell in cells if cell.model == model) for model in models}
    head = [f"| model | states | {' | '.join(steps)} |", f"|:---|---:|{'---:|' * len(steps)}"]
    limits = " and ".join(sorted({f"{cell.limit:g}" for cell in cells}))
    lines = [f"Each step had {limits} CPU seconds."]
    for title, show in (("CPU seconds", _seconds), ("Peak memory of the process, in MB", _memory)):
        lines += ["", f"{title}:", "", *head]
        for model in models:
            shown = [show(found.get((model, step))) for step in steps]
            lines.append(f"| `{model}` | {states[model]:,} | {' | '.join(shown)} |")
    lines += ["", "CPU seconds grow like the number of states to the power of …", ""]
    lines += [f"| family | {' | '.join(steps)} |", f"|:---|{'---:|' * len(steps)}"]
    for family in dict.fromkeys(cell.family for cell in cells):
        own = [cell for cell in cells if cell.family == family]
        shown = [_growth([cell for cell in own if cell.step == step]) for step in steps]
        lines.append(f"| {family} | {' | '.join(shown)} |")
    lines += _solved(cells)
    undone = [cell for cell in cells if cell.seconds is None]
    if undone:
        lines += ["", "What was not done, and why:", ""]
        lines += [f"- `{cell.model}`, {cell.step}: {cell.said}" for cell in undone]
    return "\n".join(lines)


def _seconds(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.seconds is None:
        return f"> {cell.limit:g}" if _ended(cell) else "–"
    return f"{cell.seconds:.0f}" if cell.seconds >= 10.0 else f"{cell.seconds:.2g}"


def _ended(cell: Cell) -> bool:
    return cell.seconds is None and cell.said == OVER


def _memory(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return "–" if cell.seconds is None or cell.memory is None else f"{cell.memory:,.0f}"


def _growth(cells: Sequence[Cell]) -> str:
    """Return p if time grows like states^p, by least squares; cells that stopped at a limit do not count."""
    told = [cell for cell in cells if cell.seconds is not None and ENOUGH <= cell.seconds < 0.5 * cell.limit]
    if len({cell.states for cell in told}) < 3:
        return ""
    slope, _ = np.polyfit(
        [math.log(cell.states) for cell in told], [math.log(cell.seconds or 1.0) for cell in told], 1
    )
    return f"{slope:.1f}"


def _solved(cells: Sequence[Cell]) -> list[str]:
    solved = [cell for cell in cells if cell.step == "solve" and cell.seconds is not None]
    if not solved:
        return []
    return [
        "",
        "What the solver found in this time:",
        "",
        "| model | bounds | gap |",
        "|:---|---:|---:|",
        *(f"| `{cell.model}` | {cell.said} | {_gap(cell)} |" for cell in solved),
    ]


def _gap(cell: Cell) -> str:
    lower, upper = map(float, cell.said.strip("[]").split(","))
    return f"{upper - lower:.2f}"


def fill_page(cells: Sequence[Cell], page: Path) -> Path:
    """Write the tables between the marks of a page in Markdown, and picture and cells into the folders beside it."""
    before, found, rest = page.read_text().partition(BEGIN)
    if not found or END not in rest:
        raise SystemExit(f"{page}: there are no lines {BEGIN} and {END} to write the tables between")
    for folder in ("figures", "tables"):
        (page.parent / folder).mkdir(exist_ok=True)
    draw(cells, page.parent / "figures" / "scale.svg")
    write_cells(cells, page.parent / "tables" / "scale.csv")
    page.write_text(f"{before}{BEGIN}\n{markdown_tables(cells)}\n{END}{rest.split(END, 1)[1]}")
    return page


def draw(cells: Sequence[Cell], path: Path) -> Path:
    """Draw CPU seconds and memory of every step over the size of the model, and return the file's path."""
    check_picture_name(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    families = list(dict.fromkeys(cell.family for cell in cells))
    figure = Figure(figsize=(1.6 + 3.4 * len(families), 5.8), layout="constrained")
    grid = figure.subplots(2, len(families), squeeze=False, sharex="col", sharey="row")
    for column, family in enumerate(families):
        own = [cell for cell in cells if cell.family == family]
        for i, step in enumerate(dict.fromkeys(cell.step for cell in cells)):
            style: dict[str, Any] = {"marker": "os^vDPX"[i % 7], "markersize": 4, "color": f"C{i}"}
            done = [cell for cell in own if cell.step == step and cell.seconds is not None]
            at = [_position(cell) for cell in done]
            grid[0][column].plot(
                at, [max(cell.seconds or 0.0, 1e-3) for cell in done], linewidth=1.2, label=step, **style
            )
            grid[1][column].plot(at, [cell.memory or 0.0 for cell in done], linewidth=1.2, **style)
            ended = [cell for cell in own if cell.step == step and _ended(cell)]
            grid[0][column].plot(
                [_position(cell) for cell in ended],
                [cell.limit for cell in ended],
                linestyle="none",
                markerfacecolor="white",
                **style,
            )
        _label(grid[0][column], grid[1][column], own)
    limit = max(cell.limit for cell in cells)
    for axes in grid[0]:
        axes.axhline(limit, color="#9A9A9A", linewidth=0.8, linestyle=":")
    grid[0][0].set_ylabel("CPU seconds", color=INK)
    grid[1][0].set_ylabel("peak memory (MB)", color=INK)
    for axes in grid.flat:
        if any(cell.seconds for cell in cells):
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if axes in grid[1] else (1.0,)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(which="both", colors=INK, labelsize=8)
        axes.grid(color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
    lines, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside right upper", frameon=False, fontsize=8.5, labelcolor=INK)
    return save_picture(figure, path)


def _position(cell: Cell) -> float:
    """Return where a cell stands: states on a logarithmic scale for levels, the number of features for the others."""
    return cell.states if cell.family == "levels" else cell.size


def _label(above: Any, below: Any, cells: Sequence[Cell]) -> None:
    sizes = {cell.size: max(other.states for other in cells if other.size == cell.size) for cell in cells}
    if cells[0].family == "levels":
        above.set_title("two features that go missing (levels-n)", fontsize=9.5, color=INK)
        below.set_xlabel("states", color=INK)
        above.set_xscale("log")
        return
    above.set_title(f"k features that go missing ({cells[0].family}-k)", fontsize=9.5, color=INK)
    below.set_xlabel("k, and states", color=INK)
    below.set_xticks(list(sizes), [f"{size}\n{_short(states)}" for size, states in sizes.items()])


def _short(states: int) -> str:
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if states >= size:
            return f"{states / size:.0f}{unit}" if states >= 10 * size else f"{states / size:.1f}{unit}"
    return str(states)

"""How time and memory grow with a model: with the number of features that go missing, and with the number of states.

Every cell of the table is one process of its own: it makes what the step needs, then takes the time of the step alone.
Memory is the peak of the whole process, model and libraries included. `python -m benchmarks scale --help` lists the
options.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.scale_cell import GRACE, STEPS
from missmdp.model.picture import INK, check_picture_name, save_picture

BY_FEATURES = [f"fleet-{k}" for k in range(2, 9)]
BY_STATES = [f"levels-{n}" for n in (3, 10, 30, 100, 300)]
QUICK = ["fleet-2", "fleet-3", "levels-3", "levels-10"]
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"


class Cell(NamedTuple):
    """One step on one model."""

    model: str
    states: int
    step: str
    seconds: float | None
    """CPU seconds of the step; None if it failed."""
    wall: float | None
    memory: float | None
    """Peak of the process in MB; None if it was ended."""
    said: str
    """What came out, or what went wrong."""


def run(arguments: Sequence[str] = ()) -> None:
    """Measure, print the figures, and write what the options ask for."""
    options = _options(arguments)
    if options.cells:
        cells = [Cell(**cell) for cell in json.loads(options.cells.read_text())]
    else:
        cells = []
        for cell in _measure(options):
            print(_line(cell), flush=True)
            cells.append(cell)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        if not options.cells:
            path = options.output / "scale.json"
            path.write_text(
                json.dumps([cell._asdict() for cell in cells], indent=1, ensure_ascii=False) + "\n"
            )
            print(path)
        print(draw(cells, options.output / "scale.svg"))
    if options.page:
        print(fill_page(cells, options.page))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each step, in seconds")
    parser.add_argument(
        "--memory", type=float, default=4000.0, help="limit of each process, in MB of address space"
    )
    parser.add_argument(
        "--models", nargs="*", metavar="NAME", help="fleet-k, plant-k, levels-n or any benchmark"
    )
    parser.add_argument(
        "--steps", nargs="*", default=list(STEPS), choices=list(STEPS), metavar="STEP", help=", ".join(STEPS)
    )
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write scale.json and scale.svg")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="write the tables into a page")
    parser.add_argument(
        "--cells", type=Path, metavar="scale.json", help="measure nothing, show an earlier run again"
    )
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield cell after cell; the first one of all compiles kernels, which others find on disk."""
    models = options.models or (QUICK if options.quick else [*BY_FEATURES, *BY_STATES])
    for step in options.steps:
        _one("fleet-2", step, options.seconds + 120.0, options.memory)
    for model in models:
        for step in options.steps:
            yield _one(model, step, options.seconds, options.memory)


def _one(model: str, step: str, seconds: float, memory: float) -> Cell:
    command = [sys.executable, "-m", "benchmarks.scale_cell", model, step, str(seconds), str(memory)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=2.0 * seconds + GRACE, check=False
        )
    except subprocess.TimeoutExpired:
        return Cell(model, 0, step, None, None, None, f"not done after {2.0 * seconds + GRACE:g} s")
    if done.returncode == -signal.SIGXCPU:
        return Cell(model, 0, step, None, None, None, f"not done after {2.0 * seconds + GRACE:g} CPU seconds")
    if done.returncode != 0 or not done.stdout.strip():
        last = (done.stderr.strip().splitlines() or ["ended without a word"])[-1]
        return Cell(model, 0, step, None, None, None, last)
    return Cell(model=model, step=step, **json.loads(done.stdout.splitlines()[-1]))


def _line(cell: Cell) -> str:
    taken = "–" if cell.seconds is None else f"{cell.seconds:.2f} s"
    memory = "–" if cell.memory is None else f"{cell.memory:,.0f} MB"
    return f"{cell.model:<12} {cell.step:<10} {taken:>10} {memory:>10}  {cell.said}"


def markdown_tables(cells: Sequence[Cell]) -> str:
    """Return CPU seconds and memory of each step on each model, and what failed in words."""
    models, steps = dict.fromkeys(cell.model for cell in cells), dict.fromkeys(cell.step for cell in cells)
    states = {model: max(cell.states for cell in cells if cell.model == model) for model in models}
    found = {(cell.model, cell.step): cell for cell in cells}
    lines = [f"| model | states | {' | '.join(steps)} |", f"|---|---|{'---|' * len(steps)}"]
    for model in models:
        shown = [_shown(found.get((model, step))) for step in steps]
        lines.append(f"| `{model}` | {states[model]:,} | {' | '.join(shown)} |")
    solved = [cell for cell in cells if cell.step == "solve" and cell.seconds is not None]
    if solved:
        lines += ["", "What the solver found:", "", "| model | bounds |", "|---|---|"]
        lines += [f"| `{cell.model}` | {cell.said} |" for cell in solved]
    failed = [cell for cell in cells if cell.seconds is None]
    if failed:
        lines += ["", "What did not work:", ""]
        lines += [f"- `{cell.model}`, {cell.step}: {cell.said}" for cell in failed]
    return "\n".join(lines)


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.seconds is None or cell.memory is None:
        return "–"
    return (
        f"{cell.seconds:.2g} s, {cell.memory:,.0f} MB"
        if cell.seconds < 10.0
        else f"{cell.seconds:.0f} s, {cell.memory:,.0f} MB"
    )


def fill_page(cells: Sequence[Cell], page: Path) -> Path:
    """Write the tables between the marks of a page in Markdown, and return its path."""
    before, found, rest = page.read_text().partition(BEGIN)
    if not found or END not in rest:
        raise SystemExit(f"{page}: there are no lines {BEGIN} and {END} to write the tables between")
    page.write_text(f"{before}{BEGIN}\n{markdown_tables(cells)}\n{END}{rest.split(END, 1)[1]}")
    return page


def draw(cells: Sequence[Cell], path: Path) -> Path:
    """Draw CPU seconds and memory of every step over the number of states, and return the file's path."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(cell.model.rpartition("-")[0] for cell in cells))
    figure = Figure(figsize=(8.4, 2.9 * 2), layout="constrained")
    grid = figure.subplots(2, len(families), squeeze=False, sharex="col", sharey="row")
    for column, family in enumerate(families):
        for i, step in enumerate(dict.fromkeys(cell.step for cell in cells)):
            own = [
                cell
                for cell in cells
                if cell.model.rpartition("-")[0] == family and cell.step == step and cell.seconds is not None
            ]
            sizes = [cell.states for cell in own]
            for axes, values in (
                (grid[0][column], [max(cell.seconds or 0.0, 1e-3) for cell in own]),
                (grid[1][column], [cell.memory or 0.0 for cell in own]),
            ):
                axes.plot(
                    sizes,
                    values,
                    marker="os^vDPX"[i % 7],
                    markersize=4,
                    linewidth=1.2,
                    color=f"C{i}",
                    label=step,
                )
        grid[0][column].set_title(f"{family}-…", fontsize=9.5, color=INK)
        grid[1][column].set_xlabel("states", color=INK)
    grid[0][0].set_ylabel("CPU seconds", color=INK)
    grid[1][0].set_ylabel("peak memory (MB)", color=INK)
    for axes in grid.flat:
        axes.set(xscale="log", yscale="log")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(which="both", colors=INK, labelsize=8.5)
        axes.grid(color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
    lines, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside right upper", frameon=False, fontsize=8.5, labelcolor=INK)
    return save_picture(figure, path)

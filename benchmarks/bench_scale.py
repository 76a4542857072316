"""How time and memory grow with a model: with the number of features that go missing, and with the number of states.

Every cell of the table is a process of its own: it makes what the step needs, then takes the time of the step alone.
Memory is the peak of the whole process, model and libraries included. A run that is interrupted keeps its finished
cells, and the next one goes on from there. `python -m benchmarks scale --help` lists the options.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.scale_cell import SETUP, STEPS
from benchmarks.scale_report import OVER, Cell, draw, fill_page, line, read_cells

BY_FEATURES = [f"fleet-{k}" for k in (2, 4, 6, 8, 10, 12)]
BY_STATES = [f"levels-{n}" for n in (3, 10, 30, 100, 300)]
QUICK = ["fleet-2", "fleet-3", "levels-3", "levels-10"]


def run(arguments: Sequence[str] = ()) -> None:
    """Measure, print the figures, and write what the options ask for."""
    options = _options(arguments)
    if options.cells:
        cells = read_cells(options.cells)
    else:
        options.output.mkdir(parents=True, exist_ok=True)
        unfinished, finished = options.output / "unfinished.csv", options.output / "scale.csv"
        cells = _measure(options, unfinished)
        unfinished.replace(finished)
        print(finished)
    print(draw(cells, options.output / "scale.svg") if not options.page else fill_page(cells, options.page))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="limit of each step, in CPU seconds")
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
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="how many cells at a time (default: one per core)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("results/scale"),
        help="where scale.csv and scale.svg go, and unfinished.csv before (default: results/scale)",
    )
    parser.add_argument("--fresh", action="store_true", help="forget the cells of an interrupted run")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE.md",
        help="write the tables into a page, and the picture and the cells into figures/ and tables/ beside it",
    )
    parser.add_argument(
        "--cells", type=Path, metavar="scale.csv", help="measure nothing, show an earlier run again"
    )
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, unfinished: Path) -> list[Cell]:
    """Return all cells, those of an interrupted run included; each is on disk as soon as it is there."""
    models = options.models or (QUICK if options.quick else [*BY_FEATURES, *BY_STATES])
    wanted = [(model, step) for model in models for step in options.steps]
    kept = [] if options.fresh or not unfinished.exists() else read_cells(unfinished)
    found = {(cell.model, cell.step): cell for cell in kept if cell.limit == options.seconds}
    found = {key: cell for key, cell in found.items() if key in wanted}
    if found:
        print(f"{len(found)} of {len(wanted)} cells are there from a run that was interrupted", flush=True)
    todo = [key for key in wanted if key not in found]
    with unfinished.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([Cell._fields, *found.values()])
        file.flush()
        # Kernels are compiled first and apart: cells find them on disk.
        for _ in _run_cells([("fleet-2", step) for step in options.steps if todo], options, jobs=1):
            pass
        for cell in _run_cells(todo, options, options.jobs):
            print(line(cell), flush=True)
            writer.writerow(cell)
            file.flush()
            found[cell.model, cell.step] = cell
    return [found[key] for key in wanted]


def _run_cells(todo: Sequence[tuple[str, str]], options: argparse.Namespace, jobs: int) -> Iterator[Cell]:
    """Yield cells as they are finished; none is left running when the caller goes away."""
    waiting = list(reversed(todo))
    running: dict[tuple[str, str], tuple[subprocess.Popen[str], float]] = {}
    longest = 10.0 * (options.seconds + SETUP)
    try:
        while waiting or running:
            while waiting and len(running) < max(jobs, 1):
                running[waiting[-1]] = _start(*waiting[-1], options), time.monotonic() + longest
                waiting.pop()
            for key, (process, deadline) in list(running.items()):
                if time.monotonic() > deadline:
                    process.kill()
                    process.wait()
                if process.poll() is not None:
                    del running[key]
                    yield _finished(*key, options.seconds, process)
            time.sleep(0.05)
    finally:
        for process, _ in running.values():
            process.kill()
            process.communicate()


def _start(model: str, step: str, options: argparse.Namespace) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.scale_cell", model, step]
    return subprocess.Popen(
        [*command, str(options.seconds), str(options.memory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us, and we end what runs
    )


def _finished(model: str, step: str, limit: float, process: subprocess.Popen[str]) -> Cell:
    """Return what a process has found, or what ended it."""
    out, err = process.communicate()
    said = out.strip().splitlines()
    record = json.loads(said[-1]) if said else {"states": 0, "seconds": None, "wall": None, "memory": None}
    if process.returncode == -signal.SIGXCPU:
        record["said"] = OVER
    elif process.returncode != 0:
        record["said"] = (err.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
    return Cell(model=model, step=step, limit=limit, **record)

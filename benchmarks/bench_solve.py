"""Solving: the gap between the bounds over time, on every benchmark, next to the C++ SARSOP's.

`python -m benchmarks solve --help` lists the options.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import missmdp as mm
from benchmarks.solve_report import (
    Measured,
    draw_gaps,
    fill_page,
    plain_tables,
    read_traces,
    write_traces,
)
from benchmarks.timing import row
from missmdp.benchmarks.predator import SCATTERED_JUNGLE, predator
from missmdp.benchmarks.rocksample import ROCKSAMPLE_7_8, ROCKSAMPLE_11_11, rocksample
from missmdp.interop import read_model

PRECISION = 1e-3
TINY = "example-1"
"""Solved in no time, once kernels are compiled."""
SCATTERED = "predator scattered"
"""predator-mnar-unid with the map that the C++ SARSOP was run on."""
PRIORS = {f"{name} prior": name for name in ("icu-smar", "predator-smar", "predator-mcar")}
"""Where nothing is seen for certain: the general POMDP, one block."""
LARGE = ("fleet-4", "fleet-5", "fleet-6", "fleet-8", "plant-4", "plant-6")
"""Where many features go missing."""
ROCKSAMPLES = {"rocksample-7-8": ROCKSAMPLE_7_8, "rocksample-11-11": ROCKSAMPLE_11_11}
"""Where there are many states."""


def run(arguments: Sequence[str] = ()) -> None:
    """Solve, print the figures, and write what the options ask for."""
    options = _options(arguments)
    if options.traces:
        measured = read_traces(options.traces)
    else:
        if not options.no_compilation:
            _print_compilation()
        measured = list(_measure(options))
    print(f"\n{plain_tables(measured)}", flush=True)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        if not options.traces:
            print(write_traces(measured, options.output / "solver-gap.csv"))
        print(draw_gaps(measured, options.output / "solver-gap.svg"))
    if options.page:
        print(fill_page(measured, options.page))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    known = [*mm.list_benchmarks(), SCATTERED, *PRIORS, *LARGE, *ROCKSAMPLES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks solve", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="time per model; the search may end before"
    )
    parser.add_argument(
        "--models", nargs="*", default=known, choices=known, metavar="NAME", help=", ".join(known)
    )
    parser.add_argument(
        "--file",
        dest="files",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        help="further models, .pomdp or .pomdpx",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="write solver-gap.csv (all traces) and solver-gap.svg"
    )
    parser.add_argument(
        "--act-first", action="store_true", help="act before the first observation, as other solvers do"
    )
    parser.add_argument("--threads", type=int, default=1, help="how many threads a search may use")
    parser.add_argument("--no-compilation", action="store_true", help="do not time compilation, a minute")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="write the tables into a page")
    parser.add_argument(
        "--traces", type=Path, metavar="FILE.csv", help="solve nothing, show an earlier run again"
    )
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace) -> Iterator[Measured]:
    """Solve model after model; Ctrl-C ends the last one."""
    # Kernels are compiled before the clock runs.
    mm.Sarsop(max_trials=1, progress=False).solve(mm.load_benchmark(TINY))
    solver = mm.Sarsop(
        precision=PRECISION,
        timeout=options.seconds,
        observe_initial=False if options.act_first else None,
        threads=options.threads,
        progress=False,
    )
    for name, model in _models(options.models, options.files):
        wall, cpu = time.perf_counter(), time.process_time()
        result = solver.solve(model)
        share = (time.process_time() - cpu) / (time.perf_counter() - wall)
        print(f"{name:<22} {result}", flush=True)
        yield Measured(name, result.trace, options.seconds, share)
        if result.status == "interrupted":
            return


def _models(names: Sequence[str], files: Sequence[Path]) -> Iterator[tuple[str, mm.MissMDP | mm.POMDP]]:
    for name in names:
        if name in PRIORS:
            yield name, mm.prior_model(mm.load_benchmark(PRIORS[name]))
        elif name == SCATTERED:
            yield name, predator("mnar-unid", SCATTERED_JUNGLE)
        elif name in ROCKSAMPLES:
            yield name, rocksample(ROCKSAMPLES[name])
        else:
            yield name, mm.load_benchmark(name)
    for path in files:
        yield path.name, read_model(path)


def _print_compilation() -> None:
    """Time the first solve of a process, with nothing compiled and with kernels on disk."""
    code = (
        "import time, missmdp as mm; "
        f"solver, model = mm.Sarsop(max_trials=1, progress=False), mm.load_benchmark({TINY!r}); "
        "wall, cpu = time.perf_counter(), time.process_time(); solver.solve(model); "
        "print(time.perf_counter() - wall, time.process_time() - cpu)"
    )
    with tempfile.TemporaryDirectory() as cache:
        for what in ("kernels of the solver, compiled", "  read from disk, in every further process"):
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            wall, cpu = map(float, done.stdout.split())
            row(what, f"{wall:.1f} s", f"{cpu:.1f} s of CPU time")

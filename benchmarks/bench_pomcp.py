"""Tree search: simulations per second while acting, against the simulator's steps.

Both are measured in processor time, on one thread: a decision is short, and others may be using the machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import missmdp as mm
from benchmarks.timing import row
from missmdp.data.simulation import compile_simulation, seed_words

MODELS = ("icu-smar", "predator-smar", "predator-mnar-unid", "predator-mcar")
QUERIES, DEPTH = 1_000, 20
DECISIONS = 500
STEPS = 500_000


def _processor_seconds(*functions: Callable[[], object], repeats: int = 5) -> list[float]:
    """Return the median processor time of each function, run in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def run() -> None:
    """Print the figures of POMCP: whole episodes on one thread, belief tracking included."""
    for name in MODELS:
        model = mm.load_benchmark(name)
        for belief in ("particles", "exact"):
            policy = mm.POMCP(max_depth=DEPTH, tree_queries=QUERIES, belief=belief).solve(model).policy
            runner = policy.runner(model, compile_simulation(model), seed_words(0)[1], 100)
            decisions = int(runner.run(0, 1).decisions.sum())
            episodes = max(1, DECISIONS // decisions)
            decisions = int(runner.run(0, episodes).decisions.sum())
            searching, collecting = _processor_seconds(
                lambda runner=runner, episodes=episodes: runner.run(0, episodes),
                lambda model=model: mm.collect(model, STEPS, seed=0, threads=1, progress=False),
            )
            simulations = QUERIES * decisions / searching
            goal = "goal: 300,000 or more" if name.startswith("predator") else ""
            row(f"{name}, {belief}: simulations of depth 20 per second", f"{simulations:,.0f}", goal)
            row("  ns per step, as if all had 20", f"{1e9 / simulations / DEPTH:.1f}")
            row(
                "  such steps per second / steps per second of collect",
                f"{simulations * DEPTH * collecting / STEPS:.1f}",
            )
            row("  ms per decision with 1,000 simulations", f"{1e3 * searching / decisions:.2f}")

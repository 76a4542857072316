"""Simulation: against drawing as many random numbers."""

from __future__ import annotations

import numpy as np

import missmdp as mm
from benchmarks.timing import child_peak_memory, interleaved, row

STEPS = 10_000_000
DRAWS = 30_000_000


def run() -> None:
    """Print the figures of the simulator."""
    for name, goal in (("icu-smar", "goal: 8 or less"), ("predator-smar", "")):
        model = mm.load_benchmark(name)
        mm.collect(model, 1000, seed=0)
        draws, all_threads, one_thread = interleaved(
            lambda: np.random.default_rng().random(DRAWS),
            lambda model=model: mm.collect(model, STEPS, seed=0),
            lambda model=model: mm.collect(model, STEPS, seed=0, threads=1),
        )
        row(f"collect 10⁷ steps of {name} / random(30,000,000)", f"{all_threads / draws:.2f}", goal)
        row("  the same with one thread", f"{one_thread / draws:.2f}")
        row("  steps per second, one thread", f"{STEPS / one_thread:,.0f}")
    peak = child_peak_memory(
        f"import missmdp as mm; mm.collect(mm.load_benchmark('icu-smar'), {STEPS}, seed=0)"
    )
    row("peak memory of collecting 10⁷ ICU steps", f"{peak:,.0f} MB", "goal: under 1,000 MB")

"""Start-up, enumeration and belief updates."""

from __future__ import annotations

import time
from itertools import pairwise

import missmdp as mm
from benchmarks.timing import fresh_interpreter, interleaved, row
from missmdp.benchmarks.predator import predator

UPDATES = 2_000


def run() -> None:
    """Print the figures of the model layer."""
    bare, ours, numpy = interleaved(
        lambda: fresh_interpreter("pass"),
        lambda: fresh_interpreter("import missmdp"),
        lambda: fresh_interpreter("import numpy"),
    )
    row("import missmdp / import numpy (less the bare interpreter)", f"{(ours - bare) / (numpy - bare):.2f}")

    (build,) = interleaved(lambda: predator("mcar"), repeats=3)
    row("predator-mcar from functions: 1,765 states", f"{build:.2f} s", "seconds, not minutes")

    model = mm.load_benchmark("icu-smar")
    history = mm.collect(model, UPDATES, seed=0, horizon=UPDATES).episode(0)
    dense = [matrix.toarray() for matrix in model.mdp.transition]

    def sparse_updates() -> None:
        belief = mm.initial_belief(history[0][0], model)
        for (_, action), (seen, _) in pairwise(history):
            belief = mm.update_belief(belief, action, seen, model)

    def dense_updates() -> None:
        belief = model.mdp.initial * model.missingness.likelihood(history[0][0])
        belief /= belief.sum()
        for (_, action), (seen, _) in pairwise(history):
            belief = (belief @ dense[model.mdp.action_index(action)]) * model.missingness.likelihood(seen)
            belief /= belief.sum()

    start = time.perf_counter()
    sparse_updates()
    row(
        "first belief update, kernels compiled or read from the cache", f"{time.perf_counter() - start:.2f} s"
    )
    ours, theirs = interleaved(sparse_updates, dense_updates, repeats=3)
    row("ICU belief updates per second", f"{UPDATES / ours:,.0f}")
    row("ICU belief updates: dense numpy / ours", f"{theirs / ours:.2f}")

"""PPO: steps per second, and how much of the time goes to the environments."""

from __future__ import annotations

import importlib.util

import missmdp as mm
from benchmarks.timing import row

STEPS = 204_800
GOAL = 1_000_000


def run() -> None:
    """Print the figures of PPO, if its extra is installed."""
    if importlib.util.find_spec("stable_baselines3") is None:
        print("PPO is left out: its extra is not installed (make test-ppo does that)")
        return
    for name in ("icu-smar", "predator-smar"):
        model = mm.load_benchmark(name)
        for memory in (False, True):
            result = mm.PPO(memory=memory, steps=STEPS, seed=0, progress=False).solve(model)
            share = result.environment_seconds / result.seconds
            kind = "with memory" if memory else "without memory"
            row(f"{name}: PPO {kind}, steps per second", f"{result.steps / result.seconds:,.0f}")
            row(
                "  10⁶ steps at this rate",
                f"{GOAL / result.steps * result.seconds:.0f} s",
                "" if memory else "goal: under 600 s",
            )
            row("  share of that spent in environments", f"{100 * share:.1f} %", "goal: under 10 %")

"""Planning while acting: the search with bounds against POMCP, with the same time per decision and the same luck.

The two take turns, some episodes each, so whatever else the machine does slows down both. Figures depend on the
machine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np

import missmdp as mm
from benchmarks.timing import row
from missmdp.benchmarks.rocksample import ROCKSAMPLE_7_8, ROCKSAMPLE_11_11, rocksample

MODELS: dict[str, Callable[[], mm.MissMDP | mm.POMDP]] = {
    "fleet-8": lambda: mm.load_benchmark("fleet-8"),
    "plant-6": lambda: mm.load_benchmark("plant-6"),
    "rocksample-7-8": lambda: rocksample(ROCKSAMPLE_7_8),
    "rocksample-11-11": lambda: rocksample(ROCKSAMPLE_11_11),
}
HORIZON = 100
"""Decisions: with γ = 0.95 the rest is worth less than 1 % of all."""
AT_ONCE = 5
"""Episodes per turn."""


def run(arguments: Sequence[str] = ()) -> None:
    """Print the value of both, and the difference with its error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks online", description=__doc__)
    parser.add_argument("--models", nargs="+", default=["fleet-8", "rocksample-11-11"], choices=[*MODELS])
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="per decision")
    parser.add_argument("--exploration", type=float, default=20.0, help="POMCP's c")
    chosen = parser.parse_args(list(arguments))
    for name in chosen.models:
        model = MODELS[name]()
        online = mm.OnlinePlanner(expansions=10**9, timeout=chosen.seconds).solve(model)
        row(f"{name}: seconds before the first decision", f"{online.seconds:.1f}")
        row("  the best policy is worth between", f"{online.best_lower:.2f} and {online.best_upper:.2f}")
        pomcp = mm.POMCP(
            tree_queries=10**6, timeout=chosen.seconds, exploration=chosen.exploration, belief="exact"
        ).solve(model)
        _compare(model, {"online": online.policy, "pomcp": pomcp.policy}, chosen.episodes, chosen.seed)


def _compare(
    model: mm.MissMDP | mm.POMDP,
    policies: dict[str, mm.OnlinePolicy | mm.POMCPPolicy],
    episodes: int,
    seed: int,
) -> None:
    """Print what policies are worth, some episodes per seed."""
    returns: dict[str, list[float]] = {name: [] for name in policies}
    for turn, first in enumerate(range(0, episodes, AT_ONCE)):
        count = min(AT_ONCE, episodes - first)
        for name, policy in policies.items():
            value = mm.evaluate(
                policy,
                model,
                count,
                seed=seed + turn,
                horizon=HORIZON,
                threads=1,
                progress=False,
                control_variate=True,
            )
            returns[name].extend(value.estimates.tolist())
    for name, found in returns.items():
        row(f"  {name}", _with_error(found))
    difference = np.subtract(returns["online"], returns["pomcp"])
    row("  difference", _with_error(difference.tolist()))


def _with_error(values: Sequence[float]) -> str:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{float(np.mean(values)):.2f} ± {error:.2f} ({len(values)} episodes)"

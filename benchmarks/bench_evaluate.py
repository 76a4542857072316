"""Evaluation: steps per second beside `collect`'s, and what shared luck does to the error of a difference."""

from __future__ import annotations

import math

import missmdp as mm
from benchmarks.timing import interleaved, row

EPISODES = 2_000
SIZES = (1_000, 100_000)


def run() -> None:
    """Print the figures of evaluation."""
    for name in ("icu-smar", "predator-smar"):
        _speed(name)
    _shared_luck()


def _speed(name: str) -> None:
    model = mm.load_benchmark(name)
    policy = mm.Sarsop(timeout=20, progress=False).solve(model).policy
    evaluated = mm.evaluate(policy, model, EPISODES, seed=0)
    decisions = int(evaluated.decisions.sum())
    plain, random, collecting = interleaved(
        lambda: mm.evaluate(policy, model, EPISODES, seed=0, threads=1),
        lambda: mm.evaluate(None, model, EPISODES, seed=0, threads=1),
        lambda: mm.collect(model, decisions, seed=0, threads=1),
    )
    random_decisions = int(mm.evaluate(None, model, EPISODES, seed=0).decisions.sum())
    row(f"{name}: {EPISODES:,} episodes of {policy.n_vectors:,} α-vectors", f"{plain:.2f} s", "goal: seconds")
    row("  steps per second, beliefs tracked, one thread", f"{decisions / plain:,.0f}")
    row("  steps per second of the random policy, one thread", f"{random_decisions / random:,.0f}")
    row("  steps per second of collect, one thread", f"{decisions / collecting:,.0f}")
    row("  evaluating / collecting as many steps", f"{plain / collecting:.1f}")


def _shared_luck() -> None:
    model = mm.load_benchmark("icu-smar")
    policies: dict[str, mm.AlphaVectorPolicy] = {}
    for steps in SIZES:
        learned = mm.AsMAR().fit(mm.collect(model, steps, seed=0)).missingness_
        solved = mm.Sarsop(timeout=30, progress=False).solve(model.with_missingness(learned))
        policies[f"{steps:,}"] = solved.policy
    small, large = policies
    gap = mm.compare(policies, model, EPISODES, seed=1).difference(small, large)
    others = [
        mm.evaluate(policies[name], model, EPISODES, seed=seed) for name, seed in ((small, 2), (large, 3))
    ]
    apart = math.hypot(others[0].stderr, others[1].stderr)
    row(f"icu-smar: AsMAR from {small} and from {large} steps, error of the difference", f"{gap.stderr:.3f}")
    row(f"  of {gap.episodes:,} episodes each; correlation", f"{gap.correlation:.4f}")
    row("  the same with different seeds", f"{apart:.3f}")
    row("  how many times smaller", f"{apart / gap.stderr:.1f}", "goal: 3 or more")
    controlled = mm.evaluate(policies[large], model, EPISODES, seed=1, control_variate=True)
    plain = mm.evaluate(policies[large], model, EPISODES, seed=1)
    row("  error of one value / with the control variate", f"{plain.stderr / controlled.stderr:.1f}")

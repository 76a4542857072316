"""How often off-policy intervals hold: `python -m benchmarks.off_policy` prints the tables of docs/off-policy.md.

Each case is a model, the policy that makes the logs, another that is evaluated from them, and a horizon. The truth is
simulated, with an error that is small beside those of the estimates.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import missmdp as mm
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.target import choices
from missmdp.evaluation.value import student_interval

METHODS = ("is", "pdis", "wis", "wpdis", "dr")
TRUTH_EPISODES = 400_000
BINS = (0, 5, 10, 20, 50, 100, 200, 500)
"""Where the smallest effective sample size of a log falls, for the second table."""


class Case(NamedTuple):
    """What is estimated from which logs."""

    model: str
    behaviour: mm.Policy
    target: mm.Policy
    horizon: int
    sizes: tuple[int, ...] = (400, 1000)
    """Episodes per log."""
    learned: bool = False
    """Whether the behaviour is learned from each log instead of given."""


def soft(choose: Callable[[Any], str], share: float, actions: tuple[str, ...]) -> mm.Policy:
    """Return the policy that follows a rule with some probability and otherwise draws one of the other actions."""
    rest = (1.0 - share) / (len(actions) - 1)
    return mm.ObservationPolicy(lambda seen: {a: share if a == choose(seen) else rest for a in actions})


def nurse(seen: Any) -> str:
    """Return what a simple rule does in the ICU benchmarks."""
    if seen.infection is None:
        return "test"
    return "antibiotics" if seen.infection else "wait"


def cases() -> dict[str, Case]:
    """Return the cases by name."""
    icu = tuple(mm.load_benchmark("icu-smar").actions)
    guess = mm.load_benchmark("example-3")
    told = tuple(guess.actions)

    def guesser(seen: Any) -> str:
        return "guess x" if seen.second is None else f"guess {seen.second}"

    hunter = mm.BlindPolicy({"north": 0.35, "south": 0.25, "west": 0.25, "east": 0.15})
    usual, better = soft(nurse, 0.6, icu), soft(nurse, 0.8, icu)
    return {
        "icu, near": Case("icu-smar", usual, better, 5),
        "icu, near, learned": Case("icu-smar", usual, better, 5, (400,), learned=True),
        "icu, gaps by value": Case("icu-mnar-unid", usual, better, 5),
        "icu, 10 decisions": Case("icu-smar", usual, better, 10),
        "predator": Case("predator-smar", mm.UniformPolicy(), hunter, 8),
        "icu, rule from random": Case("icu-smar", mm.UniformPolicy(), mm.ObservationPolicy(nurse), 2),
        "example-3": Case("example-3", mm.UniformPolicy(), soft(guesser, 0.7, told), 6),
        "example-3, learned": Case(
            "example-3", mm.UniformPolicy(), soft(guesser, 0.7, told), 6, (400,), learned=True
        ),
    }


class Row(NamedTuple):
    """What came of one log and one method."""

    case: str
    episodes: int
    method: str
    held: bool
    given: bool
    """Whether an interval is given."""
    smallest: float
    """The smallest effective sample size at a step."""
    skewness: float
    """Of the terms whose mean the estimate is."""
    miss: float
    """The estimate minus the truth."""
    stderr: float


def measured(name: str, case: Case, episodes: int, logs: int, truth: float, first: int) -> list[Row]:
    """Return one row per log and method."""
    model = mm.load_benchmark(case.model)
    rows: list[Row] = []
    # One simulation, cut into logs: episodes are independent.
    log = mm.collect(
        model, (episodes * logs + 1) * (case.horizon + 1), case.behaviour, seed=first, horizon=case.horizon + 1,
        keep_states=True, progress=False,
    )  # fmt: skip
    likely = np.full((log.n_steps, model.n_actions), np.nan)
    decisions = decisions_of(log, None)
    likely[decisions.rows] = choices(case.behaviour, log, decisions, model=model).probabilities
    for k in range(logs):
        a, b = log.offsets[k * episodes], log.offsets[(k + 1) * episodes]
        offsets = log.offsets[k * episodes : (k + 1) * episodes + 1] - a
        assert log.states is not None
        part = mm.Dataset(
            model.mdp, log.observations[a:b], log.actions[a:b], offsets,
            log.terminated[k * episodes : (k + 1) * episodes], log.states[a:b],
        )  # fmt: skip
        given = mm.learn_behaviour(part) if case.learned else likely[a:b]
        for method in METHODS:
            value = mm.off_policy_value(
                case.target, part, discount=model.discount, method=method, behaviour=given, progress=False
            )
            low, high = student_interval(value.mean, value.stderr, value.episodes, 0.95)
            small = value.effective if method in ("is", "wis") else float(value.effective_by_step.min())
            tail = float(stats.skew(value.terms)) if value.terms.std() > 1e-9 else np.inf
            rows.append(
                Row(
                    name, episodes, method, low <= truth <= high, value.no_interval is None, small, tail,
                    value.mean - truth, value.stderr,
                )
            )  # fmt: skip
    return rows


def exact(case: Case) -> tuple[float, float]:
    """Return the value of the target over the horizon, and its standard error."""
    model = mm.load_benchmark(case.model)
    found = mm.evaluate(
        case.target, model, TRUTH_EPISODES, seed=10**6, horizon=case.horizon, control_variate=True, progress=False
    )  # fmt: skip
    return found.mean, found.stderr


def share(rows: list[Row]) -> str:
    """Return how often intervals held."""
    return f"{100 * np.mean([row.held for row in rows]):.1f} %" if rows else "–"


def heavy(row: Row) -> bool:
    """Return whether few episodes decide the mean, as `off_policy_value` judges it."""
    return not row.episodes >= 5.0 * row.skewness**2


def report(rows: list[Row]) -> None:
    """Print coverage by case and method, and by the smallest effective sample size."""
    print("\n| case | episodes | " + " | ".join(METHODS) + " |\n|---|---|" + "---|" * len(METHODS))
    for name, episodes in dict.fromkeys((row.case, row.episodes) for row in rows):
        cells: list[str] = []
        for method in METHODS:
            own = [r for r in rows if (r.case, r.episodes, r.method) == (name, episodes, method)]
            given = [row for row in own if row.given]
            less = f" ({100 * len(given) / len(own):.0f} % given)" if len(given) < len(own) else ""
            cells.append(share(given) + less)
        print(f"| {name} | {episodes} | " + " | ".join(cells) + " |")
    print("\nwithout heavy tails, given or not, by the smallest effective sample size:")
    print("\n| effective | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for low, high in zip(BINS, [*BINS[1:], np.inf], strict=True):
        cells = []
        for method in METHODS:
            own = [r for r in rows if r.method == method and low <= r.smallest < high and not heavy(r)]
            cells.append(f"{share(own)} of {len(own):,}" if own else "–")
        until = f"{low} to {high}" if high < np.inf else f"{low} or more"
        print(f"| {until} | " + " | ".join(cells) + " |")


def run(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.off_policy", description=__doc__)
    parser.add_argument("--logs", type=int, default=300, help="logs per case and size")
    parser.add_argument("--case", action="append", help="only this case; can be repeated")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for number, (name, case) in enumerate(cases().items()):
        if options.case and name not in options.case:
            continue
        truth, error = exact(case)
        print(f"{name}: {truth:.4f} ± {error:.4f}", flush=True)
        for episodes in case.sizes:
            rows += measured(name, case, episodes, options.logs, truth, 100 * number + episodes)
    report(rows)


if __name__ == "__main__":
    run(sys.argv[1:])

"""What a run shows beside the theory: whose assumptions hold, whether the paper's claim does, how policies compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from missmdp.evaluation.compare import NormalisedValue
from missmdp.experiments.reproduce.cells import (
    SCALE,
    BaselineCell,
    benchmark_model,
    learner_names,
    registered,
)
from missmdp.experiments.reproduce.style import POLICIES
from missmdp.experiments.reproduce.summary import Scale, Summary
from missmdp.model.types import MissingnessTypes

_MDPS = {"icu": "ICU", "predator": "Predator, small map", "predator-mcar": "Predator, large map"}


@lru_cache
def _types(benchmark: str) -> MissingnessTypes:
    return benchmark_model(benchmark).types()


def kind_of(benchmark: str) -> str:
    """Return the type of missingness, in words."""
    types = _types(benchmark)
    if not types.mnar:
        return types.name
    if types.self_censoring:
        return "MNAR, self-censoring"
    return "MNAR, identifiable" if types.learners else "MNAR"


def learnable_by(benchmark: str) -> tuple[str, ...]:
    """Return the learners whose assumptions hold."""
    return _types(benchmark).learners


def holds(policy: str, benchmark: str) -> bool:
    """Return whether what a learner assumes holds; what is no learner assumes nothing that could."""
    if policy not in learner_names():
        return False
    learner, types = registered(policy), _types(benchmark)
    if learner.has_bound:
        return learner.name in types.learners
    return learner.suits(cast("Any", types))


def right_learner(benchmark: str) -> str | None:
    """Return the learner that assumes no less than holds; where values censor themselves there is none."""
    return next(iter(learnable_by(benchmark)), None)


def mdp_of(benchmark: str) -> str:
    """Return what is left of a benchmark where nothing goes missing."""
    return _MDPS.get(benchmark) or _MDPS.get(benchmark.partition("-")[0], benchmark)


LEAST = 0.93
"""The normalised value that is to be reached, by the lower end of the 95 % interval."""
LARGEST = 100_000
"""Steps of data with which it is to be reached."""


@dataclass(frozen=True)
class Claim:
    """The right learner on a benchmark, and the others beside it."""

    benchmark: str
    learner: str
    size: int
    row: dict[str, Any]
    """Of the table of values."""
    others: tuple[dict[str, Any], ...]
    """Rows of the other learners at the same size."""

    @property
    def holds(self) -> bool:
        """Whether the interval is above what is to be reached."""
        return self.verdict == "yes"

    @property
    def verdict(self) -> Literal["yes", "no", "open"]:
        """Whether the interval is above what is to be reached or below it; open if it is neither, or there is none."""
        low, high = self.row["normalised_low"], self.row["normalised_high"]
        if low is not None and low >= LEAST:
            return "yes"
        return "no" if high is not None and high < LEAST else "open"


def claims(summary: Summary) -> list[Claim]:
    """Return the claim for every benchmark with a right learner and values of it, at the largest size up to 10⁵."""
    found: list[Claim] = []
    for benchmark in summary.config.benchmarks:
        rows = [
            row
            for row in summary.values
            if row["benchmark"] == benchmark and row["size"] <= LARGEST and row["normalised"] is not None
        ]
        own = [row for row in rows if row["learner"] == right_learner(benchmark)]
        if own:
            best = max(own, key=lambda row: row["size"])
            others = tuple(
                row
                for learner in summary.config.learners
                for row in rows
                if row["learner"] == learner != best["learner"] and row["size"] == best["size"]
            )
            found.append(Claim(benchmark, best["learner"], best["size"], best, others))
    return found


@dataclass(frozen=True)
class ComparedPolicy:
    """One policy, or the policies of several seeds or datasets."""

    policy: str
    normalised: float
    stderr: float | None
    """Over seeds or datasets; over episodes where there is one only."""
    count: int
    """Seeds or datasets."""
    best: float | None
    """Of several seeds of a baseline."""


def common_size(summary: Summary, benchmark: str) -> int | None:
    """Return the largest dataset that all learners with any value have values at."""
    sizes: dict[str, set[int]] = {}
    for row in summary.values:
        if row["benchmark"] == benchmark and row["normalised"] is not None:
            sizes.setdefault(row["learner"], set()).add(row["size"])
    everywhere = {
        size for own in sizes.values() for size in own if all(size in other for other in sizes.values())
    }
    return max(everywhere, default=None)


def compared_policies(summary: Summary, benchmark: str) -> list[ComparedPolicy]:
    """Return the policies of a benchmark that can be compared, in the order in which they are shown."""
    size, best = common_size(summary, benchmark), best_seeds(summary, benchmark)
    found: dict[str, ComparedPolicy] = {}
    for row in summary.values:
        if (row["benchmark"], row["size"]) == (benchmark, size) and row["normalised"] is not None:
            name = row["learner"]
            found[name] = ComparedPolicy(name, row["normalised"], row["normalised_stderr"], row["runs"], None)
    for row in summary.baselines:
        if row["benchmark"] == benchmark and row["normalised"] is not None:
            name = row["policy"]
            top = best.get(name) if row["seeds"] > 1 else None
            found[name] = ComparedPolicy(
                name,
                row["normalised"],
                row["normalised_stderr"],
                row["seeds"],
                None if top is None else top.mean,
            )
    return [found[policy] for policy in POLICIES if policy in found]


def best_seeds(summary: Summary, benchmark: str) -> dict[str, NormalisedValue]:
    """Return the highest normalised value of any seed, by baseline that has seeds."""
    kept = {
        cell: result
        for cell, result in summary.results.items()
        if isinstance(cell, BaselineCell) and cell.benchmark == benchmark and not cell.fully_observed
    }
    ends = {cell.policy: result.estimates for cell, result in kept.items() if cell.policy in SCALE}
    if not {"optimal", "prior"} <= set(ends):
        return {}
    scale = Scale(ends["optimal"], ends["prior"])
    best: dict[str, NormalisedValue] = {}
    for cell, result in kept.items():
        value = None if cell.policy in SCALE else scale.of_run(result.estimates[0], cell.run)
        if value is not None:
            best[cell.policy] = max(value, best.get(cell.policy, value), key=lambda one: one.mean)
    return best

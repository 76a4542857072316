"""The claim that is tested: with the right assumption, a learned policy is nearly as good as the optimal one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from missmdp.experiments.reproduce.expected import right_learner
from missmdp.experiments.reproduce.summary import Summary

__all__ = ["LARGEST", "LEAST", "Claim", "claims"]

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

"""Baselines and learned policies side by side, on the scale from prior to optimal."""

from __future__ import annotations

from dataclasses import dataclass

from missmdp.evaluation.compare import NormalisedValue
from missmdp.experiments.reproduce.cells import SCALE
from missmdp.experiments.reproduce.normalised import Scale
from missmdp.experiments.reproduce.style import POLICIES
from missmdp.experiments.reproduce.summary import Summary

__all__ = ["Standing", "best_seeds", "common_size", "standings"]


@dataclass(frozen=True)
class Standing:
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


def standings(summary: Summary, benchmark: str) -> list[Standing]:
    """Return the policies of a benchmark that can be compared, in the order in which they are shown."""
    size, best = common_size(summary, benchmark), best_seeds(summary, benchmark)
    found: dict[str, Standing] = {}
    for row in summary.values:
        if (row["benchmark"], row["size"]) == (benchmark, size) and row["normalised"] is not None:
            name = row["learner"]
            found[name] = Standing(name, row["normalised"], row["normalised_stderr"], row["runs"], None)
    for row in summary.baselines:
        if row["benchmark"] == benchmark and row["normalised"] is not None:
            name = row["policy"]
            top = best.get(name) if row["seeds"] > 1 else None
            found[name] = Standing(
                name,
                row["normalised"],
                row["normalised_stderr"],
                row["seeds"],
                None if top is None else top.mean,
            )
    return [found[policy] for policy in POLICIES if policy in found]


def best_seeds(summary: Summary, benchmark: str) -> dict[str, NormalisedValue]:
    """Return the highest normalised value of any seed, by baseline that has seeds."""
    cells = [
        cell
        for cell in summary.cells
        if cell.kind == "baseline" and cell.benchmark == benchmark and not cell.fully_observed
    ]
    kept = {cell: result for cell in cells if (result := summary.store.read(cell)) is not None}
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

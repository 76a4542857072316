"""The tables of a run for people: rounded, with errors, in words. The files in `tables` have all digits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from missmdp.experiments.reproduce.claims import LEAST, claims
from missmdp.experiments.reproduce.expected import learnable_by, mdp_of
from missmdp.experiments.reproduce.standings import best_seeds
from missmdp.experiments.reproduce.style import POLICIES, size_text
from missmdp.experiments.reproduce.summary import Rows, Summary
from missmdp.words import UNKNOWN, decimals, duration, signed

__all__ = ["TextTable", "interval_text", "plus_minus", "text_tables"]

_SHOWN = (100, 1_000, 10_000, 100_000, 1_000_000)
"""Sizes in tables of total variation, where they were measured."""
_KINDS = {"learning": "total variation", "value": "learned policies", "baseline": "baselines"}


@dataclass(frozen=True)
class TextTable:
    """A table of texts; the first column names the rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    """Columns that are words; the others are numbers."""

    @property
    def numbers(self) -> list[int]:
        """Columns that are set to the right."""
        return [i for i in range(len(self.columns)) if i not in self.words]


def plus_minus(mean: float | None, stderr: float | None) -> str:
    """Return a mean with its standard error, both with the decimals that the error deserves, two or three."""
    if mean is None:
        return UNKNOWN
    if stderr is None:
        return signed(mean, 3)
    places = min(3, decimals(stderr))
    return f"{signed(mean, places)} ± {stderr:.{places}f}"


def interval_text(row: dict[str, Any]) -> str:
    """Return the 95 % interval of a normalised value."""
    low, high, stderr = (row[f"normalised_{end}"] for end in ("low", "high", "stderr"))
    if low is None or high is None:
        return "unbounded"
    places = 3 if stderr is None else min(3, decimals(stderr))
    return f"{signed(low, places)} to {signed(high, places)}"


def text_tables(summary: Summary) -> dict[str, TextTable]:
    """Return the tables that have anything in them, by name."""
    tables = {
        "claims": _claims(summary),
        "learning": _by_size(summary, summary.learning, "atv", "Average total variation of M̂"),
        "wtv": _by_size(summary, summary.learning, "wtv", "Worst total variation of M̂ over all states"),
        "values": _by_size(
            summary,
            summary.values,
            "normalised",
            "Normalised value of the policy for M̂: optimal is 1, prior 0",
        ),
        "baselines": _baselines(summary),
        "nothing_missing": _nothing_missing(summary),
        "separation": _separation(summary),
        "timings": _timings(summary),
    }
    return {name: table for name, table in tables.items() if table.rows}


def _claims(summary: Summary) -> TextTable:
    rows = [
        (
            claim.benchmark,
            f"{claim.learner}, {size_text(claim.size)}",
            plus_minus(claim.row["normalised"], claim.row["normalised_stderr"]),
            interval_text(claim.row),
            claim.verdict,
            ", ".join(f"{row['learner']} {signed(row['normalised'], 2)}" for row in claim.others),
        )
        for claim in claims(summary)
    ]
    columns = (
        "benchmark",
        "right learner, steps",
        "its value",
        "95 % interval",
        f"≥\u00a0{LEAST}",
        "other learners",
    )
    caption = "Normalised value of the right learner’s policy, mean ± standard error over datasets; others beside it"
    return TextTable(caption, columns, tuple(rows), (0, 1))


def _by_size(summary: Summary, table: Rows, measure: str, caption: str) -> TextTable:
    """Return a measure with sizes as columns and a row for every benchmark and learner."""
    found = {
        (row["benchmark"], row["learner"], row["size"]): plus_minus(row[measure], row[f"{measure}_stderr"])
        for row in table
        if row[measure] is not None
    }
    measured = sorted({size for _, _, size in found})
    sizes = [size for size in measured if size in _SHOWN] or measured
    rows = [
        (
            benchmark,
            learner,
            "holds" if learner in learnable_by(benchmark) else "does not",
            *(found.get((benchmark, learner, size), UNKNOWN) for size in sizes),
        )
        for benchmark in summary.config.benchmarks
        for learner in summary.config.learners
        if any((benchmark, learner, size) in found for size in sizes)
    ]
    columns = ("benchmark", "learner", "its assumption", *(f"{size_text(size)} steps" for size in sizes))
    return TextTable(f"{caption}; mean ± standard error over datasets", columns, tuple(rows), (0, 1, 2))


def _in_order(rows: Iterable[dict[str, Any]], summary: Summary) -> Rows:
    benchmarks, policies = summary.config.benchmarks, list(POLICIES)
    return sorted(rows, key=lambda row: (benchmarks.index(row["benchmark"]), policies.index(row["policy"])))


def _baselines(summary: Summary) -> TextTable:
    best = {name: best_seeds(summary, name) for name in summary.config.benchmarks}
    rows: list[tuple[str, ...]] = []
    for row in _in_order(summary.baselines, summary):
        if row["missing"] == "nothing":
            continue
        several, top = row["seeds"] > 1, best[row["benchmark"]].get(row["policy"])
        rows.append(
            (
                row["benchmark"],
                POLICIES[row["policy"]],
                str(row["seeds"]),
                plus_minus(row["value"], row["stderr"] if several else row["best_stderr"]),
                plus_minus(row["best"], row["best_stderr"]) if several else UNKNOWN,
                _normalised(row),
                plus_minus(top.mean, top.stderr) if several and top is not None else UNKNOWN,
            )
        )
    columns = ("benchmark", "policy", "seeds", "value", "best seed", "normalised", "best seed, normalised")
    caption = "Baselines: mean ± standard error over seeds, of episodes where there is one; best of the seeds"
    return TextTable(caption, columns, tuple(rows), (0, 1))


def _normalised(row: dict[str, Any]) -> str:
    if row["policy"] in ("optimal", "prior") and row["normalised"] is not None:
        return f"{row['normalised']:.0f}"  # by definition
    return plus_minus(row["normalised"], row["normalised_stderr"])


def _nothing_missing(summary: Summary) -> TextTable:
    rows = [
        (
            mdp_of(row["benchmark"]),
            POLICIES[row["policy"]],
            signed(row["optimum"], 3),
            str(row["seeds"]),
            plus_minus(row["value"], row["stderr"] if row["seeds"] > 1 else row["best_stderr"]),
            plus_minus(row["best"], row["best_stderr"]) if row["seeds"] > 1 else UNKNOWN,
        )
        for row in _in_order(summary.baselines, summary)
        if row["missing"] == "nothing"
    ]
    columns = ("MDP", "policy", "optimum", "seeds", "value", "best seed")
    return TextTable("Where nothing goes missing; the optimum is exact", columns, tuple(rows), (0, 1))


def _separation(summary: Summary) -> TextTable:
    rows = [
        (
            row["benchmark"],
            plus_minus(row["optimal_minus_prior"], row["stderr"]),
            f"{row['optimal_minus_prior'] / row['stderr']:.0f}" if row["stderr"] else UNKNOWN,
            signed(row["optimal_minus_random"], 2),
            f"{signed(100.0 * row['share'], 1)} %",
        )
        for row in summary.separation
    ]
    columns = ("benchmark", "optimal − prior", "in standard errors", "optimal − random", "share")
    return TextTable("How far the ends of the scale are apart", columns, tuple(rows))


def _timings(summary: Summary) -> TextTable:
    """Return wall times: per benchmark and kind of cell, all cells together, and the longest."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in summary.timings:
        seconds.setdefault((row["benchmark"], row["kind"]), []).append(row["seconds"])
    kinds = [kind for kind in _KINDS if any(kind == found for _, found in seconds)]
    rows: list[tuple[str, ...]] = []
    for benchmark in summary.config.benchmarks:
        own = {kind: seconds.get((benchmark, kind), []) for kind in kinds}
        if any(own.values()):
            everything = [one for found in own.values() for one in found]
            rows.append((benchmark, *map(_time, own.values()), _time(everything)))
    if len(rows) > 1:
        columns = [[s for (_, found), own in seconds.items() if found == kind for s in own] for kind in kinds]
        rows.append(("all", *map(_time, columns), _time([s for column in columns for s in column])))
    caption = "Wall time of all cells, one after the other, and of the longest"
    return TextTable(caption, ("benchmark", *(_KINDS[kind] for kind in kinds), "together"), tuple(rows))


def _time(seconds: list[float]) -> str:
    return f"{duration(sum(seconds))} ({duration(max(seconds))})" if seconds else UNKNOWN

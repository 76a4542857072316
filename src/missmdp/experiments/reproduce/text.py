"""A run in words: its tables, rounded and with errors, and sentences that answer the paper's four questions.

The files in the folder `tables` have all digits. Nothing is said that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from missmdp.experiments.reproduce.findings import (
    LARGEST,
    LEAST,
    ComparedPolicy,
    best_seeds,
    claims,
    compared_policies,
    holds,
    learnable_by,
    mdp_of,
    right_learner,
)
from missmdp.experiments.reproduce.style import POLICIES, size_text
from missmdp.experiments.reproduce.summary import Rows, Summary
from missmdp.experiments.tables import markdown_table
from missmdp.words import UNKNOWN, decimals, duration, listed, percent, signed

_NO_BREAK = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
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


def markdown_tables(summary: Summary) -> dict[str, str]:
    """Return the tables that have anything in them, by name, as Markdown."""
    return {
        # Numbers with their errors stay on one line where columns are narrow.
        name: markdown_table(table.columns, table.rows, table.words).replace(" ± ", _NO_BREAK)
        for name, table in text_tables(summary).items()
    }


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
            "holds" if holds(learner, benchmark) else "does not",
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


_MODEL_FREE = ("ppo-memory", "ppo", "pomcp")


def approximation(summary: Summary) -> list[str]:
    """Return what there is to say of Q1, whether the right learner finds M; the first sentence sums it up."""
    sentences: list[str] = []
    ends: list[tuple[float, str, int]] = []
    for benchmark in summary.config.benchmarks:
        rows = _learned(summary, benchmark, right_learner(benchmark))
        if not rows:
            continue
        last = rows[-1]
        shown = [row for row in rows[:-1] if row["size"] in (100, LARGEST)]
        path = [f"{_distance(row['atv'])} at {size_text(row['size'])}" for row in (*shown, last)]
        sentences.append(
            f"{last['learner']} on {benchmark}: average TV {listed(path)} steps, "
            f"worst TV {_distance(last['wtv'])} there."
        )
        ends.append((last["atv"], benchmark, last["size"]))
    if not ends:
        return []
    worst, benchmark, size = max(ends)
    return [
        f"With the right assumption and the most data, the average TV is at most {_distance(worst)} "
        f"({benchmark}, {size_text(size)} steps).",
        *sentences,
    ]


def assumptions(summary: Summary) -> list[str]:
    """Return what there is to say of Q2: what wrong assumptions cost, and others that hold too."""
    wrong: list[str] = []
    least: list[tuple[float, str]] = []
    weaker: list[str] = []
    for benchmark in summary.config.benchmarks:
        ends = {
            name: rows[-1] for name in summary.config.learners if (rows := _learned(summary, benchmark, name))
        }
        found = [row for name, row in ends.items() if not holds(name, benchmark)]
        if found:
            each = [
                f"{row['learner']} at {_distance(row['atv'])} (worst TV {_distance(row['wtv'])})"
                for row in found
            ]
            wrong.append(f"{benchmark}: {listed(each)} after {size_text(found[0]['size'])} steps.")
            least += [(row["atv"], f"{row['learner']} on {benchmark}") for row in found]
        weaker += _weaker(summary, benchmark)
    if not least:
        return weaker
    smallest, where = min(least)
    first = (
        f"Learners with a wrong assumption end with an average TV of {_distance(smallest)} ({where}) or more."
    )
    return [first, *wrong, *weaker]


def _weaker(summary: Summary, benchmark: str) -> list[str]:
    """Return sentences on the other learners whose assumptions hold too: they count more groups."""
    right = {row["size"]: row for row in _learned(summary, benchmark, right_learner(benchmark))}
    sentences: list[str] = []
    for name in learnable_by(benchmark):
        if name == right_learner(benchmark):
            continue
        rows = [
            row
            for row in _learned(summary, benchmark, name)
            if row["size"] in right and row["size"] <= LARGEST
        ]
        if rows:
            row = rows[-1]
            best = right[row["size"]]
            sentences.append(
                f"{benchmark}: what {name} assumes holds too; it has an average TV of "
                f"{_distance(row['atv'])} at {size_text(row['size'])} steps, where {best['learner']} has "
                f"{_distance(best['atv'])}."
            )
    return sentences


def values(summary: Summary) -> list[str]:
    """Return what there is to say of Q3: whether values approach the optimal policy's."""
    found = claims(summary)
    sentences = [
        f"{claim.learner} on {claim.benchmark}, {size_text(claim.size)} steps: "
        f"{plus_minus(claim.row['normalised'], claim.row['normalised_stderr'])} "
        f"(95 % interval {interval_text(claim.row)})."
        for claim in found
    ]
    for benchmark in summary.config.benchmarks:
        learned = [
            one for one in compared_policies(summary, benchmark) if one.policy in summary.config.learners
        ]
        if right_learner(benchmark) is None and learned:
            best = max(learned, key=lambda one: one.normalised)
            sentences.append(
                f"On {benchmark}, where no learner’s assumption holds, {best.policy} gets furthest: "
                f"{plus_minus(best.normalised, best.stderr)}."
            )
    if not found:
        return sentences
    holding = [claim.benchmark for claim in found if claim.holds]
    first = (
        f"The right learner’s policy reaches a normalised value of {LEAST}, by the lower end of its 95 % interval, on "
        f"{len(holding)} of {len(found)} benchmarks"
    )
    for verdict, words in (("no", "not on"), ("open", "too few runs to say so on")):
        without = [claim.benchmark for claim in found if claim.verdict == verdict]
        first += f"; {words} {listed(without)}" if without else ""
    return [f"{first}.", *sentences]


def model_free(summary: Summary) -> list[str]:
    """Return what there is to say of Q4: whether model-free methods compete."""
    compared: list[tuple[ComparedPolicy, list[ComparedPolicy]]] = []
    sentences: list[str] = []
    for benchmark in summary.config.benchmarks:
        found = compared_policies(summary, benchmark)
        free = [one for one in found if one.policy in _MODEL_FREE]
        learned = [one for one in found if one.policy in summary.config.learners]
        if not free or not learned:
            continue
        chosen = [one for one in learned if one.policy == right_learner(benchmark)] or learned
        ours, best = (max(ones, key=lambda one: one.normalised) for ones in (chosen, free))
        compared.append((ours, free))
        top = "" if best.best is None else f", {signed(best.best, 2)} with its best seed"
        sentences.append(
            f"{benchmark}: {POLICIES[best.policy]} is the best of them with "
            f"{plus_minus(best.normalised, best.stderr)}{top}; "
            f"{ours.policy} has {plus_minus(ours.normalised, ours.stderr)}."
        )
    if not compared:
        return _without_gaps(summary)
    below = sum(max(map(_best_seed, free)) < ours.normalised for ours, free in compared)
    above_prior = sum(any(one.normalised > 0.0 for one in free) for _, free in compared)
    first = (
        f"Model-free methods, even with their best seeds, stay below the learned policy on {below} of "
        f"{len(compared)} benchmarks; on {above_prior} one of them is better than the prior’s policy."
    )
    return [first, *sentences, *_without_gaps(summary)]


def _best_seed(one: ComparedPolicy) -> float:
    return one.normalised if one.best is None else one.best


def _without_gaps(summary: Summary) -> list[str]:
    found: dict[str, list[str]] = {}
    for row in summary.baselines:
        if row["missing"] == "nothing":
            behind, whole = row["optimum"] - row["best"], abs(row["optimum"])
            far = percent(behind / whole) if whole else signed(behind, 3)
            where = f"is {far} below the optimum" if behind > 0.0 else "reaches the optimum"
            found.setdefault(mdp_of(row["benchmark"]), []).append(f"{POLICIES[row['policy']]} {where}")
    return [f"{mdp}, with nothing missing and the best seed: {listed(each)}." for mdp, each in found.items()]


def _distance(value: float) -> str:
    return "less than 0.001" if 0.0 < value < 0.0005 else signed(value, 3)


def _learned(summary: Summary, benchmark: str, learner: str | None) -> Rows:
    rows = [row for row in summary.learning if (row["benchmark"], row["learner"]) == (benchmark, learner)]
    return sorted(rows, key=_size)


def _size(row: dict[str, Any]) -> int:
    return row["size"]

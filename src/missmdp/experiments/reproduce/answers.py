"""What the numbers of a run say to the paper's four questions, in sentences; nothing is said that was not measured."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.reproduce.claims import LARGEST, LEAST, claims
from missmdp.experiments.reproduce.expected import learnable_by, mdp_of, right_learner
from missmdp.experiments.reproduce.standings import Standing, standings
from missmdp.experiments.reproduce.style import POLICIES, size_text
from missmdp.experiments.reproduce.summary import Rows, Summary
from missmdp.experiments.reproduce.text_tables import interval_text, plus_minus
from missmdp.words import listed, percent, signed

__all__ = ["approximation", "assumptions", "model_free", "values"]

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
        holding = learnable_by(benchmark)
        ends = {
            name: rows[-1] for name in summary.config.learners if (rows := _learned(summary, benchmark, name))
        }
        found = [row for name, row in ends.items() if name not in holding]
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
        learned = [one for one in standings(summary, benchmark) if one.policy in summary.config.learners]
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
    compared: list[tuple[Standing, list[Standing]]] = []
    sentences: list[str] = []
    for benchmark in summary.config.benchmarks:
        found = standings(summary, benchmark)
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
        return _nothing_missing(summary)
    below = sum(max(map(_best_seed, free)) < ours.normalised for ours, free in compared)
    above_prior = sum(any(one.normalised > 0.0 for one in free) for _, free in compared)
    first = (
        f"Model-free methods, even with their best seeds, stay below the learned policy on {below} of "
        f"{len(compared)} benchmarks; on {above_prior} one of them is better than the prior’s policy."
    )
    return [first, *sentences, *_nothing_missing(summary)]


def _best_seed(one: Standing) -> float:
    return one.normalised if one.best is None else one.best


def _nothing_missing(summary: Summary) -> list[str]:
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

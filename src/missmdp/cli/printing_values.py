"""What `missmdp evaluate` prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from missmdp.cli.columns import Column, columns_width, print_columns, print_labelled, print_sentence
from missmdp.cli.printing import make_console
from missmdp.evaluation.compare import Comparison, NormalisedValue
from missmdp.evaluation.simulation import Arena
from missmdp.evaluation.value import Evaluation
from missmdp.experiments.baselines import MadePolicy
from missmdp.experiments.value_table import normalised_values
from missmdp.words import decimals, interval_text, rounded_up, signed

__all__ = ["print_made", "print_notes", "print_setting", "print_values"]

_WIDE_GAP = 0.05
"""Relative gap from which a solved policy deserves a word."""
_NOTHING = "–"
_ROUNDING = 1e-12


def print_setting(arena: Arena, episodes: int, until_stderr: float | None) -> None:
    """Print how policies are evaluated."""
    count = (
        f"{episodes:,} episodes" if until_stderr is None else f"until a standard error of {until_stderr:g}"
    )
    control = ", with a control variate" if arena.controls else ""
    print_labelled(
        "evaluation", f"{count}, at most {arena.horizon:,} decisions each, seed {arena.seed}{control}"
    )
    print_labelled("", f"what comes after these decisions is worth {rounded_up(arena.truncation)} at most")


def print_made(name: str, made: MadePolicy, note: str = "") -> None:
    """Print where a policy comes from."""
    print_labelled(name, made.how)
    if note:
        print_labelled("", note, whole=True)


def print_values(comparison: Comparison, made: Mapping[str, MadePolicy], *, confidence: float) -> None:
    """Print one table of values, differences and normalised values, or two where one would not fit."""
    console = make_console()
    values = _value_columns(comparison, confidence)
    others = [
        *(_difference_columns(comparison, confidence) if len(comparison.evaluations) > 1 else []),
        *_normalised_column(normalised_values(comparison, made)[0]),
    ]
    names = ["policy", *comparison.evaluations]
    console.print()
    if columns_width([names, *values, *others]) <= console.width or not console.is_terminal:
        print_columns([names, *values, *others])
        return
    print_columns([names, *values])
    if others:
        console.print()
        print_columns([names, *others])


def _value_columns(comparison: Comparison, confidence: float) -> list[Column]:
    columns: list[Column] = [["value"], ["s.e."], [_interval_title(confidence)]]
    for evaluation in comparison.evaluations.values():
        _add(columns, evaluation.mean, evaluation.stderr, evaluation.interval(confidence))
    return columns


def _difference_columns(comparison: Comparison, confidence: float) -> list[Column]:
    columns: list[Column] = [[f"− {comparison.reference}"], [_interval_title(confidence)]]
    for name in comparison.evaluations:
        if name == comparison.reference:
            for column in columns:
                column.append(_NOTHING)
            continue
        gap = comparison.difference(name)
        places = 0 if gap.mean == gap.stderr == 0.0 else _places(gap.mean, gap.stderr)
        columns[0].append(signed(gap.mean, places))
        columns[1].append(_interval(gap.interval(confidence), places))
    return columns


def _normalised_column(scale: Mapping[str, NormalisedValue]) -> list[Column]:
    if not scale:
        return []
    column = ["normalised"]
    for value in scale.values():
        if value.stderr == 0.0:
            column.append(f"{value.mean:g}")
            continue
        places = decimals(value.stderr)
        column.append(f"{signed(value.mean, places)} ± {value.stderr:.{places}f}")
    return [column]


def _add(columns: list[Column], mean: float, stderr: float, interval: tuple[float, float]) -> None:
    places = _places(mean, stderr)
    columns[0].append(signed(mean, places))
    columns[1].append(_NOTHING if math.isnan(stderr) else f"{stderr:.{places}f}")
    columns[2].append(_interval(interval, places))


def _places(mean: float, stderr: float) -> int:
    """Return how many decimals a figure deserves; an error of the size of rounding is none."""
    return decimals(0.0 if stderr <= _ROUNDING * abs(mean) else stderr)


def _interval(interval: tuple[float, float], places: int) -> str:
    return interval_text(interval, places) if all(map(math.isfinite, interval)) else _NOTHING


def _interval_title(confidence: float) -> str:
    return f"{100 * confidence:g} % interval"


def print_notes(
    comparison: Comparison, made: Mapping[str, MadePolicy], *, until_stderr: float | None
) -> None:
    """Print what deserves a sentence."""
    for i, note in enumerate(_notes(comparison, made, until_stderr)):
        if i == 0:
            make_console().print()
        print_sentence(note)


def _notes(
    comparison: Comparison, made: Mapping[str, MadePolicy], until_stderr: float | None
) -> Iterable[str]:
    for name, policy in made.items():
        gap = policy.relative_gap
        if gap is not None and gap > _WIDE_GAP:
            share = f" of {100 * gap:.0f} %" if gap < 1.0 else ""
            yield (
                f"{name} is solved to a wide gap{share}: give it more time (--solve-timeout) before you rely on its "
                "value."
            )
        if policy.status == "interrupted":
            yield f"{name} was interrupted while it was made: this is the best so far."
        yield from _happened(name, comparison[name])
    _, reason = normalised_values(comparison, made)
    if reason is not None:
        yield f"No normalised values: {reason}."
    yield from _ended(list(comparison.evaluations.values()), until_stderr)


def _happened(name: str, evaluation: Evaluation) -> Iterable[str]:
    decisions = int(evaluation.decisions.sum())
    if evaluation.impossible:
        what = ", ".join(
            f"{count:,} {kind}" for kind, count in evaluation.events.items() if count and kind in _WENT_ON
        )
        yield (
            f"{name} saw {evaluation.impossible:,} times in {decisions:,} decisions what its own model excludes, "
            f"and went on ({what}; see docs/policies.md)."
        )
    collapsed = evaluation.events.get("collapsed", 0)
    if collapsed:
        yield (
            f"{name}: no particle survived {collapsed:,} times in {decisions:,} decisions; it went on with particles "
            "from the exact belief."
        )


_WENT_ON = ("admitted", "restarted", "ignored")


def _ended(evaluations: list[Evaluation], until_stderr: float | None) -> Iterable[str]:
    status, counts = evaluations[0].status, sorted({evaluation.episodes for evaluation in evaluations})
    simulated = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    if status in ("timeout", "interrupted"):
        why = "Time was up" if status == "timeout" else "Interrupted"
        yield f"{why} after {simulated} episodes of each policy."
        if len(counts) > 1:
            yield "Differences are over the episodes that both policies have."
    elif until_stderr is not None and status == "episodes":
        yield f"After {simulated} episodes the standard error is not yet {until_stderr:g}."

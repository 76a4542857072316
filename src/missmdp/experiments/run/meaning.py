"""What a run found, in a few sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from missmdp.evaluation.compare import Difference
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.run.figures import ROUNDING, at_most, with_error
from missmdp.experiments.run.result import RunResult

__all__ = ["meaning"]

_NO_GUARANTEE = 0.995
"""Bounds from which on nothing is guaranteed."""


def meaning(result: RunResult) -> list[str]:
    """Return two to five sentences: which learner, what its policy is worth, and how sure that is."""
    return [
        f"Recommended: {result.recommendation.why}",
        *_worth(result),
        *_bound(result),
        *_sensitivity(result),
    ]


def _worth(result: RunResult) -> Iterator[str]:
    label, world = result.recommendation.label, result.world
    comparison = world.comparison
    evaluation = comparison[label]
    value = with_error(evaluation.mean, evaluation.stderr)
    if result.problem.truth is not None:
        yield (
            f"Its policy is worth {value} in the true model: "
            f"{_apart(comparison.difference(label), 'the optimal one')}, "
            f"{_apart(comparison.difference(label, 'prior'), 'the prior’s')} and "
            f"{_apart(comparison.difference(label, 'random'), 'random actions')}."
        )
        return
    assumes = result.recommended.learner.assumed_
    yield (
        f"If its assumption holds ({assumes}), its policy is worth {value}: "
        f"{_apart(comparison.difference(label, 'prior'), 'the prior’s')} and "
        f"{_apart(comparison.difference(label, 'random'), 'random actions')}."
    )
    yield from _other_worlds(result)


def _other_worlds(result: RunResult) -> Iterator[str]:
    """Say what the recommended policy would lose where another learner is right."""
    label = result.recommendation.label
    others = {result.learned[name].name: world for name, world in result.worlds.items() if name != label}
    losses = [
        f"{_apart(world.comparison.difference(label), f'{name}’s own')} if {name} is right"
        for name, world in others.items()
    ]
    if losses:
        yield f"Should another learner be right, it would be worth {', and '.join(losses)}."


def _apart(gap: Difference, other: str) -> str:
    """Return how much more or less than another policy, in words."""
    if abs(gap.mean) < ROUNDING and gap.stderr < ROUNDING:
        return f"as much as {other}"
    if abs(gap.mean) <= 2.0 * gap.stderr:
        return f"not clearly more or less than {other} (difference {with_error(gap.mean, gap.stderr)})"
    return f"{with_error(abs(gap.mean), gap.stderr)} {'more' if gap.mean > 0.0 else 'less'} than {other}"


def _bound(result: RunResult) -> Iterator[str]:
    bound = result.recommended.bound
    name = result.recommended.name
    if not bound.guaranteed:
        yield (
            f"What {name} learned comes without a guarantee: if its assumption holds ({bound.assumes}), a bootstrap "
            f"has it within {at_most(bound.worst)} of the truth, at {bound.confidence:g}."
        )
        return
    if bound.worst >= _NO_GUARANTEE:
        yield (
            f"There is no guarantee for all that {name} learned: some groups of states have too few data for any "
            "bound. Intervals of single groups are in the report."
        )
        return
    yield (
        f"If its assumption holds ({bound.assumes}), what {name} learned is nowhere off by more than "
        f"{at_most(bound.worst)}, with probability {bound.confidence:g}."
    )


def _sensitivity(result: RunResult) -> Iterator[str]:
    """Say what the worst of the changes do that were tried: to T, little and much, and to M."""
    rows = result.sensitivity or ()
    by_share: dict[float, list[SensitivityRow]] = {}
    for row in rows:
        if row.what == "transition":
            by_share.setdefault(round(row.size, 9), []).append(row)
    told = [
        f"{_worst(by_share[share])} if {100 * share:g} % of every transition goes elsewhere"
        for share in sorted({min(by_share), max(by_share)} if by_share else ())
    ]
    within = [row for row in rows if row.what == "missingness"]
    if within:
        how = (
            "within the bound"
            if result.recommended.bound.guaranteed
            else "as learned from the log drawn anew"
        )
        told.append(f"{_worst(within)} if values go missing otherwise, {how}")
    if told:
        yield f"Of the changes to the model that were tried, the worst move its value by {', '.join(told)}."


def _worst(rows: Sequence[SensitivityRow]) -> str:
    worst = min(rows, key=lambda row: row.difference)
    return with_error(worst.difference, worst.difference_stderr)

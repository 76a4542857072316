"""What a run found, in a few sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from missmdp.evaluation.compare import Difference
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.run.certifying import likely_range
from missmdp.experiments.run.figures import ROUNDING, at_most, no_more_than, with_error
from missmdp.experiments.run.result import RunResult
from missmdp.learn.diagnosis.result import type_words
from missmdp.learn.registry import learner_name
from missmdp.words import interval_text

__all__ = ["meaning"]

_NO_GUARANTEE = 0.995
"""Bounds from which on nothing is guaranteed."""


def meaning(result: RunResult) -> list[str]:
    """Return a few sentences: which learner, why values are missing, what its policy is worth, how sure that is."""
    return [
        f"Recommended: {result.recommendation.why}",
        *_reasons(result),
        *_worth(result),
        *_bound(result),
        *_certificate(result),
        *_sensitivity(result),
    ]


def _reasons(result: RunResult) -> Iterator[str]:
    found = result.reasons.diagnosis
    if found is None:
        if result.settings.diagnosis:
            yield f"Why values are missing was not found out: {(result.reasons.why_not or '').rstrip('.')}."
        return
    if not found.blocks:
        return
    chosen = "auto" in result.settings.learners
    other = found.recommended != result.recommendation.label
    suits = f" By that {learner_name(found.recommended)} would suit." if other and not chosen else ""
    yield f"The diagnosis says {type_words(found)}{suits}"


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


def _certificate(result: RunResult) -> Iterator[str]:
    found = result.certified.get(result.recommendation.label)
    if found is None:
        return
    certificate = found.certificate
    if certificate is None:
        likely = ""
        if found.interval is not None:
            between = interval_text(*likely_range(found.interval))
            likely = f" By a bootstrap, which is not a guarantee, it is worth {between}."
        yield f"There is no certificate for its policy: {(found.why_not or '').rstrip('.')}.{likely}"
        return
    if certificate.vacuous:
        yield (
            "How far from optimal its policy can be in truth is not certain at all yet: the smallest bound says no "
            "more than what is known without data."
        )
        return
    own = certificate.deploys == "policy"
    what = "it" if own else f"the policy graph in {result.folder.certified.name}"
    truth = (
        ""
        if found.loss is None
        else f" (by simulation in the true model: {with_error(found.loss.mean, found.loss.stderr)})"
    )
    yield (
        f"If its assumption holds, {what} is with probability {certificate.confidence:g} at most "
        f"{no_more_than(certificate.epsilon)} worse than optimal{truth}; without data that is known up to "
        f"{no_more_than(certificate.trivial)}."
    )
    if found.contradicted is not None:
        yield f"But its assumption is in doubt, and the certificate with it: {found.contradicted}."


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

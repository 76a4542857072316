"""What a run found, in a few sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from missmdp.experiments.record.record import DifferenceRecord, LikelyRecord, RunRecord, VariantRecord
from missmdp.words import ROUNDING, at_most, decimals, interval_text, listed, no_more_than, with_error

_NO_GUARANTEE = 0.995
"""Bounds from which on nothing is guaranteed."""
_CERTIFIED = "certified.mmpolicy"


def summary_text(run: RunRecord) -> list[str]:
    """Return a few sentences: which learner, why values are missing, what its policy is worth, how sure that is."""
    return [
        f"Recommended: {run.recommended.why}",
        *_reasons(run),
        *_worth(run),
        *_bound(run),
        *_certificate(run),
        *_sensitivity(run),
    ]


def likely_range(found: LikelyRecord) -> str:
    """Return what a policy is likely worth, as an interval with the decimals that it deserves."""
    return interval_text((found.low, found.high), min(6, decimals(found.spread)))


def _reasons(run: RunRecord) -> Iterator[str]:
    found = run.diagnosis.found
    if found is None:
        if run.settings.diagnosis:
            yield f"Why values are missing was not found out: {(run.diagnosis.why_not or '').rstrip('.')}."
        return
    if not found.blocks:
        return
    chosen = "auto" in run.settings.learners
    other = found.recommended != run.recommended.label
    suits = f" By that {found.learner} would suit." if other and not chosen else ""
    yield f"The diagnosis says {found.summary}{suits}"


def _worth(run: RunRecord) -> Iterator[str]:
    value = with_error(run.value.value, run.value.stderr)
    others = {"optimal": "the optimal one", "prior": "the prior’s", "random": "random actions"}
    apart = [_apart(gap, others[gap.than]) for gap in run.world.recommended if gap.than in others]
    compared = f": {listed(apart)}" if apart else ""
    if run.truth_known:
        yield f"Its policy is worth {value} in the true model{compared}."
        return
    yield f"If its assumption holds ({run.learner.assumes}), its policy is worth {value}{compared}."
    yield from _other_worlds(run)


def _other_worlds(run: RunRecord) -> Iterator[str]:
    """Say what the recommended policy would lose where another learner is right."""
    losses: list[str] = []
    for world in run.ordered_worlds:
        gap, name = world.difference(world.reference), run.learner_name(world.world)
        if gap is not None:
            losses.append(f"{_apart(gap, f'{name}’s own')} if {name} is right")
    if losses:
        yield f"Should another learner be right, it would be worth {', and '.join(losses)}."


def _apart(gap: DifferenceRecord, other: str) -> str:
    """Return how much more or less than another policy, in words."""
    stderr = gap.stderr or 0.0
    if abs(gap.mean) < ROUNDING and stderr < ROUNDING:
        return f"as much as {other}"
    if abs(gap.mean) <= 2.0 * stderr:
        return f"not clearly more or less than {other} (difference {with_error(gap.mean, gap.stderr)})"
    return f"{with_error(abs(gap.mean), gap.stderr)} {'more' if gap.mean > 0.0 else 'less'} than {other}"


def _bound(run: RunRecord) -> Iterator[str]:
    bound, name = run.learner.bound, run.learner.name
    worst = 1.0 if bound.worst is None else bound.worst
    if not bound.guaranteed:
        yield (
            f"What {name} learned comes without a guarantee: its intervals, which assume {bound.assumes}, come from a "
            f"bootstrap at {bound.confidence:g} each."
        )
    elif worst >= _NO_GUARANTEE:
        yield (
            f"There is no guarantee for all that {name} learned: some groups of states have too few data for any "
            "bound. Intervals of single groups are in the report."
        )
    else:
        yield (
            f"If its assumption holds ({bound.assumes}), every probability that {name} learned is within "
            f"{at_most(worst)} of the truth, with probability {bound.confidence:g}."
        )


def _certificate(run: RunRecord) -> Iterator[str]:
    one = run.certified
    if one is None:
        return
    found = one.found
    if found is None:
        likely = (
            ""
            if one.likely is None
            else f" By a bootstrap, which is not a guarantee, it is worth {likely_range(one.likely)}."
        )
        yield f"There is no certificate for its policy: {(one.why_not or '').rstrip('.')}.{likely}"
        return
    if found.vacuous:
        yield (
            "How far from optimal its policy can be in truth is not certain at all yet: the smallest bound says no "
            "more than what is known without data."
        )
        return
    what = "it" if found.deploys == "policy" else f"the policy graph in {_CERTIFIED}"
    truth = (
        ""
        if one.loss is None
        else f" (by simulation in the true model: {with_error(one.loss.mean, one.loss.stderr)})"
    )
    yield (
        f"If its assumption holds, {what} is with probability {found.confidence:g} at most "
        f"{no_more_than(found.epsilon)} worse than optimal{truth}. Without data, one could only say: at most "
        f"{no_more_than(found.trivial)}."
    )
    if one.contradicted is not None:
        yield f"But its assumption is in doubt, and the certificate with it: {one.contradicted}."


def _sensitivity(run: RunRecord) -> Iterator[str]:
    """Say what the worst of the changes do that were tried: to T, little and much, and to M."""
    rows = () if run.sensitivity is None else run.sensitivity.rows
    by_share: dict[float, list[VariantRecord]] = {}
    for row in rows:
        if row.what == "transition":
            by_share.setdefault(round(row.size, 9), []).append(row)
    told = [
        f"{_worst(by_share[share])} if {100 * share:g} % of every transition goes elsewhere"
        for share in sorted({min(by_share), max(by_share)} if by_share else ())
    ]
    within = [row for row in rows if row.what == "missingness"]
    if within:
        guaranteed = run.learner.bound.guaranteed
        how = "within the bound" if guaranteed else "as learned from the resampled log"
        told.append(f"{_worst(within)} if values go missing differently, {how}")
    if told:
        yield f"The worst changes to the model that were tried change its value by {', '.join(told)}."


def _worst(rows: Sequence[VariantRecord]) -> str:
    worst = min(rows, key=lambda row: row.difference)
    return with_error(worst.difference, worst.difference_stderr)

"""What counts, in a box: what was learned, what to do, and what that is worth."""

from __future__ import annotations

from missmdp.experiments.record.record import DifferenceRecord, LearnerRecord, RunRecord
from missmdp.experiments.report.naming import confidence_text, policy_name
from missmdp.pages.markup import Html, element, name
from missmdp.pages.page import Tile, headline, note, paragraph
from missmdp.words import (
    count,
    interval,
    listed,
    no_more_than,
    number,
    percent,
    plus,
    sentence,
    share_text,
)

_WORTHLESS = 0.5
"""A bound on probabilities that says hardly more than nothing."""
_ROUNDING = 1e-7
"""Differences and errors up to this share of a value are those of the arithmetic."""


def headline_title(run: RunRecord) -> str:
    """Return the page's heading."""
    return f"Deciding with missing values: {run.model.name}"


def headline_box(run: RunRecord) -> Html:
    """Return the box at the top of a report."""
    learner = run.learner
    return headline(
        [Tile("Recommended policy", learner.name, "learned from the data"), _worth(run), _gain(run)],
        *_misfit(run),
        *_too_few(learner),
        paragraph(_verdict(run), kind="verdict"),
        _compared(run),
        paragraph(_data_sentence(run), *_assumes(run), *_learned(learner), *_certain(run)),
        paragraph(f"Why {learner.name}: {sentence(run.recommended.why)}", kind="why"),
    )


def _misfit(run: RunRecord) -> list[Html]:
    """Return a warning where the data do not fit the model."""
    if run.data.fits:
        return []
    problems = len(run.data.problems)
    some = f" ({count(problems, 'problem')}, listed below)" if problems else ""
    return [note(f"The data do not fit the model{some}, so figures here may be wrong.", kind="warning")]


def _too_few(learner: LearnerRecord) -> list[Html]:
    """Return a warning where what was learned may be off by so much that it says nothing."""
    bound = learner.bound
    if bound.worst is None or bound.worst < _WORTHLESS:
        return []
    by = "" if bound.guaranteed else ", by a bootstrap"
    return [
        note(
            f"In some situations there are too few data to rely on what {learner.name} learned: a chance there may "
            f"be off by {percent(min(1.0, bound.worst))}{by}.",
            kind="warning",
        )
    ]


def _assumes(run: RunRecord) -> list[str]:
    """Return what the recommended learner assumes, where the verdict does not say it."""
    return [f"{run.learner.name} assumes: {sentence(run.learner.clause)}"] if run.truth_known else []


def _certain(run: RunRecord) -> list[str]:
    """Return what is certain of the policy, if anything is."""
    found = None if run.certified is None else run.certified.found
    if found is None:
        return []
    if found.vacuous:
        return ["How far from the best policy it is, is not certain: for that there are too few data."]
    what = "its policy graph" if found.deploys == "controller" else "its policy"
    return [
        f"If what {run.learner.name} assumes is true, {what} is at most {no_more_than(found.epsilon)} worse than the "
        f"best policy, with {percent(found.confidence)} confidence."
    ]


def _worth(run: RunRecord) -> Tile:
    row = run.value
    label = "What it is worth" if run.truth_known else f"Worth, if {run.learner.name} is right"
    return Tile(label, number(row.value, row.stderr), _interval(run, row.low, row.high, row.stderr))


def _gain(run: RunRecord) -> Tile:
    row = run.value
    if run.truth_known and row.normalised is not None:
        low, high = (
            share_text(end, row.normalised_stderr) for end in (row.normalised_low, row.normalised_high)
        )
        detail = f"{confidence_text(run)} interval {low} to {high}"
        if row.normalised_low is None or row.normalised_high is None:
            detail = "but the data do not settle this"
        return Tile("Of what there is to gain", share_text(row.normalised, row.normalised_stderr), detail)
    gain = _over_guessing(run)
    detail = "" if gain is None else _interval(run, gain.low, gain.high, gain.stderr)
    if gain is None and any(one.label == "prior" for one in run.without("policy")):
        detail = "guessing has no policy here"
    figure = plus(None) if gain is None else plus(gain.mean, gain.stderr)
    return Tile("Better than guessing by", figure, detail or "guessing assumes that every gap is a coin toss")


def _interval(run: RunRecord, low: float | None, high: float | None, stderr: float | None) -> str:
    """Return an interval with its confidence, or nothing where there is none."""
    known = low is not None or high is not None
    return f"{confidence_text(run)} interval {interval(low, high, stderr)}" if known else ""


def _over_guessing(run: RunRecord) -> DifferenceRecord | None:
    """Return how much more the recommended policy is worth than the prior's."""
    gap = run.world.difference("prior")
    if gap is not None and max(abs(gap.mean), gap.stderr or 0.0) <= _ROUNDING * abs(run.value.value):
        return DifferenceRecord(than="prior", mean=0.0, stderr=None, low=None, high=None)
    return gap


def _verdict(run: RunRecord) -> str:
    """Return the one sentence that must be read."""
    if run.truth_known and run.value.normalised is not None:
        return _share_verdict(run, run.value.normalised)
    return _gain_verdict(run, _over_guessing(run))


def _share_verdict(run: RunRecord, share: float) -> str:
    learner, row = run.learner.name, run.value
    stderr, low, high = row.normalised_stderr, row.normalised_low, row.normalised_high
    scale = "what perfect knowledge of the missingness would gain over guessing"
    if low is None or high is None:
        return f"How much the policy learned with {learner} gets of {scale} cannot be told: that is too little here."
    if high < 0.0:
        return f"The policy learned with {learner} is worse than guessing: it gains nothing of {scale}."
    if low <= 0.0:
        return f"The policy learned with {learner} and guessing how values go missing cannot be told apart."
    if low > 1.0:
        return (
            f"The policy learned with {learner} gets more than {scale}: the policy with that knowledge is not solved "
            "to the end, or this is luck."
        )
    if share >= 1.0 or (stderr is not None and share + stderr >= 1.0 and share > 0.995):
        return f"The policy learned with {learner} gets, as far as can be told, all of {scale}."
    return f"The policy learned with {learner} gets {share_text(share, stderr)} of {scale}."


def _gain_verdict(run: RunRecord, gain: DifferenceRecord | None) -> str:
    learner = run.learner.name
    if gain is None:
        return f"The policy learned with {learner} is recommended."
    policy = f"The policy learned with {learner}"
    if not run.truth_known:
        policy = f"If what {learner} assumes is true ({run.learner.clause}), the policy learned with it"
    if (gain.low is not None and gain.low > 0.0) or (gain.low is None and gain.mean > 0.0):
        return f"{policy} is worth {number(gain.mean, gain.stderr)} more than guessing how values go missing."
    if (gain.high is not None and gain.high < 0.0) or (gain.high is None and gain.mean < 0.0):
        return f"{policy} is worth less than guessing how values go missing."
    return f"{policy} and guessing how values go missing cannot be told apart."


def _compared(run: RunRecord) -> Html:
    """Return what the others are worth, and what the words mean."""
    others = [
        f"{number(other.value, other.stderr)} for {policy_name(run, policy)}"
        for policy in ("optimal", "prior", "random")
        if (other := run.world.row(policy)) is not None
    ]
    worth = f"It is worth {number(run.value.value, run.value.stderr)} per episode"
    against = f", against {listed(others)}" if others else ""
    return paragraph(
        f"{worth}{against}.",
        "An episode’s worth is the sum of its rewards; what comes later counts less "
        f"(a reward k steps ahead counts {run.model.discount:g}ᵏ).",
    )


def _data_sentence(run: RunRecord) -> Html:
    gaps, steps = run.data.gaps, count(run.data.steps, "step")
    if not gaps:
        return element("span", f"In {steps} of data nothing is missing.")
    most = max(gaps, key=lambda feature: gaps[feature])
    return element(
        "span",
        f"In {steps} of data, ",
        name(most),
        f" is missing most often: {percent(gaps[most])} of the time.",
    )


def _learned(learner: LearnerRecord) -> list[str]:
    """Return what drives the gaps, as far as it was learned."""
    parents = list(dict.fromkeys(parent for parent, _ in learner.graph.edges))
    if not parents:
        return []
    return [f"As {learner.name} has learned, gaps depend on {listed(parents, most=4)}."]

"""Which learner to trust: assumptions that the data contradict, and predictions of data that were not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from missmdp.experiments.record.record import HeldOutRecord, LearnerRecord, RunRecord
from missmdp.experiments.report.naming import assumption, shape, style
from missmdp.pages.markup import Html
from missmdp.pages.page import Section, bullets, figure, note, paragraph, subsection, table
from missmdp.pages.row_charts import Dot, dot_chart
from missmdp.pages.svg import Chart
from missmdp.words import UNKNOWN, count, listed, number, percent, plus, sentence

_PREDICTS = "Who predicts new data best?"
Scored = tuple[LearnerRecord, HeldOutRecord]
"""A learner, and how well it predicts."""
_TESTED = "The tests found nothing against this."
_CHOSEN = (
    "This was chosen because it explains the data best, so it is not tested against them once more; wherever the "
    "search began, it ended with the same chances."
)


def assumptions_section(run: RunRecord) -> Section:
    """Return the section on what speaks against the learners' assumptions."""
    content: list[Html] = []
    for learner in run.ordered_learners:
        title = f"{learner.name}: {assumption(learner)}"
        counts = learner.bound.guaranteed
        if learner.warnings:
            doubt = "the data contradict this." if counts else "what was learned is in doubt."
            verdict = note(doubt, kind="warning")
            content.append(subsection(title, verdict, bullets(map(sentence, learner.warnings))))
        else:
            content.append(subsection(title, paragraph(_TESTED if counts else _CHOSEN)))
    if any(learner.warnings and learner.bound.guaranteed for learner in run.ordered_learners):
        content.append(
            paragraph(
                "A number p is the chance of data as extreme as these if the assumption were true; a tiny one is a "
                "contradiction, and a reason to distrust that learner’s policy.",
                kind="after",
            )
        )
    content.append(
        paragraph(
            "No contradiction is no proof: that a value hides itself, for one, cannot be seen in single records, "
            "which are all that these tests look at.",
            kind="after",
        )
    )
    return Section("assumptions", "Do the data contradict an assumption?", tuple(content))


def heldout_section(run: RunRecord) -> Section:
    """Return the section on predictions."""
    known = [(learner, learner.heldout) for learner in run.ordered_learners if learner.heldout is not None]
    slow = [
        note(f"{run.learner_name(one.label)} was left out: {sentence(one.why)}")
        for one in run.without("held-out")
    ]
    if not known:
        nothing = paragraph("This was not examined in this run.")
        return Section("heldout", _PREDICTS, (nothing, *slow))
    best = max(known, key=lambda one: -math.inf if one[1].difference is None else one[1].difference)
    first = known[0][1]
    introduction = paragraph(
        "Each learner was shown a part of the data and had to say how likely the rest is, with its gaps "
        f"({count(first.folds, 'part')} in turn, {count(first.steps, 'step')})."
    )
    content = [*_outside(first), *_findings(run, known, best), *_impossible(known), _scores(known), *slow]
    return Section("heldout", _PREDICTS, (introduction, *content))


def _outside(score: HeldOutRecord) -> list[Html]:
    """Return why some steps are not among those that were scored."""
    if not score.outside:
        return []
    whole = count(score.outside + score.steps, "step")
    return [
        note(
            f"{score.outside:,} of {whole} could not be used: the model rules out the rest of these episodes.",
            kind="warning",
        )
    ]


def _findings(run: RunRecord, known: Sequence[Scored], best: Scored) -> list[Html]:
    """Return a figure of who is ahead, or words where nobody is."""
    name = best[0].name
    if all(score.difference == 0.0 for _, score in known):
        words = "All predict new data equally well: take the one whose assumption you believe."
        alone = f"Only {name} was looked at, so there is nothing to compare it with."
        return [paragraph(words if len(known) > 1 else alone)]
    chart = Chart(
        "heldout",
        "How well each learner predicts data that it has not seen",
        "; ".join(f"{learner.name}: {_behind(score)}" for learner, score in known),
        dot_chart(
            [_dot(run, learner, score) for learner, score in known],
            axis_title=f"log-likelihood per step, compared with {name}: further right is better",
            marks=[0.0],
        ),
    )
    return [figure(chart, *_verdict(known, best))]


def _impossible(known: Sequence[Scored]) -> list[Html]:
    """Return what it means that something had no chance at all under what was learned from the rest."""
    return [
        note(
            f"{learner.name} held {count(score.impossible, score.by[:-1])} for "
            "impossible, with what it had learned from the rest, such as a gap that occurs there only; so it has no "
            "score. Differences are over what both hold possible, if that is the same."
        )
        for learner, score in known
        if score.impossible
    ]


def _dot(run: RunRecord, learner: LearnerRecord, score: HeldOutRecord) -> Dot:
    value, half = score.difference, score.margin
    low, high = (None, None) if value is None or half is None else (value - half, value + half)
    return Dot(
        learner.name,
        value,
        low,
        high,
        _behind(score),
        style=style(learner.label),
        shape=shape(learner.label),
        strong=learner.label == run.recommended.label,
    )


def _behind(score: HeldOutRecord) -> str:
    value, error = score.difference, score.difference_stderr
    if value is None:
        return "ruled out" if score.impossible else UNKNOWN
    if value == 0.0:
        return "best"
    text = plus(value, error)
    return text if error is None else f"{text} ± {number(error, error)}"


def _may_be_chance(score: HeldOutRecord) -> bool:
    return score.difference is not None and (score.margin is None or -score.difference <= score.margin)


def _verdict(known: Sequence[Scored], best: Scored) -> list[str]:
    name = best[0].name
    others = [one for one in known if one is not best]
    close = [learner.name for learner, score in others if _may_be_chance(score)]
    if close:
        apart = f"{listed(close)} cannot be told from it"
        verdict = f"{name} is ahead, but {apart}: take the one whose assumption you believe."
    elif not best[1].settles:
        verdict = f"{name} predicts best what could be used; but that is too little of the data to settle it."
    else:
        verdict = f"{name} predicts new data clearly best: its picture of how values go missing comes first."
    return [*_less_likely(others, name), verdict]


def _less_likely(others: Sequence[Scored], best: str) -> list[str]:
    """Return what differences of log-likelihoods mean: how much less likely each step looked."""
    parts = [
        f"{percent(1.0 - math.exp(min(0.0, score.difference)))} less likely to {learner.name}"
        for learner, score in others
        if score.difference
    ]
    return [f"On average each new step looked {listed(parts)} than to {best}."] if parts else []


def _scores(known: Sequence[Scored]) -> Html:
    rows = [
        [
            learner.name,
            number(score.per_step, score.stderr),
            number(score.stderr, score.stderr),
            _behind(score),
        ]
        for learner, score in known
    ]
    columns = ["learner", "per step", "standard error", "compared with the best"]
    return table("Log-likelihood of data that were held out", columns, rows, numbers=[1, 2, 3])

"""How well learners predict gaps that they have not seen."""

from __future__ import annotations

import math
from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.run.margin import margin, much_is_outside
from missmdp.pages.markup import Html
from missmdp.pages.page import Section, figure, note, paragraph, table
from missmdp.pages.row_charts import Dot, dot_chart
from missmdp.pages.svg import Chart
from missmdp.words import UNKNOWN, count, listed, number, percent, plus

__all__ = ["heldout_section"]

_TITLE = "Who predicts new data best?"

Learner = dict[str, Any]


def heldout_section(run: RunFile) -> Section:
    """Return the section on predictions."""
    known = [learner for learner in run.learners if learner["heldout"] is not None]
    if not known:
        return Section("heldout", _TITLE, (paragraph("This was not looked at in this run."),))
    best = max(known, key=lambda learner: _score(learner, "difference", -math.inf))
    first = known[0]["heldout"]
    introduction = paragraph(
        "Each learner was shown a part of the data and had to say how likely the rest is, with its gaps "
        f"({count(first['folds'], 'part')} in turn, {count(first['steps'], 'step')})."
    )
    content = [*_outside(first), *_findings(run, known, best), *_impossible(known), _table(known)]
    return Section("heldout", _TITLE, (introduction, *content))


def _outside(heldout: dict[str, Any]) -> list[Html]:
    """Return why some steps are not among those that were scored."""
    outside = heldout.get("outside") or 0
    if not outside:
        return []
    whole = outside + (heldout["steps"] or 0)
    return [
        note(
            f"{outside:,} of {count(whole, 'step')} could not be used: the model rules out the rest of these episodes.",
            kind="warning",
        )
    ]


def _findings(run: RunFile, known: list[Learner], best: Learner) -> list[Html]:
    """Return a figure of who is ahead, or words where nobody is."""
    if all(learner["heldout"]["difference"] == 0.0 for learner in known):
        words = "All predict new data equally well: take the one whose assumption you believe."
        alone = f"Only {best['name']} was looked at, so there is nothing to compare it with."
        return [paragraph(words if len(known) > 1 else alone)]
    chart = Chart(
        "heldout",
        "How well each learner predicts data that it has not seen",
        "; ".join(f"{learner['name']}: {_difference(learner)}" for learner in known),
        dot_chart(
            [_dot(run, learner) for learner in known],
            axis_title=f"log-likelihood per step, compared with {best['name']}: further right is better",
            marks=[0.0],
        ),
    )
    return [figure(chart, *_meaning(run, known, best))]


def _impossible(known: list[Learner]) -> list[Html]:
    """Return what it means that something had no chance at all under what was learned from the rest."""
    ruled_out = [learner for learner in known if learner["heldout"].get("impossible")]
    return [
        note(
            f"{learner['name']} held {count(learner['heldout']['impossible'], learner['heldout']['by'][:-1])} for "
            "impossible, with what it had learned from the rest, such as a gap that occurs there only; so it has no "
            "score. Differences are over what both hold possible, if that is the same."
        )
        for learner in ruled_out
    ]


def _score(learner: Learner, key: str, otherwise: float) -> float:
    value = learner["heldout"][key]
    return otherwise if value is None else value


def _dot(run: RunFile, learner: Learner) -> Dot:
    value, half = learner["heldout"]["difference"], _half(run, learner)
    return Dot(
        learner["name"],
        value,
        None if value is None or math.isinf(half) else value - half,
        None if value is None or math.isinf(half) else value + half,
        _difference(learner),
        style=run.style(learner["label"]),
        shape=run.shape(learner["label"]),
        strong=learner["label"] == run.recommended_label,
    )


def _half(run: RunFile, learner: Learner) -> float:
    """Return half the width of the interval of a difference: with few episodes it is wide."""
    found = learner["heldout"]
    if found["difference"] == 0.0:
        return 0.0
    return margin(
        found["difference_stderr"], found["units"] or 0, run.content["confidence"], found["steps"] or 0
    )


def _difference(learner: Learner) -> str:
    value, error = learner["heldout"]["difference"], learner["heldout"]["difference_stderr"]
    if value is None:
        return "ruled out" if learner["heldout"].get("impossible") else UNKNOWN
    if value == 0.0:
        return "best"
    text = plus(value, error)
    return text if error is None else f"{text} ± {number(error, error)}"


def _meaning(run: RunFile, known: list[Learner], best: Learner) -> list[str]:
    others = [learner for learner in known if learner is not best]
    close = [
        learner["name"]
        for learner in others
        if learner["heldout"]["difference"] is not None
        and learner["heldout"]["difference"] >= -_half(run, learner)
    ]
    if close:
        verdict = (
            f"{best['name']} is ahead, but {listed(close)} cannot be told from it: take the one whose assumption you "
            "believe."
        )
    elif much_is_outside(best["heldout"].get("outside") or 0, best["heldout"]["steps"] or 0):
        verdict = f"{best['name']} predicts best what could be used; but that is too little of the data to settle it."
    else:
        verdict = f"{best['name']} predicts new data clearly best: its picture of how values go missing comes first."
    return [*_less_likely(others, best), verdict]


def _less_likely(others: list[Learner], best: Learner) -> list[str]:
    """Return what differences of log-likelihoods mean: how much less likely each step looked."""
    known = [learner for learner in others if learner["heldout"]["difference"]]
    parts = [
        f"{percent(1.0 - math.exp(min(0.0, learner['heldout']['difference'])))} less likely to {learner['name']}"
        for learner in known
    ]
    return [f"On average each new step looked {listed(parts)} than to {best['name']}."] if parts else []


def _table(known: list[Learner]) -> str:
    rows = [
        [
            learner["name"],
            number(learner["heldout"]["per_step"], learner["heldout"]["stderr"]),
            number(learner["heldout"]["stderr"], learner["heldout"]["stderr"]),
            _difference(learner),
        ]
        for learner in known
    ]
    columns = ["learner", "per step", "standard error", "compared with the best"]
    return table("Log-likelihood of data that were held out", columns, rows, numbers=[1, 2, 3])

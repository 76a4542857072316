"""What counts, in a box: what was learned, what to do, and what that is worth."""

from __future__ import annotations

import math
from typing import Any

from missmdp.evaluation.value import student_interval
from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.run.figures import no_more_than
from missmdp.pages.markup import Html, element, name
from missmdp.pages.page import Tile, headline, note, paragraph
from missmdp.words import count, interval, listed, number, percent, plus, sentence, share_text

__all__ = ["headline_box", "headline_title"]

_WORTHLESS = 0.5
"""A bound on probabilities that says hardly more than nothing."""
_ROUNDING = 1e-7
"""Differences and errors up to this share of a value are those of the arithmetic."""


def headline_title(run: RunFile) -> str:
    """Return the page's heading."""
    return f"Deciding with missing values: {run.model['name']}"


def headline_box(run: RunFile) -> Html:
    """Return the box at the top of a report."""
    learner, world = run.recommended, _world(run)
    if learner is None:
        return headline(
            [], *_misfit(run), paragraph(_data_sentence(run)), paragraph("No policy is recommended.")
        )
    row = None if world is None else _row(world, learner["label"])
    tiles = [Tile("Recommended policy", learner["name"], "learned from the data")]
    sentences: list[Html] = []
    if world is not None and row is not None:
        tiles += [_worth(run, row), _gain(run, world, row)]
        sentences.append(_verdict(run, world, row))
        sentences.append(_compared(run, world, row))
    why = run["recommended"].get("why")
    reason = [paragraph(f"Why {learner['name']}: {sentence(why)}", kind="why")] if why else []
    warnings = [*_misfit(run), *_too_few(learner)]
    about = paragraph(
        _data_sentence(run), *_assumes(run, learner), *_learned(learner), *_certain(run, learner)
    )
    return headline(tiles, *warnings, *sentences, about, *reason)


def _misfit(run: RunFile) -> list[Html]:
    """Return a warning where the data do not fit the model."""
    if run.data["fits"] is not False:
        return []
    problems = len(run.data["problems"])
    some = f" ({count(problems, 'problem')}, listed below)" if problems else ""
    return [note(f"The data do not fit the model{some}, so figures here may be wrong.", kind="warning")]


def _too_few(learner: dict[str, Any]) -> list[Html]:
    """Return a warning where what was learned may be off by so much that it says nothing."""
    bound = learner["bound"]
    if not bound or bound["worst"] is None or bound["worst"] < _WORTHLESS:
        return []
    by = "" if bound.get("guaranteed", True) else ", as a bootstrap has it"
    return [
        note(
            f"In some situations there are too few data to rely on what {learner['name']} learned: a chance there may "
            f"be off by {percent(min(1.0, bound['worst']))}{by}.",
            kind="warning",
        )
    ]


def _assumes(run: RunFile, learner: dict[str, Any]) -> list[str]:
    """Return what the recommended learner assumes, where the verdict does not say it."""
    assumed = run.assumed(learner["label"])
    return [f"{learner['name']} assumes: {sentence(assumed)}"] if run.truth_known and assumed else []


def _certain(run: RunFile, learner: dict[str, Any]) -> list[str]:
    """Return what is certain of the policy, if anything is."""
    listed_: list[dict[str, Any]] = run.content.get("certificates") or []
    found = next((one["found"] for one in listed_ if one["label"] == learner["label"]), None)
    if found is None:
        return []
    if found["vacuous"]:
        return ["How far from the best policy it is, is not certain: for that there are too few data."]
    what = "its policy graph" if found["deploys"] == "controller" else "its policy"
    return [
        f"If what {learner['name']} assumes is true, {what} is at most {no_more_than(found['epsilon'])} worse than the "
        f"best policy, with {percent(found['confidence'])} confidence."
    ]


def _world(run: RunFile) -> dict[str, Any] | None:
    return next(iter(run.worlds), None)


def _row(world: dict[str, Any], policy: str) -> dict[str, Any] | None:
    return next((row for row in world["rows"] if row["policy"] == policy), None)


def _worth(run: RunFile, row: dict[str, Any]) -> Tile:
    label = "What it is worth" if run.truth_known else f"Worth, if {run.learner_name(row['policy'])} is right"
    return Tile(
        label, number(row["value"], row["stderr"]), _interval(run, row["low"], row["high"], row["stderr"])
    )


def _gain(run: RunFile, world: dict[str, Any], row: dict[str, Any]) -> Tile:
    share, error = row["normalised"], row["normalised_stderr"]
    if run.truth_known and share is not None:
        ends = [share_text(row[f"normalised_{end}"], error) for end in ("low", "high")]
        detail = f"{run.confidence} interval {ends[0]} to {ends[1]}"
        if row["normalised_low"] is None or row["normalised_high"] is None:
            detail = "but the data do not settle this"
        return Tile("Of what there is to gain", share_text(share, error), detail)
    gain, low, high, stderr = _over_guessing(run, world, row)
    detail = _interval(run, low, high, stderr) or "compared with the prior’s policy"
    return Tile("More than guessing", plus(gain, stderr), detail)


def _interval(run: RunFile, low: float | None, high: float | None, stderr: float | None) -> str:
    """Return an interval with its confidence, or nothing where there is none."""
    return "" if low is None and high is None else f"{run.confidence} interval {interval(low, high, stderr)}"


def _over_guessing(
    run: RunFile, world: dict[str, Any], row: dict[str, Any]
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return how much more a policy is worth than the prior's, with interval and error where they are known."""
    prior = _row(world, "prior")
    if prior is None or prior["value"] is None or row["value"] is None:
        return None, None, None, None
    if world["reference"] == row["policy"] and prior["difference"] is not None:
        low, high = prior["difference_low"], prior["difference_high"]
        return (
            -prior["difference"],
            None if high is None else -high,
            None if low is None else -low,
            prior["difference_stderr"],
        )
    gain, errors = row["value"] - prior["value"], (row["stderr"], prior["stderr"])
    if None in errors or (world["episodes"] or 0) < 2:
        return gain, None, None, prior["stderr"]
    # As if the two had luck of their own: with the same luck the error is smaller, but it is not in the file.
    stderr = math.hypot(*errors)
    if max(abs(gain), stderr) <= _ROUNDING * abs(row["value"]):
        return 0.0, None, None, None
    return gain, *student_interval(gain, stderr, world["episodes"], run["confidence"]), stderr


def _verdict(run: RunFile, world: dict[str, Any], row: dict[str, Any]) -> Html:
    """Return the one sentence that must be read."""
    learner, share = run.learner_name(row["policy"]), row["normalised"]
    if run.truth_known and share is not None:
        ends = row["normalised_low"], row["normalised_high"]
        text = _share_verdict(learner, share, row["normalised_stderr"], *ends)
    else:
        condition = (
            "" if run.truth_known else f"If what {learner} assumes is true ({run.assumed(row['policy'])}), "
        )
        text = _gain_verdict(learner, *_over_guessing(run, world, row), condition=condition)
    return paragraph(text, kind="verdict")


def _share_verdict(
    learner: str, share: float, stderr: float | None, low: float | None, high: float | None
) -> str:
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


def _gain_verdict(
    learner: str,
    gain: float | None,
    low: float | None,
    high: float | None,
    stderr: float | None,
    *,
    condition: str,
) -> str:
    if gain is None:
        return f"The policy learned with {learner} is recommended."
    policy = "the policy learned with it" if condition else f"the policy learned with {learner}"
    sure = low is not None and low > 0.0
    if sure or (low is None and gain > 0.0):
        text = (
            f"{condition}{policy} is worth {number(gain, stderr)} more than guessing how values go missing."
        )
    elif (high is not None and high < 0.0) or (high is None and gain < 0.0):
        text = f"{condition}{policy} is worth less than guessing how values go missing."
    else:
        text = f"{condition}{policy} and guessing how values go missing cannot be told apart."
    return text[0].upper() + text[1:]


def _compared(run: RunFile, world: dict[str, Any], row: dict[str, Any]) -> Html:
    """Return what the others are worth, and what the words mean."""
    others = [
        f"{number(other['value'], other['stderr'])} for {run.policy_name(policy)}"
        for policy in ("optimal", "prior", "random")
        if (other := _row(world, policy)) is not None and other["value"] is not None
    ]
    worth = f"It is worth {number(row['value'], row['stderr'])} per episode"
    against = f", against {listed(others)}" if others else ""
    return paragraph(
        f"{worth}{against}.",
        "An episode’s worth is the sum of its rewards; what comes later counts less "
        f"(a reward k steps ahead counts {run.model['discount']:g}ᵏ).",
    )


def _data_sentence(run: RunFile) -> Html:
    data, rates = run.data, run.data["missing_rates"]
    most = max(rates, key=lambda feature: rates[feature] or 0.0, default=None)
    steps = count(data["steps"], "step")
    if most is None or not rates[most]:
        return element("span", f"In {steps} of data nothing is missing.")
    return element(
        "span",
        f"In {steps} of data, ",
        name(most),
        f" is missing most often: {percent(rates[most])} of the time.",
    )


def _learned(learner: dict[str, Any]) -> list[str]:
    """Return what drives the gaps, as far as it was learned."""
    edges: list[list[str]] = learner["graph"]["edges"] if learner["graph"] is not None else []
    if not edges:
        return []
    parents = list(dict.fromkeys(edge[0] for edge in edges))
    return [f"As {learner['name']} has learned, gaps depend on {listed(parents, most=4)}."]

"""How far from optimal the policy can be in truth, for certain."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.run.figures import no_more_than
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, bullets, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Bar, bar_chart
from missmdp.pages.svg import Chart
from missmdp.words import UNKNOWN, number, percent, sentence

__all__ = ["certificate_section"]

_TITLE = "How good is the policy, for certain?"
_TERMS = {
    "before planning": "what the best policy could be worth",
    "after planning": "what this policy is worth",
    "solver": "what longer computing would add",
}
"""What is not known, in plain words."""
_DOMINATING = {
    "learning, before planning": "what the best policy could be worth if values go missing otherwise",
    "learning, after planning": "what this policy is worth if values go missing otherwise",
    "solver": "the solver, which stopped before it was done; with more time the bound shrinks",
}
_METHODS = {
    "closed form, Okamoto": "one formula, with the paper’s radii (for comparison)",
    "closed form": "one formula",
    "policy-uniform": "fixed point that holds for all policies",
    "occupancy": "by the states that the policy visits",
    "robust": "the policy at worst, within the bound",
    "revealing": "the same, and the best policy if all that is open were shown",
    "trivial": "known without data",
}
_DEPLOYED = {"policy": "policy", "controller": "policy graph"}

Found = dict[str, Any]


def certificate_section(run: RunFile) -> Section | None:
    """Return the section on certificates, or None where none was asked for."""
    listed: list[Found] = run.content.get("certificates") or []
    if not listed:
        return None
    first, *others = sorted(listed, key=lambda one: one["label"] != run.recommended_label)
    content = _certified(run, first) if first["found"] is not None else _nothing(first)
    if others:
        content.append(_others(others))
    return Section("certificate", _TITLE, tuple(content))


def _nothing(one: Found) -> list[Html]:
    """Return why nothing is certain, and what is likely."""
    why = one["why_not"] or "it was not computed"
    content = [note(f"There is no certificate for the policy of {one['name']}: {sentence(why)}")]
    return content + _likely(one)


def _likely(one: Found) -> list[Html]:
    between = one.get("interval")
    if not between:
        return []
    return [
        paragraph(
            f"If values went missing as {one['name']} would have learned it from other logs like this one, its policy "
            f"would be worth between {number(between['low'], between['spread'])} and "
            f"{number(between['high'], between['spread'])} per episode in {percent(between['confidence'])} of "
            f"{between['draws']} such logs (a bootstrap).",
            element("strong", "This is not a guarantee:"),
            "it takes what was learned for about right.",
        )
    ]


def _certified(run: RunFile, one: Found) -> list[Html]:
    found: Found = one["found"]
    content = [_statement(run, one, found)]
    if one["contradicted"]:
        content.append(
            note(
                f"That assumption is in doubt, and the bound with it: {sentence(one['contradicted'])}",
                kind="warning",
            )
        )
    content += _terms(found)
    if one["loss"] is not None:
        content.append(_in_truth(found, one["loss"]))
    if one["halving"]:
        content.append(paragraph(sentence(one["halving"]).replace("halve it", "halve the bound")))
    if found["deploys"] == "controller" and one["file"]:
        content.append(
            note(
                "This holds for the policy graph in",
                element("span", element("code", one["file"]), ", a finite memory with a table of actions."),
                "The policy in",
                element("code", "policy.mmpolicy"),
                "keeps track of beliefs instead; it is usually as good, but for it less is certain.",
            )
        )
    content.append(details("All bounds, and what they rest on", _alternatives(found), *_conditions(found)))
    return content


def _statement(run: RunFile, one: Found, found: Found) -> Html:
    if found["vacuous"]:
        return note(
            f"The bound says nothing yet (it is vacuous): even without data no policy is more than "
            f"{no_more_than(found['trivial'])} worse than the best one, and these data do not get below that. It says "
            "nothing against the policy either: nobody can be certain.",
            kind="warning",
        )
    share = found["epsilon"] / found["trivial"] if found["trivial"] else None
    low, high = found["value"]
    return paragraph(
        f"If what {one['name']} assumes is true ({run.assumed(one['label'])}) and the model is right in all else, then "
        f"with {percent(found['confidence'])} confidence the policy is at most",
        element("strong", f"{no_more_than(found['epsilon'])} worse"),
        "per episode than the best policy that there is for how values really go missing.",
        f"That is {percent(share)} of {no_more_than(found['trivial'])}, which is between the best and the worst that "
        f"anybody could do. The policy itself is worth between {number(low, found['epsilon'])} and "
        f"{number(high, found['epsilon'])}.",
    )


def _terms(found: Found) -> list[Html]:
    terms: dict[str, float | None] = found["terms"]
    known = {key: max(value, 0.0) for key, value in terms.items() if value is not None}
    total = sum(known.values())
    if not total > 0.0:
        return []
    bars = [
        Bar(text, known[key] / total, number(known[key], total))
        for key, text in _TERMS.items()
        if key in known
    ]
    chart = Chart(
        "certificate",
        "What the bound is made of: what is not known exactly",
        "; ".join(f"{bar.label}: {bar.text}" for bar in bars),
        bar_chart(bars, "share of the bound"),
    )
    most = _DOMINATING.get(found["dominating"], str(found["dominating"]))
    return [figure(chart, sentence(f"Most of the bound comes from {most}"))]


def _in_truth(found: Found, loss: Found) -> Html:
    mean, stderr = loss["mean"], loss["stderr"]
    if mean is None or stderr is None:
        return paragraph("In the true model, its loss could not be estimated.")
    near = abs(mean) <= 2.0 * stderr
    amount = (
        f"cannot be told apart from the optimal policy ({number(mean, stderr)} ± {number(stderr, stderr)} worse)"
        if near
        else f"is {number(abs(mean), stderr)} ± {number(stderr, stderr)} {'worse' if mean > 0.0 else 'better'} than "
        "the policy that was solved for the truth"
    )
    inside = (
        " The bound holds here."
        if mean - 2.0 * stderr <= found["epsilon"]
        else " The bound does not hold here!"
    )
    return paragraph(
        f"The truth is known here, so that this can be checked: by simulation the certified policy {amount}.{inside}"
    )


def _alternatives(found: Found) -> Html:
    rows: list[list[str]] = [
        [
            f"{_METHODS.get(name) or name}{' ← taken' if name == found['method'] else ''}",
            UNKNOWN if other["epsilon"] is None else no_more_than(other["epsilon"]),
            _DEPLOYED.get(other["deploys"], str(other["deploys"])) if not other["why"] else str(other["why"]),
        ]
        for name, other in found["alternatives"].items()
    ]
    rows.append([_METHODS["trivial"], no_more_than(found["trivial"]), "any policy"])
    return table("At most so much worse than optimal", ["bound", "at most", "for"], rows, numbers=[1])


def _conditions(found: Found) -> list[Html]:
    return [paragraph("What this rests on:"), bullets(map(sentence, found["conditions"]))]


def _others(others: list[Found]) -> Html:
    rows = [
        [
            one["name"],
            UNKNOWN
            if one["found"] is None or one["found"]["vacuous"]
            else no_more_than(one["found"]["epsilon"]),
            _said(one),
        ]
        for one in others
    ]
    return table(
        "Policies of other learners, if what these assume is true",
        ["learner", "at most so much worse than optimal", "which means"],
        rows,
        numbers=[1],
    )


def _said(one: Found) -> str:
    found = one["found"]
    if found is None:
        return sentence(one["why_not"] or "not computed")
    if found["vacuous"]:
        return "says nothing yet (vacuous)"
    return f"for its {_DEPLOYED.get(found['deploys'], str(found['deploys']))}"

"""What is certain of the policy, what it depends on, and what cannot be known."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.experiments.record.limitations import limitations
from missmdp.experiments.record.record import (
    CertificateRecord,
    CertifiedRecord,
    HalvingRecord,
    LearnerRecord,
    LossRecord,
    RunRecord,
    VariantRecord,
)
from missmdp.experiments.report.naming import shape, style
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, bullets, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Bar, Dot, Heading, bar_chart, dot_chart
from missmdp.pages.svg import Chart
from missmdp.words import UNKNOWN, no_more_than, number, percent, plus, sentence

_CERTAIN = "How good is the policy, for certain?"
_LITTLE_WRONG = "If the model is a little wrong"
_TERMS = {
    "before planning": "what the best policy could be worth",
    "after planning": "what this policy is worth",
    "solver": "what longer computing would add",
}
"""What is not known, in plain words."""
_DOMINATING = {
    "learning, before planning": "what the best policy could be worth if values go missing differently",
    "learning, after planning": "what this policy is worth if values go missing differently",
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

_TWO_SIDED = 1.959963984540054
_ROUNDING = 1e-9
"""Losses up to this are those of the arithmetic."""
_CHANGES = {
    "transition": "Changes of how the state moves on",
    "missingness": "Changes of how values go missing",
}


def certificate_section(run: RunRecord) -> Section | None:
    """Return the section on certificates, or None where none was asked for."""
    if not run.certificates:
        return None
    first, *others = sorted(run.certificates, key=lambda one: one.label != run.recommended.label)
    content = _nothing(first) if first.found is None else _certified(run, first, first.found)
    if others:
        content.append(_others(others))
    return Section("certificate", _CERTAIN, tuple(content))


def _nothing(one: CertifiedRecord) -> list[Html]:
    """Return why nothing is certain, and what is likely."""
    why = one.why_not or "it was not computed"
    content = [note(f"There is no certificate for the policy of {one.name}: {sentence(why)}")]
    return content + _likely(one)


def _likely(one: CertifiedRecord) -> list[Html]:
    between = one.likely
    if between is None:
        return []
    return [
        paragraph(
            f"If values went missing as {one.name} would have learned it from other logs like this one, its policy "
            f"would be worth between {number(between.low, between.spread)} and "
            f"{number(between.high, between.spread)} per episode in {percent(between.confidence)} of "
            f"{between.draws} such logs (a bootstrap).",
            element("strong", "This is not a guarantee:"),
            "it assumes that what was learned is about right.",
        )
    ]


def _certified(run: RunRecord, one: CertifiedRecord, found: CertificateRecord) -> list[Html]:
    content = [_statement(run, one, found)]
    if one.contradicted:
        content.append(
            note(
                f"That assumption is in doubt, and the bound with it: {sentence(one.contradicted)}",
                kind="warning",
            )
        )
    content += _terms(found)
    if one.loss is not None:
        content.append(_in_truth(found, one.loss))
    if found.samples_to_halve is not None:
        content.append(paragraph(_halving(found.samples_to_halve)))
    if found.deploys == "controller" and one.file:
        content.append(
            note(
                "This holds for the policy graph in",
                element("span", element("code", one.file), ", a finite memory with a table of actions."),
                "The policy in",
                element("code", "policy.mmpolicy"),
                "keeps track of beliefs instead; it is usually as good, but for it less is certain.",
            )
        )
    content.append(details("All bounds, and what they rest on", _alternatives(found), *_conditions(found)))
    return content


def _statement(run: RunRecord, one: CertifiedRecord, found: CertificateRecord) -> Html:
    if found.vacuous:
        return note(
            f"The bound says nothing yet (it is vacuous): even without data no policy is more than "
            f"{no_more_than(found.trivial)} worse than the best one, and these data do not get below that. It says "
            "nothing against the policy either: nobody can be certain.",
            kind="warning",
        )
    share = found.epsilon / found.trivial if found.trivial else None
    low, high = found.value
    return paragraph(
        f"If what {one.name} assumes is true ({_learner(run, one).clause}) and the model is right in all else, then "
        f"with {percent(found.confidence)} confidence the policy is at most",
        element("strong", f"{no_more_than(found.epsilon)} worse"),
        "per episode than the best policy that there is for how values really go missing.",
        f"That is {percent(share)} of {no_more_than(found.trivial)}, which is between the best and the worst that "
        f"anybody could do. The policy itself is worth between {number(low, found.epsilon)} and "
        f"{number(high, found.epsilon)}.",
    )


def _learner(run: RunRecord, one: CertifiedRecord) -> LearnerRecord:
    return next((learner for learner in run.learners if learner.label == one.label), run.learner)


def _halving(found: HalvingRecord) -> str:
    if found.factor is None or found.samples is None or found.more is None:
        return f"More data alone would not halve the bound: {sentence(found.why)}"
    return (
        f"About {found.more:,} more samples would halve the bound ({found.samples:,} in all, {found.factor:.3g} times "
        "as many)."
    )


def _terms(found: CertificateRecord) -> list[Html]:
    known = {key: max(value, 0.0) for key, value in found.terms.items() if value is not None}
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
    most = _DOMINATING.get(found.dominating, found.dominating)
    return [figure(chart, sentence(f"Most of the bound comes from {most}"))]


def _in_truth(found: CertificateRecord, loss: LossRecord) -> Html:
    mean, stderr = loss.mean, loss.stderr
    if stderr is None:
        return paragraph("In the true model, its loss could not be estimated.")
    near = abs(mean) <= 2.0 * stderr
    amount = (
        f"cannot be told apart from the optimal policy ({number(mean, stderr)} ± {number(stderr, stderr)} worse)"
        if near
        else f"is {number(abs(mean), stderr)} ± {number(stderr, stderr)} {'worse' if mean > 0.0 else 'better'} than "
        "the policy that was solved for the truth"
    )
    inside = (
        " The bound holds here." if mean - 2.0 * stderr <= found.epsilon else " The bound does not hold here!"
    )
    return paragraph(
        f"The truth is known here, so this can be checked: by simulation the certified policy {amount}.{inside}"
    )


def _alternatives(found: CertificateRecord) -> Html:
    rows: list[list[str]] = [
        [
            f"{_METHODS.get(name) or name}{' ← taken' if name == found.method else ''}",
            UNKNOWN if other.epsilon is None else no_more_than(other.epsilon),
            other.why or _DEPLOYED[other.deploys],
        ]
        for name, other in found.alternatives.items()
    ]
    rows.append([_METHODS["trivial"], no_more_than(found.trivial), "any policy"])
    return table("At most this much worse than optimal", ["bound", "at most", "for"], rows, numbers=[1])


def _conditions(found: CertificateRecord) -> list[Html]:
    return [paragraph("What this rests on:"), bullets(map(sentence, found.conditions))]


def _others(others: Sequence[CertifiedRecord]) -> Html:
    rows = [
        [
            one.name,
            UNKNOWN if one.found is None or one.found.vacuous else no_more_than(one.found.epsilon),
            _said(one),
        ]
        for one in others
    ]
    return table(
        "Policies of other learners, if what these assume is true",
        ["learner", "at most this much worse than optimal", "which means"],
        rows,
        numbers=[1],
    )


def _said(one: CertifiedRecord) -> str:
    found = one.found
    if found is None:
        return sentence(one.why_not or "not computed")
    if found.vacuous:
        return "says nothing yet (vacuous)"
    return f"for its {_DEPLOYED[found.deploys]}"


def sensitivity_section(run: RunRecord) -> Section:
    """Return the section on changes of the model."""
    found = run.sensitivity
    if found is None or not found.rows:
        whys = [f"This would be too much for this model: {one.why}" for one in run.without("sensitivity")]
        told = [sentence(why) for why in whys] or ["This was not examined in this run."]
        return Section("sensitivity", _LITTLE_WRONG, (paragraph(*told),))
    drawn: list[Dot | Heading] = []
    for kind in dict.fromkeys(row.what for row in found.rows):
        drawn.append(Heading(_CHANGES[kind]))
        drawn += [_dot(found.label, row) for row in found.rows if row.what == kind]
    chart = Chart(
        "sensitivity",
        "Change in worth of the recommended policy",
        "; ".join(f"{row.how}: {_change(row)}" for row in found.rows),
        dot_chart(drawn, axis_title="change in worth per episode", marks=[0.0]),
    )
    introduction = paragraph(
        f"The policy of {run.learner_name(found.label)} was tried in models that differ from the one it was made for.",
        "One that loses little depends little on changes of these kinds; others, which were not tried, may cost more.",
    )
    return Section("sensitivity", _LITTLE_WRONG, (introduction, figure(chart, *_largest_loss(found.rows))))


def _dot(label: str, row: VariantRecord) -> Dot:
    gap, half = row.difference, _TWO_SIDED * (row.difference_stderr or 0.0)
    return Dot(row.how, gap, gap - half, gap + half, _change(row), style=style(label), shape=shape(label))


def _change(row: VariantRecord) -> str:
    error = row.difference_stderr
    text = plus(row.difference, error)
    return text if not error else f"{text} ± {number(error, error)}"


def _largest_loss(rows: Sequence[VariantRecord]) -> list[str]:
    clear = [row for row in rows if -row.difference > max(2.0 * (row.difference_stderr or 0.0), _ROUNDING)]
    if not clear:
        return ["None of these changes costs the policy anything that can be told from chance."]
    worst = min(clear, key=lambda row: row.difference)
    lost = number(-worst.difference, worst.difference_stderr)
    return [
        f"The largest loss is {lost} ({_CHANGES[worst.what].lower()}: {worst.how}).",
        "If your doubts about the model are of that kind, check it there first.",
    ]


def limitations_section(run: RunRecord) -> Section:
    """Return the section on what the data cannot tell."""
    return Section("limits", "What cannot be known from these data", (bullets(limitations(run)),))

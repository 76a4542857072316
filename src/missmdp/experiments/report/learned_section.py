"""Learned probabilities with intervals, and the truth where it is known."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.learned_groups import (
    Shown,
    can_lack,
    chosen_groups,
    covered,
    learned_table,
    outside,
    some_left_out,
)
from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, details, figure, note, paragraph, subsection
from missmdp.pages.row_charts import Dot, Heading, dot_chart
from missmdp.pages.svg import Chart, percent_tick
from missmdp.words import count, listed, percent, points, sentence

__all__ = ["learned_section"]

_MOST_DESCRIBED = 12
"""Dots that the description of a figure lists."""
_MOST_OUTSIDE = 3
"""Probabilities outside their intervals that are named."""


def learned_section(run: RunFile) -> Section:
    """Return the section on what every learner learned."""
    content: list[Html] = [
        paragraph(
            "Each learner estimates how likely every combination of gaps is, separately for each group of situations "
            "that it tells apart. Learners differ in what they assume.",
            *_intervals(run),
        )
    ]
    for learner in run.learners:
        title = f"{learner['name']}: {run.assumption(learner)}"
        open_ = learner["label"] == run.recommended_label or len(run.learners) == 1
        part = subsection if open_ else details
        content.append(part(title, *_learner(run, learner)))
    content += [
        note(f"{skipped['label']} did not learn: {sentence(skipped['why'])}") for skipped in run.skipped
    ]
    if not run.learners:
        content.append(paragraph("No learner was run."))
    return Section("learned", "How values go missing: what was learned", tuple(content))


def _intervals(run: RunFile) -> list[str]:
    """Return what the intervals say: those of a bootstrap are never called a guarantee."""
    sure = [one["name"] for one in run.learners if run.is_guaranteed(one)]
    unsure = [one["name"] for one in run.learners if not run.is_guaranteed(one)]
    sentences: list[str] = []
    if sure or not unsure:
        of = f" of {listed(sure)}" if unsure else ""
        sentences.append(
            f"The intervals{of} hold all at once with {run.confidence} confidence, if the assumption is true."
        )
    if unsure:
        sentences.append(
            f"Those of {listed(unsure)} come from a bootstrap, {run.confidence} each on its own: no guarantee."
        )
    return sentences


def _learner(run: RunFile, learner: dict[str, Any]) -> list[Html]:
    groups = [group for group in learner["groups"] if can_lack(group)]
    if not groups and (learner["groups"] or not any(run.data["missing_rates"].values())):
        return [paragraph("Nothing is missing in these data, so there was nothing to learn.")]
    chosen = chosen_groups(groups)
    content = [_figure(run, learner, groups, chosen)] if chosen else []
    content.append(paragraph(*_sentences(run, learner, groups)))
    if groups:
        content.append(learned_table(learner, groups, truth=run.truth_known))
    bound = learner["bound"]
    if bound and bound["text"]:
        title = "The bound in full" if run.is_guaranteed(learner) else "The intervals in words"
        content.append(details(title, *map(paragraph, bound["text"].splitlines())))
    return content


def _figure(run: RunFile, learner: dict[str, Any], groups: list[dict[str, Any]], chosen: list[Shown]) -> Html:
    style, shape = run.style(learner["label"]), run.shape(learner["label"])
    rows: list[Dot | Heading] = []
    for shown in chosen:
        rows.append(Heading(shown.heading))
        rows += [
            Dot(
                row.label,
                row.estimate,
                row.lower,
                row.upper,
                row.text,
                short=percent(row.estimate),
                style=style,
                shape=shape,
                truth=row.truth,
                truth_range=row.truth_range,
            )
            for row in shown.rows
        ]
    dots = [row for row in rows if isinstance(row, Dot)]
    rest = "; and more, in the table below" if len(dots) > _MOST_DESCRIBED else ""
    chart = Chart(
        f"learned-{learner['label']}",
        f"Learned probabilities ({learner['name']})",
        "; ".join(f"{dot.label}: {dot.text}" for dot in dots[:_MOST_DESCRIBED]) + rest,
        dot_chart(rows, domain=(0.0, 1.0), form=percent_tick, axis_title="probability"),
    )
    key = [
        element("span", element("span", "", class_=f"dot {style}"), "learned"),
        element("span", element("span", "", class_=f"dash {style}"), f"{run.confidence} interval"),
    ]
    if any(dot.truth is not None for dot in dots):
        key.append(element("span", element("span", "", class_="tick-mark"), "truth"))
    if any(dot.truth_range is not None for dot in dots):
        key.append(
            element("span", element("span", "", class_="dash range"), "the truth differs within the group")
        )
    return figure(
        chart,
        *(
            ["Shown are groups with much data and the least certain ones."]
            if some_left_out(groups, chosen)
            else []
        ),
        "Where the same gap has another chance in another group, a decision can reckon with what will be seen there.",
        "A wide line means few data: a decision there rests on a guess.",
        key=key,
    )


def _sentences(run: RunFile, learner: dict[str, Any], groups: list[dict[str, Any]]) -> list[str]:
    sentences = [*_coverage(run, learner, groups), *_distance(run, learner)]
    if groups and run.same_as_amcar(learner):
        sentences.append(
            f"No feature is always recorded in these data, so that {learner['name']} is here the same as AMCAR."
        )
    if groups and not run.is_guaranteed(learner):
        sentences.append(
            "Groups are those that the structure tells apart; where several list the same values, it goes by how "
            "these come together."
        )
    if learner["unseen_groups"]:
        groups_text = count(learner["unseen_groups"], "group")
        sentences.append(f"For {groups_text} of situations there are no data at all; there it guesses.")
    if learner["always_observed"]:
        sentences.append(f"Taken as always seen: {listed(learner['always_observed'])}.")
    return sentences


def _coverage(run: RunFile, learner: dict[str, Any], groups: list[dict[str, Any]]) -> list[str]:
    known, inside = covered(groups)
    if not known:
        return []
    if inside == known:
        return [
            f"All {known:,} true probabilities lie inside their intervals."
            if known > 1
            else "The truth lies inside."
        ]
    some = f"{inside:,}" if inside else "none"
    luck = percent(1.0 - run["confidence"])
    chance = (
        f"If the assumption is true, one or more lie outside by bad luck with probability {luck} at most."
        if run.is_guaranteed(learner)
        else f"Each lies outside by bad luck with probability {luck} or so, if the assumption is true."
    )
    return [
        f"Of {known:,} true probabilities {some} lie inside their intervals.",
        f"Outside: {listed(outside(groups), most=_MOST_OUTSIDE)}.",
        chance,
    ]


def _distance(run: RunFile, learner: dict[str, Any]) -> list[str]:
    distance, bound = learner["distance"], learner["bound"]
    if distance is not None and distance["average"] is not None:
        amount = points(distance["average"])
        text = f"On average over situations {amount} records have other gaps than the learned chances foresee"
        worst = (
            f"; in the worst situation {points(distance['worst'])}" if distance["worst"] is not None else ""
        )
        return [f"{text}{worst}."]
    if not bound or bound["tv"] is None:
        return []
    if not run.is_guaranteed(learner):
        return [
            f"As a bootstrap has it, about {points(bound['tv'])} records have other gaps in the worst situation; this "
            "is no guarantee."
        ]
    if bound["tv"] >= 1.0:
        return ["In the worst situation anything is possible: there are too few data to say."]
    return [
        f"If the assumption is true, at most {points(bound['tv'])} records have other gaps, in any situation, with "
        f"{run.confidence} confidence."
    ]

"""Learned probabilities with intervals, and the truth where it is known."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.experiments.record.record import GroupRecord, LearnerRecord, RunRecord
from missmdp.experiments.report.learned_groups import (
    Shown,
    can_lack,
    chosen_groups,
    covered,
    learned_table,
    outside,
    some_left_out,
)
from missmdp.experiments.report.naming import assumption, confidence_text, shape, style, twin
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, details, figure, note, paragraph, subsection
from missmdp.pages.row_charts import Dot, Heading, dot_chart
from missmdp.pages.svg import Chart, percent_tick
from missmdp.words import count, listed, percent, points, sentence

_MOST_DESCRIBED = 12
"""Dots that the description of a figure lists."""
_MOST_OUTSIDE = 3
"""Probabilities outside their intervals that are named."""


def learned_section(run: RunRecord) -> Section:
    """Return the section on what every learner learned."""
    content: list[Html] = [
        paragraph(
            "Each learner estimates how likely every combination of gaps is, separately for each group of situations "
            "that it tells apart. Learners differ in what they assume.",
            *_intervals(run),
        )
    ]
    for learner in run.ordered_learners:
        title = f"{learner.name}: {assumption(learner)}"
        open_ = learner.label == run.recommended.label or len(run.ordered_learners) == 1
        part = subsection if open_ else details
        content.append(part(title, *_learner(run, learner)))
    content += [note(f"{skipped.label} did not learn: {sentence(skipped.why)}") for skipped in run.skipped]
    return Section("learned", "How values go missing: what was learned", tuple(content))


def _intervals(run: RunRecord) -> list[str]:
    """Return what the intervals say: those of a bootstrap are never called a guarantee."""
    sure = [one.name for one in run.ordered_learners if one.bound.guaranteed]
    unsure = [one.name for one in run.ordered_learners if not one.bound.guaranteed]
    sentences: list[str] = []
    if sure or not unsure:
        of = f" of {listed(sure)}" if unsure else ""
        sentences.append(
            f"The intervals{of} hold all at once with {confidence_text(run)} confidence, if the assumption is true."
        )
    if unsure:
        sentences.append(
            f"Those of {listed(unsure)} come from a bootstrap, {confidence_text(run)} each separately, "
            "and are not guaranteed."
        )
    return sentences


def _learner(run: RunRecord, learner: LearnerRecord) -> list[Html]:
    groups = [group for group in learner.groups if can_lack(group)]
    if not groups and (learner.groups or not run.data.gaps):
        return [paragraph("Nothing is missing in these data, so there was nothing to learn.")]
    chosen = chosen_groups(groups)
    content = [_figure(run, learner, groups, chosen)] if chosen else []
    content.append(paragraph(*_sentences(run, learner, groups)))
    if groups:
        content.append(learned_table(learner, groups, truth=run.truth_known))
    title = "The bound in full" if learner.bound.guaranteed else "The intervals in words"
    return [*content, details(title, *map(paragraph, learner.bound.text.splitlines()))]


def _figure(
    run: RunRecord, learner: LearnerRecord, groups: Sequence[GroupRecord], chosen: list[Shown]
) -> Html:
    colour, mark = style(learner.label), shape(learner.label)
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
                style=colour,
                shape=mark,
                truth=row.truth,
                truth_range=row.truth_range,
            )
            for row in shown.rows
        ]
    dots = [row for row in rows if isinstance(row, Dot)]
    rest = "; and more, in the table below" if len(dots) > _MOST_DESCRIBED else ""
    chart = Chart(
        f"learned-{learner.label}",
        f"Learned probabilities ({learner.name})",
        "; ".join(f"{dot.label}: {dot.text}" for dot in dots[:_MOST_DESCRIBED]) + rest,
        dot_chart(rows, domain=(0.0, 1.0), form=percent_tick, axis_title="probability"),
    )
    key = [
        element("span", element("span", "", class_=f"dot {colour}"), "learned"),
        element("span", element("span", "", class_=f"dash {colour}"), f"{confidence_text(run)} interval"),
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
        *(["Gap rates differ between groups, and the policy uses that."] if len(groups) > 1 else []),
        "A wide line means few data: a decision there rests on a guess.",
        key=key,
    )


def _sentences(run: RunRecord, learner: LearnerRecord, groups: Sequence[GroupRecord]) -> list[str]:
    sentences = [*_coverage(run, learner, groups), *_distance(run, learner)]
    other = twin(run, learner) if groups else None
    if other is not None:
        none = "" if learner.always_observed else "No feature is always recorded in these data, so "
        sentences.append(f"{none}{learner.name} is here the same as {other.name}.")
    if groups and not learner.bound.guaranteed:
        sentences.append(
            "Groups are those that the structure tells apart; where several list the same values, it goes by how "
            "these come together."
        )
    if learner.unseen_groups:
        groups_text = count(learner.unseen_groups, "group")
        sentences.append(f"For {groups_text} of situations there are no data at all; there it guesses.")
    if learner.always_observed:
        sentences.append(f"Taken as always seen: {listed(learner.always_observed)}.")
    return sentences


def _coverage(run: RunRecord, learner: LearnerRecord, groups: Sequence[GroupRecord]) -> list[str]:
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
    luck = percent(1.0 - run.confidence)
    chance = (
        f"If the assumption is true, one or more lie outside by bad luck with probability {luck} at most."
        if learner.bound.guaranteed
        else f"Each lies outside by bad luck with probability {luck} or so, if the assumption is true."
    )
    return [
        f"Of {known:,} true probabilities {some} lie inside their intervals.",
        f"Outside: {listed(outside(groups), most=_MOST_OUTSIDE)}.",
        chance,
    ]


def _distance(run: RunRecord, learner: LearnerRecord) -> list[str]:
    distance, bound = learner.distance, learner.bound
    if distance is not None:
        return [
            f"On average over situations {points(distance.average)} records have other gaps than the learned chances "
            f"foresee; in the worst situation {points(distance.worst)}."
        ]
    if bound.tv is None:
        return []
    if not learner.bound.guaranteed:
        return [
            "Intervals come from a bootstrap. They are not guaranteed, and single situations can be further off."
        ]
    if bound.tv >= 1.0:
        return ["In the worst situation anything is possible: there are too few data to say."]
    return [
        f"If the assumption is true, at most {points(bound.tv)} records have other gaps, in any situation, with "
        f"{confidence_text(run)} confidence."
    ]

"""How precisely policies were computed, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.experiments.record.limitations import WIDE_GAP
from missmdp.experiments.record.record import RunRecord, SearchRecord, ValueRecord, WorldRecord
from missmdp.experiments.report.naming import confidence_text, policy_name, shape, short_name, style
from missmdp.pages.bounds_chart import BoundsPanel, bounds_chart
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, bullets, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Dot, dot_chart
from missmdp.pages.svg import Chart, padded, percent_tick
from missmdp.words import UNKNOWN, count, interval, number, percent, plus, sentence, share_text

_ENDS = {
    "precision": "as precise as asked for",
    "converged": "solved exactly",
    "exhausted": "nothing more to try",
    "timeout": "time was up",
    "memory": "memory was used up",
    "trials": "as many trials as asked for",
    "interrupted": "interrupted",
}


def solver_section(run: RunRecord) -> Section:
    """Return the section on how policies were computed."""
    content: list[Html] = [
        paragraph(
            "A policy was computed for what each learner learned. The solver keeps two bounds: the policy is worth at "
            "least the lower one, and no policy can be worth more than the upper one. Where they meet, nothing is "
            "left to gain by computing longer. Both are for the model that was solved, which need not be true."
        )
    ]
    panels = [
        panel for policy, search in run.searches.items() if (panel := _panel(run, policy, search)) is not None
    ]
    if panels:
        chart = Chart(
            "bounds",
            "Bounds on what the best policy is worth, over time",
            "; ".join(f"{panel.title}: {panel.text}" for panel in panels),
            bounds_chart(panels),
        )
        key = [
            element("span", element("span", "", class_="dash dashed"), "no policy is worth more"),
            element("span", element("span", "", class_="dash"), "the policy is worth at least this"),
        ]
        content.append(figure(chart, _left_to_gain(run), key=key))
    content += [
        note(
            f"{policy_name(run, policy)} is not solved well (gap {percent(search.relative_gap)}):",
            "with more time its policy may get better.",
        )
        for policy, search in run.searches.items()
        if search.relative_gap is not None and search.relative_gap > WIDE_GAP
    ]
    content += [
        note(f"There is no policy of {policy_name(run, one.label)}: {sentence(one.why)}")
        for one in run.without("policy")
    ]
    content.append(
        table(
            "How each problem was solved",
            ["solved for", "worth at least", "at most", "gap", "ended because"],
            [
                [
                    policy_name(run, policy),
                    *_ends(search),
                    _gap(search),
                    _ENDS.get(search.status, search.status),
                ]
                for policy, search in run.searches.items()
            ],
            numbers=[1, 2, 3],
        )
    )
    content += [
        note(f"{policy_name(run, policy)}: {sentence(search.sources)}")
        for policy, search in run.searches.items()
        if search.sources
    ]
    return Section("solving", "How precisely the policies were computed", tuple(content))


def _panel(run: RunRecord, policy: str, search: SearchRecord) -> BoundsPanel | None:
    rows = [(row.seconds, row.lower, row.upper) for row in search.trace]
    known = [(s, low, high) for s, low, high in rows if low is not None and high is not None]
    if not known:
        return None
    seconds, lower, upper = zip(*known, strict=True)
    gap = "" if search.relative_gap is None else f", gap {percent(search.relative_gap)}"
    text = f"{' to '.join(_ends(search))}{gap}"
    return BoundsPanel(policy_name(run, policy), text, seconds, lower, upper, style(policy))


def _ends(search: SearchRecord) -> tuple[str, str]:
    lower, upper = search.lower, search.upper
    width = None if lower is None or upper is None else upper - lower
    return number(lower, width or None), number(upper, width or None)


def _gap(search: SearchRecord) -> str:
    gap = search.relative_gap
    return UNKNOWN if gap is None else percent(gap, 2 if gap < 0.01 else 1)


def _left_to_gain(run: RunRecord) -> str:
    search = run.learner.search
    if search is None or search.relative_gap is None:
        return "Where the lines have met, more computing would not change the decision."
    return (
        f"For the recommended policy at most {_gap(search)} of its worth is left to gain by computing longer; the "
        "early part of the search runs out of the picture."
    )


def values_section(run: RunRecord) -> Section:
    """Return the section on what policies are worth."""
    first, *others = run.ordered_worlds
    content: list[Html] = [paragraph(_introduction(run, first)), *_world(run, first)]
    uncontrolled = run.without("control variate")
    if uncontrolled:
        content.append(note(f"There was no control variate: {sentence(uncontrolled[0].why)}"))
    if others:
        content += _across_worlds(run)
    content += [
        details(f"If {run.learner_name(world.world)} is right", *_world(run, world)) for world in others
    ]
    return Section("values", "What the policies are worth", tuple(content))


def _introduction(run: RunRecord, world: WorldRecord) -> str:
    how = (
        f"Every policy was simulated in {count(world.episodes, 'episode')} with the same luck, at most "
        f"{world.horizon:,} decisions each"
    )
    if run.truth_known:
        return f"{how}, in the true model. Other policies show what is to be gained."
    return (
        f"{how}. The truth is not known, so each learner in turn is taken to be right, and all policies are tried in "
        "the world as it sees it."
    )


def _world(run: RunRecord, world: WorldRecord) -> list[Html]:
    ordered = sorted(world.rows, key=lambda row: -row.value)
    true = world.world == "truth"
    place = "the true model" if true else f"the world as {run.learner_name(world.world)} sees it"
    chart = Chart(
        f"values-{world.world}",
        f"What each policy is worth in {place}",
        "; ".join(f"{policy_name(run, row.policy)}: {_value(row)}" for row in ordered),
        dot_chart(
            [
                _dot(run, row, (row.value, row.low, row.high), _value(row), number(row.value, row.stderr))
                for row in ordered
            ],
            domain=_domain(ordered),
            axis_title="worth per episode",
        ),
    )
    content: list[Html] = [figure(chart, _compared(run, world))]
    scaled = [row for row in ordered if row.normalised is not None]
    if true and scaled:
        content.append(_normalised(run, scaled))
    content += [
        note(
            f"{policy_name(run, row.policy)} saw {row.impossible:,} times what its own model says cannot be, and "
            "went on as best it could."
        )
        for row in world.rows
        if row.impossible
    ]
    return [*content, _table(run, world, ordered, scaled=true and bool(scaled))]


def _domain(rows: Sequence[ValueRecord]) -> tuple[float, float]:
    """Return what the axis shows: all but acting at random, if that is so bad that nothing else could be told apart."""
    others = [row for row in rows if row.kind != "random"]
    near = padded(x for row in others for x in (row.value, row.low, row.high))
    far = padded(x for row in rows for x in (row.value, row.low, row.high))
    return near if others and far[1] - far[0] > 2.5 * (near[1] - near[0]) else far


def _dot(
    run: RunRecord,
    row: ValueRecord,
    place: tuple[float | None, float | None, float | None],
    text: str,
    short: str | None = None,
) -> Dot:
    return Dot(
        policy_name(run, row.policy),
        *place,
        text,
        short=short,
        style=style(row.policy),
        shape=shape(row.policy),
        strong=row.policy == run.recommended.label,
    )


def _value(row: ValueRecord) -> str:
    return f"{number(row.value, row.stderr)} ({interval(row.low, row.high, row.stderr)})"


def _normalised(run: RunRecord, rows: Sequence[ValueRecord]) -> Html:
    near = [row for row in rows if row.kind != "random" and (row.normalised or 0.0) > -1.0]
    low, high = padded([x for row in near for x in (row.normalised, row.normalised_low, row.normalised_high)])
    chart = Chart(
        "normalised",
        "The same on a scale from guessing to perfect knowledge",
        "; ".join(f"{policy_name(run, row.policy)}: {_share(row)}" for row in rows),
        dot_chart(
            [
                _dot(run, row, (row.normalised, row.normalised_low, row.normalised_high), _share(row))
                for row in rows
            ],
            domain=(max(low, -1.5), min(high, 2.0)),
            form=percent_tick,
            axis_title="0 % is guessing, 100 % is perfect knowledge",
            marks=[0.0, 1.0],
        ),
    )
    return figure(
        chart,
        "100 % is the value of a policy that knows exactly how values go missing, 0 % that of one that assumes that "
        "every gap is a coin toss. An arrow points to values outside the picture.",
    )


def _share(row: ValueRecord) -> str:
    return share_text(row.normalised, row.normalised_stderr)


def _compared(run: RunRecord, world: WorldRecord) -> str:
    """Return how the recommended policy compares with the best one of this world."""
    chosen, reference = world.row(run.recommended.label), world.reference
    if chosen is None:
        return "The further right, the better."
    if chosen.policy == reference:
        return _made_for_it(run, world, run.learner_name(reference))
    gap, error = chosen.difference, chosen.difference_stderr
    low, high = chosen.difference_low, chosen.difference_high
    if gap is None:
        return "The further right, the better."
    learner, best = run.learner_name(chosen.policy), policy_name(run, reference)
    if low is not None and high is not None and low <= 0.0 <= high:
        sure = f"difference {plus(gap, error)}, {confidence_text(run)} interval {interval(low, high, error)}"
        return f"{learner} and {best} cannot be told apart here ({sure})."
    size = number(abs(gap), error)
    if gap < 0.0:
        return f"{learner} is worth {size} less than {best}."
    return (
        f"{learner} is worth {size} more than {best}, which is not solved to the end then, or had bad luck."
    )


def _made_for_it(run: RunRecord, world: WorldRecord, learner: str) -> str:
    """Return what policies of other learners lose in a world that the recommended one was made for."""
    others = [row for row in world.rows if row.kind == "learned" and row.policy != world.reference]
    worst = min(others, key=lambda row: row.difference or 0.0, default=None)
    if worst is None or worst.difference is None or world.world != world.reference:
        return f"The further right, the better; {learner} is what the others are compared with."
    made = f"In this world {learner}’s policy is the one made for it"
    if worst.difference_high is None or worst.difference_high >= 0.0:
        return f"{made}; that those of other learners are worth less cannot be told from chance."
    loss = number(-worst.difference, worst.difference_stderr)
    return f"{made}; {policy_name(run, worst.policy)} would lose {loss}."


def _table(run: RunRecord, world: WorldRecord, ordered: Sequence[ValueRecord], *, scaled: bool) -> Html:
    interval_title = f"{confidence_text(run)} interval"
    minus = f"minus {short_name(run, world.reference)}"
    columns = [
        "policy",
        "worth",
        interval_title,
        minus,
        interval_title,
        *(["share of gain"] if scaled else []),
    ]
    rows = [
        [
            policy_name(run, row.policy),
            number(row.value, row.stderr),
            interval(row.low, row.high, row.stderr),
            *_difference(row, world.reference),
            *([_share(row)] if scaled else []),
        ]
        for row in ordered
    ]
    return table("Worth of each policy", columns, rows, numbers=[1, 2, 3, 4, 5])


def _difference(row: ValueRecord, reference: str) -> list[str]:
    if row.policy == reference:
        return [UNKNOWN, UNKNOWN]
    error = row.difference_stderr
    return [plus(row.difference, error), interval(row.difference_low, row.difference_high, error)]


def _across_worlds(run: RunRecord) -> list[Html]:
    """Return what every policy is worth in every world, and what the recommended one risks."""
    worlds = run.ordered_worlds
    learners = [learner.label for learner in run.ordered_learners]
    policies = dict.fromkeys([*learners, *(row.policy for world in worlds for row in world.rows)])
    rows = [
        [policy_name(run, policy), *(_cell(world.row(policy)) for world in worlds)] for policy in policies
    ]
    columns = ["policy", *(f"if {run.learner_name(world.world)} is right" for world in worlds)]
    content = [table("Worth of every policy in every world", columns, rows, numbers=range(1, len(columns)))]
    risks = [risk for world in worlds if (risk := _risk(run, world)) is not None]
    return [*content, bullets(risks)] if risks else content


def _risk(run: RunRecord, world: WorldRecord) -> str | None:
    """Return what the recommended policy would lose in a world that it was not made for."""
    row, label = world.row(run.recommended.label), world.world
    if row is None or row.difference is None or label == run.recommended.label:
        return None
    doubted = any(one.warnings for one in run.learners if one.label == label)
    doubt = ", which the data contradict" if doubted else ""
    name = run.learner_name(label)
    lost = number(abs(row.difference), row.difference_stderr)
    if row.difference_high is not None and row.difference_high < 0.0:
        fares = f"would lose {lost} against that of {name}"
    elif row.difference_low is not None and row.difference_low > 0.0:
        fares = f"would be worth {lost} more than that of {name}, which is not solved to the end then, or had bad luck"
    else:
        fares = f"and that of {name} cannot be told apart there"
    return f"Should {name} be right instead{doubt}: the recommended policy {fares}."


def _cell(row: ValueRecord | None) -> str:
    return UNKNOWN if row is None else number(row.value, row.stderr)

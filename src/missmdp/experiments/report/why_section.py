"""Why values are missing: the type, what drives it, and which learner suits."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.experiments.record.record import DiagnosisRecord, DriverRecord, RunRecord, TestRecord
from missmdp.pages.graph_chart import graph_chart
from missmdp.pages.markup import Html, element, name
from missmdp.pages.page import Section, bullets, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Dot, Heading, dot_chart
from missmdp.pages.svg import Chart, percent_tick
from missmdp.words import UNKNOWN, listed, number, percent, sentence

_TITLE = "Why values are missing"
_PLAIN = {
    "MCAR": "Gaps look like pure chance: nothing that was looked at changes how likely they are",
    "simple MAR": "Gaps depend on values that are always recorded, and on no others",
    "MAR": "Gaps depend on values only where these are seen",
    "MNAR": "Gaps depend on values that are themselves not always seen",
}
"""The types in plain words."""
_CLASSES = {
    "MCAR": "MCAR: on nothing",
    "simple MAR": "simple MAR: on what is always recorded",
    "MAR": "MAR: on what is seen",
    "no self-censoring": "on anything but the missing value itself",
    "all parents": "on anything, including the missing value itself",
}
_MOST_DRIVERS = 12
"""Reasons that a figure has room for."""


def why_section(run: RunRecord) -> Section:
    """Return the section on reasons."""
    found = run.diagnosis.found
    if found is None:
        why = f": {run.diagnosis.why_not}" if run.diagnosis.why_not else ""
        return Section("why", _TITLE, (paragraph(sentence(f"This was not examined{why}")),))
    if not found.blocks:
        return Section("why", _TITLE, (paragraph("Nothing is missing in these data."),))
    content = [
        *_verdict(run, found),
        *_drivers(found),
        _graph(found),
        *_suits(run, found),
        details("How sure that is: classes of reasons, and tests", *_classes(found), *_tests(found)),
        *(note(sentence(text)) for text in found.notes),
    ]
    return Section("why", _TITLE, tuple(content))


def _verdict(run: RunRecord, found: DiagnosisRecord) -> list[Html]:
    kind, hidden = found.type, found.self_censoring
    sentences = [f"{_PLAIN.get(kind, 'Gaps are of the type')} ({kind})."]
    if hidden:
        itself = "itself" if len(hidden) == 1 else "themselves"
        verb = "hides" if len(hidden) == 1 else "hide"
        sentences.append(
            f"What is more, {listed(hidden)} {verb} {itself}: how likely a gap is depends on the value that is missing "
            "(self-censoring). Single records cannot show that; it is inferred from what came before and after."
        )
    source = (
        "The dynamics of the model were used to tell what was missing, so this is as good as the model is."
        if not found.snapshots_only
        else "Only single records were examined."
    )
    truth = run.model.truth
    if truth is not None:
        right = "That is right" if truth.name == kind else f"In the true model it is {truth.name}"
        sentences.append(f"{right}: the true model says so.")
    return [paragraph(*sentences), paragraph(source)]


def _drivers(found: DiagnosisRecord) -> list[Html]:
    drivers = found.drivers
    if not drivers:
        return []
    shown = drivers[:_MOST_DRIVERS]
    rows: list[Dot | Heading] = []
    for block in dict.fromkeys(tuple(driver.features) for driver in shown):
        rows.append(Heading(f"What decides whether {' and '.join(block)} {_are(block)} missing"))
        rows += [_dot(driver) for driver in shown if tuple(driver.features) == block]
    chart = Chart(
        "drivers",
        "How much each reason matters",
        "; ".join(f"{_missing(driver)} by {_reason(driver)}: {_spread(driver)}" for driver in shown),
        dot_chart(
            rows,
            domain=(0.0, 1.0),
            form=percent_tick,
            axis_title="how much more often it is missing at one value than at another",
        ),
    )
    intervals = any(driver.interval is not None for driver in shown)
    caption = [
        "The further right, the more that value matters: shown is the difference between the values with the highest "
        "and the lowest rate, with everything else as in the data."
    ]
    if intervals:
        caption.append("Lines are 95 % intervals from a bootstrap, which guarantees nothing.")
    content = [figure(chart, *caption), bullets(map(_told, shown))]
    if len(drivers) > _MOST_DRIVERS:
        content.append(paragraph(f"{len(drivers) - _MOST_DRIVERS} weaker ones are in tables/drivers.csv."))
    return content


def _dot(driver: DriverRecord) -> Dot:
    low, high = driver.interval or (driver.difference, driver.difference)
    return Dot(
        _reason(driver),
        driver.difference,
        low,
        high,
        _spread(driver),
        short=_points(driver.difference),
        style="is-self" if driver.own else "plain",
        shape="wedge" if driver.own else "circle",
    )


def _are(features: Sequence[str]) -> str:
    return "is" if len(features) == 1 else "are"


def _missing(driver: DriverRecord) -> str:
    return " and ".join(driver.features)


def _reason(driver: DriverRecord) -> str:
    if driver.indicator:
        return f"whether {driver.driver} is missing"
    return f"{driver.driver} itself" if driver.own else driver.driver


def _points(difference: float) -> str:
    return f"{100.0 * difference:.0f} points"


def _spread(driver: DriverRecord) -> str:
    interval = driver.interval
    between = "" if interval is None else f" ({100.0 * interval[0]:.0f} to {100.0 * interval[1]:.0f})"
    return f"{_points(driver.difference)}{between}"


def _told(driver: DriverRecord) -> Html:
    own = driver.own and len(driver.features) == 1
    reason = "its value" if own else driver.driver
    return element(
        "span",
        name(_missing(driver)),
        f" {_are(driver.features)} missing in {percent(driver.highest_rate)} of the steps where {reason} is "
        f"{driver.highest}, and in {percent(driver.lowest_rate)} where it is {driver.lowest}.",
    )


def _graph(found: DiagnosisRecord) -> Html:
    graph = found.graph
    words = [f"{parent} drives whether {child} is missing" for parent, child in graph.edges]
    chart = Chart(
        "graph-diagnosis",
        "The m-graph that explains the data best",
        "; ".join(words) or "No arrows: missingness depends on no value.",
        graph_chart(graph.features, graph.can_go_missing, graph.edges, graph.dependent),
    )
    key = [
        element("span", element("span", "", class_=mark), text)
        for mark, text in (
            ("dot seen", "always seen"),
            ("dot hidden", "can go missing"),
            ("dot indicator", "whether it is missing (R)"),
            *([("dash self", "hides itself (self-censoring)")] if found.self_censoring else []),
            *([("dash together", "gaps that depend on each other")] if graph.dependent else []),
        )
    ]
    return figure(
        chart,
        "An arrow from a value to a gap means that the value changes the chance of the gap."
        if graph.edges
        else "There are no arrows: no value changes the chance of a gap.",
        key=key,
    )


def _suits(run: RunRecord, found: DiagnosisRecord) -> list[Html]:
    own = run.learner
    chosen = "auto" in run.settings.learners
    content = [
        paragraph(
            f"{'Chosen by this' if chosen else 'The learner that suits this'}: {found.learner}.", found.reason
        )
    ]
    if own.label != found.recommended:
        content.append(
            note(
                f"This run recommends {own.name} nevertheless, by how well it predicts data that it has not seen; "
                "the reasons are at the top of the page."
            )
        )
    return content


def _classes(found: DiagnosisRecord) -> list[Html]:
    rows = [
        [
            _CLASSES.get(row.name, row.name),
            number(row.log_likelihood, 0.1),
            f"{row.n_parameters:,}",
            "best" if row.behind == 0.0 else f"−{row.behind:,.1f}",
        ]
        for row in found.classes
    ]
    return [
        paragraph(
            "In each class the structure that explains the data best was searched. The score is the log-likelihood "
            "minus what it costs to tell the structure, as BIC has it; 10 less is e¹⁰ times less likely. A wider class "
            "that found nothing more is behind by what it costs to say so."
        ),
        table(
            "What gaps may depend on",
            ["gaps depend", "log-likelihood", "parameters", "score"],
            rows,
            numbers=[1, 2, 3],
        ),
    ]


def _tests(found: DiagnosisRecord) -> list[Html]:
    tests: list[TestRecord] = [*found.tests, *found.own_tests]
    if not tests:
        return []
    rows = [
        [
            f"{test.null} ({listed(test.features)})",
            test.alternative,
            f"{test.statistic:,.1f} ({test.freedom})",
            _p(test.p_value),
            "contradicted" if test.rejected else "not contradicted",
        ]
        for test in tests
    ]
    level = percent(tests[0].level)
    return [
        paragraph(
            f"Likelihood-ratio tests at {level}, each class within a wider one, with models of main effects: a tiny p "
            "speaks against what is tested, a large one proves nothing."
        ),
        table(
            "Tests",
            ["tested", "against", "statistic (degrees of freedom)", "p", "the data say"],
            rows,
            numbers=[2, 3],
        ),
    ]


def _p(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return "< 1e−300" if value < 1e-300 else f"{value:.2g}".replace("-", "−")

"""What drives missingness: m-graphs, true and learned."""

from __future__ import annotations

from collections.abc import Sequence

from missmdp.experiments.record.record import Edge, GraphRecord, LearnerRecord, RunRecord, TruthRecord
from missmdp.experiments.report.naming import twin
from missmdp.pages.graph_chart import graph_chart
from missmdp.pages.markup import Html, element, joined, name
from missmdp.pages.page import Section, bullets, details, figure, paragraph
from missmdp.pages.svg import Chart, Draw
from missmdp.words import count, listed, percent

_TYPES = {
    "MCAR": "what goes missing does not depend on the state",
    "simple MAR": "what goes missing depends on always-observed features only",
    "MAR": "how likely it is that just these features are seen depends only on what they show",
    "MNAR": "what goes missing depends on values that are themselves not seen",
}
"""The types of missingness in plain words."""


def graph_section(run: RunRecord) -> Section:
    """Return the section on m-graphs."""
    truth = run.model.truth
    content: list[Html] = [
        paragraph(
            "An m-graph (m for missingness) shows what moves what: an arrow from a value to a gap means that the value "
            "changes the chance of the gap.",
            "An arrow back to the same row, in red, is the hard case, in which a value hides itself.",
        )
    ]
    if truth is not None:
        content += _true_graph(run, truth)
    for position, learner in enumerate(run.ordered_learners):
        drawn = _learned_graph(run, learner, truth, first=truth is None and position == 0)
        content += [details(f"The same for {learner.name}", *drawn)] if position else drawn
    return Section("graph", "What drives missingness", tuple(content))


def _true_graph(run: RunRecord, truth: TruthRecord) -> list[Html]:
    edges = truth.graph.edges
    chart = Chart("graph-truth", "The true m-graph", _words(edges), _drawn(truth.graph))
    caption = [f"This is {truth.name}: {_TYPES[truth.name]}."] if truth.name in _TYPES else []
    hidden = [parent for parent, child in edges if parent == child]
    if hidden:
        able = [one.name for one in run.ordered_learners if not one.bound.guaranteed]
        found = f"only {listed(able)} can, through the dynamics" if able else "none here does"
        caption.append(
            f"No learner can learn from single records how {listed(hidden)} "
            f"{'hides itself' if len(hidden) == 1 else 'hide themselves'}; {found}."
        )
    else:
        learnable = (
            f"what {listed(truth.fitting_learners, 'or')} assumes holds"
            if truth.fitting_learners
            else "but no learner here assumes just that"
        )
        caption.append(f"No value hides itself; {learnable}.")
    return [figure(chart, *caption, key=_key(truth.graph))]


def _learned_graph(
    run: RunRecord, learner: LearnerRecord, truth: TruthRecord | None, *, first: bool
) -> list[Html]:
    graph = learner.graph
    chart = Chart(
        f"graph-{learner.label}",
        f"The m-graph that {learner.name} found",
        _words(graph.edges),
        _drawn(graph),
    )
    caption = [_which_arrows(learner)]
    if truth is not None:
        caption.append(_against_truth(graph.edges, truth.graph.edges))
    elif learner.threshold is None:
        caption.append("Red ones are inferred through the dynamics, so they are as good as the model is.")
    else:
        caption.append(
            f"Weak arrows may be noise; red ones cannot appear, since {learner.name} cannot see them."
        )
    content = [figure(chart, *caption, key=_key(graph) if first else ())]
    sentences = _sentences(graph.edges)
    return [*content, bullets(sentences) if sentences else paragraph(_nothing_found(run, learner))]


def _drawn(graph: GraphRecord) -> Draw:
    return graph_chart(graph.features, graph.can_go_missing, graph.edges, graph.dependent)


def _which_arrows(learner: LearnerRecord) -> str:
    if learner.threshold is None:
        return (
            "Arrows where the structure that explains the data best, by a score like BIC, asks for a value."
        )
    return (
        f"Arrows where a value moves the learned chance by more than {percent(learner.threshold)}, among states "
        "with data."
    )


def _nothing_found(run: RunRecord, learner: LearnerRecord) -> str:
    other = twin(run, learner)
    if other is not None:
        return f"{learner.name} is here the same as {other.name}{_why_the_same(learner)}."
    if learner.bound.guaranteed and not any(group.given for group in learner.groups):
        return f"{learner.name} looks for nothing that drives missingness: it counts all situations together."
    return f"{learner.name} found nothing that clearly drives missingness."


def _why_the_same(learner: LearnerRecord) -> str:
    return "" if learner.always_observed else ", since no feature is always recorded"


def _key(graph: GraphRecord) -> list[Html]:
    """Return what the marks of a graph mean."""
    entries = [
        ("dot seen", "always seen"),
        ("dot hidden", "can go missing"),
        ("dot indicator", "whether it is missing (R)"),
    ]
    if any(parent == child for parent, child in graph.edges):
        entries.append(("dash self", "hides itself (self-censoring)"))
    if graph.dependent:
        entries.append(("dash together", "gaps that depend on each other"))
    return [element("span", element("span", "", class_=mark), text) for mark, text in entries]


def _against_truth(edges: Sequence[Edge], true: Sequence[Edge]) -> str:
    absent = [edge for edge in true if edge not in edges]
    extra = [edge for edge in edges if edge not in true]
    if not absent and not extra:
        return "These are exactly the true arrows."
    found = count(len(true), "true arrow")
    parts = [
        f"of {found} {len(absent)} not found ({_arrows(absent)})" if absent else f"all {found} are there"
    ]
    if extra:
        more = "one more is" if len(extra) == 1 else f"{len(extra)} more are"
        parts.append(f"{more} not true, but noise or a wrong assumption ({_arrows(extra)})")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _arrows(edges: Sequence[Edge], most: int = 4) -> str:
    shown = [f"{parent} → R {child}" for parent, child in edges[:most]]
    return ", ".join([*shown, *(["…"] if len(edges) > most else [])])


def _words(edges: Sequence[Edge]) -> str:
    if not edges:
        return "No arrows: missingness depends on no value."
    return "; ".join(f"{parent} drives whether {child} is missing" for parent, child in edges)


def _sentences(edges: Sequence[Edge]) -> list[Html]:
    children = list(dict.fromkeys(child for _, child in edges))
    return [
        element(
            "span",
            "Whether ",
            name(child),
            " is missing depends on ",
            joined((name(parent) for parent, other in edges if other == child), ", "),
            ".",
        )
        for child in children
    ]

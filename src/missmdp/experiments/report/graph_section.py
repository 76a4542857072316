"""What drives missingness: m-graphs, true and learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.graph_chart import graph_chart
from missmdp.pages.markup import Html, element, joined, name
from missmdp.pages.page import Section, bullets, details, figure, paragraph
from missmdp.pages.svg import Chart
from missmdp.words import count, listed, percent, sentence

__all__ = ["graph_section"]

Edge = tuple[str, str]


def graph_section(run: RunFile) -> Section | None:
    """Return the section on m-graphs, or None where there is none."""
    truth = run.model["graph"]
    learned = [learner for learner in run.learners if learner["graph"] is not None]
    if truth is None and not learned:
        return None
    content: list[Html] = [
        paragraph(
            "An m-graph (m for missingness) shows what moves what: an arrow from a value to a gap means that the value "
            "changes the chance of the gap.",
            "An arrow back to the same row, in red, is the hard case, in which a value hides itself.",
        )
    ]
    if truth is not None:
        content += _true_graph(run, truth)
    for position, learner in enumerate(learned):
        drawn = _learned_graph(run, learner, truth, first=truth is None and position == 0)
        content += [details(f"The same for {learner['name']}", *drawn)] if position else drawn
    return Section("graph", "What drives missingness", tuple(content))


def _true_graph(run: RunFile, graph: dict[str, Any]) -> list[Html]:
    edges, between = _pairs(graph["edges"]), _pairs(graph.get("between", []))
    types = run.model["types"]
    chart = Chart(
        "graph-truth",
        "The true m-graph",
        _words(edges),
        graph_chart(
            graph["nodes"], graph.get("can_go_missing") or _missing(run, edges, between), edges, between
        ),
    )
    caption = [f"This is {sentence(types['summary'])}"] if types and types["summary"] else []
    hidden = [parent for parent, child in edges if parent == child]
    fitting: list[str] = types.get("fitting_learners", []) if types else []
    if hidden:
        able = [one["name"] for one in run.learners if not run.is_guaranteed(one)]
        found = f"only {listed(able)} can, through the dynamics" if able else "none here does"
        caption.append(
            f"No learner can learn from single records how {listed(hidden)} "
            f"{'hides itself' if len(hidden) == 1 else 'hide themselves'}; {found}."
        )
    else:
        learnable = (
            f"what {listed(fitting, 'or')} assumes holds"
            if fitting
            else "but no learner here assumes just that"
        )
        caption.append(f"No value hides itself; {learnable}.")
    return [figure(chart, *caption, key=_key(edges, between))]


def _learned_graph(
    run: RunFile, learner: dict[str, Any], truth: dict[str, Any] | None, *, first: bool
) -> list[Html]:
    graph = learner["graph"]
    edges, between = _pairs(graph["edges"]), _pairs(graph.get("between", []))
    features = [feature["name"] for feature in run.model["features"]]
    chart = Chart(
        f"graph-{learner['label']}",
        f"The m-graph that {learner['name']} found",
        _words(edges),
        graph_chart(features, _missing(run, edges, between), edges, between),
    )
    caption = [_which_arrows(graph)]
    if truth is not None:
        caption.append(_against_truth(edges, _pairs(truth["edges"])))
    elif graph["threshold"] is None:
        caption.append("Red ones are inferred through the dynamics, so they are as good as the model is.")
    else:
        caption.append(
            f"Weak arrows may be noise; red ones cannot appear, since {learner['name']} cannot see them."
        )
    content = [figure(chart, *caption, key=_key(edges, between) if first else ())]
    sentences = _sentences(edges)
    if sentences:
        content.append(bullets(sentences))
    else:
        content.append(paragraph(_nothing_found(run, learner)))
    return content


def _which_arrows(graph: dict[str, Any]) -> str:
    if graph["threshold"] is None:
        return (
            "Arrows where the structure that explains the data best, by a score like BIC, asks for a value."
        )
    return (
        f"Arrows where a value moves the learned chance by more than {percent(graph['threshold'])}, among states "
        "with data."
    )


def _nothing_found(run: RunFile, learner: dict[str, Any]) -> str:
    if run.same_as_amcar(learner):
        return f"{learner['name']} is here the same as AMCAR, since no feature is always recorded."
    if run.is_guaranteed(learner) and not any(group["given"] for group in learner["groups"]):
        return f"{learner['name']} looks for nothing that drives missingness: it assumes that nothing does."
    return f"{learner['name']} found nothing that clearly drives missingness."


def _key(edges: Sequence[Edge], between: Sequence[Edge]) -> list[Html]:
    """Return what the marks of a graph mean."""
    entries = [
        ("dot seen", "always seen"),
        ("dot hidden", "can go missing"),
        ("dot indicator", "whether it is missing (R)"),
    ]
    if any(parent == child for parent, child in edges):
        entries.append(("dash self", "hides itself (self-censoring)"))
    if between:
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


def _pairs(given: Any) -> list[Edge]:
    return [(str(pair[0]), str(pair[1])) for pair in given]


def _missing(run: RunFile, edges: Sequence[Edge], between: Sequence[Edge]) -> list[str]:
    rates = run.data["missing_rates"]
    gone = {feature for feature, rate in rates.items() if rate}
    return [*gone, *(child for _, child in edges), *(one for pair in between for one in pair)]


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

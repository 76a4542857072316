"""Policy graphs in DOT, the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from missmdp.plan.wording import decimal, short_text

if TYPE_CHECKING:
    from missmdp.plan.graph import GraphEdge, GraphNode, PolicyGraph

__all__ = ["MOST_LISTED", "edge_lines", "node_colours", "node_lines", "write_dot"]

MOST_LISTED = 3
"""Observations that an edge lists before it says how many more there are."""
START, END = "#FFFFFF", "#D9D9D9"
PALETTE = ("#A9C4E6", "#F2C894", "#B7D7A8", "#D5B8DC", "#F0E2A0", "#E8B4B0", "#A8D8D4", "#CDBEA7")
"""One colour per action, all light enough for dark text; they recur where there are more actions."""


def node_colours(graph: PolicyGraph) -> list[str]:
    """Return the colour of every node: by its action, in the order in which actions are met."""
    actions = list(dict.fromkeys(node.action for node in graph.nodes if node.kind == "decision"))
    return [
        START
        if node.kind == "start"
        else END
        if node.kind == "end"
        else PALETTE[actions.index(node.action) % len(PALETTE)]
        for node in graph.nodes
    ]


def node_lines(graph: PolicyGraph, node: GraphNode) -> list[str]:
    """Return what a node says: what is done, its value, and what is most probable."""
    if node.kind == "end":
        return ["the end"]
    name = "start" if node.kind == "start" else short_text(node.action)
    return [name, f"value {decimal(node.value)}", graph.state_texts[node.number]]


def edge_lines(edge: GraphEdge) -> list[str]:
    """Return what an edge says: its observations and their probability."""
    listed = [short_text(seen) for seen in edge.observations[:MOST_LISTED]]
    if len(edge.observations) > MOST_LISTED:
        listed[-1] = f"… {len(edge.observations) - MOST_LISTED + 1} more"
    listed[-1] += f"  {edge.probability:.2g}"
    return listed


def write_dot(graph: PolicyGraph) -> str:
    """Return a policy graph in DOT."""
    lines = ["digraph policy {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled"];']
    for node, colour in zip(graph.nodes, node_colours(graph), strict=True):
        lines.append(f'  n{node.number} [label={_quoted(node_lines(graph, node))}, fillcolor="{colour}"];')
    lines += [
        f"  n{edge.source} -> n{edge.target} [label={_quoted(edge_lines(edge))}];" for edge in graph.edges
    ]
    if graph.notes:
        lines.append(f"  label={_quoted(list(graph.notes))};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(lines: list[str]) -> str:
    plain = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(plain) + '"'

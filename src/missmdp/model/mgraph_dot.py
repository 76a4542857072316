"""m-graphs in DOT, the language of Graphviz: read and written."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from missmdp.errors import FormatError
from missmdp.model.mgraph_picture import node_colour

if TYPE_CHECKING:
    from missmdp.model.mgraph import MissingnessGraph

__all__ = ["read_dot", "write_dot"]


def read_dot(source: str | Path) -> tuple[list[str], list[tuple[str, str]], str]:
    """Return the nodes and edges of a graph in a DOT file or text, and what to call it in errors."""
    where, text = _text(source)
    graph = _parsed(text, where)
    edges = list(_edges(graph, where))
    nodes = [*_nodes(graph), *(node for edge in edges for node in edge)]
    return list(dict.fromkeys(nodes)), edges, where


def write_dot(graph: MissingnessGraph) -> str:
    """Return an m-graph in DOT."""
    lines = ["digraph mgraph {", "  node [shape=circle, style=filled, fontcolor=white];"]
    for node, data in graph.to_networkx().nodes(data=True):
        colour = node_colour(graph, data["kind"], data["feature"])
        lines.append(f'  {_quoted(node)} [fillcolor="{colour}"];')
    for name in graph.features:
        lines.append(f"  {_quoted('S_' + name)} -> {_quoted('Z_' + name)} [color=gray];")
        if name in graph.can_go_missing:
            lines.append(f"  {_quoted('R_' + name)} -> {_quoted('Z_' + name)} [color=gray];")
    lines += [f"  {_quoted('S_' + a)} -> {_quoted('R_' + b)};" for a, b in graph.edges]
    lines += [f"  {_quoted('R_' + a)} -> {_quoted('R_' + b)} [dir=none];" for a, b in graph.dependent]
    return "\n".join([*lines, "}"]) + "\n"


def _text(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "{" in source:
        return "DOT text", source
    try:
        return str(source), Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FormatError(f"{source}: cannot be read ({reason})") from error


def _parsed(text: str, where: str) -> Any:
    """Return pydot's graph; what it would print about a mistake becomes the error's message."""
    import pydot
    import pyparsing

    said = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            warnings.catch_warnings(category=DeprecationWarning, action="ignore"),  # pydot's, about pyparsing
        ):
            graphs = cast("list[Any] | None", pydot.graph_from_dot_data(text))
    except (pyparsing.ParseBaseException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{where}: not a graph in DOT ({error})") from error
    # pydot stops at the end of the graph without a look at what follows.
    rest = re.sub(r"//.*|#.*|/\*[\s\S]*?\*/", "", text[text.rfind("}") + 1 :])
    if graphs and rest.strip():
        raise FormatError(f"{where}: not a graph in DOT (there is more after its end: {rest.strip()[:20]!r})")
    if not graphs:
        lines = said.getvalue().strip().splitlines()
        raise FormatError(f"{where}: not a graph in DOT" + (f" ({lines[-1]})" if lines else ""))
    if len(graphs) > 1:
        raise FormatError(f"{where}: holds {len(graphs)} graphs; expected one")
    if graphs[0].get_type() != "digraph":
        raise FormatError(f"{where}: an m-graph is directed; write digraph")
    return graphs[0]


def _edges(graph: Any, where: str) -> Iterator[tuple[str, str]]:
    for edge in graph.get_edges():
        ends = (edge.get_source(), edge.get_destination())
        if not all(isinstance(end, str) for end in ends):
            raise FormatError(
                f"{where}: edges between groups of nodes are not supported; write one edge per line"
            )
        yield _name(ends[0]), _name(ends[1])
    for part in graph.get_subgraphs():
        yield from _edges(part, where)


def _nodes(graph: Any) -> Iterator[str]:
    for node in graph.get_nodes():
        name = _name(node.get_name())
        if name not in ("node", "edge", "graph", "\\n", "\\r\\n", ""):
            yield name
    for part in graph.get_subgraphs():
        yield from _nodes(part)


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _name(text: str) -> str:
    """Return a node's name without its quotes, or without its port."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return text.split(":")[0]

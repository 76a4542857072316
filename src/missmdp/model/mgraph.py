"""Missingness graphs: which features drive whether a feature is missing.

Nodes are S (features), R (indicators of the features that can go missing) and Z (what is recorded). The
edges that carry information go from an S to an R; the proxy edges S_i → Z_i ← R_i are implied. Indicators
that are dependent given the state are joined by an undirected edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import (
    checked_instance,
    checked_list,
    checked_mask,
    checked_number,
    checked_path,
    checked_title,
)
from missmdp.errors import Argument, FormatError, ModelError, ParameterError
from missmdp.model.dot import read_dot
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.picture import draw_mgraph, node_colour
from missmdp.model.types import TOLERANCE, Edge, dependences
from missmdp.words import did_you_mean

if TYPE_CHECKING:
    import networkx as nx


class MissingnessGraph:
    """An m-graph over features.

    Parameters
    ----------
    edges
        Pairs (parent, child): the value of `parent` changes the probability that `child` is missing.
        Written with feature names, or as ("S_parent", "R_child").
    features
        All features, in order; by default those that occur in edges.
    can_go_missing
        Features with an indicator; by default those that some edge or dependence says can go missing.
    dependent
        Pairs of features whose indicators are dependent given the state.
    notes
        Sentences for readers of the graph.

    Examples
    --------
    >>> graph = MissingnessGraph([("temperature", "heart_rate")])
    >>> graph.parents("heart_rate")
    ('temperature',)
    """

    def __init__(
        self,
        edges: Iterable[Sequence[str]] = (),
        *,
        features: Iterable[str] | None = None,
        can_go_missing: Iterable[str] | None = None,
        dependent: Iterable[Sequence[str]] = (),
        notes: Iterable[str] = (),
    ) -> None:
        known = (
            None
            if features is None
            else tuple(
                checked_list(
                    "features", list(features) if isinstance(features, str) else features, "a list of names"
                )
            )
        )
        edges = checked_list("edges", edges, "a list of pairs of names (parent, child)")
        dependent = checked_list("dependent", dependent, "a list of pairs of names")
        if can_go_missing is not None:
            can_go_missing = checked_list("can_go_missing", can_go_missing, "a list of names")
        if known is not None and not all(isinstance(name, str) for name in known):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError("features", known, "names, which are strings")
        if known is not None and len(set(known)) != len(known):
            twice = next(name for name in known if known.count(name) > 1)
            raise ParameterError("features", known, "distinct", f"{twice!r} is listed twice")
        names = None if known is None else dict.fromkeys(known)
        pairs = [
            (_feature(parent, "S", names), _feature(child, "R", names)) for parent, child in map(_pair, edges)
        ]
        joined = [(_feature(a, "R", names), _feature(b, "R", names)) for a, b in map(_pair, dependent)]
        missing = dict.fromkeys(_feature(name, "R", names) for name in can_go_missing or ())
        if known is None:
            known = tuple(dict.fromkeys(name for pair in [*pairs, *joined] for name in pair))
            known = tuple(dict.fromkeys([*known, *missing]))
        order = {name: position for position, name in enumerate(known)}
        implied = {child for _, child in pairs} | {name for pair in joined for name in pair}
        if can_go_missing is not None and not implied <= set(missing):
            odd = sorted(implied - set(missing), key=order.__getitem__)[0]
            raise ModelError(
                f"the graph has edges into the indicator of {odd!r}, which is not in ",
                Argument("can_go_missing"),
            )
        if any(a == b for a, b in joined):
            raise ParameterError("dependent", joined, "pairs", "an indicator cannot depend on itself")
        self.features: tuple[str, ...] = known
        self.can_go_missing: tuple[str, ...] = tuple(n for n in known if n in implied or n in missing)
        self.edges: tuple[Edge, ...] = tuple(
            sorted(set(pairs), key=lambda edge: (order[edge[1]], order[edge[0]]))
        )
        self.dependent: tuple[Edge, ...] = tuple(
            sorted(
                {(a, b) if order[a] < order[b] else (b, a) for a, b in joined},
                key=lambda edge: (order[edge[0]], order[edge[1]]),
            )
        )
        self.notes: tuple[str, ...] = tuple(map(str, checked_list("notes", notes, "a list of sentences")))

    @classmethod
    def from_missingness(
        cls,
        missingness: MissingnessFunction,
        reachable: NDArray[np.bool_] | None = None,
        *,
        tolerance: float = TOLERANCE,
    ) -> MissingnessGraph:
        """Return the m-graph of a missingness function over the reachable states.

        The parents of R_i are the features with a single-feature contrast: two states that differ in that feature
        alone have different P(R_i). Any set of parents must contain them all. If they do not determine P(R_i | s),
        which happens when features move together, features are added until they do, always-observed ones first and
        feature i itself last. Those that turn out not to be needed are removed again. `notes` reports choices that
        could have been made differently.
        """
        checked_instance("missingness", missingness, MissingnessFunction, "a MissingnessFunction")
        if reachable is not None:
            reachable = checked_mask("reachable", reachable, len(missingness.space))
        found = dependences(missingness, reachable, checked_number("tolerance", tolerance, least=0.0))
        return cls(
            found.edges,
            features=missingness.space.features.names,
            can_go_missing=found.can_go_missing,
            dependent=found.dependent,
            notes=found.notes,
        )

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[Any]) -> MissingnessGraph:
        """Return the m-graph of a directed graph with nodes S_x, R_x and Z_x.

        Edges into Z are proxies and edges between S nodes belong to the dynamics: both are left out. Edges
        between R nodes are dependences. A node without a prefix is a feature.
        """
        import networkx as nx

        if not isinstance(graph, nx.DiGraph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(
                "graph", graph, "a DiGraph", "an m-graph is directed; give a networkx DiGraph"
            )
        nodes = [str(node) for node in graph.nodes]
        return _graph_from_nodes(nodes, [(str(a), str(b)) for a, b in graph.edges()], "the graph")

    @classmethod
    def from_dot(cls, source: str | Path) -> MissingnessGraph:
        """Return the m-graph in a DOT file, or in a string that holds DOT; nodes as in `from_networkx`."""
        return _graph_from_nodes(*read_dot(source))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MissingnessGraph) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.features, self.can_go_missing, self.edges, self.dependent)

    def __repr__(self) -> str:
        edges = ", ".join(f"{a} → R_{b}" for a, b in self.edges) or "no edges"
        joined = "".join(f", R_{a} — R_{b}" for a, b in self.dependent)
        return f"MissingnessGraph({edges}{joined})"

    @property
    def always_observed(self) -> tuple[str, ...]:
        """The features without an indicator."""
        missing = set(self.can_go_missing)
        return tuple(name for name in self.features if name not in missing)

    @property
    def self_censoring(self) -> tuple[str, ...]:
        """The features with an edge into their own indicator."""
        return tuple(child for parent, child in self.edges if parent == child)

    def parents(self, feature: str) -> tuple[str, ...]:
        """Return the features that drive whether a feature is missing."""
        if not isinstance(feature, str) or feature not in self.features:  # pyright: ignore[reportUnnecessaryIsInstance]
            meant = did_you_mean(feature, self.features)
            raise ModelError(
                f"there is no feature {feature!r}; the features are {', '.join(self.features)}{meant}"
            )
        return tuple(parent for parent, child in self.edges if child == feature)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a networkx graph with nodes S_x, R_x, Z_x and the attributes `kind` and `feature`.

        Edges have a `kind`: "cause" (S → R), "proxy" (into Z), or "dependence" (R – R, both ways).
        """
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        missing = set(self.can_go_missing)
        for name in self.features:
            graph.add_node(f"S_{name}", kind="S", feature=name)
            graph.add_node(f"Z_{name}", kind="Z", feature=name)
            graph.add_edge(f"S_{name}", f"Z_{name}", kind="proxy")
            if name in missing:
                graph.add_node(f"R_{name}", kind="R", feature=name)
                graph.add_edge(f"R_{name}", f"Z_{name}", kind="proxy")
        for parent, child in self.edges:
            graph.add_edge(f"S_{parent}", f"R_{child}", kind="cause")
        for a, b in self.dependent:
            graph.add_edge(f"R_{a}", f"R_{b}", kind="dependence")
            graph.add_edge(f"R_{b}", f"R_{a}", kind="dependence")
        return graph

    def to_dot(self) -> str:
        """Return the graph in DOT, which `from_dot` reads back."""
        return _write_dot(self)

    def draw(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw the graph into an SVG, PNG or PDF file and return its path."""
        return draw_mgraph(self, checked_path(path), title=checked_title(title))


def _pair(edge: Any) -> tuple[str, str]:
    if isinstance(edge, str) or not isinstance(edge, Iterable):
        raise ModelError(f"an edge is a pair of names (parent, child), got {edge!r}")
    ends = tuple(cast("Iterable[Any]", edge))
    if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        raise ModelError(f"an edge is a pair of names (parent, child), got {edge!r}")
    return cast("tuple[str, str]", ends)


def _feature(node: str, kind: str, known: Collection[str] | None) -> str:
    """Return the feature that a node stands for: its name, or what follows the prefix S_ or R_."""
    if not isinstance(node, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"a node is given by its name, a string, not {node!r}")
    if known is not None and node in known:
        return node
    bare = node.removeprefix(f"{kind}_")
    if known is not None and bare not in known:
        meant = did_you_mean(node, known)
        raise ModelError(f"there is no feature {node!r}; the features are {', '.join(known)}{meant}")
    return bare


def _graph_from_nodes(nodes: list[str], edges: list[Edge], where: str) -> MissingnessGraph:
    kinds = {node: node[0] if node[:2] in ("S_", "R_", "Z_") else "S" for node in nodes}
    names = {node: node[2:] if node[:2] in ("S_", "R_", "Z_") else node for node in nodes}
    causes: list[Edge] = []
    dependent: list[Edge] = []
    has_indicators = "R" in kinds.values()
    for a, b in edges:
        match kinds[a], kinds[b]:
            case "S", "R":
                causes.append((names[a], names[b]))
            case "R", "R":
                dependent.append((names[a], names[b]))
            case (("S" | "R"), "Z"):
                if names[a] != names[b]:
                    raise FormatError(
                        f"{where}: the edge {a} → {b} is no proxy edge: it joins different features"
                    )
            case "S", "S":
                if not has_indicators:
                    raise FormatError(
                        f"{where}: there are no indicators; write the edge {a} → {b} as S_{names[a]} → R_{names[b]}"
                    )
            case _:
                raise FormatError(f"{where}: an m-graph has no edge from {a} to {b}")
    try:
        return MissingnessGraph(
            causes,
            features=dict.fromkeys(names.values()),
            can_go_missing=[names[node] for node in nodes if kinds[node] == "R"],
            dependent=dependent,
        )
    except ModelError as error:
        raise FormatError(f"{where}: {error}") from None


def _write_dot(graph: MissingnessGraph) -> str:
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


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'

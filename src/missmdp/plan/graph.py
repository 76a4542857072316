"""Policies as graphs: what is done, what is seen, what is done then."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import condition
from missmdp.checks import checked_integer, checked_number, checked_path, checked_title
from missmdp.model.missmdp import MissMDP
from missmdp.plan.graph_layout import edge_lines, node_colours, node_lines
from missmdp.plan.state_text import short_text
from missmdp.plan.value_function import NO_VECTOR, Decision
from missmdp.words import printable

if TYPE_CHECKING:
    import networkx as nx

    from missmdp.plan.alpha import AlphaVectorPolicy

SAME_BELIEF = 1e-9
"""Beliefs that differ by no more than this in any state count as one."""


@dataclass(frozen=True, eq=False)
class GraphNode:
    """A decision: one α-vector, at the belief with which it was first met."""

    number: int
    """Its place in the graph's list of nodes."""
    kind: str
    """"start" (nothing seen yet, no action), "decision", or "end" (the episode is over)."""
    action: Any
    """What is done, or None at the start and at the end."""
    value: float
    """V at the belief."""
    vector: int | None
    """The number of the vector, counted over all components; None where a lookahead decides."""
    belief: NDArray[np.float64]
    """The belief that stands for the node, shape (S,)."""
    depth: int
    """How many observations it takes to get here."""


@dataclass(frozen=True)
class GraphEdge:
    """The observations that lead from one node to another."""

    source: int
    target: int
    probability: float
    """Of all these observations together, at the belief that stands for the source."""
    observations: tuple[Any, ...]
    """Most likely first."""


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """What a policy does from the start on.

    Nodes are decisions and edges are observations, grouped where they lead to the same node. Beliefs at which the same
    α-vector is best are one node: the policy does the same at all of them.

    Notes
    -----
    The graph is exact in what it does at each node and approximate in what follows. A node is represented by the
    belief with which it was met first, in breadth-first order and along likely observations first. Its
    value, its probabilities and what comes after it are those of that belief; other beliefs of the same node
    (`merged` counts them) may go elsewhere. An agent tracks the belief itself and needs no graph.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    merged: int
    """How many times a node was met with another belief than its own."""
    cut_by_nodes: int
    """Observations that were left out since they lead to nodes beyond `max_nodes`."""
    cut_by_depth: int
    """Nodes that were not followed further."""
    unlikely: int
    """Observations that were left out since they are less likely than `min_probability`."""
    features: tuple[str, ...]
    """The features that states and observations list, for miss-MDPs."""
    state_texts: tuple[str, ...]
    """What is most probable at each node, with its probability."""

    def __repr__(self) -> str:
        return f"PolicyGraph({len(self.nodes)} nodes, {len(self.edges)} edges)"

    @property
    def complete(self) -> bool:
        """Whether nothing was left out: no limit was hit."""
        return not (self.cut_by_nodes or self.cut_by_depth or self.unlikely)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: what is approximate, and what was left out."""
        notes: list[str] = []
        if self.features:
            notes.append(f"States and observations list {', '.join(self.features)}; ? is missing.")
        if self.merged:
            notes.append(
                f"{_times(self.merged)} a decision was met with another belief than the one drawn: "
                "what follows may then differ."
            )
        left_out = [
            f"{count:,} {what}"
            for count, what in (
                (self.cut_by_nodes, "observations that lead to further nodes"),
                (self.unlikely, "unlikely observations"),
                (self.cut_by_depth, "nodes' continuations"),
            )
            if count
        ]
        if left_out:
            notes.append(f"Left out: {', '.join(left_out)}.")
        return tuple(notes)

    def to_networkx(self) -> nx.DiGraph[int]:
        """Return a networkx graph over node numbers.

        Nodes have the attributes `kind`, `action`, `value`, `vector`, `depth`; edges `probability` and
        `observations`.
        """
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        for node in self.nodes:
            graph.add_node(
                node.number,
                kind=node.kind,
                action=node.action,
                value=node.value,
                vector=node.vector,
                depth=node.depth,
            )
        for edge in self.edges:
            graph.add_edge(
                edge.source, edge.target, probability=edge.probability, observations=edge.observations
            )
        return graph

    def to_dot(self) -> str:
        """Return the graph in DOT, the language of Graphviz."""
        return write_dot(self)

    def draw(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw the graph into an SVG, PNG or PDF file and return its path; the same graph gives the same file."""
        from missmdp.plan.pictures import draw_graph

        return draw_graph(self, checked_path(path), title=checked_title(title))


def policy_graph(
    policy: AlphaVectorPolicy, *, max_nodes: int, depth: int | None, min_probability: float
) -> PolicyGraph:
    """Return a policy as a graph; see `AlphaVectorPolicy.graph`."""
    return _Walk(
        policy,
        checked_integer("max_nodes", max_nodes, least=1),
        None if depth is None else checked_integer("depth", depth, least=0),
        checked_number("min_probability", min_probability, least=0.0),
    ).graph()


class _Walk:
    """A breadth-first walk over the decisions of a policy."""

    def __init__(
        self, policy: AlphaVectorPolicy, max_nodes: int, depth: int | None, min_probability: float
    ) -> None:
        self.policy = policy
        self.max_nodes = max_nodes
        self.max_depth = depth
        self.min_probability = min_probability
        self.nodes: list[GraphNode] = []
        self.numbers: dict[object, int] = {}
        self.edges: dict[tuple[int, int], tuple[float, list[Any]]] = {}
        self.merged = self.cut_by_nodes = self.cut_by_depth = self.unlikely = 0

    def graph(self) -> PolicyGraph:
        """Walk, and return what was met."""
        initial = self.policy.pomdp.initial
        if self.policy.observe_initial:
            value = self.policy.initial_value
            self.nodes.append(GraphNode(0, "start", None, value, None, initial, 0))
        else:
            self._meet(initial, self.policy.value_function.decide(initial), 0)
        queue = deque([0])
        while queue:
            queue.extend(self._expand(self.nodes[queue.popleft()]))
        model = self.policy.model
        return PolicyGraph(
            nodes=tuple(self.nodes),
            edges=tuple(
                GraphEdge(source, target, probability, tuple(seen))
                for (source, target), (probability, seen) in self.edges.items()
            ),
            merged=self.merged,
            cut_by_nodes=self.cut_by_nodes,
            cut_by_depth=self.cut_by_depth,
            unlikely=self.unlikely,
            features=model.space.features.names if isinstance(model, MissMDP) else (),
            state_texts=tuple(self._likely_state(node.belief) for node in self.nodes),
        )

    def _likely_state(self, belief: NDArray[np.float64]) -> str:
        s = int(np.argmax(belief))
        return f"{short_text(self.policy.pomdp.states[s])}  {belief[s]:.2f}"

    def _expand(self, node: GraphNode) -> list[int]:
        """Add what follows a node; return the new nodes."""
        if node.kind == "end":
            return []
        if self.max_depth is not None and node.depth >= self.max_depth:
            self.cut_by_depth += 1
            return []
        new: list[int] = []
        for z, probability, belief in self._successors(node):
            before = len(self.nodes)
            target = self._meet(belief, self.policy.value_function.decide(belief), node.depth + 1)
            if target is None:
                self.cut_by_nodes += 1
                continue
            if len(self.nodes) > before:
                new.append(target)
            total, seen = self.edges.setdefault((node.number, target), (0.0, []))
            seen.append(self.policy.pomdp.observations[z])
            self.edges[node.number, target] = (total + probability, seen)
        return new

    def _successors(self, node: GraphNode) -> Iterator[tuple[int, float, NDArray[np.float64]]]:
        """Yield the observations that can follow a node, most likely first, with the beliefs after them."""
        values, pomdp = self.policy.value_function, self.policy.pomdp
        action = 0 if node.kind == "start" else pomdp.actions.index(node.action)
        predicted = node.belief if node.kind == "start" else values.predicted(node.belief, action)
        probability = values.outcomes(predicted, action).probability
        possible = np.flatnonzero(probability)
        likely = possible[probability[possible] >= self.min_probability]
        self.unlikely += len(possible) - len(likely)
        for z in cast("list[int]", likely[np.argsort(-probability[likely], kind="stable")].tolist()):
            belief = np.empty(pomdp.n_states)
            yield z, condition(predicted, values.likelihood(z, action), belief), belief

    def _meet(self, belief: NDArray[np.float64], decision: Decision, depth: int) -> int | None:
        """Return the number of a belief's node, new or old, or None where there is no room for a new one."""
        over = bool(self.policy.pomdp.terminal[belief > 0.0].all())
        # No vector and not over: the root, which spans components; no observation leads back to it.
        key = "end" if over else "root" if decision.vector == NO_VECTOR else decision.vector
        if key in self.numbers:
            known = self.nodes[self.numbers[key]]
            if not over and np.abs(known.belief - belief).max() > SAME_BELIEF:
                self.merged += 1
            return known.number
        if len(self.nodes) >= self.max_nodes:
            return None
        self.numbers[key] = len(self.nodes)
        self.nodes.append(
            GraphNode(
                number=len(self.nodes),
                kind="end" if over else "decision",
                action=None if over else self.policy.pomdp.actions[decision.action],
                value=decision.value,
                vector=None if decision.vector == NO_VECTOR else decision.vector,
                belief=belief,
                depth=depth,
            )
        )
        return self.numbers[key]


def _times(count: int) -> str:
    return "Once" if count == 1 else "Twice" if count == 2 else f"{count:,} times"


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
    plain = [printable(line).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(plain) + '"'

"""What the parts of a policy graph's picture say and where they go: columns by depth, edges, labels in free places.

Lengths are inches. Edges to the next column are curves between facing sides; edges within a column bend out to the
right; edges back to the column before run the other way; edges further back run in lanes below all nodes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.state_text import short_text
from missmdp.words import shortened, significant

if TYPE_CHECKING:
    from missmdp.plan.graph import GraphEdge, GraphNode, PolicyGraph

NODE_LETTER, NODE_LINE = 0.079, 0.165
LABEL_LETTER, LABEL_LINE = 0.06, 0.13
NODE_LETTERS, LABEL_LETTERS = 30, 30
"""Letters after which a line of a node or of a label is shortened."""
LOOP = 0.24
"""Height of the loop of a node that leads to itself."""
ROW_GAP, MARGIN, BEND = 0.3, 0.25, 0.12
TRIES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.12, 0.88)
"""Where along its edge a label may stand, best first."""
MOST_LISTED = 3
"""Observations that an edge lists before it says how many more there are."""
START, END = "#FFFFFF", "#D9D9D9"
PALETTE = ("#A9C4E6", "#F2C894", "#B7D7A8", "#D5B8DC", "#F0E2A0", "#E8B4B0", "#A8D8D4", "#CDBEA7")
"""One colour per action, all light enough for dark text; they recur where there are more actions."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle by its centre."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Return the area that two rectangles share."""
        across = (self.width + other.width) / 2 - abs(self.x - other.x)
        along = (self.height + other.height) / 2 - abs(self.y - other.y)
        return max(across, 0.0) * max(along, 0.0)


@dataclass(frozen=True)
class EdgePlace:
    """Where an edge runs and what it says where."""

    edge: GraphEdge
    points: tuple[Point, ...]
    """The corners of a line, to be drawn with round corners, or the four points of a cubic curve."""
    cubic: bool
    label: Box
    lines: tuple[str, ...]

    @property
    def extent(self) -> list[Point]:
        """Points that the picture must have room for."""
        if not self.cubic:
            return list(self.points)
        return [_bezier(np.array(self.points), t) for t in (0.0, 0.25, 0.5, 0.75, 1.0)]


@dataclass(frozen=True)
class Layout:
    """Everything, with the picture's extent."""

    nodes: tuple[Box, ...]
    node_lines: tuple[tuple[str, ...], ...]
    edges: tuple[EdgePlace, ...]
    left: float
    right: float
    bottom: float
    top: float


def lay_out(graph: PolicyGraph) -> Layout:
    """Return where the nodes, edges and labels of a graph go."""
    texts = tuple(tuple(shortened(t, NODE_LETTERS) for t in node_lines(graph, node)) for node in graph.nodes)
    labels = {
        (edge.source, edge.target): tuple(shortened(t, LABEL_LETTERS) for t in edge_lines(edge))
        for edge in graph.edges
    }
    bulges = _bulges(graph)
    nodes = _place_nodes(graph, texts, labels, bulges)
    edges = _place_edges(graph, nodes, labels, bulges)
    boxes = [*nodes, *(edge.label for edge in edges)]
    corners = [point for edge in edges for point in edge.extent]
    xs = [x for box in boxes for x in (box.x - box.width / 2, box.x + box.width / 2)] + [
        x for x, _ in corners
    ]
    ys = [y for box in boxes for y in (box.y - box.height / 2, box.y + box.height / 2)] + [
        y for _, y in corners
    ]
    return Layout(nodes, texts, edges, min(xs) - MARGIN, max(xs) + MARGIN, min(ys) - MARGIN, max(ys) + MARGIN)


Labels = dict[tuple[int, int], tuple[str, ...]]


def _label_size(lines: tuple[str, ...]) -> tuple[float, float]:
    return LABEL_LETTER * max(map(len, lines)) + 0.06, LABEL_LINE * len(lines) + 0.03


def _bulges(graph: PolicyGraph) -> dict[tuple[int, int], float]:
    """Return how far each edge within a column bends out: the further it goes the more, and upwards more than down.

    So no two that pass the same place run on top of each other.
    """
    rows = {number: row for column in _columns(graph) for row, number in enumerate(column)}
    lanes = {
        (edge.source, edge.target): 2 * abs(rows[edge.source] - rows[edge.target])
        - (rows[edge.source] < rows[edge.target])
        for edge in graph.edges
        if graph.nodes[edge.source].depth == graph.nodes[edge.target].depth and edge.source != edge.target
    }
    step = min(0.5, 8.0 / max(lanes.values(), default=1))
    return {ends: 0.35 + step * (lane - 1) for ends, lane in lanes.items()}


def _place_nodes(
    graph: PolicyGraph,
    texts: tuple[tuple[str, ...], ...],
    labels: Labels,
    bulges: dict[tuple[int, int], float],
) -> tuple[Box, ...]:
    width = max(0.9, max(NODE_LETTER * len(line) for lines in texts for line in lines) + 0.24)
    height = NODE_LINE * max(map(len, texts)) + 0.16
    loops = [_label_size(labels[a, b])[1] for a, b in labels if a == b]
    tallest = max((_label_size(lines)[1] for lines in labels.values()), default=0.0)
    pitch = height + max(ROW_GAP, tallest + 0.08) + (max(loops) + LOOP if loops else 0.0)
    x = 0.0
    boxes: dict[int, Box] = {}
    for depth, column in enumerate(_columns(graph)):
        for row, number in enumerate(column):
            boxes[number] = Box(x, ((len(column) - 1) / 2 - row) * pitch, width, height)
        reach = max((bulge for (a, _), bulge in bulges.items() if a in column), default=0.0)
        x += width + reach + _gap_after(graph, labels, depth)
    return tuple(boxes[node.number] for node in graph.nodes)


def _gap_after(graph: PolicyGraph, labels: Labels, depth: int) -> float:
    """Return the room between a column and the next: for its labels, and more where there are many edges."""
    depths = [node.depth for node in graph.nodes]
    between = [
        labels[edge.source, edge.target]
        for edge in graph.edges
        if {depths[edge.source], depths[edge.target]} == {depth, depth + 1}
    ]
    widest = max((_label_size(lines)[0] for lines in between), default=0.3)
    return (widest + 0.6) * (1.0 + min(len(between), 40) / 40)


def _columns(graph: PolicyGraph) -> list[list[int]]:
    """Return the nodes by depth, each column ordered such that nodes are level with those that lead to them."""
    columns: list[list[int]] = [[] for _ in range(1 + max(node.depth for node in graph.nodes))]
    for node in graph.nodes:
        columns[node.depth].append(node.number)
    parents: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if graph.nodes[edge.target].depth == graph.nodes[edge.source].depth + 1:
            parents[edge.target].append(edge.source)
    for before, column in pairwise(columns):
        level = {number: row - (len(before) - 1) / 2 for row, number in enumerate(before)}
        column.sort(key=lambda number: float(np.mean([level[parent] for parent in parents[number]])))
    return columns


def _place_edges(
    graph: PolicyGraph, nodes: tuple[Box, ...], labels: Labels, bulges: dict[tuple[int, int], float]
) -> tuple[EdgePlace, ...]:
    depths = [node.depth for node in graph.nodes]
    kept = sorted(graph.edges, key=lambda edge: (depths[edge.source] - depths[edge.target], edge.source))
    ports = _Ports(nodes, kept, depths)
    floor = min(box.y - box.height / 2 for box in nodes) - 0.3
    taken: list[Box] = list(nodes)
    placed: list[EdgePlace] = []
    for edge in kept:
        lines = labels[edge.source, edge.target]
        size = _label_size(lines)
        back = depths[edge.source] - depths[edge.target]
        if edge.source == edge.target:
            points, cubic = _loop(nodes[edge.source]), True
            start, middle = points[0], points[1]
            label = Box((start[0] + points[3][0]) / 2, middle[1] + size[1] / 2 - 0.05, *size)
        else:
            start, end = ports.start(edge), ports.end(edge)
            if back >= 2:
                lane = floor - size[1] / 2
                floor -= size[1] + 0.1
                points, cubic = _lane(start, end, lane, ports.turn()), False
            else:
                points, cubic = _curve(start, end, bulges.get((edge.source, edge.target))), True
            label = _free_place(points, size, taken, cubic=cubic)
        taken.append(label)
        placed.append(EdgePlace(edge, points, cubic, label, lines))
    return tuple(placed)


class _Ports:
    """Where edges leave and enter nodes: spread over a side, in the order of where they come from or go."""

    def __init__(self, nodes: tuple[Box, ...], edges: list[GraphEdge], depths: list[int]) -> None:
        self._turns = 0
        sides: dict[tuple[int, float], list[tuple[float, int, bool]]] = defaultdict(list)
        for j, edge in enumerate(edges):
            if edge.source != edge.target:
                back = depths[edge.source] - depths[edge.target]
                out, into = (-1.0, 1.0) if back == 1 else (1.0, 1.0 if back == 0 else -1.0)
                below = -1e6 if back >= 2 else 0.0
                sides[edge.source, out].append((below + nodes[edge.target].y, j, True))
                sides[edge.target, into].append((below + nodes[edge.source].y, j, False))
        self._place: dict[tuple[int, int, bool], Point] = {}
        for (number, side), ends in sides.items():
            box = nodes[number]
            for rank, (_, j, leaves) in enumerate(sorted(ends, reverse=True)):
                share = (rank + 1) / (len(ends) + 1) - 0.5
                point = (box.x + side * box.width / 2, box.y - share * box.height)
                self._place[edges[j].source, edges[j].target, leaves] = point

    def start(self, edge: GraphEdge) -> Point:
        """Return where an edge leaves its source."""
        return self._place[edge.source, edge.target, True]

    def end(self, edge: GraphEdge) -> Point:
        """Return where an edge enters its target."""
        return self._place[edge.source, edge.target, False]

    def turn(self) -> float:
        """Return how far from a node the next edge in a lane turns, so no two share a line."""
        self._turns += 1
        return 0.18 + 0.07 * (self._turns % 6)


def _curve(start: Point, end: Point, bulge: float | None) -> tuple[Point, ...]:
    """Return a cubic curve that leaves and enters horizontally, or one that bends out to the right and back."""
    if bulge is not None:
        # A cubic curve goes three quarters of the way to its control points.
        reach = bulge / 0.75
        return (start, (start[0] + reach, start[1]), (end[0] + reach, end[1]), end)
    half = 0.45 * (end[0] - start[0])
    return (start, (start[0] + half, start[1]), (end[0] - half, end[1]), end)


def _lane(start: Point, end: Point, level: float, turn: float) -> tuple[Point, ...]:
    out, into = start[0] + turn, end[0] - turn
    return (start, (out, start[1]), (out, level), (into, level), (into, end[1]), end)


def _loop(box: Box) -> tuple[Point, ...]:
    top = box.y + box.height / 2
    x = box.x + box.width * 0.2
    return ((x - 0.1, top), (x - 0.16, top + 1.33 * LOOP), (x + 0.16, top + 1.33 * LOOP), (x + 0.1, top))


def _free_place(
    points: tuple[Point, ...], size: tuple[float, float], taken: list[Box], *, cubic: bool
) -> Box:
    """Return the place along an edge where its label hides least of what is there already."""
    if cubic:
        curve = np.array(points)
        at = [_bezier(curve, t) for t in TRIES]
    else:
        (left, level), (right, _) = points[3], points[2]
        at = [(left + t * (right - left), level) for t in TRIES]
    boxes = [Box(x, y, *size) for x, y in at]
    return min(boxes, key=lambda box: round(sum(box.overlap(other) for other in taken), 6))


def _bezier(curve: NDArray[np.float64], t: float) -> Point:
    weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    x, y = weights @ curve
    return float(x), float(y)


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
    return [name, f"value {significant(node.value)}", graph.state_texts[node.number]]


def edge_lines(edge: GraphEdge) -> list[str]:
    """Return what an edge says: its observations and their probability."""
    listed = [short_text(seen) for seen in edge.observations[:MOST_LISTED]]
    if len(edge.observations) > MOST_LISTED:
        listed[-1] = f"… {len(edge.observations) - MOST_LISTED + 1} more"
    listed[-1] += f"  {edge.probability:.2g}"
    return listed

"""Policy graphs: Tiger's known one, what they promise on random policies, DOT, networkx and pictures."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pydot
import pytest
from hypothesis import given, settings

import missmdp as mm
from hostile_names import FEATURES, hostile_model, no_text
from oracles.alpha import backed_up, tiger
from policies import policies, random_policy


@pytest.fixture(scope="module")
def graph():
    return mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 100)]).graph()


def test_tiger_has_five_decisions(graph):
    """Listen; after two of the same sound more on one side than on the other, open the other door."""
    assert [node.action for node in graph.nodes] == ["listen", "listen", "listen", "open right", "open left"]
    assert [node.depth for node in graph.nodes] == [0, 1, 1, 2, 2]
    assert {(e.source, e.target): e.observations for e in graph.edges} == {
        (0, 1): ("hear left",),
        (0, 2): ("hear right",),
        (1, 3): ("hear left",),
        (1, 0): ("hear right",),
        (2, 4): ("hear right",),
        (2, 0): ("hear left",),
        (3, 0): ("hear left", "hear right"),
        (4, 0): ("hear left", "hear right"),
    }
    assert graph.complete
    assert graph.merged == 0
    assert graph.notes == ()


@settings(max_examples=25)
@given(policies())
def test_nodes_are_what_the_policy_does_and_edges_are_distributions(policy):
    graph = policy.graph(max_nodes=1000, min_probability=0.0)
    assert graph.complete
    assert (graph.nodes[0].kind == "start") == policy.observe_initial
    leaving = {node.number: 0.0 for node in graph.nodes}
    for edge in graph.edges:
        leaving[edge.source] += edge.probability
        assert graph.nodes[edge.target].depth <= graph.nodes[edge.source].depth + 1
    for node in graph.nodes:
        assert leaving[node.number] == pytest.approx(0.0 if node.kind == "end" else 1.0)
        if node.kind == "decision":
            assert policy.action(node.belief) == node.action
            assert policy.value(node.belief) == pytest.approx(node.value)
    vectors = [node.vector for node in graph.nodes if node.vector is not None]
    assert len(set(vectors)) == len(vectors)
    assert sum(node.kind == "end" for node in graph.nodes) <= 1
    if graph.merged == 0:
        follow(policy, graph)


def follow(policy, graph):
    """Walk a graph without merged beliefs like an agent: the same observations give the same actions."""
    target = {(e.source, repr(z)): e.target for e in graph.edges for z in e.observations}
    agent, rng, number = policy.agent(), np.random.default_rng(0), 0
    if not policy.observe_initial:
        agent.reset()
    for step in range(6):
        node = graph.nodes[number]
        options = [z for e in graph.edges if e.source == number for z in e.observations]
        if not options:
            break
        seen = options[rng.integers(len(options))]
        action = agent.reset(seen) if step == 0 and policy.observe_initial else agent.step(seen)
        number = target[number, repr(seen)]
        if graph.nodes[number].kind == "decision":
            assert action == graph.nodes[number].action
        assert node.depth <= step


def test_limits_are_counted_and_said():
    policy = random_policy(mm.load_benchmark("icu-smar"), 0)
    small = policy.graph(max_nodes=5)
    assert len(small.nodes) == 5
    assert small.cut_by_nodes > 0
    assert not small.complete
    assert any("lead to further nodes" in note for note in small.notes)
    shallow = policy.graph(depth=0)
    assert len(shallow.nodes) == 1
    assert shallow.cut_by_depth == 1
    assert not shallow.edges
    likely = policy.graph(depth=1, min_probability=0.02)
    assert likely.unlikely > 0
    assert any("unlikely" in note for note in likely.notes)
    for bad in ({"max_nodes": 0}, {"depth": -1}):
        with pytest.raises(mm.ModelError, match="must"):
            policy.graph(**bad)


def read(dot):
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # pydot's, about pyparsing
        (graph,) = pydot.graph_from_dot_data(dot)
    return graph


def test_networkx_and_dot_have_the_same_graph(graph):
    made = graph.to_networkx()
    assert made.nodes[3]["action"] == "open right"
    assert made.edges[3, 0]["observations"] == ("hear left", "hear right")
    parsed = read(graph.to_dot())
    ends = {(edge.get_source(), edge.get_destination()) for edge in parsed.get_edges()}
    assert ends == {(f"n{a}", f"n{b}") for a, b in made.edges}
    assert "open right" in parsed.get_node("n3")[0].get_label()


def test_odd_names_survive_dot():
    pomdp = tiger()
    odd = mm.POMDP(
        **{
            **{name: getattr(pomdp, name) for name in pomdp.__dataclass_fields__},
            "observations": ['say "left"\n', "back\\slash"],
        }
    )
    dot = mm.AlphaVectorPolicy(odd, [backed_up(pomdp, 5)]).graph().to_dot()
    parsed = read(dot)
    assert len(parsed.get_edges()) == len(mm.AlphaVectorPolicy(odd, [backed_up(pomdp, 5)]).graph().edges)


@pytest.mark.parametrize("name", ["example-1", "example-2-mar", "predator-smar"])
def test_the_same_graph_gives_the_same_picture(tmp_path, name):
    policy = random_policy(mm.load_benchmark(name), 0)
    first = policy.graph(max_nodes=12).draw(tmp_path / "a.svg", title=f"{name}: $5")
    second = policy.graph(max_nodes=12).draw(tmp_path / "b.svg", title=f"{name}: $5")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_text().startswith("<?xml")


def test_pictures_have_all_endings_and_others_are_refused(graph, tmp_path):
    for ending in ("svg", "png", "pdf"):
        assert graph.draw(tmp_path / f"tiger.{ending}").stat().st_size > 1000
    with pytest.raises(mm.MissMDPError, match=r"must end in .svg, .png, .pdf"):
        graph.draw(tmp_path / "tiger.txt")


def test_nodes_do_not_overlap_and_labels_keep_off_them(graph):
    from missmdp.plan.graph_layout import lay_out

    layout = lay_out(graph)
    for i, box in enumerate(layout.nodes):
        assert all(box.overlap(other) == 0.0 for other in layout.nodes[:i])
        assert all(box.overlap(edge.label) == 0.0 for edge in layout.edges)
    for i, edge in enumerate(layout.edges):
        assert all(edge.label.overlap(other.label) == 0.0 for other in layout.edges[:i])


def test_pictures_are_xml_and_dot_is_text_whatever_the_names(tmp_path):
    result = mm.Sarsop(precision=0.5, progress=False).solve(hostile_model())
    drawn = result.policy.graph()
    ET.parse(drawn.draw(tmp_path / "graph.svg", title=FEATURES[0]))
    ET.parse(result.plot(tmp_path / "trace.svg", title=FEATURES[1]))
    assert not no_text(drawn.to_dot())
    assert len(read(drawn.to_dot()).get_edges()) == len(drawn.edges)

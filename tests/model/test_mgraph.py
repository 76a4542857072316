"""M-graphs: edges against brute force and the benchmarks, ways in and out, and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from hostile_names import FEATURES
from oracles import definitions as paper
from strategies import missmdps

NOT_UNIQUE = "The parents of R_{} are not unique"


@settings(max_examples=60)
@given(missmdps() | missmdps(["independent", "any"], full=True))
def test_parents_are_a_smallest_set_of_features_that_determines_missingness(model):
    """Where there is one such set, it is the parents; where there are more, a note says so and names them."""
    M = paper.over_reachable_states(model)
    names = tuple(model.features)
    graph = model.mgraph()
    assert graph.features == names
    assert graph.always_observed == tuple(names[i] for i in sorted(paper.always_observed(M)))
    for i, name in enumerate(names):
        if name in graph.always_observed:
            assert graph.parents(name) == ()
            continue
        smallest = [tuple(names[j] for j in sorted(found)) for found in paper.minimal_determining_sets(M, i)]
        assert graph.parents(name) in smallest
        notes = [note for note in graph.notes if note.startswith(NOT_UNIQUE.format(name))]
        assert len(notes) == (len(smallest) > 1)
        for note in notes:
            offered = note.removesuffix(".").split("one could take ")[1].split(" or ")
            assert {tuple(other.split(", ")) for other in offered} <= set(smallest) - {graph.parents(name)}


@settings(max_examples=30)
@given(missmdps(full=True))
def test_on_full_spaces_the_parents_are_the_features_with_a_contrast(model):
    """Two states that differ in one feature alone have different P(R_i)."""
    graph = model.mgraph()
    states = [tuple(state) for state in model.states]
    for name in graph.can_go_missing:
        rate = dict(zip(states, model.missingness.missing_rate(name), strict=True))
        contrast = tuple(
            parent
            for j, parent in enumerate(model.features)
            if any(
                abs(rate[s] - rate[(*s[:j], value, *s[j + 1 :])]) > 1e-9
                for s in states
                for value in model.features[parent]
            )
        )
        assert graph.parents(name) == contrast
    assert graph.self_censoring == model.types().self_censoring
    assert not any("not unique" in note for note in graph.notes)


@settings(max_examples=50)
@given(missmdps())
def test_dependent_pairs_and_notes_are_as_brute_force_finds(model):
    M = paper.over_reachable_states(model)
    names = tuple(model.features)
    graph = model.mgraph()
    pairs = sorted(paper.dependent_pairs(M))
    assert graph.dependent == tuple((names[i], names[j]) for i, j in pairs)
    higher_order = not pairs and not paper.is_independent(M)
    assert any("higher order" in note for note in graph.notes) == higher_order
    only_mar = paper.is_mar(M) and not paper.is_simple_mar(M)
    assert any("MAR but not simple MAR" in note for note in graph.notes) == only_mar


@pytest.mark.parametrize(
    ("name", "edges", "dependent"),
    [
        ("icu-smar", "test→infection temperature→infection temperature→heart_rate", ()),
        ("icu-mnar-id", "test→infection heart_rate→infection", ()),
        ("icu-mnar-unid", "infection→infection test→infection heart_rate→infection", ()),
        ("predator-smar", "u→x v→x u→y v→y", (("x", "y"),)),
        ("predator-mnar-unid", "u→x v→x x→x y→x u→y v→y x→y y→y", (("x", "y"),)),
        ("predator-mcar", "", (("x", "y"),)),
        ("example-1", "", ()),
        ("example-2-smar", "second→first", ()),
        ("example-3", "second→second", ()),
    ],
)
def test_the_graphs_of_the_benchmarks_and_examples(name, edges, dependent):
    graph = mm.load_benchmark(name).mgraph()
    assert graph.edges == tuple(tuple(edge.split("→")) for edge in edges.split())
    assert graph.dependent == dependent
    assert graph.notes == ()


def test_mar_that_is_not_simple_is_noted():
    """The paper's second Example 2: no m-graph can show it."""
    graph = mm.load_benchmark("example-2-mar").mgraph()
    assert graph.edges == (("second", "first"),)
    assert graph.dependent == (("first", "second"),)
    assert [note.split(":")[0] for note in graph.notes] == ["M is MAR but not simple MAR"]


def test_features_that_move_together_leave_a_choice_that_is_noted():
    """The twins are always equal, so either could be what hides `c`; `d` is needed besides."""
    states = [(a, a, c, d) for a in (0, 1) for c in (0, 1) for d in (0, 1)]
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "twin": [0, 1], "c": [0, 1], "d": [0, 1]},
        ["stay"],
        [np.full((8, 8), 0.125)],
        np.zeros((8, 1)),
        np.full(8, 0.125),
        states=states,
    )
    M = mm.MissingnessFunction.independent(mdp, {"c": lambda s: 0.25 + 0.25 * s.twin + 0.125 * s.d})
    graph = mm.MissMDP(mdp, M).mgraph()
    assert graph.parents("c") == ("a", "d")
    (note,) = graph.notes
    assert note.startswith(NOT_UNIQUE.format("c"))
    assert "instead of a, d" in note
    assert "twin, d" in note


def test_where_there_is_a_choice_the_graph_blames_what_is_always_observed_and_last_the_feature_itself():
    """`a`, `b` and `c` are always equal; `c` is never missing, so `a` is not said to hide itself."""
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "b": [0, 1], "c": [0, 1]},
        ["stay"],
        [np.eye(2)],
        0.0,
        [0.5, 0.5],
        states=[(0, 0, 0), (1, 1, 1)],
    )
    M = mm.MissingnessFunction.independent(mdp, {"a": lambda s: 0.25 + 0.5 * s.a, "b": 0.5})
    assert mm.MissMDP(mdp, M).mgraph().edges == (("c", "a"),)
    M = mm.MissingnessFunction.independent(mdp, {"a": lambda s: 0.25 + 0.5 * s.a, "b": 0.5, "c": 0.5})
    assert mm.MissMDP(mdp, M).mgraph().edges == (("b", "a"),)


def test_dependence_that_no_pair_shows_is_noted():
    """Each indicator is a fair coin and any two are independent, but the number of missing ones is even."""
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "b": [0, 1], "c": [0]},
        ["stay"],
        lambda s, a: {s: 1.0},
        lambda s, a: 0.0,
        {(0, 1, 0): 1.0},
    )
    even = {(1, 1, 1): 0.25, (0, 0, 1): 0.25, (0, 1, 0): 0.25, (1, 0, 0): 0.25}
    model = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, lambda s: even))
    graph = model.mgraph()
    assert graph.edges == graph.dependent == ()
    assert not model.types().independent
    assert len(graph.notes) == 1
    assert "higher order" in graph.notes[0]


def test_graphs_look_at_reachable_states_only():
    mdp = mm.FactoredMDP({"a": [0, 1, 2]}, ["stay"], [np.eye(3)], np.zeros((3, 1)), [0.5, 0.5, 0.0])
    M = mm.MissingnessFunction.independent(mdp, {"a": lambda s: 0.75 if s.a == 2 else 0.5})
    assert mm.MissMDP(mdp, M).mgraph().edges == ()
    assert mm.MissingnessGraph.from_missingness(M).edges == (("a", "a"),)


def test_edges_are_pairs_of_features_or_of_nodes():
    plain = mm.MissingnessGraph([("a", "b"), ("b", "b"), ("a", "b")], dependent=[("c", "b")])
    nodes = mm.MissingnessGraph([("S_b", "R_b"), ("S_a", "R_b")], features="abc", dependent=[("R_b", "R_c")])
    assert plain == nodes
    assert hash(plain) == hash(nodes)
    assert plain.features == ("a", "b", "c")
    assert plain.edges == (("a", "b"), ("b", "b"))
    assert plain.parents("b") == ("a", "b")
    assert plain.parents("a") == ()
    assert plain.dependent == (("b", "c"),)
    assert plain.can_go_missing == ("b", "c")
    assert plain.always_observed == ("a",)
    assert plain.self_censoring == ("b",)
    assert plain != mm.MissingnessGraph([("a", "b"), ("b", "b")], features="abc")
    assert plain != mm.MissingnessGraph([("a", "b")], features="abc", dependent=[("b", "c")])
    assert "a → R_b" in repr(plain)


def test_a_feature_may_be_called_like_a_node():
    graph = mm.MissingnessGraph([("S_a", "R_a")], features=["a", "S_a", "R_a"])
    assert graph.edges == (("S_a", "R_a"),)
    assert graph.can_go_missing == ("R_a",)
    assert mm.MissingnessGraph.from_networkx(graph.to_networkx()) == graph
    assert mm.MissingnessGraph.from_dot(graph.to_dot()) == graph


def test_features_can_go_missing_without_edges():
    graph = mm.MissingnessGraph(features=["a", "b"], can_go_missing=["b"])
    assert graph.edges == ()
    assert graph.can_go_missing == ("b",)
    assert mm.MissingnessGraph.from_dot(graph.to_dot()) == graph


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [("a", "x")], "features": "ab"}, "no feature 'x'; the features are a, b"),
        ({"edges": [("R_a", "b")], "features": "ab"}, "no feature 'R_a'"),
        ({"edges": ["ab"]}, r"pair of names \(parent, child\), got 'ab'"),
        ({"edges": [("a", "b", "c")]}, r"pair of names .* got \('a', 'b', 'c'\)"),
        ({"edges": [("a", 3)]}, r"pair of names .* got \('a', 3\)"),
        ({"edges": [5]}, "pair of names .* got 5"),
        ({"features": ["a", "b", "a"]}, "'a'.*twice|twice.*'a'"),
        ({"edges": [("a", "b")], "can_go_missing": ["a"]}, "'b', which is not in can_go_missing"),
        ({"dependent": [("a", "a")]}, "cannot depend on itself"),
    ],
)
def test_edges_that_make_no_graph_are_named(arguments, message):
    with pytest.raises(mm.ModelError, match=message):
        mm.MissingnessGraph(**arguments)


def test_parents_of_an_unknown_feature_are_refused():
    with pytest.raises(mm.ModelError, match="no feature 'z'; the features are a, b"):
        mm.MissingnessGraph([("a", "b")]).parents("z")


NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('"\\ {}<>:;->/#\n'),
    min_size=1,
    max_size=8,
).filter(lambda name: name.strip() != "" and "\\\n" not in name)
"""Odd names; DOT itself cannot hold a backslash before the end of a line."""


@st.composite
def graphs(draw: st.DrawFn) -> mm.MissingnessGraph:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    return mm.MissingnessGraph(
        draw(st.lists(pairs, max_size=6)),
        features=names,
        dependent=[(a, b) for a, b in draw(st.lists(pairs, max_size=3)) if a != b],
    )


@settings(max_examples=30)
@given(graphs())
def test_graphs_survive_networkx_and_dot(graph):
    assert mm.MissingnessGraph.from_networkx(graph.to_networkx()) == graph
    assert mm.MissingnessGraph.from_dot(graph.to_dot()) == graph


ODD = [
    'say "hi"',
    "heart rate",
    "Größe 温度",
    "a\\b",
    "S_a",
    "node",
    "x:n",
    "{braces}",
    "<b>",
    "a\nb",
    *FEATURES,
]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_odd_names_survive_a_dot_file(name, tmp_path):
    graph = mm.MissingnessGraph(
        [(name, "other"), ("other", name)], dependent=[(name, "other")], features=[name, "other"]
    )
    path = tmp_path / "graph.dot"
    path.write_text(graph.to_dot(), encoding="utf-8")
    assert mm.MissingnessGraph.from_dot(path) == graph
    assert mm.MissingnessGraph.from_dot(str(path)) == graph


def test_networkx_graphs_say_what_their_nodes_and_edges_are():
    graph = mm.load_benchmark("predator-smar").mgraph().to_networkx()
    assert graph.nodes["S_u"] == {"kind": "S", "feature": "u"}
    assert "R_u" not in graph
    assert graph.nodes["R_x"] == {"kind": "R", "feature": "x"}
    assert graph.edges["S_u", "R_x"] == {"kind": "cause"}
    assert graph.edges["S_u", "Z_u"] == graph.edges["R_x", "Z_x"] == {"kind": "proxy"}
    assert graph.edges["R_x", "R_y"] == graph.edges["R_y", "R_x"] == {"kind": "dependence"}
    assert graph.number_of_nodes() == 4 + 2 + 4
    assert graph.number_of_edges() == 4 + 2 + 4 + 2


def test_a_graph_drawn_by_hand_in_networkx():
    """Edges between features belong to the dynamics; a node without a prefix is a feature."""
    drawn = nx.DiGraph([("temp", "rate"), ("temp", "R_rate"), ("S_drip", "R_rate"), ("S_drip", "Z_drip")])
    graph = mm.MissingnessGraph.from_networkx(drawn)
    assert graph.edges == (("temp", "rate"), ("drip", "rate"))
    assert set(graph.features) == {"temp", "rate", "drip"}


def test_a_dot_graph_drawn_by_hand():
    graph = mm.MissingnessGraph.from_dot(
        """
        // temperature hides the heart rate
        strict digraph "m-graph" {
            rankdir=LR; node [shape=box]; edge [color=gray];
            S_temp [label="temperature"];
            S_temp -> R_rate -> Z_rate [weight=2];
            "S_on drip" -> R_rate; /* and so does this */
            R_rate -> R_temp [dir=none];
        }
        """
    )
    assert graph.features == ("temp", "rate", "on drip")
    assert graph.edges == (("temp", "rate"), ("on drip", "rate"))
    assert graph.dependent == (("temp", "rate"),)
    assert graph.can_go_missing == ("temp", "rate")


def test_edges_inside_a_subgraph_count():
    """Clusters and `rank=same` are for the layout; what they hold is part of the graph."""
    text = "digraph { subgraph cluster_0 { S_a -> R_b; S_d } { rank=same; S_c; S_a } S_c -> R_b; }"
    graph = mm.MissingnessGraph.from_dot(text)
    assert set(graph.edges) == {("a", "b"), ("c", "b")}
    assert set(graph.features) == {"a", "b", "c", "d"}


def test_ports_are_not_part_of_a_name():
    """In DOT, a:n is the north side of the node a."""
    assert mm.MissingnessGraph.from_dot("digraph { S_a:s -> R_b:n }").edges == (("a", "b"),)


BROKEN_DOT = {
    "garbage": "garbage { [",
    "empty braces": "{}",
    "cut off": "digraph { S_a -> R_b",
    "undirected": "graph { S_a -- R_b }",
    "edge out of Z": "digraph { Z_a -> R_b }",
    "edge from R to S": "digraph { R_a -> S_b }",
    "proxy of another feature": "digraph { S_a -> Z_b }",
    "indicator that depends on itself": "digraph { R_a -> R_a }",
    "edges to a group": "digraph { S_a -> {R_b R_c} }",
    "two graphs": "digraph { S_a -> R_b } digraph { S_c -> R_b }",
    "rubbish at the end": "digraph { S_a -> R_b } rubbish",
}


@pytest.mark.parametrize("name", BROKEN_DOT)
def test_broken_dot_is_a_format_error_that_names_the_file(name, tmp_path, capsys):
    path = tmp_path / "graph.dot"
    path.write_text(BROKEN_DOT[name])
    with pytest.raises(mm.FormatError) as caught:
        mm.MissingnessGraph.from_dot(path)
    assert str(path) in str(caught.value)
    with pytest.raises(mm.FormatError):
        mm.MissingnessGraph.from_dot(BROKEN_DOT[name])
    assert capsys.readouterr().out == ""


def test_where_dot_goes_wrong_is_told():
    with pytest.raises(mm.FormatError, match="line:3|line 3"):
        mm.MissingnessGraph.from_dot("digraph {\nS_a -> R_b;\nS_c -> -> R_b;\n}")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00digraph"], ids=["absent", "empty", "not text"])
def test_dot_files_that_cannot_be_read_are_format_errors(content, tmp_path):
    path = tmp_path / "graph.dot"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(mm.FormatError, match=r"graph\.dot"):
        mm.MissingnessGraph.from_dot(path)


@pytest.mark.parametrize(
    "graph",
    [nx.Graph([("S_a", "R_b")]), nx.DiGraph([("Z_a", "S_b")]), nx.DiGraph([("S_a", "Z_b")])],
    ids=["undirected", "edge out of Z", "proxy of another feature"],
)
def test_networkx_graphs_that_are_no_m_graphs_are_refused(graph):
    with pytest.raises(mm.MissMDPError, match=r"directed|edge"):
        mm.MissingnessGraph.from_networkx(graph)


def test_all_that_dot_can_say_besides_is_skipped():
    graph = mm.MissingnessGraph.from_dot(
        """
        # a comment of cpp
        STRICT DiGraph {
            graph [label=<a <b>table</b> of "things">; rankdir=LR,] node [] edge[color="#aaa"][weight=-.5];
            "S_a" + "b":n:w -> R_c.d [x] , S_e; 12 = 13;
            subgraph { { { "S_long\\
name" -> "R_quo\\"te" } } }
            R_1 -> Z_1 S_1 -> Z_1
        }
        """
    )
    assert graph.features == ("e", "ab", "c.d", "longname", 'quo"te', "1")
    assert graph.edges == (("ab", "c.d"), ("longname", 'quo"te'))


@pytest.mark.parametrize(
    "text",
    [
        "digraph {" + "{" * 30_000,
        "digraph {" + "S_a -> " * 30_000,
        'digraph { "' + "\\" * 30_000,
        "digraph {" + "<" * 30_000,
        "digraph { /*" * 30_000,
        "digraph { S_a" + "[" * 30_000,
        "digraph { S_a [x=" + "y" * 30_000,
        'digraph { "a"' + '+"a"' * 30_000,
        "digraph { S_a -- R_b }",
        "digraph { {S_a} -> R_b }",
        "digraph { S_a -> subgraph {R_b} }",
        "digraph x y { }",
        'digraph { "" -> R_b }',
        "digraph",
    ],
    ids=lambda text: text[:20],
)
def test_dot_that_leads_nowhere_is_refused(text):
    with pytest.raises(mm.FormatError, match="DOT|groups"):
        mm.MissingnessGraph.from_dot(text + "{" * ("{" not in text))


def test_a_long_file_is_read_in_time_that_grows_with_its_length(tmp_path):
    """What took 100 seconds with a general parser; the limit is for the test to end at all."""
    n = 20_000
    path = tmp_path / "long.dot"
    path.write_text("digraph {\n" + "".join(f"  S_f{i} -> R_f{i + 1};\n" for i in range(n)) + "}\n")
    graph = mm.MissingnessGraph.from_dot(path)
    assert len(graph.edges) == n
    assert len(graph.features) == n + 1


MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG\r\n", ".pdf": b"%PDF-"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_a_picture_is_written_the_same_way_every_time(suffix, tmp_path):
    graph = mm.load_benchmark("icu-mnar-unid").mgraph()
    path = graph.draw(tmp_path / f"one{suffix}", title="ICU")
    assert path == tmp_path / f"one{suffix}"
    content = path.read_bytes()
    assert content.startswith(MAGIC[suffix])
    graph.draw(str(tmp_path / f"two{suffix.upper()}"), title="ICU")
    assert (tmp_path / f"two{suffix.upper()}").read_bytes() == content
    other = mm.load_benchmark("icu-smar").mgraph().draw(tmp_path / f"one{suffix}", title="ICU")
    assert other.read_bytes() != content
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"one{suffix}", f"two{suffix.upper()}"]


@pytest.mark.parametrize("name", ["$", "a$_$b", "$\\frac$", 'say "hi" <&>', "Größe", "x" * 60, "two\nlines"])
def test_odd_names_can_be_drawn(name, tmp_path):
    path = mm.MissingnessGraph([(name, "other")]).draw(tmp_path / "graph.svg", title=name)
    assert path.stat().st_size > 1000


def test_graphs_without_edges_or_features_can_be_drawn(tmp_path):
    mm.MissingnessGraph().draw(tmp_path / "nothing.svg")
    mm.MissingnessGraph(features=["a", "b"]).draw(tmp_path / "no edges.svg")
    assert (tmp_path / "nothing.svg").read_bytes() != (tmp_path / "no edges.svg").read_bytes()


@pytest.mark.parametrize("name", ["graph.gif", "graph", "graph.dot"])
def test_pictures_of_another_kind_are_refused(name, tmp_path):
    with pytest.raises(mm.MissMDPError, match=rf"{name}.*\.svg, \.png, \.pdf"):
        mm.MissingnessGraph([("a", "b")]).draw(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_picture_in_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(mm.MissMDPError, match="cannot be written"):
        mm.MissingnessGraph([("a", "b")]).draw(tmp_path / "file" / "graph.svg")


@pytest.mark.parametrize(
    "name",
    [*FEATURES, "\ud800\uffff", "x" * 10**5, "a " * 10**4, "]]>--><!--"],
    ids=["script", "codes", "no text", "long", "words", "comment"],
)
def test_pictures_are_xml_whatever_the_names(name, tmp_path):
    path = mm.MissingnessGraph([(name, "other")], notes=[name]).draw(tmp_path / "graph.svg", title=name)
    ET.parse(path)
    assert path.stat().st_size < 2_000_000

"""Benchmarks, textbook cases, policies, snapshots, words, and what users may ask wrongly."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from learn.identifiability.small_models import graph_of, iid
from missmdp.learn.identifiability import check
from missmdp.learn.identifiability.check import as_structure


def test_icu_is_identified_with_its_m_graph_but_not_saturated():
    """Heart rate has no memory: for each of 80 values of the rest, 9 of 10 of its weights stay open."""
    truth = mm.load_benchmark("icu-mnar-unid")
    answer = mm.identifiability(truth.mdp, truth.mgraph())
    assert (answer.identified, answer.globally, answer.locally) == (True, True, True)
    assert answer.rank == answer.n_parameters == 201
    assert not answer.unidentified
    assert not answer.states.any()
    assert answer.describe().startswith("M is identified: ")

    answer = mm.identifiability(truth.mdp, "saturated", blocks=[["infection"], ["heart_rate"]])
    assert (answer.identified, answer.globally, answer.locally) == (False, False, False)
    assert answer.n_parameters - answer.rank == 720
    assert len(answer.unidentified) == 800
    first = answer.unidentified[0]
    assert first.features == ("infection", "heart_rate")
    assert first.patterns == (("heart_rate",), ("infection", "heart_rate"))
    assert first.given == dict(truth.mdp.states[int(first.states[0])]._asdict())
    assert answer.states.all()
    # One for each value of what is seen where heart rate is missing: with infection (80) and without (20).
    assert len(answer.undetermined) == 100
    assert all(z.heart_rate is None for z in answer.undetermined)


def test_predator_is_identified_with_its_m_graph():
    truth = mm.load_benchmark("predator-mnar-unid")
    for blocks in ([["x", "y"]], None):
        answer = mm.identifiability(truth.mdp, truth.mgraph(), blocks=blocks)
        assert answer.identified
        assert answer.globally
    answer = mm.identifiability(truth.mdp, "saturated", blocks=[["x", "y"]])
    assert answer.identified
    assert answer.n_parameters == 626
    assert answer.undetermined == ()


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (2, 3)])
def test_states_that_are_drawn_anew(sizes, independent):
    """No memory: two features that go missing separately, with or without both censoring themselves."""
    mdp = iid(sizes, independent=independent)
    every = [("x", "x"), ("y", "x"), ("x", "y"), ("y", "y")]
    saturated = mm.identifiability(mdp, "saturated", blocks=[["x"], ["y"]])
    assert saturated.identified is False
    assert saturated.locally is False
    assert mm.identifiability(mdp, graph_of(every)).identified is False
    assert mm.identifiability(mdp, graph_of([], dependent=[("x", "y")])).identified is True
    # Whether x is missing with y, and without, by x: told apart where y, which is seen then, says something of x.
    together = mm.identifiability(mdp, graph_of([("x", "x")], dependent=[("x", "y")]))
    assert together.identified is (not independent)
    # Only one is self-censoring; or each depends on nothing but itself, which margins show: P(z_x) = P(x) P(seen | x).
    assert mm.identifiability(mdp, graph_of([("x", "x"), ("y", "x"), ("x", "y")])).identified is True
    assert mm.identifiability(mdp, graph_of([("x", "x"), ("y", "y")])).identified is True
    assert mm.identifiability(mdp, "saturated", blocks=[["x", "y"]]).identified is True


def test_simple_structures_are_identified():
    mdp = iid()
    for structure in ("mcar", "smar"):
        assert mm.identifiability(mdp, structure, blocks=[["x"], ["y"]]).identified
    answer = mm.identifiability(mdp, "logistic", blocks=[["x"]])
    assert answer.locally
    assert "at least locally" in answer.describe()
    answer = mm.identifiability(mdp, "logistic", blocks=[["x"], ["y"]])
    assert answer.identified is False
    assert "the effect" in str(answer.unidentified[0])


def memory():
    """Return an MDP in which x is kept by "stay", and drawn anew by "go", which alone leads to y = 1."""
    return mm.FactoredMDP(
        {"x": range(2), "y": range(2)},
        ["stay", "go"],
        lambda s, a: {s: 0.75, (1 - s.x, s.y): 0.25} if a == "stay" else {(0, 1): 0.5, (1, 1): 0.5},
        lambda s, a: 0.0,
        {(0, 0): 0.3, (1, 0): 0.7},
    )


def test_what_a_policy_never_visits_is_not_identified():
    mdp = memory()
    assert mm.identifiability(mdp, "saturated", blocks=[["x"]]).identified
    stay = mm.identifiability(mdp, "saturated", blocks=[["x"]], policy=mm.BlindPolicy({"stay": 1.0}))
    assert stay.identified is False
    assert [entry.given["y"] for entry in stay.unidentified] == [1, 1]
    assert [s.y for s, open_ in zip(mdp.states, stay.states, strict=True) if open_] == [1, 1]
    # Goes only where x is seen to be 0: that is enough to visit all.
    careful = mm.identifiability(
        mdp, "saturated", blocks=[["x"]], policy=lambda z: "go" if z.x == 0 else "stay"
    )
    assert careful.identified


def test_policies_decide_what_is_known():
    """Without memory and with one action, a saturated M over one feature stays identified; over two it is not."""
    mdp = memory()
    go = mm.BlindPolicy({"go": 1.0})
    both = mm.identifiability(mdp, "saturated", blocks=[["x"], ["y"]], policy=go)
    assert both.identified is False
    uniform = mm.identifiability(mdp, "saturated", blocks=[["x"], ["y"]], policy=mm.UniformPolicy())
    assert uniform.rank == mm.identifiability(mdp, "saturated", blocks=[["x"], ["y"]]).rank > both.rank


def test_nothing_that_goes_missing_is_identified():
    answer = mm.identifiability(iid(), mm.MissingnessGraph([], features=["x", "y"]))
    assert answer.identified
    assert answer.describe() == "Nothing goes missing, so M is known."


def test_the_seed_does_not_matter():
    truth = mm.load_benchmark("icu-mnar-unid")
    structure = as_structure(truth.mdp, truth.mgraph(), None)
    answers = [mm.identifiability(truth.mdp, structure, seed=seed) for seed in (1, 2)]
    assert answers[0].rank == answers[1].rank == 201
    for seed in range(3):
        answer = mm.identifiability(iid((2, 3)), "saturated", blocks=[["x"], ["y"]], seed=seed)
        assert answer.rank == 11


SNAPSHOTS = [
    (graph_of([]), {}),
    (graph_of([("x", "y"), ("y", "x")]), {}),
    (graph_of([("x", "x")]), {"x": "S_x → R_x is self-censoring"}),
    (graph_of([], dependent=[("x", "y")]), {}),
    (graph_of([("x", "y")], dependent=[("y", "x")]), {"y": "S_x → R_y ← R_x is a colluder"}),
    (
        graph_of([("x", "x"), ("y", "x"), ("y", "y")], dependent=[("x", "y")]),
        {
            "x": "S_x → R_x is self-censoring, S_y → R_x ← R_y is a colluder",
            "y": "S_y → R_y is self-censoring",
        },
    ),
]


@pytest.mark.parametrize(("graph", "against"), SNAPSHOTS)
def test_m_graphs_on_snapshots(graph, against):
    answer = mm.identifiability(None, graph)
    assert answer.identified is (not against)
    assert {entry.features[0]: entry.why for entry in answer.unidentified} == against
    assert ("no self-censoring edge and no colluder" in answer.describe()) is (not against)
    assert all(reason in str(answer) for reason in against.values())


def test_the_benchmarks_on_snapshots():
    said = {
        n: mm.identifiability(None, mm.load_benchmark(n).mgraph()).identified for n in mm.list_benchmarks()
    }
    assert {name for name, identified in said.items() if not identified} == {
        "icu-mnar-unid",
        "predator-mnar-unid",
    }


def test_words_for_what_is_open():
    answer = mm.identifiability(iid(), "saturated", blocks=[["x"], ["y"]])
    lines = answer.describe().splitlines()
    assert lines[0].endswith("(structure: saturated) leaves 12 of 27 probabilities open.")
    assert lines[2] == "  P(x missing), P(y missing), P(x + y missing) where x = 0 and y = 0"
    assert lines[-1] == "  … and 4 more groups of states for x and y"
    assert str(answer) == answer.describe()


WRONG = [
    ((None, "saturated"), {}, mm.DataError, "without an MDP the question is about an m-graph"),
    ((iid(), "mnar"), {}, mm.DataError, "structure must be a MissingnessGraph, 'mcar'"),
    ((iid(), "saturated"), {"blocks": [["w"]]}, mm.DataError, "no feature 'w'"),
    ((iid(), "saturated"), {"blocks": ["x"]}, mm.DataError, "'x' is no list"),
    ((iid(), graph_of([])), {"horizon": 0}, mm.ModelError, "horizon must be an integer of at least 1"),
    ((iid(), graph_of([])), {"horizon": 1.5}, mm.ModelError, "horizon must be an integer"),
    ((iid(), graph_of([])), {"policy": 3}, mm.ModelError, "expected a policy"),
    ((iid(), mm.MissingnessGraph([("w", "x")])), {}, mm.DataError, "no feature 'w'"),
    (
        (iid(), as_structure(iid(), graph_of([]), None)),
        {"blocks": [["x"]]},
        mm.DataError,
        "have their blocks already",
    ),
]


@pytest.mark.parametrize(("given", "choices", "error", "message"), WRONG)
def test_wrong_questions_are_refused(given, choices, error, message):
    with pytest.raises(error, match=message):
        mm.identifiability(*given, **choices)


def test_policies_with_memory_are_refused():
    class Remembers:
        def agent(self, model=None, *, seed=None):
            raise NotImplementedError

    with pytest.raises(mm.ModelError, match="Remembers has a memory"):
        mm.identifiability(iid(), graph_of([]), policy=Remembers())


def test_what_is_too_large_is_refused():
    names = [f"f{i}" for i in range(10)]
    mdp = mm.FactoredMDP(
        dict.fromkeys(names, range(2)), ["wait"], [np.eye(1024)], 0.0, np.full(1024, 1.0 / 1024.0)
    )
    with pytest.raises(mm.ModelError, match=r"1,024 patterns of 1,024 states are too many"):
        mm.identifiability(mdp, "saturated", blocks=[[name] for name in names])


def test_what_hangs_together_and_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("missmdp.learn.identifiability.spans._MOST_COLUMNS", 8)
    with pytest.raises(mm.ModelError, match=r"27 probabilities hang together, too many .* \(at most 8\)"):
        mm.identifiability(iid(), "saturated", blocks=[["x"], ["y"]])


def test_what_can_go_missing_by_default():
    """By name alone, every feature on its own; in a miss-MDP, what goes missing there."""
    assert mm.identifiability(iid(), "saturated").identified is False
    truth = mm.load_benchmark("predator-mnar-unid")
    assert mm.identifiability(truth, "saturated").n_parameters == 626
    assert mm.identifiability(truth, truth.mgraph()).identified
    icu = mm.load_benchmark("icu-mnar-unid")
    assert mm.identifiability(icu, "saturated").identified is False
    assert mm.identifiability(icu, icu.mgraph()).identified
    assert mm.identifiability(icu.mdp, "saturated").identified is False


def test_a_saturated_m_one_observation_at_a_time(monkeypatch):
    """Large saturated M are taken one observation at a time: the answer is that of linear algebra on all of it."""
    icu = mm.load_benchmark("icu-mnar-unid")
    whole = mm.identifiability(icu, "saturated")
    monkeypatch.setattr(check, "_MANY", 0)
    parts = mm.identifiability(icu, "saturated")
    assert (whole.rank, whole.n_parameters) == (parts.rank, parts.n_parameters) == (1680, 2400)
    assert [str(entry) for entry in whole.unidentified] == [str(entry) for entry in parts.unidentified]
    assert np.array_equal(whole.states, parts.states)
    assert mm.identifiability(iid(), "saturated", blocks=[["x"], ["y"]]).rank == 15

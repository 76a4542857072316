"""The types of missingness against the paper's definitions, its examples and its benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.model.types import classify
from oracles import definitions as paper
from strategies import missmdps


@settings(max_examples=80)
@given(missmdps())
def test_types_are_the_papers_definitions(model):
    M = paper.over_reachable_states(model)
    names = tuple(model.features)
    found = model.types()
    assert found.mcar == paper.is_mcar(M)
    assert found.simple_mar == paper.is_simple_mar(M)
    assert found.mar == paper.is_mar(M)
    assert found.mnar == (not paper.is_mar(M))
    assert found.self_censoring == tuple(names[i] for i in sorted(paper.self_censoring(M)))
    assert found.independent == paper.is_independent(M)
    assert found.positive == paper.is_positive(M)
    always = paper.always_observed(M)
    assert found.always_observed == tuple(names[i] for i in sorted(always))
    assert found.can_go_missing == tuple(names[i] for i in range(len(names)) if i not in always)


@settings(max_examples=30)
@given(missmdps())
def test_types_are_nested_and_reasons_are_given_for_exactly_what_fails(model):
    found = model.types()
    assert found.simple_mar or not found.mcar
    assert found.mar or not found.simple_mar
    fails = {
        "MCAR": not found.mcar,
        "simple MAR": not found.simple_mar,
        "MAR": not found.mar,
        "independence": not found.independent,
        "positivity": not found.positive,
        **{f"no self-censoring of {name}": True for name in found.self_censoring},
    }
    assert set(found.reasons) == {name for name, failed in fails.items() if failed}
    assert ("MCAR" in found) == found.mcar
    for name, reason in found.reasons.items():
        named = [state for state in model.states if repr(state) in reason]
        assert len(named) == (1 if name in ("independence", "positivity") else 2), reason


@settings(max_examples=25)
@given(missmdps(["mcar"]))
def test_mcar_models_are_mcar(model):
    assert model.types().name == "MCAR"


@settings(max_examples=25)
@given(missmdps(["simple mar"]))
def test_simple_mar_models_are_simple_mar(model):
    assert model.types().simple_mar


@settings(max_examples=30)
@given(missmdps(["mar"], full=True))
def test_what_reveals_itself_step_by_step_is_mar(model):
    assert model.types().mar


@pytest.mark.parametrize(
    ("name", "narrowest", "self_censoring", "independent", "always_observed"),
    [
        ("example-1", "MCAR", (), True, ("first",)),
        ("example-2-smar", "simple MAR", (), True, ("second",)),
        ("example-2-mar", "MAR", (), False, ()),
        ("example-3", "MNAR", ("second",), True, ("first",)),
        ("icu-smar", "simple MAR", (), True, ("test", "temperature")),
        ("icu-mnar-id", "MNAR", (), True, ("test", "temperature")),
        ("icu-mnar-unid", "MNAR", ("infection",), True, ("test", "temperature")),
        ("predator-smar", "simple MAR", (), False, ("u", "v")),
        ("predator-mnar-unid", "MNAR", ("x", "y"), False, ("u", "v")),
        ("predator-mcar", "MCAR", (), False, ("u", "v")),
    ],
)
def test_examples_and_benchmarks_have_their_types(
    name, narrowest, self_censoring, independent, always_observed
):
    found = mm.load_benchmark(name).types()
    assert found.name == narrowest
    assert found.self_censoring == self_censoring
    assert found.independent == independent
    assert found.always_observed == always_observed
    assert found.positive


@pytest.mark.parametrize(
    ("name", "learners"),
    [
        ("icu-smar", ("AsMAR", "AIMI")),
        ("icu-mnar-id", ("AIMI",)),
        ("icu-mnar-unid", ()),
        ("predator-mcar", ("AMCAR", "AsMAR")),
        ("predator-mnar-unid", ()),
        ("example-1", ("AMCAR", "AsMAR", "AIMI")),
    ],
)
def test_learners_that_fit(name, learners):
    assert mm.load_benchmark(name).types().learners == learners


@pytest.fixture
def island() -> mm.MissMDP:
    """A model whose third state is out of reach, where missingness is another than elsewhere."""
    mdp = mm.FactoredMDP(
        {"place": ["shore", "hill", "island"]},
        ["walk"],
        [[[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]],
        np.array([[0.0], [1.0], [7.0]]),
        {("shore",): 1.0},
    )
    M = mm.MissingnessFunction.independent(mdp, {"place": lambda s: 1.0 if s.place == "island" else 0.25})
    return mm.MissMDP(mdp, M)


def test_types_look_at_reachable_states_only(island):
    found = island.types()
    assert found.name == "MCAR"
    assert found.positive
    everywhere = classify(island.missingness)
    assert everywhere.name == "MNAR"
    assert everywhere.self_censoring == ("place",)
    assert not everywhere.positive


def test_a_feature_that_only_unreachable_states_hide_is_always_observed():
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "b": [0, 1]},
        ["stay"],
        [np.eye(4)],
        np.zeros((4, 1)),
        {(0, 0): 0.5, (0, 1): 0.5},
    )
    M = mm.MissingnessFunction.independent(mdp, {"a": 0.5, "b": lambda s: 0.5 * s.a})
    found = mm.MissMDP(mdp, M).types()
    assert M.always_observed == ()
    assert found.always_observed == ("b",)
    assert found.can_go_missing == ("a",)


def test_the_report_names_the_type_and_two_states_that_show_why_not():
    found = mm.load_benchmark("example-3").types()
    text = str(found)
    assert "MNAR" in text.splitlines()[0]
    assert "second" in text
    for reason in ("MCAR", "MAR", "no self-censoring of second"):
        assert found.reasons[reason] in text
        assert "second='x'" in found.reasons[reason]
        assert "second='y'" in found.reasons[reason]
        assert "0.5" in found.reasons[reason]
    assert "is 0.5 in" in found.reasons["no self-censoring of second"]
    assert "0.9 in" in found.reasons["no self-censoring of second"]


@pytest.mark.parametrize("name", ["example-1", "icu-smar", "example-2-mar", "predator-mnar-unid"])
def test_the_report_starts_with_the_narrowest_type(name):
    found = mm.load_benchmark(name).types()
    assert str(found).splitlines()[0].split(maxsplit=1)[1].startswith(found.name)


def test_the_states_in_a_reason_have_the_probabilities_that_it_says():
    model = mm.load_benchmark("icu-mnar-unid")
    reason = model.types().reasons["no self-censoring of infection"]
    rate = model.missingness.missing_rate("infection")
    shown = [s for s, state in enumerate(model.states) if repr(state) in reason]
    assert len(shown) == 2
    assert all(f"{rate[s]:.4g}" in reason for s in shown)


def test_tolerance_decides_what_counts_as_equal(island):
    M = mm.MissingnessFunction.independent(
        island.mdp, {"place": lambda s: 0.5 + (1e-6 if s.place == "hill" else 0.0)}
    )
    assert classify(M).name == "MNAR"
    assert classify(M, tolerance=1e-5).name == "MCAR"

"""Belief updates against Bayes' rule over whole trajectories, and Lemma 1 (ignorability)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import missmdp as mm
from oracles.bayes import Tables, belief_after, random_history
from oracles.definitions import admits
from strategies import MAR_KINDS, missmdps, seeds


@settings(max_examples=50)
@given(missmdps(), seeds(), st.integers(0, 3))
def test_beliefs_are_bayes_rule_over_whole_trajectories(model, seed, length):
    tables = Tables(model)
    observations, actions = random_history(tables, length, np.random.default_rng(seed))
    belief = mm.initial_belief(observations[0], model)
    np.testing.assert_allclose(belief, belief_after(tables, observations[:1], []), rtol=1e-9, atol=1e-12)
    for t, action in enumerate(actions, start=1):
        belief = mm.update_belief(belief, model.actions[action], observations[t], model)
        exact = belief_after(tables, observations[: t + 1], actions[:t])
        np.testing.assert_allclose(belief, exact, rtol=1e-9, atol=1e-12)


@settings(max_examples=50)
@given(missmdps(), seeds(), seeds())
def test_any_observation_gives_the_exact_belief_or_is_called_impossible(model, seed, other):
    """An observation of one history at the end of another: often it cannot be."""
    tables = Tables(model)
    observations, actions = random_history(tables, 1, np.random.default_rng(seed))
    strange, _ = random_history(tables, 1, np.random.default_rng(other))
    belief = mm.initial_belief(observations[0], model)
    exact = belief_after(tables, [observations[0], strange[1]], actions)
    action = model.actions[actions[0]]
    if exact is None:
        with pytest.raises(mm.ImpossibleObservation):
            mm.update_belief(belief, action, strange[1], model)
    else:
        found = mm.update_belief(belief, action, strange[1], model)
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)


@settings(max_examples=50)
@given(missmdps(MAR_KINDS) | missmdps(MAR_KINDS, full=True), seeds())
def test_under_mar_the_missingness_probabilities_cancel(model, seed):
    """Lemma 1: only admittability matters, so the belief needs no M."""
    tables = Tables(model)
    observations, actions = random_history(tables, 3, np.random.default_rng(seed))
    belief = mm.initial_belief(observations[0], model)
    ignored = mm.initial_belief_ignorable(observations[0], model.mdp)
    np.testing.assert_allclose(ignored, belief, rtol=1e-9, atol=1e-12)
    for action, observation in zip(actions, observations[1:], strict=True):
        known = mm.update_belief(belief, model.actions[action], observation, model)
        ignored = mm.update_belief_ignorable(belief, model.actions[action], observation, model.mdp)
        np.testing.assert_allclose(ignored, known, rtol=1e-9, atol=1e-12)
        belief = known


@settings(max_examples=30)
@given(missmdps(), seeds())
def test_ignoring_missingness_conditions_on_the_states_that_admit_the_observation(model, seed):
    tables = Tables(model)
    observations, actions = random_history(tables, 1, np.random.default_rng(seed))
    before = belief_after(tables, observations[:1], [])
    step = tables.transition[actions[0]]
    weights = np.array(
        [
            sum(b * row[s] for b, row in zip(before, step, strict=True)) * admits(observations[1], state)
            for s, state in enumerate(tables.states)
        ]
    )
    assume(weights.sum() > 1e-9)
    found = mm.update_belief_ignorable(before, model.actions[actions[0]], observations[1], model.mdp)
    np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-9, atol=1e-12)


def test_under_mnar_ignoring_the_missingness_is_wrong():
    """The paper's Example 3: a missing `second` makes y likelier, 0.9 against 0.5."""
    model = mm.load_benchmark("example-3")
    start = mm.initial_belief(("x", "x"), model)
    known = mm.update_belief(start, "guess x", ("x", None), model)
    ignored = mm.update_belief_ignorable(start, "guess x", ("x", None), model.mdp)
    # second stays x with 0.7; M(second missing) is 0.5 at x and 0.9 at y.
    at = [model.space.index(("x", value)) for value in "xy"]
    np.testing.assert_allclose(known[at], [0.35 / 0.62, 0.27 / 0.62])
    np.testing.assert_allclose(ignored[at], [0.7, 0.3])
    assert known.sum() == pytest.approx(1.0)


def test_the_first_observation_conditions_the_initial_distribution():
    """Example 3 again: before any action, P(second = y | second missing) = 0.9 / (0.9 + 0.5)."""
    model = mm.load_benchmark("example-3")
    belief = mm.initial_belief({"second": None, "first": "y"}, model)
    assert belief[model.space.index(("y", "y"))] == pytest.approx(0.9 / 1.4)
    assert belief[model.space.index(("y", "x"))] == pytest.approx(0.5 / 1.4)
    ignored = mm.initial_belief_ignorable(("y", None), model.mdp)
    assert ignored[model.space.index(("y", "y"))] == pytest.approx(0.5)


@pytest.fixture
def lamp() -> mm.MissMDP:
    """A lamp that breaks and stays broken; its colour is never missing, its state is when broken."""
    mdp = mm.FactoredMDP(
        {"colour": ["red", "green"], "works": [True, False]},
        ["wait", "kick"],
        lambda s, a: (
            {(s.colour, s.works): 0.5, (s.colour, False): 0.5} if a == "kick" and s.works else {s: 1.0}
        ),
        lambda s, a: float(s.works),
        {("red", True): 0.25, ("green", True): 0.75},
    )
    M = mm.MissingnessFunction.independent(mdp, {"works": lambda s: 0.0 if s.works else 0.5})
    return mm.MissMDP(mdp, M)


@pytest.mark.parametrize(
    "observation",
    [
        pytest.param(("green", False), id="no likely state admits it"),
        pytest.param(("green", None), id="no likely state hides that"),
        pytest.param((None, True), id="no state hides that"),
    ],
)
def test_an_impossible_observation_comes_with_belief_action_and_observation(lamp, observation):
    start = mm.initial_belief(("green", True), lamp)
    with pytest.raises(mm.ImpossibleObservation) as caught:
        mm.update_belief(start, "wait", observation, lamp)
    error = caught.value
    np.testing.assert_array_equal(error.belief, start)
    assert error.action == "wait"
    assert error.observation == observation
    assert repr(lamp.space.features.Observation(*observation)) in str(error)
    assert "'wait'" in str(error)
    assert "State(colour='green', works=True): 1" in str(error)


def test_an_impossible_first_observation_shows_the_initial_distribution(lamp):
    with pytest.raises(mm.ImpossibleObservation) as caught:
        mm.initial_belief(("red", None), lamp)
    error = caught.value
    assert error.action is None
    assert error.observation == ("red", None)
    np.testing.assert_array_equal(error.belief, lamp.mdp.initial)
    assert "first observation" in str(error)
    assert "0.75" in str(error)
    assert isinstance(error, mm.MissMDPError)


def test_ignoring_missingness_also_reports_what_no_state_admits(lamp):
    start = mm.initial_belief(("red", True), lamp)
    with pytest.raises(mm.ImpossibleObservation) as caught:
        mm.update_belief_ignorable(start, "kick", ("green", None), lamp.mdp)
    assert caught.value.observation == ("green", None)


def test_a_long_belief_is_cut_short_in_the_message():
    model = mm.load_benchmark("icu-smar")
    with pytest.raises(mm.ImpossibleObservation, match="… 155 more states"):
        mm.initial_belief((0, 4, 0, 0), model)


def test_an_impossible_observation_survives_pickling(lamp):
    """Errors cross process boundaries as pickles; one that does not hangs or breaks a pool of workers."""
    with pytest.raises(mm.ImpossibleObservation) as caught:
        mm.update_belief(mm.initial_belief(("green", True), lamp), "wait", ("red", True), lamp)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.observation == caught.value.observation
    assert copy.action == "wait"
    np.testing.assert_array_equal(copy.belief, caught.value.belief)


@pytest.mark.parametrize(
    ("belief", "message"),
    [
        ([1.0, 0.0], r"shape \(4,\), got \(2,\)"),
        ([0.5, 0.2, 0.1, 0.1], "sum to 0.9"),
        ([1.5, -0.5, 0.0, 0.0], r"State\(colour='red', works=False\).* is negative"),
        ([np.nan, 0.5, 0.5, 0.0], r"State\(colour='red', works=True\).* is NaN"),
        ("even", "belief"),
    ],
)
def test_what_is_no_belief_is_refused(lamp, belief, message):
    for update in (
        lambda: mm.update_belief(belief, "wait", (None, None), lamp),
        lambda: mm.update_belief_ignorable(belief, "wait", (None, None), lamp.mdp),
    ):
        with pytest.raises(mm.ModelError, match=message):
            update()


@pytest.mark.parametrize(
    ("action", "observation", "message"),
    [
        ("jump", ("red", True), "no action 'jump'.*'wait', 'kick'"),
        (None, ("red", True), "no action None"),
        ("wait", ("blue", True), "'colour' cannot be 'blue'"),
        ("wait", ("red",), "expected 2 values"),
        ("wait", {"color": "red"}, "no feature 'color'"),
    ],
)
def test_unknown_actions_and_observations_are_refused(lamp, action, observation, message):
    start = mm.initial_belief(("green", True), lamp)
    with pytest.raises(mm.ModelError, match=message):
        mm.update_belief(start, action, observation, lamp)


def test_a_belief_can_be_a_mapping(lamp):
    named = {("green", True): 0.25, ("red", False): 0.75}
    listed = np.zeros(4)
    listed[lamp.space.index(("green", True))], listed[lamp.space.index(("red", False))] = 0.25, 0.75
    for z in (("green", None), ("red", None), ("red", False)):
        np.testing.assert_array_equal(
            mm.update_belief(named, "kick", z, lamp), mm.update_belief(listed, "kick", z, lamp)
        )
    with pytest.raises(mm.ModelError, match="sum to 0.5"):
        mm.update_belief({("green", True): 0.5}, "kick", ("green", None), lamp)


def test_a_model_of_the_other_kind_is_refused(lamp):
    with pytest.raises(mm.ModelError, match="expected a MissMDP, got FactoredMDP"):
        mm.initial_belief(("green", True), lamp.mdp)
    with pytest.raises(mm.ModelError, match="expected a FactoredMDP, got MissMDP"):
        mm.initial_belief_ignorable(("green", True), lamp)


def test_updates_leave_the_given_belief_alone(lamp):
    start = mm.initial_belief(("green", True), lamp)
    kept = start.copy()
    after = mm.update_belief(start, "kick", ("green", None), lamp)
    np.testing.assert_array_equal(start, kept)
    assert after[lamp.space.index(("green", False))] == 1.0

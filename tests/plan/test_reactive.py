"""Policies that act on the last observation alone: values by linear equations, and what is deployed of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.plan.factored.search import StructuredSearch, structured_parts
from missmdp.plan.reactive import Dynamics, reactive_policies, seen_from
from missmdp.plan.stopping import Goal, SearchLimits, Stop, Stopwatch
from strategies import missmdps


def found_in(model: mm.MissMDP, best: float = -np.inf):
    dynamics = Dynamics(model.mdp)
    known = dynamics.after_all(dynamics.fixed_point(dynamics.best, above=True))
    return dynamics, list(reactive_policies(dynamics, seen_from(model), known, best))


def exact_values(model: mm.MissMDP, chosen) -> np.ndarray:
    """Return what a policy earns from each state on, before it is seen, by linear equations."""
    mdp, M, seen = model.mdp, model.missingness, model.missingness.occurring()
    does = np.zeros((mdp.n_states, mdp.n_actions))
    for s, pattern, z in zip(seen.state, seen.pattern, seen.place, strict=True):
        does[s, chosen[z]] += M.probabilities[s, pattern]
    does[mdp.terminal] = 0.0
    step = sum(does[:, [a]] * mdp.transition[a].toarray() for a in range(mdp.n_actions))
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * step, (does * mdp.reward).sum(axis=1))


@given(missmdps())
@settings(max_examples=40)
def test_values_are_those_of_linear_equations_from_below(model):
    _, policies = found_in(model)
    scale = np.abs(model.mdp.reward).max() / (1.0 - model.discount)
    assert policies
    for found in policies:
        exact = exact_values(model, found.chosen)
        assert (found.values <= exact + 1e-9 * (1.0 + scale)).all()
        assert (found.values >= exact - 2e-4 * scale - 1e-9).all()


@given(missmdps())
@settings(max_examples=25)
def test_what_is_deployed_does_what_was_chosen(model):
    found = found_in(model)[1][-1]
    policy = mm.MemoryPolicy.from_observations(model, found.chosen, found.visits)
    seen = model.missingness.occurring().observations
    agent = policy.agent(seed=0)
    for z in range(len(seen)):
        wanted = model.actions[found.chosen[z]]
        assert agent.reset(seen[z]) == wanted
        assert all(
            agent.step(seen[other]) == model.actions[found.chosen[other]] for other in range(len(seen))
        )
        assert agent.step(seen[z]) == wanted


def test_a_gap_stands_for_what_is_visited_while_it_is_missing():
    """With two states, each visited half of the time, and one hidden three times as often as the other."""
    mdp = mm.FactoredMDP(
        {"x": [0, 1]}, ["wait"], lambda s, a: {0: 0.5, 1: 0.5}, lambda s, a: 0.0, {0: 0.5, 1: 0.5}
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda s: 0.3 if s.x else 0.9}))
    found = found_in(model)[1][0]
    policy = mm.MemoryPolicy.from_observations(model, found.chosen, found.visits)
    np.testing.assert_allclose(policy.beliefs[0], [[1.0, 0.0], [0.0, 1.0], [0.75, 0.25]])


def test_a_clock_ends_it():
    model = mm.load_benchmark("fleet-3")
    with pytest.raises(Stop):
        Dynamics(model.mdp, Stopwatch(0.0)).after_all(np.zeros(model.n_states))


def test_the_search_takes_the_best_of_them_and_says_so(monkeypatch):
    """Without memories, the policy acts on the last observation; it is worth what is said."""
    monkeypatch.setattr("missmdp.plan.sarsop.structured._FEW_LISTED", 0.0)
    monkeypatch.setattr("missmdp.plan.sarsop.structured._MOST_LISTED", 0.0)
    monkeypatch.setattr(StructuredSearch, "_climb", lambda search, wanted: True)
    model = mm.load_benchmark("plant-4")
    result = mm.Sarsop(max_trials=2, progress=False).solve(model)
    assert result.lower_source == "observation"
    assert result.sources.startswith("lower bound and policy from the last observation alone; ")
    seen = model.missingness.occurring().observations
    chosen = np.array(
        [model.mdp.action_index(result.policy.agent().reset(seen[z])) for z in range(len(seen))]
    )
    exact = float(model.mdp.initial @ exact_values(model, chosen))
    scale = np.abs(model.mdp.reward).max() / (1.0 - model.discount)
    assert exact - 2e-4 * scale <= result.lower <= exact + 1e-9 * scale


def test_a_policy_that_always_does_the_same_is_described_as_that():
    model = mm.load_benchmark("fleet-4")
    result = mm.Sarsop(timeout=0.0, progress=False).solve(model)
    assert result.policy.only_action in model.actions
    assert f"always {result.policy.only_action}, whatever is seen" in result.describe()
    found = found_in(model)[1][-1]
    assert len(set(found.chosen.tolist())) > 1
    assert mm.MemoryPolicy.from_observations(model, found.chosen, found.visits).only_action is None


def test_where_there_is_no_time_for_them_that_is_what_the_search_was_short_of(monkeypatch):
    """With too much tied together for a grid, nothing else is left to do."""
    monkeypatch.setattr("missmdp.plan.factored.search._SEEN_PER_SECOND", 1e-6)
    model = mm.prior_model(mm.load_benchmark("plant-5"))
    parts = structured_parts(model)
    assert parts is not None
    search = StructuredSearch(parts, SearchLimits(60.0), Goal(1e-3), lambda text: None)
    assert search._without_grid() == "timeout"
    assert search.lower_source == "action"
    monkeypatch.setattr("missmdp.plan.factored.search._SEEN_PER_SECOND", 1e9)
    again = StructuredSearch(parts, SearchLimits(60.0), Goal(1e-3), lambda text: None)
    assert again._without_grid() == "exhausted"
    assert again.lower_source == "observation"
    assert again.lower > search.lower

"""Particles: they approach the exact belief, and go on when none is left."""

import logging

import numpy as np
import pytest
from hypothesis import given

import missmdp as mm
from oracles.bayes import Tables, belief_after
from random_pomdps import build, tiger
from strategies import missmdps, seeds


def test_particles_approach_the_exact_belief():
    """Shares of survivors against Bayes' rule along a history of Tiger.

    Survivors come from common ancestors, which inflates the error: 8 standard errors of independent draws are allowed,
    and with the fixed seed a pass stays a pass.
    """
    agent = mm.POMCP(tree_queries=5, particles=200_000).solve(tiger()).policy.agent(seed=3)
    agent.reset()
    assert agent.belief == pytest.approx([0.5, 0.5], abs=8 * np.sqrt(0.25 / 200_000))
    for seen in ("z0", "z0", "z1", "z0", "z1", "z1"):
        agent.step(seen)
        exact = agent.exact_belief
        assert agent.belief == pytest.approx(exact, abs=8 * np.sqrt(exact.max() * exact.min() / 20_000))
    assert agent.collapses == agent.impossible == 0


@given(missmdps(), seeds())
def test_exact_beliefs_are_bayes_rule_and_particles_are_possible(model, seed):
    tables, rng = Tables(model), np.random.default_rng(seed)
    exact = mm.POMCP(tree_queries=4, max_depth=3, belief="exact").solve(model).policy.agent(seed=0)
    rough = mm.POMCP(tree_queries=4, max_depth=3, particles=3).solve(model).policy.agent(seed=0)
    for agent in (exact, rough):
        state = int(rng.choice(model.n_states, p=tables.initial))
        seen, done = [], []
        for t in range(4):
            listed = list(tables.missingness[state])
            seen.append(listed[rng.choice(len(listed), p=list(tables.missingness[state].values()))])
            action = agent.reset(seen[0]) if t == 0 else agent.step(seen[-1])
            expected = belief_after(tables, seen, done)
            np.testing.assert_allclose(agent.exact_belief, expected, rtol=1e-9, atol=1e-12)
            assert agent.belief.sum() == pytest.approx(1.0)
            assert not agent.belief[np.array(expected) == 0.0].any(), "no particle is where it cannot be"
            done.append(tables.actions.index(action))
            state = int(rng.choice(model.n_states, p=tables.transition[done[-1]][state]))
        assert agent.impossible == 0
    np.testing.assert_allclose(exact.belief, exact.exact_belief)
    assert exact.collapses == 0


def test_particles_that_run_out_are_drawn_from_the_exact_belief():
    """One particle in Tiger: it does not survive when it hears something else than was heard."""
    agent = mm.POMCP(tree_queries=20, particles=1).solve(tiger()).policy.agent(seed=0)
    collapses = []
    for _ in range(400):
        agent.reset()
        before = agent.collapses
        agent.step("z0")
        collapses.append(agent.collapses - before)
    # After listening the particle hears z0 with probability 1/2, after opening too.
    assert np.mean(collapses) == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / 400)), "fails with 6e-7"
    assert agent.collapses == sum(collapses)


def test_collapses_restore_the_belief():
    """Seeing z1 is rare: no particle of a few survives it, but after it the state is known."""
    stay = np.eye(2)
    model = build(
        [stay, stay],
        [[1.0, 0.0], [0.999, 0.001]],
        [[0.0, 1.0], [0.0, -1.0]],
        [0.5, 0.5],
        observe_initial=True,
    )
    agent = mm.POMCP(tree_queries=50, particles=10).solve(model).policy.agent(seed=1)
    agent.reset("z0")
    assert agent.step("z1") == "a0"
    assert agent.belief.tolist() == [0.0, 1.0]
    assert agent.collapses == 1
    assert agent.impossible == 0
    agent.step("z0")
    assert agent.collapses == 1, "there are particles again"


@pytest.mark.parametrize("belief", ["particles", "exact"])
def test_simulations_start_from_the_belief(belief):
    """The mean of one step is the expected reward, within 5 standard errors (fails with 6e-7, particles included)."""
    initial, reward = np.array([0.1, 0.2, 0.3, 0.4]), np.array([7.0, -3.0, 2.0, 0.5])
    model = build(np.eye(4)[None], np.ones((4, 1)), reward[:, None], initial)
    solver = mm.POMCP(tree_queries=20_000, max_depth=1, belief=belief)
    agent = solver.solve(model).policy.agent(seed=0)
    agent.reset()
    mean, variance = initial @ reward, initial @ reward**2 - (initial @ reward) ** 2
    draws = 2 if belief == "particles" else 1
    assert agent.search.action_values["a0"] == pytest.approx(
        mean, abs=5 * np.sqrt(draws * variance / 20_000), rel=0
    )


def test_particles_are_drawn_anew_in_proportion():
    """After an observation that no particle showed, shares are those of the exact belief within 5 standard errors."""
    rare = 1e-7 * np.array([1.0, 2.0, 3.0, 4.0])
    shows = np.stack([1.0 - rare, rare], axis=1)
    model = build(np.eye(4)[None], shows, np.zeros((4, 1)), [0.4, 0.3, 0.2, 0.1], observe_initial=True)
    agent = mm.POMCP(tree_queries=1, particles=10_000).solve(model).policy.agent(seed=0)
    agent.reset("z1")
    assert agent.collapses == 1
    expected = np.array([0.2, 0.3, 0.3, 0.2])
    np.testing.assert_allclose(agent.exact_belief, expected, rtol=1e-6)
    assert (np.abs(agent.belief - expected) <= 5 * np.sqrt(expected * (1 - expected) / 10_000)).all()


def test_an_observation_before_the_first_action_counts():
    model = build([np.eye(2)] * 2, np.eye(2), [[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], observe_initial=True)
    agent = mm.POMCP(tree_queries=100).solve(model).policy.agent(seed=0)
    assert agent.reset("z1") == "a0"
    assert agent.belief.tolist() == [0.0, 1.0]
    assert agent.reset("z0") == "a1"
    assert agent.belief.tolist() == [1.0, 0.0]


def test_observations_that_depend_on_the_action_are_used():
    """Only a1 shows the state; the belief after a0 stays what it was."""
    shows = [np.full((2, 2), 0.5), np.eye(2)]
    model = build([np.eye(2)] * 2, shows, [[0.0, 5.0], [0.0, 5.0]], [0.5, 0.5])
    agent = mm.POMCP(tree_queries=60).solve(model).policy.agent(seed=0)
    assert agent.reset() == "a1"
    agent.step("z1")
    assert agent.belief.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("belief", ["particles", "exact"])
def test_impossible_observations_are_counted_and_got_over(belief, caplog):
    told = build([np.eye(2)] * 2, np.eye(2), [[0.0, 1.0], [1.0, 0.0]], [1.0, 0.0])
    agent = mm.POMCP(tree_queries=20, belief=belief).solve(told).policy.agent(seed=0)
    agent.reset()
    with caplog.at_level(logging.WARNING):
        agent.step("z1")
        agent.step("z1")
    assert agent.fallbacks == {"admitted": 0, "restarted": 0, "ignored": 2}
    assert agent.impossible == 2
    assert agent.collapses == (2 if belief == "particles" else 0)
    assert agent.belief.tolist() == [1.0, 0.0]
    assert len(caplog.records) == 1
    assert "'z1' has probability zero after the action" in caplog.text


@pytest.mark.parametrize("belief", ["particles", "exact"])
def test_what_a_learned_model_never_shows_is_taken_for_its_values(belief):
    truth = mm.load_benchmark("example-1")
    learned = truth.with_missingness(mm.MissingnessFunction.fully_observed(truth.mdp))
    agent = mm.POMCP(tree_queries=20, belief=belief).solve(learned).policy.agent(truth, seed=0)
    alpha = mm.Sarsop(max_trials=2, progress=False).solve(learned).policy.agent()
    agent.reset({"first": "x"})
    alpha.reset({"first": "x"})
    assert agent.fallbacks == alpha.fallbacks == {"admitted": 1, "restarted": 0, "ignored": 0}
    assert agent.exact_belief == pytest.approx(alpha.belief)
    assert set(np.flatnonzero(agent.belief)) <= set(np.flatnonzero(alpha.belief))
    agent.step({})
    assert agent.fallbacks["admitted"] == 2, "another one that it never shows"


def test_all_states_terminal_is_the_end():
    ends = np.array([[0.0, 1.0], [0.0, 1.0]])
    model = build([ends] * 2, np.ones((2, 1)), [[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0], terminal=[0, 1])
    agent = mm.POMCP(tree_queries=20).solve(model).policy.agent(seed=0)
    assert agent.reset() == "a1"
    assert agent.step("z0") == "a0"
    assert agent.search.simulations == 0
    assert np.isnan(list(agent.search.action_values.values())).all()

"""Searches with bounds against the exact oracle on random models: bounds hold at every step, and close in."""

from functools import cache

import numpy as np
import pytest

import missmdp as mm
from missmdp._kernels.online.expanding import reduce_to
from missmdp.plan.online.bounds import state_bounds
from missmdp.plan.online.search import observation_rows
from missmdp.plan.reactive import Dynamics
from oracles.pomdp import Optimum, optimum
from random_pomdps import random_pomdp

SLACK = 1e-9
"""For rounding, relative to the largest value that any policy could have."""
FIRST, N_FAST, N_ALL = 300, 24, 300


def some():
    """Return seeds of which a few are for every day and the rest is slow."""
    return [
        pytest.param(seed, marks=[] if seed < FIRST + N_FAST else pytest.mark.slow)
        for seed in range(FIRST, FIRST + N_ALL)
    ]


@cache
def model(seed):
    return random_pomdp(seed)


@cache
def exactly(seed):
    return optimum(model(seed))


def action_values(exact: Optimum, belief):
    """Return Q*(b, a) of each action as (low, high)."""
    tables, values = exact.tables, []
    for a in range(len(tables.transition)):
        after = [(chance, exact.at(next_belief)) for chance, next_belief in tables.next_beliefs(belief, a)]
        now = float(belief @ tables.reward[:, a])
        values.append(
            tuple(now + tables.discount * sum(chance * bounds[k] for chance, bounds in after) for k in (0, 1))
        )
    return values


def episode(pomdp, planner, seed, steps):
    """Yield an agent after each of its decisions, in an episode of the model."""
    rng = np.random.default_rng(seed)
    agent = planner.solve(pomdp).policy.agent(seed=seed)
    state = int(rng.choice(pomdp.n_states, p=pomdp.initial))

    def seen(action):
        row = pomdp.observation_of(action).toarray()[state]
        return pomdp.observations[int(rng.choice(len(row), p=row))]

    agent.reset(*([seen(0)] if pomdp.observe_initial else []))
    yield agent
    for _ in range(steps):
        action = agent.last_index
        row = pomdp.transition[action].toarray()[state]
        state = state if pomdp.terminal[state] else int(rng.choice(len(row), p=row))
        agent.step(seen(action))
        yield agent


def assert_bounds_hold(agent, exact):
    search, belief, slack = agent.search, agent.exact_belief, SLACK * exact.scale
    low, high = exact.at(belief)
    assert search.lower <= high + slack
    assert search.upper >= low - slack
    if search.exact and search.expansions:
        for a, (least, most) in enumerate(action_values(exact, belief)):
            name = agent.policy.actions[a]
            assert search.action_lower[name] <= most + slack
            assert search.action_upper[name] >= least - slack


@pytest.mark.parametrize("seed", some())
@pytest.mark.parametrize("expansions", [1, 7, 60])
def test_bounds_hold_at_every_step(seed, expansions):
    exact = exactly(seed)
    for agent in episode(model(seed), mm.OnlinePlanner(expansions=expansions), seed, 4):
        assert agent.search.exact, "so few states and observations are all listed"
        assert_bounds_hold(agent, exact)


@pytest.mark.parametrize("seed", some())
def test_bounds_hold_where_a_sample_stands_for_all(seed):
    exact = exactly(seed)
    planner = mm.OnlinePlanner(expansions=20, particles=1, branches=1)
    for agent in episode(model(seed), planner, seed, 3):
        assert_bounds_hold(agent, exact)


@pytest.mark.parametrize("seed", some())
def test_enough_expansions_find_the_best_action(seed):
    exact = exactly(seed)
    for agent in episode(model(seed), mm.OnlinePlanner(expansions=4000), seed, 1):
        search, belief = agent.search, agent.exact_belief
        assert_bounds_hold(agent, exact)
        if exact.tables.discount <= 0.6:
            # With 8 actions and observations to choose from, so many expansions look four or five steps ahead.
            assert search.upper - search.lower <= 2e-2 * exact.scale
        if search.expansions:
            values = action_values(exact, belief)
            regret = max(low for low, _ in values) - values[agent.last_index][1]
            assert regret <= search.upper - search.lower + SLACK * exact.scale


def test_the_search_ends_where_nothing_is_left_to_find():
    """With discount 0 one look ahead is all."""
    found = next(model(seed) for seed in range(300, 900) if model(seed).discount == 0.0)
    for agent in episode(found, mm.OnlinePlanner(expansions=10**6), 0, 2):
        assert agent.search.expansions <= 1


@pytest.mark.parametrize("benchmark", ["example-1", "icu-smar", "fleet-2", "plant-2"])
def test_bounds_of_states_are_those_of_policies(benchmark):
    """The upper bound is the value of the MDP, and the lower that of a memoryless policy, from linear equations."""
    truth = mm.load_benchmark(benchmark)
    seen = observation_rows(truth)
    bounds = state_bounds(truth, seen, None)
    mdp = truth.mdp
    scale = np.abs(mdp.reward).max() / (1.0 - mdp.discount)
    live = ~mdp.terminal
    values = bounds.upper.copy()
    for _ in range(2000):
        values = np.max(
            [
                np.where(live, mdp.reward[:, a] + mdp.discount * (mdp.transition[a] @ values), 0.0)
                for a in range(mdp.n_actions)
            ],
            axis=0,
        )
    assert (bounds.upper >= values - SLACK * scale).all()
    assert (bounds.upper <= values + 1e-3 * scale).all()
    does = np.stack([np.asarray(seen[:, bounds.simple == a].sum(axis=1)) for a in range(mdp.n_actions)])
    moves = sum((live * does[a])[:, None] * mdp.transition[a].toarray() for a in range(mdp.n_actions))
    earned = sum(live * does[a] * mdp.reward[:, a] for a in range(mdp.n_actions))
    worth = np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * moves, earned)
    assert (bounds.lower <= worth + SLACK * scale).all()
    assert (bounds.lower >= worth - 1e-3 * scale).all()
    after = Dynamics(mdp).after_all(bounds.lower)
    np.testing.assert_allclose(bounds.lower_actions, after, atol=SLACK * scale)


def test_reducing_is_unbiased():
    rng = np.random.default_rng(0)
    for most in (1, 3, 7, 20):
        weight = rng.dirichlet(np.full(20, 0.3))
        mean, n = np.zeros(20), 500
        for k in range(n):
            index, kept = np.arange(20, dtype=np.int32), weight.copy()
            size = reduce_to.py_func(index, kept, 20, most, (k + 0.5) / n)
            assert size <= most + 1
            assert kept[:size].sum() == pytest.approx(1.0, abs=1.0 / most + 1e-12)
            mean[index[:size]] += kept[:size] / n
        np.testing.assert_allclose(mean, weight, atol=5e-3)

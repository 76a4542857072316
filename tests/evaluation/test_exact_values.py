"""What `evaluate` estimates, against expectations over all histories (`oracles.policy_values`).

Statistical checks fix their seeds and allow `ERRORS` standard errors, plus rounding; a mean is that far off by chance
with a probability of 6e-7, so that all of this file's comparisons together fail by chance with less than 1e-3.
"""

from __future__ import annotations

import math
from itertools import count, islice

import numpy as np
import pytest

import missmdp as mm
from missmdp.model.pomdp import advantages, optimal_values
from missmdp.plan.value_function import ComponentVectors
from oracles.policy_values import AmbiguousError, Memoryless, Tracking, World, outcome, trajectories
from policies import random_policy
from random_pomdps import build, random_pomdp, tiger
from strategies import ACTIONS, KINDS, POOL, random_mdp, random_missingness

ERRORS = 5.0
EPISODES = 10_000


def random_missmdp(seed, *, features=2, n_actions=2, states=None):
    """Return a miss-MDP over the first features of the pool, two values each."""
    rng = np.random.default_rng([seed, 77])
    names = {name: POOL[name][:2] for name in list(POOL)[:features]}
    mdp = random_mdp(rng, names, n_actions, full=states == "all")
    return mm.MissMDP(mdp, random_missingness(rng, mdp, KINDS[seed % len(KINDS)]))


def agrees(found, expected, spread, episodes=EPISODES, scale=1.0):
    """Whether a mean is what is expected, up to luck and rounding."""
    return abs(found - expected) <= ERRORS * spread / math.sqrt(episodes) + 1e-9 * max(1.0, scale)


def check(policy, model, actor, horizon, seed=0):
    """Compare all that an evaluation reports with the expectations; return these and the evaluation."""
    world = World(model)
    exact = outcome(world, actor, horizon)
    scale = float(np.abs(world.reward).max(initial=0.0))
    found = mm.evaluate(policy, model, EPISODES, seed, horizon=horizon, progress=False)
    assert agrees(found.mean, exact.value, found.std, scale=scale)
    assert found.mean == found.returns.mean()
    assert agrees(found.decisions.mean(), exact.decisions, found.decisions.std(ddof=1))
    share = exact.terminated
    assert agrees(found.terminated.mean(), share, math.sqrt(max(0.0, share * (1 - share))))
    for name, times in found.events.items():
        # Counts per episode lie in [0, horizon] and have this mean, so their variance is at most mean · horizon.
        assert agrees(times / EPISODES, exact.events[name], math.sqrt(exact.events[name] * horizon))

    controlled = mm.evaluate(
        policy, model, EPISODES, seed, horizon=horizon, control_variate=True, progress=False
    )
    np.testing.assert_array_equal(controlled.returns, found.returns)
    spread = float(controlled.estimates.std(ddof=1))
    assert agrees(controlled.mean, exact.value, spread, scale=scale / (1.0 - world.discount))
    return exact, found


@pytest.mark.parametrize("seed", range(8))
def test_memoryless_policies(seed):
    model = random_missmdp(seed, n_actions=3)
    rng = np.random.default_rng([seed, 5])
    n = model.n_actions
    uniform = Memoryless(lambda _: dict.fromkeys(range(n), 1.0 / n))
    check(mm.UniformPolicy(), model, uniform, 6, seed)
    check(None, model, uniform, 2, seed)

    rules = {}
    for row in map(tuple, model.missingness.occurring().observations):
        weights = rng.dirichlet(np.ones(n)) if rng.random() < 0.6 else np.eye(n)[rng.integers(n)]
        rules[row] = {a: float(p) for a, p in enumerate(weights) if p > 0.0}

    def acts(seen):
        rule = rules[tuple(seen)]
        return {ACTIONS[a]: p for a, p in rule.items()} if len(rule) > 1 else ACTIONS[next(iter(rule))]

    by_observation = Memoryless(lambda seen: rules[seen])
    check(acts, model, by_observation, 5, seed)
    check(mm.ObservationPolicy(acts), model, by_observation, 1, seed)
    blind = rng.dirichlet(np.ones(n))
    check(
        mm.BlindPolicy(dict(zip(model.actions, blind, strict=True))),
        model,
        Memoryless(lambda _: dict(enumerate(blind))),
        4,
        seed,
    )


def test_a_random_policy_draws_anew_at_every_step():
    """States remember the last action, and only changing one's mind pays."""
    T = np.stack([np.tile(np.eye(2)[a], (2, 1)) for a in range(2)])
    model = build(T, np.ones((2, 1)), [[0.0, 1.0], [1.0, 0.0]], [1.0, 0.0])
    exact, found = check(None, model, Memoryless(lambda _: {0: 0.5, 1: 0.5}), 6)
    assert exact.value == pytest.approx(0.5 * (1 - 0.9**6) / 0.1)
    assert len(np.unique(found.returns.round(9))) == 2**6, "every sequence of changes occurs"


def clear_cases(make):
    """Yield what `make` gives for 0, 1, …, leaving out policies that rounding may decide."""
    for seed in count():
        policy, model, horizon = make(seed)
        actor = Tracking(policy)
        try:
            outcome(World(model), actor, horizon)
        except AmbiguousError:
            continue
        yield policy, model, actor, horizon


def foreign(seed):
    """Return a policy with random vectors, made for another miss-MDP than the one it acts in."""
    model = random_missmdp(seed, features=2)
    kind = seed % 3
    if kind == 0:  # the same MDP, another M
        rng = np.random.default_rng([seed, 78])
        missingness = random_missingness(rng, model.mdp, KINDS[(seed + 1) % len(KINDS)])
        own = model.with_missingness(missingness)
    else:  # other dynamics, other states, another discount
        own = random_missmdp(seed + 1000, features=2)
    return random_policy(own, seed, coarse=kind == 2), model, 4


def test_vectors_made_for_another_model():
    """All fallbacks occur, and beliefs that span components."""
    happened = dict.fromkeys(("admitted", "restarted", "ignored"), 0)
    for policy, model, actor, horizon in islice(clear_cases(foreign), 24):
        exact, found = check(policy, model, actor, horizon)
        assert set(found.events) == set(happened)
        assert found.impossible == sum(found.events.values())
        for name in happened:
            assert (exact.events[name] > 0.0) >= (found.events[name] > 0)
            happened[name] += found.events[name] > 20
    assert min(happened.values()) >= 3, "each kind of fallback in several models"


def plain(seed):
    """Return a policy with random vectors in a POMDP, its own or one with other probabilities."""
    model = random_pomdp(seed)
    own = model
    if seed % 2:
        rng = np.random.default_rng([seed, 79])
        n, n_seen = model.n_states, model.n_observations
        own = build(
            rng.dirichlet(np.full(n, 0.3), size=(model.n_actions, n)),
            np.eye(n_seen)[rng.integers(n_seen, size=(model.n_actions, n))],
            model.reward,
            rng.dirichlet(np.ones(n)),
            discount=0.5,
            observe_initial=model.observe_initial,
        )
    return random_policy(own, seed, coarse=seed % 5 == 0), model, 4


def test_vectors_in_pomdps_whose_observations_depend_on_the_action():
    seen = {"acts first": 0, "observes first": 0, "by action": 0, "ignored": 0}
    for policy, model, actor, horizon in islice(clear_cases(plain), 24):
        _, found = check(policy, model, actor, horizon)
        seen["observes first" if model.observe_initial else "acts first"] += 1
        seen["by action"] += len(model.observation) > 1
        seen["ignored"] += found.events["ignored"] > 20
        assert found.events["admitted"] == found.events["restarted"] == 0
    assert min(seen.values()) >= 3, seen


def solved(seed):
    model = random_pomdp(seed) if seed % 3 else random_missmdp(seed)
    return mm.Sarsop(max_trials=5, progress=False).solve(model).policy, model, 4


@pytest.mark.slow
def test_policies_of_the_solver():
    kinds = set()
    for policy, model, actor, horizon in islice(clear_cases(solved), 20):
        _, found = check(policy, model, actor, horizon)
        assert found.impossible == 0, "in its own model nothing is impossible"
        kinds.add((type(model).__name__, getattr(model, "observe_initial", True)))
    assert len(kinds) == 3


def test_tiger():
    """Opening resets the problem, so that seven decisions hold whole rounds of listening and opening."""
    for first in (False, True):
        model = tiger(observe_initial=first)
        policy = mm.Sarsop(max_trials=20, progress=False).solve(model).policy
        check(policy, model, Tracking(policy), 7)


def spanning():
    """Two components that b₀ spans: acting first needs the lookahead, and so does what is ignored later."""
    T = np.array([[[0.5, 0.5, 0, 0], [0, 0.2, 0.8, 0], [0, 0, 0.6, 0.4], [0.3, 0, 0, 0.7]], np.eye(4)])
    Z = np.array([[0.6, 0.4, 0, 0], [0.1, 0.9, 0, 0], [0, 0, 0.3, 0.7], [0, 0, 0.8, 0.2]])
    R = [[1.0, 0.0], [-2.0, 0.5], [3.0, -1.0], [0.0, 2.0]]
    return T, Z, R


def test_beliefs_that_span_components_are_decided_by_lookahead():
    T, Z, R = spanning()
    model = build(T, Z, R, [0.3, 0.2, 0.1, 0.4], discount=0.8)
    rng = np.random.default_rng(0)
    components = [
        ComponentVectors(np.array(states), rng.normal(size=(3, 2)), np.array([0, 1, 0]))
        for states in ([0, 1], [2, 3])
    ]
    actions = set()
    for start in ([0.3, 0.2, 0.1, 0.4], [0.0, 0.5, 0.5, 0.0], [0.9, 0.0, 0.0, 0.1], [0.1, 0.0, 0.0, 0.9]):
        model = build(T, Z, R, start, discount=0.8)
        policy = mm.AlphaVectorPolicy(model, components)
        actor = Tracking(policy)
        assert len(actor.dense.components(start)) == 2
        actions |= set(actor.choice(start))
        check(policy, model, actor, 4)
    assert actions == {0, 1}, "the lookahead decides for either action"


def two_states(discount=0.7, *, ending=False):
    T = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.1, 0.9], [0.6, 0.4]]])
    Z = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.35, 0.65]]])
    R = [[2.0, -1.0], [-3.0, 0.5]]
    if ending:
        T = np.array(
            [[[0.5, 0.2, 0.3], [0.2, 0.5, 0.3], [0, 0, 1]], [[0.1, 0.4, 0.5], [0.3, 0.1, 0.6], [0, 0, 1]]]
        )
        Z = np.concatenate((Z, np.full((2, 1, 2), 0.5)), axis=1)
        return build(T, Z, [*R, [0.0, 0.0]], [0.4, 0.5, 0.1], terminal=[0, 0, 1], discount=discount)
    return build(T, Z, R, [0.25, 0.75], discount=discount)


@pytest.mark.parametrize("ending", [False, True])
def test_the_control_variate_leaves_the_expectation(ending):
    """All episodes one by one: Σ_e p(e) (V*(b₀) + Σ_t γᵗ A* − γᴸ V*(s_L)) = Σ_e p(e) Σ_t γᵗ ρ, exactly."""
    model, horizon = two_states(ending=ending), 4
    world = World(model)
    values = optimal_values(model)
    scores = advantages(model, values)
    policy = random_policy(model, 3)
    for actor in (Memoryless(lambda _: {0: 0.5, 1: 0.5}), Tracking(policy)):
        total = plain_mean = controlled_mean = 0.0
        for p, states, actions in trajectories(world, actor, horizon):
            worth = world.discount ** np.arange(len(actions))
            returns = float(worth @ world.reward[states[:-1], actions])
            left = world.discount ** len(actions) * values[states[-1]]
            controlled = float(world.initial @ values + worth @ scores[states[:-1], actions]) - left
            total += p
            plain_mean += p * returns
            controlled_mean += p * controlled
        assert total == pytest.approx(1.0, abs=1e-12)
        assert controlled_mean == pytest.approx(plain_mean, abs=1e-9)
        assert plain_mean == pytest.approx(outcome(world, actor, horizon).value, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_control_variate_leaves_no_luck_to_the_optimal_policy_of_a_state_that_is_seen(seed):
    model = mm.fully_observed_model(random_missmdp(seed, states="all"))
    values = optimal_values(model.mdp)
    best = dict(zip(map(tuple, model.states), advantages(model.mdp, values).argmax(axis=1), strict=True))
    found = mm.evaluate(
        lambda seen: model.actions[best[tuple(seen)]], model, 50, 0, control_variate=True, progress=False
    )
    # But for the last state of episodes that were cut off, which is worth next to nothing.
    left = 1e-7 + model.discount**found.horizon * np.abs(values).max()
    np.testing.assert_allclose(found.estimates, model.mdp.initial @ values, rtol=0, atol=left)
    assert left < 0.01


@pytest.mark.parametrize("control_variate", [False, True])
def test_the_spread_of_the_estimates_is_that_of_all_episodes(control_variate):
    """The variance over all episodes, within five standard errors of a variance (fourth moments are known too)."""
    model, horizon, episodes = two_states(ending=True), 3, 20_000
    world, values = World(model), optimal_values(two_states(ending=True))
    scores = advantages(model, values)
    policy = random_policy(model, 3)
    p, x = [], []
    for probability, states, actions in trajectories(world, Tracking(policy), horizon):
        worth = world.discount ** np.arange(len(actions))
        table = scores if control_variate else world.reward
        left = world.discount ** len(actions) * values[states[-1]]
        p.append(probability)
        x.append(
            float(worth @ table[states[:-1], actions])
            + control_variate * float(world.initial @ values - left)
        )
    p, x = np.array(p), np.array(x)
    mean = p @ x
    variance, fourth = p @ (x - mean) ** 2, p @ (x - mean) ** 4
    found = mm.evaluate(
        policy, model, episodes, 4, horizon=horizon, control_variate=control_variate, progress=False
    )
    assert agrees(found.mean, mean, math.sqrt(variance), episodes)
    assert agrees(found.estimates.var(ddof=1), variance, math.sqrt(fourth - variance**2), episodes)
    assert found.stderr == pytest.approx(math.sqrt(variance / episodes), rel=0.05)
    seen = set(np.round(found.estimates, 9))
    assert seen <= set(np.round(x, 9)), "every estimate is that of an episode that can happen"


def test_the_estimate_settles_on_the_value_of_an_endless_policy():
    """One action for ever: (I − γT)⁻¹ρ, with both estimators and the default horizon."""
    model = two_states(0.9)
    exact = model.initial @ np.linalg.solve(
        np.eye(2) - 0.9 * model.transition[1].toarray(), model.reward[:, 1]
    )
    policy = mm.AlphaVectorPolicy(model, [ComponentVectors(np.arange(2), np.zeros((1, 2)), np.array([1]))])
    for control_variate in (False, True):
        found = mm.evaluate(policy, model, 20_000, 3, control_variate=control_variate, progress=False)
        assert abs(found.mean - exact) <= ERRORS * found.stderr + found.truncation
        assert found.truncation <= (1e-3 if not control_variate else 2e-2)

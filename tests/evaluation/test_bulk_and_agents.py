"""Simulation in bulk gives the episodes of agents that are asked step by step, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.simulation import AgentSimulator, compile_simulation
from policies import random_policy
from random_pomdps import build, random_pomdp
from strategies import KINDS, POOL, random_mdp, random_missingness

FEW_TRIALS = 3
CASES = {
    "icu-smar": (mm.AsMAR, 3),
    "icu-mnar-id": (mm.AIMI, 3),
    "icu-mnar-unid": (mm.AMCAR, 3),
    "predator-smar": (mm.AsMAR, 6),
    "predator-mnar-unid": (mm.AIMI, 6),
    "predator-mcar": (mm.AMCAR, 6),
}
"""Benchmark → a learner, right or wrong for it, and how many episodes are compared."""


class Watched:
    """A policy that only makes agents, and keeps them."""

    def __init__(self, policy):
        self.policy, self.agents = policy, []

    def agent(self, model=None, *, seed=None):
        self.agents.append(self.policy.agent(model, seed=seed))
        return self.agents[-1]

    def fallbacks(self):
        """Return how often each kind of fallback was used by all agents."""
        return {
            kind: sum(agent.fallbacks[kind] for agent in self.agents)
            for kind in ("admitted", "restarted", "ignored")
        }


def same_episodes(policy, model, episodes, horizon=None, seed=5):
    """Check that both ways give the same episodes; return the evaluation."""
    options = {"horizon": horizon, "control_variate": True, "progress": False}
    bulk = mm.evaluate(policy, model, episodes, seed, **options)
    watched = Watched(policy)
    slow = mm.evaluate(watched, model, episodes, seed, **options)
    assert len(watched.agents) == episodes == slow.episodes
    scale = float(np.abs(bulk.returns).max(initial=1.0))
    np.testing.assert_array_equal(bulk.decisions, slow.decisions)
    np.testing.assert_array_equal(bulk.terminated, slow.terminated)
    np.testing.assert_allclose(bulk.returns, slow.returns, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(bulk.controlled, slow.controlled, rtol=1e-9, atol=1e-9 * scale)
    assert bulk.events == watched.fallbacks()
    assert (bulk.horizon, bulk.truncation, bulk.seed) == (slow.horizon, slow.truncation, slow.seed)
    assert slow.events == {}
    return bulk


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")
@pytest.mark.parametrize("name", CASES)
def test_on_the_benchmarks_with_learned_models(name):
    learner, episodes = CASES[name]
    truth = mm.load_benchmark(name)
    data = mm.collect(truth, 2_000, seed=0, progress=False)
    learned = truth.with_missingness(learner(smoothing=0.0).fit(data).missingness_)
    policy = mm.Sarsop(max_trials=FEW_TRIALS, progress=False).solve(learned).policy
    same_episodes(policy, truth, episodes)


@pytest.mark.parametrize("name", ["icu-smar", "predator-mcar"])
def test_on_benchmarks_with_random_vectors(name):
    """Random vectors leave the beaten track; nothing goes missing in the policy's model, so all that does surprises."""
    truth = mm.load_benchmark(name)
    policy = random_policy(mm.fully_observed_model(truth), 0)
    found = same_episodes(policy, truth, 3, horizon=25)
    assert found.events["admitted"] > 0


def foreign(seed):
    """Return a policy for one miss-MDP and another miss-MDP with the same features and actions."""
    rng = np.random.default_rng([seed, 91])
    features = {name: POOL[name][: rng.integers(2, 4)] for name in list(POOL)[: rng.integers(1, 4)]}
    n_actions = int(rng.integers(1, 4))
    model, own = (
        mm.MissMDP(mdp, random_missingness(rng, mdp, KINDS[rng.integers(len(KINDS))]))
        for mdp in (random_mdp(rng, features, n_actions) for _ in range(2))
    )
    return random_policy(own, seed, coarse=seed % 4 == 0), model


def test_on_random_models_with_fallbacks():
    happened = dict.fromkeys(("admitted", "restarted", "ignored"), 0)
    lengths = set()
    for seed in range(36):
        policy, model = foreign(seed)
        found = same_episodes(policy, model, 5, horizon=12, seed=seed)
        lengths |= set(found.decisions.tolist())
        for kind, times in found.events.items():
            happened[kind] += times
    assert min(happened.values()) > 20, happened
    assert {0, 1, 12} <= lengths


def test_on_random_pomdps():
    for seed in range(40):
        model = random_pomdp(seed)
        same_episodes(random_policy(model, seed, coarse=seed % 3 == 0), model, 6, horizon=9, seed=seed)


def test_on_pomdps_whose_policy_believes_in_other_observations():
    """The policy's own observations do not depend on the action, or they do and the world's do not."""
    ignored = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 93])
        n, n_actions, n_seen = 3, 2, 3
        world, own = (
            build(
                rng.dirichlet(np.full(n, 0.4), size=(n_actions, n)),
                np.eye(n_seen)[rng.integers(n_seen, size=(matrices, n))],
                rng.normal(size=(n, n_actions)),
                rng.dirichlet(np.ones(n)),
                discount=discount,
                observe_initial=bool(seed % 2),
            )
            for matrices, discount in (((1, 2)[seed % 4 < 2], 0.9), ((2, 1)[seed % 3 == 0], 0.3))
        )
        ignored += same_episodes(random_policy(own, seed), world, 6, horizon=9, seed=seed).events["ignored"]
    assert ignored > 100


def test_lookaheads_expect_what_is_shown_after_the_action():
    """Beliefs span two blocks at first and whenever what cannot be is seen; one action shows much, another little."""
    little = np.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.4, 0.6]])
    firsts = set()
    for seed in range(30):
        rng = np.random.default_rng([seed, 94])
        own = build(
            rng.dirichlet(np.full(4, 0.5), size=(2, 4)),
            np.stack([little, np.eye(4)]),
            rng.normal(scale=0.3, size=(4, 2)),
            rng.dirichlet(np.ones(4)),
            discount=0.95,
        )
        policy = random_policy(own, seed)
        assert len(policy.components) == 2
        firsts.add(policy.action(own.initial))
        same_episodes(policy, own, 6, horizon=3, seed=seed)
    assert firsts == set(own.actions)


def test_the_simulator_of_agents_stops_at_the_number_of_decisions_and_at_the_end():
    for seed in range(20):
        policy, model = foreign(seed)
        simulation = compile_simulation(model)
        simulator = AgentSimulator(policy, model, simulation, 3)
        for number in range(4):
            episode = simulator.episode(number, 5)
            assert len(episode.states) == len(episode.observations) == len(episode.actions) + 1
            ends = np.flatnonzero(model.mdp.terminal[episode.states])
            assert len(episode.actions) == (min(ends[0], 5) if len(ends) else 5)
            assert episode == simulator.episode(number, 5), "an episode depends on its number alone"
            longer = simulator.episode(number, 7)
            assert longer.states[: len(episode.states)] == episode.states
            for s, a, after in zip(episode.states, episode.actions, episode.states[1:], strict=False):
                assert model.mdp.transition[a][[s]].toarray()[0, after] > 0.0
            shown = model.missingness.occurring().observations
            for s, z in zip(episode.states, episode.observations, strict=True):
                assert shown[z] in model.missingness.distribution(model.states[s])


def test_agents_get_seeds_of_their_own():
    """Random agents: the same for the same seed and episode, different across both."""
    seeds = []

    class Random:
        def agent(self, model=None, *, seed=None):
            seeds.append(seed)
            return mm.UniformPolicy().agent(model, seed=seed)

    model = mm.load_benchmark("example-1")
    first = mm.evaluate(Random(), model, 5, 0, horizon=20, progress=False)
    again = mm.evaluate(Random(), model, 5, 0, horizon=20, progress=False)
    other = mm.evaluate(Random(), model, 5, 1, horizon=20, progress=False)
    assert seeds[:5] == seeds[5:10]
    assert len(set(seeds)) == 10
    np.testing.assert_array_equal(first.returns, again.returns)
    assert (first.returns != other.returns).any()

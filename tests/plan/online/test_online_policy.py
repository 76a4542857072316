"""The online planner as users meet it: options, agents, whole episodes, and that they all decide alike."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.benchmarks.fleet import plant
from missmdp.data.simulation import AgentSimulator, BulkPolicy, compile_simulation, seed_words
from missmdp.plan.online import agent as agents
from missmdp.plan.online import search
from missmdp.plan.online.agent import OnlineAgent
from random_pomdps import build, pomdps, tiger
from strategies import missmdps, seeds

EVENTS = ("admitted", "restarted", "ignored", "collapsed")


def run(policy, model, seed, horizon, episodes):
    runner = policy.runner(model, compile_simulation(model), seed_words(seed)[1], horizon)
    assert runner.events == EVENTS
    return runner.run(0, episodes)


class SimulatedAgents:
    """A policy whose n-th agent plays episode n, with the same words as `run`."""

    def __init__(self, policy, seed):
        self.policy = policy
        self.words = seed_words(seed)[1]
        self.agents = []

    def agent(self, model=None, *, seed=None):
        self.agents.append(OnlineAgent(self.policy, self.words, first_episode=len(self.agents)))
        return self.agents[-1]


def assert_agents_decide_so(policy, model, seed, horizon, episodes):
    """Compare whole episodes with those of agents of the same seed."""
    found = run(policy, model, seed, horizon, episodes)
    made = SimulatedAgents(policy, seed)
    simulator = AgentSimulator(made, model, compile_simulation(model), seed)
    mdp = model.mdp if isinstance(model, mm.MissMDP) else model
    for e in range(episodes):
        happened = simulator.episode(e, horizon)
        total, worth = 0.0, 1.0
        for s, a in zip(happened.states, happened.actions, strict=False):
            total += worth * mdp.reward[s, a]
            worth *= model.discount
        assert found.returns[e] == total
        assert found.decisions[e] == len(happened.actions)
        assert found.events[e].tolist() == [*made.agents[e].fallbacks.values(), 0]


@given(pomdps(), seeds())
@settings(max_examples=15)
def test_agents_decide_as_whole_episodes_do(pomdp, seed):
    policy = mm.OnlinePlanner(expansions=6, particles=3, branches=2).solve(pomdp).policy
    assert_agents_decide_so(policy, pomdp, seed, 5, 2)


@given(missmdps(), seeds())
@settings(max_examples=15)
def test_agents_decide_as_whole_episodes_do_in_another_model(model, seed):
    """The policy believes that nothing goes missing; in the model acted in, something does."""
    learned = model.with_missingness(mm.MissingnessFunction.fully_observed(model.mdp))
    policy = mm.OnlinePlanner(expansions=6, particles=3, branches=2).solve(learned).policy
    assert_agents_decide_so(policy, model, seed, 5, 2)


def test_agents_decide_as_whole_episodes_do_where_observations_are_numbered_by_rank(monkeypatch):
    monkeypatch.setattr("missmdp.model.missingness._SMALL", 10)
    model = plant(2)
    assert not model.missingness.is_small
    policy = mm.OnlinePlanner(expansions=6, particles=3, branches=2).solve(model).policy
    assert_agents_decide_so(policy, model, 3, 8, 2)
    short = mm.POMCP(tree_queries=20, seed=0).solve(model).policy
    for made in (policy, short, mm.Sarsop(max_trials=5, seed=0).solve(model).policy):
        value = mm.evaluate(made, model, 2, seed=0, horizon=20, progress=False)
        assert value.impossible == 0
        assert value.mean > mm.evaluate(None, model, 50, seed=0, horizon=20).mean - 30.0


def test_threads_make_no_difference():
    model = mm.load_benchmark("predator-smar")
    policy = mm.OnlinePlanner(expansions=10, particles=20).solve(model).policy
    one, two = (mm.evaluate(policy, model, 4, seed=1, horizon=8, threads=threads) for threads in (1, 2))
    assert one.returns.tolist() == two.returns.tolist()
    assert list(one.events) == list(EVENTS)


def test_it_is_a_policy_and_the_same_seed_does_the_same():
    model = mm.load_benchmark("icu-smar")
    policy = mm.OnlinePlanner(expansions=8, particles=10, branches=3, seed=2).solve(model).policy
    assert isinstance(policy, mm.Policy)
    assert isinstance(policy, BulkPolicy)
    assert isinstance(policy.agent(), mm.Agent)
    seen = [z for z, _ in mm.collect(model, 12, seed=0, horizon=12).episode(0)]

    def searches(agent):
        agent.reset(seen[0])
        found = [agent.search]
        for z in seen[1:]:
            agent.step(z)
            found.append(agent.search)
        return found

    assert searches(policy.agent(seed=5)) == searches(policy.agent(model, seed=5))
    assert searches(policy.agent()) == searches(policy.agent(seed=2)), "the solver's seed where there is none"
    assert searches(policy.agent(seed=5)) != searches(policy.agent(seed=6)), "a sample stands for all"
    assert searches(pickle.loads(pickle.dumps(policy)).agent()) == searches(policy.agent())


def test_how_often_a_search_listens_changes_nothing(monkeypatch):
    model = mm.load_benchmark("icu-smar")
    policy = mm.OnlinePlanner(expansions=30, particles=10, branches=3).solve(model).policy
    first = tuple(model.states[int(np.argmax(model.mdp.initial))])
    found = []
    for size in (1, 7, 100):
        monkeypatch.setattr(agents, "calls", lambda done, seconds, options, size=size: min(size, 30 - done))
        agent = policy.agent(seed=1)
        agent.reset(first)
        found.append(agent.search)
    assert found[0] == found[1] == found[2]


def test_searches_can_be_looked_at():
    agent = mm.OnlinePlanner(expansions=100).solve(tiger()).policy.agent(seed=0)
    assert agent.last_action is None
    for ask in (lambda: agent.search, lambda: agent.belief, lambda: agent.step("z0")):
        with pytest.raises(mm.ModelError, match="call reset first"):
            ask()
    action = agent.reset()
    search = agent.search
    assert action == search.action == agent.last_action
    assert search.action_lower[action] == max(search.action_lower.values())
    assert list(search.action_upper) == ["a0", "a1", "a2"]
    assert search.lower <= search.upper
    assert search.exact
    assert 1 < search.expansions <= 100
    assert agent.belief.tolist() == agent.exact_belief.tolist()
    assert "0 impossible observations" in repr(agent)


def test_further_bounds_are_used():
    model = mm.load_benchmark("icu-smar")
    plain = mm.OnlinePlanner().solve(model)
    worst = np.full((1, model.n_states), float(model.mdp.reward.min()) / (1.0 - model.discount))
    helped = mm.OnlinePlanner(lower=worst + 1.0, upper=plain.policy.bounds.upper - 1.0).solve(model)
    assert helped.best_upper == pytest.approx(plain.best_upper - 1.0)
    assert helped.best_lower == pytest.approx(plain.best_lower)
    known = mm.OnlinePlanner(lower=plain.policy.bounds.upper[None, :] - 1.0).solve(model)
    assert known.best_lower == pytest.approx(plain.best_upper - 1.0)


def test_episodes_that_are_over_need_no_search():
    T = [[0, 1], [0, 1]]
    model = build([T, T], np.ones((2, 1)), np.ones((2, 2)), [1, 0], terminal=[0, 1], discount=0.5)
    policy = mm.OnlinePlanner().solve(model).policy
    agent = policy.agent(seed=0)
    agent.reset()
    assert (agent.search.lower, agent.search.upper) == (1.0, 1.0)
    assert agent.step("z0") == "a0"
    search = agent.search
    assert (search.lower, search.upper, search.expansions, search.action_lower) == (0.0, 0.0, 0, {})
    assert run(policy, model, 0, 9, 2).returns.tolist() == [1.0, 1.0]


def test_who_acts_first_says_so():
    acting = mm.OnlinePlanner(expansions=2).solve(tiger()).policy.agent(seed=0)
    with pytest.raises(mm.ModelError, match=r"call reset\(\) without one"):
        acting.reset("z0")
    other = mm.load_benchmark("example-1")
    with pytest.raises(mm.ModelError, match="this is a MissMDP"):
        acting.policy.agent(other)
    with pytest.raises(mm.ModelError, match="this is a MissMDP"):
        acting.policy.runner(other, compile_simulation(other), seed_words(0)[1], 5)


def test_time_limits_end_a_search_early():
    model = mm.load_benchmark("icu-smar")
    policy = mm.OnlinePlanner(expansions=10**6, timeout=0.0).solve(model).policy
    agent = policy.agent(seed=0)
    agent.reset(tuple(model.states[int(np.argmax(model.mdp.initial))]))
    assert agent.search.expansions == 1, "the clock is looked at after the first"
    limited = mm.evaluate(policy, model, 10**6, seed=0, horizon=50, threads=1, timeout=0.5, progress=False)
    assert limited.status == "timeout"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expansions": 0}, "expansions must be an integer from 1"),
        ({"particles": 2.5}, "particles must be an integer"),
        ({"branches": 0}, "branches must be an integer from 1"),
        ({"max_depth": 0}, "max_depth must be an integer from 1"),
        ({"timeout": -0.5}, "timeout must be a number of at least 0"),
        ({"lower": [1.0]}, "lower must be finite numbers, shape"),
        ({"lower": "low"}, "lower"),
        ({"upper": [[1.0]]}, "upper must be finite numbers, shape"),
        ({"upper": [float("nan")]}, "upper must be finite numbers"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(mm.MissMDPError, match=message):
        mm.OnlinePlanner(**options)


def test_what_does_not_fit_is_named(monkeypatch):
    with pytest.raises(mm.ModelError, match="expected a MissMDP or a POMDP, got int"):
        mm.OnlinePlanner().solve(3)
    with pytest.raises(mm.ModelError, match="lower"):
        mm.OnlinePlanner(lower=np.zeros((1, 5))).solve(tiger())
    with pytest.raises(mm.ModelError, match="upper"):
        mm.OnlinePlanner(upper=np.zeros(5)).solve(tiger())
    fleet = mm.load_benchmark("fleet-4")
    with monkeypatch.context() as patch:
        patch.setattr("missmdp.memory.free_memory", lambda: 1e4)
        with pytest.raises(mm.ModelError, match="would take about .* of memory.*; use Sarsop, which works"):
            mm.OnlinePlanner().solve(fleet)
    monkeypatch.setattr(search, "_MOST_BYTES", 1000)
    with pytest.raises(mm.ModelError, match="one expansion with 162 particles .* choose fewer"):
        mm.OnlinePlanner(particles=2**20, branches=2**20).solve(fleet)


def test_results_say_what_they_are():
    solver = mm.OnlinePlanner(expansions=50, timeout=0.5, seed=3)
    assert repr(solver) == (
        "OnlinePlanner(expansions=50, timeout=0.5, particles=256, branches=8, max_depth=100, seed=3)"
    )
    result = solver.solve(tiger())
    assert isinstance(result, mm.OnlineResult)
    assert isinstance(result.policy, mm.OnlinePolicy)
    assert (result.lower, result.status) == (None, "online")
    assert result.best_lower <= result.best_upper
    assert str(result).startswith("plans while acting: at most 50 expansions and 0.5 s per decision")
    assert repr(result.policy).startswith("OnlinePolicy(at most 50 expansions")
    assert result.policy.actions == ("a0", "a1", "a2")

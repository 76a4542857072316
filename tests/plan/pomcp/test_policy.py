"""POMCP as users meet it: options, agents, whole episodes, and that they all decide alike."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.data.simulation import AgentSimulator, BulkPolicy, compile_simulation, seed_words
from missmdp.plan.pomcp.agent import POMCPAgent
from random_pomdps import build, pomdps, tiger
from strategies import missmdps, seeds

EVENTS = ("admitted", "restarted", "ignored", "collapsed")


def run(policy, model, seed, horizon, episodes):
    runner = policy.runner(model, compile_simulation(model), seed_words(seed)[1], horizon)
    assert runner.events == EVENTS
    assert runner.task <= 4
    return runner.run(0, episodes)


class SimulatedAgents:
    """A policy whose n-th agent plays episode n, with the same words as `run`."""

    def __init__(self, policy, seed):
        self.policy = policy
        self.words = seed_words(seed)[1]
        self.agents = []

    def agent(self, model=None, *, seed=None):
        self.agents.append(POMCPAgent(self.policy, self.words, first_episode=len(self.agents)))
        return self.agents[-1]


def by_agents(policy, model, seed, horizon, episodes):
    """Return what `run` returns, from agents with the same seed and the simulator of agents."""
    agents = SimulatedAgents(policy, seed)
    simulator = AgentSimulator(agents, model, compile_simulation(model), seed)
    mdp = model.mdp if isinstance(model, mm.MissMDP) else model
    rows = []
    for e in range(episodes):
        happened = simulator.episode(e, horizon)
        total, worth = 0.0, 1.0
        for s, a in zip(happened.states, happened.actions, strict=False):
            total += worth * mdp.reward[s, a]
            worth *= model.discount
        agent = agents.agents[e]
        events = [*agent.fallbacks.values(), agent.collapses]
        rows.append((total, len(happened.actions), bool(mdp.terminal[happened.states[-1]]), events))
    return rows


def assert_same(episodes, rows):
    assert episodes.returns.tolist() == [row[0] for row in rows]
    assert episodes.decisions.tolist() == [row[1] for row in rows]
    assert episodes.terminated.tolist() == [row[2] for row in rows]
    assert episodes.events.tolist() == [row[3] for row in rows]


@given(pomdps(), seeds(), st.sampled_from(["particles", "exact"]), st.integers(1, 5))
@settings(max_examples=25)
def test_agents_decide_as_whole_episodes_do(pomdp, seed, belief, max_depth):
    solver = mm.POMCP(
        tree_queries=12,
        max_depth=max_depth,
        belief=belief,
        particles=None if belief == "exact" else 5,
    )
    policy = solver.solve(pomdp).policy
    assert_same(run(policy, pomdp, seed, 6, 3), by_agents(policy, pomdp, seed, 6, 3))


@given(missmdps(), seeds(), st.sampled_from(["particles", "exact"]))
@settings(max_examples=25)
def test_agents_decide_as_whole_episodes_do_in_another_model(model, seed, belief):
    """The policy believes that nothing goes missing; in the model acted in, something does."""
    learned = model.with_missingness(mm.MissingnessFunction.fully_observed(model.mdp))
    policy = mm.POMCP(tree_queries=12, max_depth=4, belief=belief).solve(learned).policy
    episodes = run(policy, model, seed, 5, 3)
    assert_same(episodes, by_agents(policy, model, seed, 5, 3))
    if belief == "exact":
        assert not episodes.events[:, 3].any()


def test_learned_models_are_got_over_in_the_true_one():
    truth = mm.load_benchmark("icu-mnar-unid")
    learned = truth.with_missingness(mm.MissingnessFunction.independent(truth.mdp, {"infection": 0.3}))
    policy = mm.POMCP(tree_queries=30).solve(learned).policy
    episodes = run(policy, truth, 0, 30, 2)
    assert_same(episodes, by_agents(policy, truth, 0, 30, 2))
    assert episodes.events[:, 0].sum() > 0, "heart rates go missing, says the truth"


def test_threads_and_tasks_make_no_difference():
    model = mm.load_benchmark("predator-smar")
    policy = mm.POMCP(tree_queries=60).solve(model).policy
    runner = policy.runner(model, compile_simulation(model), seed_words(7)[1], 20)
    whole = runner.run(0, 12)
    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(lambda first: runner.run(first, 2), range(0, 12, 2)))
    for i, name in enumerate(whole._fields):
        assert np.concatenate([part[i] for part in parts]).tolist() == whole[i].tolist(), name
    one, two = (mm.evaluate(policy, model, 8, seed=1, horizon=15, threads=threads) for threads in (1, 2))
    assert one.returns.tolist() == two.returns.tolist()
    assert list(one.events) == list(EVENTS)


def test_it_is_a_policy_and_the_same_seed_does_the_same():
    model = mm.load_benchmark("icu-smar")
    policy = mm.POMCP(tree_queries=40, seed=2).solve(model).policy
    assert isinstance(policy, mm.Policy)
    assert isinstance(policy, BulkPolicy)
    assert isinstance(policy.agent(), mm.Agent)
    seen = [z for z, _ in mm.collect(model, 40, seed=0, horizon=40).episode(0)]

    def taken(agent):
        return [agent.reset(seen[0]), *(agent.step(z) for z in seen[1:])]

    assert taken(policy.agent(seed=5)) == taken(policy.agent(model, seed=5))
    assert taken(policy.agent(seed=5)) == taken(POMCPAgent(policy, seed_words(5)[1])), "as in `by_agents`"
    assert taken(policy.agent()) == taken(policy.agent(seed=2)), "the solver's seed where there is none"
    values = [policy.agent(seed=seed) for seed in (5, 6)]
    for agent in values:
        agent.reset(seen[0])
    assert values[0].search.action_values != values[1].search.action_values
    fresh = [mm.POMCP(tree_queries=40).solve(model).policy.agent() for _ in range(2)]
    for agent in fresh:
        agent.reset(seen[0])
    assert fresh[0].search.action_values != fresh[1].search.action_values
    assert taken(pickle.loads(pickle.dumps(policy)).agent()) == taken(policy.agent())


def test_searches_can_be_looked_at():
    agent = mm.POMCP(tree_queries=200, exploration=50.0).solve(tiger()).policy.agent(seed=0)
    assert agent.last_action is None
    for ask in (lambda: agent.search, lambda: agent.belief, lambda: agent.step("z0")):
        with pytest.raises(mm.ModelError, match="call reset first"):
            ask()
    action = agent.reset()
    search = agent.search
    assert action == search.action == agent.last_action
    assert search.simulations == search.queries == 200
    assert search.action_values[action] == max(search.action_values.values())
    assert list(search.visits) == ["a0", "a1", "a2"]
    assert 1 < search.nodes <= 201
    assert "0 collapses" in repr(agent)


def test_who_acts_first_says_so():
    acting = mm.POMCP(tree_queries=5).solve(tiger()).policy.agent(seed=0)
    with pytest.raises(mm.ModelError, match=r"call reset\(\) without one"):
        acting.reset("z0")
    looking = mm.POMCP(tree_queries=5).solve(tiger(observe_initial=True)).policy.agent(seed=0)
    with pytest.raises(mm.ModelError, match=r"call reset\(observation\)"):
        looking.reset()


def test_unknown_observations_are_named_and_change_nothing():
    agent = mm.POMCP(tree_queries=5).solve(tiger()).policy.agent(seed=0)
    same = mm.POMCP(tree_queries=5).solve(tiger()).policy.agent(seed=0)
    for one in (agent, same):
        one.reset()
    with pytest.raises(mm.ModelError, match="there is no observation 'z9'"):
        agent.step("z9")
    for one in (agent, same):
        one.step("z1")
    assert agent.search == same.search
    assert agent.belief.tolist() == same.belief.tolist()


def test_other_interfaces_are_refused():
    policy = mm.POMCP(tree_queries=5).solve(tiger()).policy
    other = mm.load_benchmark("example-1")
    with pytest.raises(mm.ModelError, match="this is a MissMDP"):
        policy.agent(other)
    with pytest.raises(mm.ModelError, match="this is a MissMDP"):
        policy.runner(other, compile_simulation(other), seed_words(0)[1], 5)


def test_time_limits_end_a_search_early():
    model = mm.load_benchmark("predator-smar")
    policy = mm.POMCP(tree_queries=200_000, particles=50, timeout=0.0).solve(model).policy
    agent = policy.agent(seed=0)
    agent.reset(tuple(model.states[int(np.argmax(model.mdp.initial))]))
    assert agent.search.queries == 256, "the clock is looked at after a batch"
    assert len(mm.evaluate(policy, model, 2, seed=0, horizon=3, threads=1).returns) == 2


def test_a_time_limit_that_is_never_reached_changes_nothing():
    """The way through agents gives the episodes that the kernel gives."""
    for model in (mm.load_benchmark("predator-mnar-unid"), tiger(), tiger(observe_initial=True)):
        quick = mm.POMCP(tree_queries=300).solve(model).policy
        timed = mm.POMCP(tree_queries=300, timeout=1e6).solve(model).policy
        for one, other in zip(run(quick, model, 3, 8, 3), run(timed, model, 3, 8, 3), strict=True):
            assert one.tolist() == other.tolist()


def test_rewards_end_with_the_episode_and_the_horizon():
    T = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    model = build([T, T], np.eye(3), np.ones((3, 2)), [1, 0, 0], terminal=[0, 0, 1], discount=0.5)
    policy = mm.POMCP(tree_queries=5).solve(model).policy
    for horizon, total, decisions in [(1, 1.0, 1), (2, 1.5, 2), (9, 1.5, 2)]:
        episodes = run(policy, model, 0, horizon, 2)
        assert episodes.returns.tolist() == [total] * 2
        assert episodes.decisions.tolist() == [decisions] * 2
        assert episodes.terminated.tolist() == [decisions == 2] * 2
    over = build([T, T], np.eye(3), np.ones((3, 2)), [0, 0, 1], terminal=[0, 0, 1])
    episodes = run(mm.POMCP(tree_queries=5).solve(over).policy, over, 0, 5, 1)
    assert (episodes.returns[0], episodes.decisions[0], episodes.terminated[0]) == (0.0, 0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 0}, "max_depth must be an integer of at least 1"),
        ({"tree_queries": 2.5}, "tree_queries must be an integer"),
        ({"tree_queries": 2**31}, "below 2³¹"),
        ({"exploration": -1}, "exploration must be a finite number of at least 0"),
        ({"exploration": float("nan")}, "exploration must be a finite number"),
        ({"exploration": "much"}, "exploration must be a finite number of at least 0, got 'much'"),
        ({"timeout": -0.5}, "timeout must be a number of at least 0"),
        ({"belief": "kalman"}, "belief must be 'particles' or 'exact'"),
        ({"belief": "exact", "particles": 5}, "leave particles out"),
        ({"particles": 0}, "particles must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(mm.MissMDPError, match=message):
        mm.POMCP(**options)


def test_trees_that_do_not_fit_are_named():
    with pytest.raises(mm.ModelError, match="would take .* GB; choose a smaller tree_queries"):
        mm.POMCP(tree_queries=2**30).solve(tiger())
    with pytest.raises(mm.ModelError, match="expected a MissMDP or a POMDP, got int"):
        mm.POMCP().solve(3)


def test_results_say_what_they_are():
    solver = mm.POMCP(tree_queries=50, timeout=0.5, seed=3)
    assert repr(solver) == (
        "POMCP(max_depth=20, exploration=1.0, tree_queries=50, timeout=0.5, belief='particles', particles=50, seed=3)"
    )
    result = solver.solve(tiger())
    assert isinstance(result, mm.POMCPResult)
    assert isinstance(result.policy, mm.POMCPPolicy)
    assert result.lower is None
    assert str(result).startswith(
        "plans while acting: at most 50 simulations of depth 20 and 0.5 s per decision"
    )
    assert "no bounds" in str(result)
    exact = mm.POMCP(belief="exact").solve(tiger())
    assert "from the exact belief" in str(exact)
    assert repr(exact.policy).startswith("POMCPPolicy(1,000 simulations")
    assert "particles" not in repr(mm.POMCP(belief="exact"))
    assert exact.policy.actions == ("a0", "a1", "a2")

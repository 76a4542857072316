"""Searches that take long: they are cut into short calls, with the same results, and refused where they do not fit."""

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.data.simulation import compile_simulation, seed_words
from missmdp.plan.pomcp import agent as deciding
from missmdp.plan.pomcp import episodes, search
from random_pomdps import build, pomdps, tiger
from strategies import missmdps, seeds


def runner(policy, model, seed, horizon):
    return policy.runner(model, compile_simulation(model), seed_words(seed)[1], horizon)


def in_short_calls(monkeypatch, most_steps):
    """Let calls take few steps, and leave nothing to the kernel of whole episodes; return the sizes of the calls."""
    sizes = []
    think = deciding.think

    def listed(model, rules, mind, key, step, first, count):
        sizes.append(count)
        think(model, rules, mind, key, step, first, count)

    def whole(*_):
        raise AssertionError("the episode went through one call")

    monkeypatch.setattr(search, "_MOST_STEPS", most_steps)
    monkeypatch.setattr(search, "_MOST_STEPS_OF_EPISODES", most_steps)
    monkeypatch.setattr(deciding, "think", listed)
    monkeypatch.setattr(episodes, "run_pomcp_episodes", whole)
    return sizes


def assert_short_calls_change_nothing(solver, own, model, seed, most_steps):
    whole = runner(solver.solve(own).policy, model, seed, 6).run(0, 3)
    with pytest.MonkeyPatch.context() as patch:
        sizes = in_short_calls(patch, most_steps)
        cut = runner(solver.solve(own).policy, model, seed, 6).run(0, 3)
        assert max(sizes, default=0) * solver.options.max_depth <= max(most_steps, solver.options.max_depth)
        assert sum(sizes) == solver.options.tree_queries * whole.decisions.sum()
    for name, one, other in zip(whole._fields, whole, cut, strict=True):
        assert one.tobytes() == other.tobytes(), name


@given(pomdps(), seeds(), st.sampled_from(["particles", "exact"]), st.integers(1, 5), st.integers(1, 60))
@settings(max_examples=25)
def test_short_calls_change_nothing(pomdp, seed, belief, max_depth, most_steps):
    solver = mm.POMCP(tree_queries=12, max_depth=max_depth, belief=belief)
    assert_short_calls_change_nothing(solver, pomdp, pomdp, seed, most_steps)


@given(missmdps(), seeds(), st.sampled_from(["particles", "exact"]))
@settings(max_examples=25)
def test_short_calls_change_nothing_in_another_model(model, seed, belief):
    """The policy believes that nothing goes missing: fallbacks and collapses are counted alike, too."""
    learned = model.with_missingness(mm.MissingnessFunction.fully_observed(model.mdp))
    solver = mm.POMCP(tree_queries=12, max_depth=4, belief=belief)
    assert_short_calls_change_nothing(solver, learned, model, seed, 10)


def test_calls_are_cut_by_queries_depth_particles_and_horizon():
    def chosen(**more):
        return mm.POMCP(**more).options

    assert chosen().at_once == chosen().tree_queries == 1000
    assert chosen().is_short(400), "the benchmarks' own horizon"
    assert not chosen().is_short(10_000)
    assert not chosen(tree_queries=100_000).is_short(60)
    assert not chosen(max_depth=2000).is_short(60)
    assert not chosen(particles=10**6).is_short(60)
    assert not chosen(timeout=1e6).is_short(1)
    assert chosen(tree_queries=10**7).at_once == 50_000
    assert chosen(tree_queries=10**7, max_depth=10**8).at_once == 1
    assert chosen(tree_queries=10**7, timeout=1.0).at_once == 256
    assert chosen(tree_queries=10**7, timeout=1.0, max_depth=10**5).at_once == 10


def test_interrupts_get_through_in_the_middle_of_an_episode(monkeypatch):
    """Here from within a kernel's call, as if Ctrl-C had come during it."""
    model = mm.load_benchmark("predator-smar")
    policy = mm.POMCP(tree_queries=100).solve(model).policy
    monkeypatch.setattr(search, "_MOST_STEPS", 500)
    monkeypatch.setattr(search, "_MOST_STEPS_OF_EPISODES", 500)
    think, calls = deciding.think, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 7:
            raise KeyboardInterrupt
        think(*arguments)

    monkeypatch.setattr(deciding, "think", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner(policy, model, 0, 50).run(0, 1)
    assert len(calls) == 7, "within the second decision"


def test_time_limits_of_evaluations_are_looked_at_after_every_episode():
    for horizon in (10, 10_000):
        policy = mm.POMCP().solve(tiger()).policy
        assert runner(policy, tiger(), 0, horizon).task == 1


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"particles": 10**11}, r"would take 745 GB; choose a smaller particles"),
        ({"particles": 10**30}, r"GB; choose a smaller particles"),
        (
            {"max_depth": 10**12},
            r"a depth of 1,000,000,000,000 .* would take 22,351 GB; choose a smaller max_depth",
        ),
        ({"max_depth": 10**30}, r"GB; choose a smaller max_depth"),
        ({"max_depth": 10**400}, r"GB; choose a smaller max_depth"),
        ({"tree_queries": 2**30}, r"GB; choose a smaller tree_queries"),
        ({"tree_queries": 2**26, "max_depth": 2**27}, r"would take 10 GB; choose a smaller tree_queries"),
    ],
)
def test_searches_that_do_not_fit_are_refused(chosen, message):
    """Before anything is allocated; in the last case neither the tree nor the path is too large alone."""
    with pytest.raises(mm.ModelError, match=message):
        mm.POMCP(**chosen).solve(tiger())


def test_the_estimate_is_what_a_search_takes():
    policy = mm.POMCP(tree_queries=700, max_depth=300, particles=900).solve(tiger()).policy

    def size(part):
        return part.nbytes if isinstance(part, np.ndarray) else sum(map(size, part))

    mind, rules = policy.new_mind(), policy.rules
    taken = (
        size(mind.tree) + size(mind.particles) + mind.roots.nbytes + rules.reach.nbytes + rules.shrink.nbytes
    )
    needed = search.search_bytes(3, max_depth=300, tree_queries=700, particles=900)
    assert sum(needed.values()) == pytest.approx(taken, abs=16), "two counters besides"


@pytest.mark.parametrize("observe_initial", [False, True])
def test_an_evaluation_against_the_clock_warns_once(observe_initial, caplog):
    told, truth = (
        build([np.eye(2)] * 2, np.eye(2), np.zeros((2, 2)), initial, observe_initial=observe_initial)
        for initial in ([1.0, 0.0], [0.0, 1.0])
    )
    policy = mm.POMCP(tree_queries=5, timeout=1e6).solve(told).policy
    with caplog.at_level(logging.WARNING):
        value = mm.evaluate(policy, truth, 6, seed=0, horizon=4, threads=2, progress=False)
    assert value.events["ignored"] == 6 * (4 if observe_initial else 3)
    assert len(caplog.records) == 1
    when = "as the first observation" if observe_initial else "after the action 'a0'"
    assert f"the observation 'z1' has probability zero {when}" in caplog.text
    with ThreadPoolExecutor(3) as pool:
        run = runner(policy, truth, 0, 4).run
        list(pool.map(lambda first: run(first, 1), range(6)))
    assert len(caplog.records) == 2, "another runner, another warning"


@pytest.mark.parametrize("limit", [{}, {"timeout": 1e6}])
def test_who_looks_first_does_not_act_where_nothing_is_shown_first(limit):
    looks, acts = tiger(observe_initial=True), tiger()
    solver = mm.POMCP(tree_queries=5, **limit)
    with pytest.raises(mm.ModelError, match="acts on the first observation, and this model acts first"):
        mm.evaluate(solver.solve(looks).policy, acts, 5, 0, progress=False)
    with pytest.raises(mm.ModelError, match="acts before the first observation, and this model shows one"):
        mm.evaluate(solver.solve(acts).policy, looks, 5, 0, progress=False)


def test_evaluations_draw_from_their_own_seed():
    """As documented: the solver's seed is for agents only."""
    model = mm.load_benchmark("predator-smar")
    one, other = (mm.POMCP(tree_queries=20, seed=seed).solve(model).policy for seed in (1, 2))
    same = [
        mm.evaluate(policy, model, 6, seed=3, horizon=10, progress=False).returns for policy in (one, other)
    ]
    assert same[0].tolist() == same[1].tolist()
    start = tuple(model.states[int(np.argmax(model.mdp.initial))])
    agents = [policy.agent() for policy in (one, other)]
    for agent in agents:
        agent.reset(start)
    assert agents[0].search.action_values != agents[1].search.action_values

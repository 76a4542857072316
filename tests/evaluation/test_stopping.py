"""How long is simulated: the same for any number of threads, extended by more, stopped by errors, time and Ctrl-C."""

from __future__ import annotations

import _thread
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.simulation import EpisodeRunner, empty_episodes
from missmdp.evaluation.stopping import StoppingRule
from missmdp.model.pomdp import advantages, optimal_values
from policies import random_policy

QUIET = {"progress": False}


@pytest.fixture(scope="module")
def model():
    return mm.load_benchmark("icu-smar")


@pytest.fixture(scope="module")
def policy(model):
    return random_policy(mm.prior_model(model), 0)


class Scripted:
    """A policy whose episodes are made up: episode e has return `value(e)`; `before(first)` runs before each task."""

    def __init__(self, value=float, before=lambda first: None, *, task=4, parallel=True):
        self.value, self.before, self.task, self.parallel = value, before, task, parallel
        self.asked = []

    def agent(self, model=None, *, seed=None):
        raise AssertionError("a policy with a runner needs no agents")

    def runner(self, model, simulation, words, horizon):
        def run(first, count):
            if count:
                self.asked.append((first, count))
                self.before(first)
            episodes = empty_episodes(count, 1)
            episodes.returns[:] = [self.value(first + e) for e in range(count)]
            episodes.advantages[:] = 0.0
            episodes.decisions[:] = 1
            episodes.terminated[:] = False
            episodes.events[:] = 1
            return episodes

        return EpisodeRunner(run, ("runs",), self.task, self.parallel)


def luck(e):
    """Return a made-up return of episode e, as good as random."""
    return float(np.random.default_rng(e).normal())


def same(one, other, count=None):
    """Whether two evaluations have the same (first) episodes."""
    return all(
        np.array_equal(getattr(one, name)[:count], getattr(other, name)[:count])
        for name in ("returns", "decisions", "terminated", "estimates")
    )


@pytest.mark.parametrize("kind", ["vectors", "uniform", "agents"])
@pytest.mark.parametrize("control_variate", [False, True])
def test_the_number_of_threads_changes_nothing(model, policy, kind, control_variate):
    class Agents:
        def agent(self, model=None, *, seed=None):
            return mm.UniformPolicy().agent(model, seed=seed)

    chosen = {"vectors": policy, "uniform": None, "agents": Agents()}[kind]
    count = 20 if kind == "agents" else 300
    results = [
        mm.evaluate(
            chosen, model, count, 7, horizon=15, threads=threads, control_variate=control_variate, **QUIET
        )
        for threads in (1, 2, 5, None)
    ]
    assert all(same(results[0], other) for other in results)
    assert all(results[0].events == other.events for other in results)
    assert len(np.unique(results[0].estimates)) > 5


def test_more_episodes_extend_fewer(model, policy):
    for chosen in (policy, None):
        few, many = (mm.evaluate(chosen, model, n, 3, horizon=15, **QUIET) for n in (45, 333))
        assert (few.episodes, many.episodes) == (45, 333)
        assert same(few, many, 45)
        one = mm.evaluate(chosen, model, 1, 3, horizon=15, **QUIET)
        assert same(one, many, 1)


def test_episodes_differ_and_so_do_seeds(model, policy):
    one, other = (mm.evaluate(policy, model, 100, seed, horizon=15, **QUIET) for seed in (0, 1))
    assert len(np.unique(one.returns)) > 50
    assert (one.returns != other.returns).mean() > 0.9
    assert abs(np.corrcoef(one.returns, other.returns)[0, 1]) < 0.5
    assert same(one, mm.evaluate(policy, model, 100, 0, horizon=15, **QUIET))
    assert same(one, mm.evaluate(policy, model, 100, np.int64(0), horizon=15, **QUIET))


def test_a_fresh_seed_is_recorded_and_repeats_the_result(model):
    one, other = (mm.evaluate(None, model, 20, horizon=10, **QUIET) for _ in range(2))
    assert one.seed != other.seed
    assert (one.returns != other.returns).any()
    assert same(one, mm.evaluate(None, model, 20, one.seed, horizon=10, **QUIET))
    assert str(one.seed) in one.describe()


def test_simulation_stops_when_the_error_is_small_enough(model, policy):
    results = [
        mm.evaluate(policy, model, 50, 1, until_stderr=wanted, horizon=15, threads=threads, **QUIET)
        for wanted, threads in ((0.5, 1), (0.5, 5), (0.25, 2))
    ]
    loose, again, strict = results
    assert loose.status == strict.status == "stderr"
    assert loose.stderr <= 0.5
    assert strict.stderr <= 0.25
    assert same(loose, again)
    assert loose.episodes == again.episodes
    assert 1000 < loose.episodes < strict.episodes
    assert same(loose, strict, loose.episodes)
    assert strict.episodes < 3 * loose.episodes * 4, "not many more than are needed"
    plain = mm.evaluate(policy, model, strict.episodes, 1, horizon=15, **QUIET)
    assert same(plain, strict)
    assert plain.status == "episodes"


def test_errors_that_are_small_at_once_need_no_more(model):
    found = mm.evaluate(None, model, 1200, 0, until_stderr=1e9, horizon=5, **QUIET)
    assert (found.status, found.episodes) == ("stderr", 1200)
    still = mm.evaluate(Scripted(lambda e: 1.0), model, 2, 0, until_stderr=1e-300, **QUIET)
    assert (still.status, still.episodes, still.stderr) == ("stderr", 1000, 0.0)


def test_a_small_error_of_few_episodes_is_not_believed(model):
    """It is 0 while something rare has not happened: here with probability 0.01, for the first time in episode 137."""
    policy = Scripted(lambda e: 1000.0 if e % 100 == 37 and e > 100 else 0.0)
    found = mm.evaluate(policy, model, 20, 0, until_stderr=0.01, max_episodes=5000, **QUIET)
    assert (found.status, found.episodes) == ("episodes", 5000)
    assert found.mean == pytest.approx(9.8)
    assert found.stderr > 1.0
    few = mm.evaluate(policy, model, 20, 0, until_stderr=0.01, max_episodes=90, **QUIET)
    assert (few.status, few.episodes, few.stderr) == ("stderr", 90, 0.0), "all that was allowed"
    plain = mm.evaluate(policy, model, 20, 0, **QUIET)
    assert plain.episodes == 20


def test_one_episode_has_no_error(model):
    """The error of one is unknown, however large it may be."""
    found = mm.evaluate(Scripted(luck), model, 1, 0, until_stderr=1e9, max_episodes=1, **QUIET)
    assert (found.status, found.episodes) == ("episodes", 1)


@pytest.mark.parametrize("wanted", [1e-3, 1e-200, 5e-324])
def test_there_are_never_more_than_the_most_episodes(model, caplog, wanted):
    with caplog.at_level(logging.WARNING):
        found = mm.evaluate(Scripted(luck), model, 10, 0, until_stderr=wanted, max_episodes=70, **QUIET)
    assert (found.status, found.episodes) == ("episodes", 70)
    assert "after 70 episodes the standard error is" in caplog.text
    fewer = mm.evaluate(Scripted(luck), model, 100, 0, until_stderr=wanted, max_episodes=70, **QUIET)
    assert fewer.episodes == 70


def test_the_error_that_counts_is_that_of_the_controlled_estimates(model):
    """Who sees the state and acts best has no luck left in the controlled estimates."""
    seen = mm.fully_observed_model(model)
    best = advantages(seen.mdp, optimal_values(seen.mdp)).argmax(axis=1)
    acts = dict(zip(map(tuple, seen.states), best, strict=True))
    controlled, raw = (
        mm.evaluate(
            lambda z: seen.actions[acts[tuple(z)]],
            seen,
            30,
            0,
            until_stderr=0.2,
            control_variate=control,
            max_episodes=2000,
            **QUIET,
        )
        for control in (True, False)
    )
    assert (controlled.episodes, controlled.status) == (1000, "stderr")
    assert controlled.stderr < 1e-6
    assert raw.episodes > 1000


def test_limits_do_not_need_all_of_the_last_round(model):
    """Made-up returns ±1: the error is known, and so is how many episodes it needs."""
    found = mm.evaluate(Scripted(lambda e: (-1.0) ** e), model, 100, 0, until_stderr=0.02, threads=2, **QUIET)
    assert found.stderr <= 0.02
    assert 2500 <= found.episodes <= 1.2 * 2500


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("parallel", [True, False])
def test_time_is_up(model, threads, parallel):
    slow = Scripted(luck, lambda first: time.sleep(0.02), parallel=parallel)
    found = mm.evaluate(slow, model, 100_000, 0, timeout=0.15, threads=threads, **QUIET)
    assert found.status == "timeout"
    assert 0 < found.episodes < 100_000
    np.testing.assert_array_equal(found.returns, [luck(e) for e in range(found.episodes)])
    assert found.events == {"runs": found.episodes}
    assert found.seconds < 20
    assert "timeout before all episodes" in found.describe()


def test_time_that_is_enough_changes_nothing(model):
    found = mm.evaluate(Scripted(luck), model, 30, 0, timeout=1000, **QUIET)
    assert (found.status, found.episodes) == ("episodes", 30)
    late = mm.evaluate(Scripted(luck, task=30), model, 30, 0, timeout=1e-9, **QUIET)
    assert (late.status, late.episodes) == ("episodes", 30), "all were finished when the clock was looked at"


def interrupted_at(episode, kind=KeyboardInterrupt):
    def before(first):
        if first >= episode:
            raise kind("stop")

    return before


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("parallel", [True, False])
def test_ctrl_c_keeps_what_was_finished(model, threads, parallel, caplog):
    policy = Scripted(luck, interrupted_at(12), parallel=parallel)
    with caplog.at_level(logging.WARNING):
        found = mm.evaluate(policy, model, 1000, 0, threads=threads, **QUIET)
    assert (found.status, found.episodes) == ("interrupted", 12)
    np.testing.assert_array_equal(found.returns, [luck(e) for e in range(12)])
    assert found.events == {"runs": 12}
    assert "interrupted after 12 episodes" in caplog.text
    assert "interrupted" in found.describe()


def test_ctrl_c_reaches_the_main_thread_while_it_waits_for_others(model):
    """As a terminal sends it: to the main thread, at any moment."""

    def before(first):
        time.sleep(0.01)
        if first == 40:
            _thread.interrupt_main()

    # In the background of a shell Ctrl-C is ignored, and so are tests of it.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = mm.evaluate(Scripted(luck, before), model, 4000, 0, threads=3, **QUIET)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found.status == "interrupted"
    assert 0 < found.episodes < 4000
    np.testing.assert_array_equal(found.returns, [luck(e) for e in range(found.episodes)])


@pytest.mark.parametrize("threads", [1, 3])
def test_ctrl_c_before_anything_was_finished_goes_on_up(model, threads):
    with pytest.raises(KeyboardInterrupt):
        mm.evaluate(Scripted(luck, interrupted_at(0)), model, 1000, 0, threads=threads, **QUIET)
    with pytest.raises(KeyboardInterrupt):
        mm.compare({"good": Scripted(luck), "bad": Scripted(luck, interrupted_at(0))}, model, 50, 0, **QUIET)


def test_ctrl_c_in_a_comparison_keeps_the_episodes_that_both_have(model):
    found = mm.compare(
        {"a": Scripted(luck), "b": Scripted(lambda e: luck(e) + e % 2, interrupted_at(100))},
        model,
        10_000,
        0,
        threads=1,
        **QUIET,
    )
    assert found["a"].status == found["b"].status == "interrupted"
    assert found["b"].episodes == 100
    assert found["a"].episodes > 100
    gap = found.difference("b")
    assert gap.episodes == 100
    assert gap.mean == pytest.approx(0.5)


def test_ctrl_c_while_an_agent_thinks(model):
    class Impatient:
        def __init__(self):
            self.made = 0

        def agent(self, model=None, *, seed=None):
            self.made += 1
            if self.made == 4:
                raise KeyboardInterrupt
            return mm.UniformPolicy().agent(model, seed=seed)

    found = mm.evaluate(Impatient(), model, 50, 0, horizon=5, **QUIET)
    assert (found.status, found.episodes) == ("interrupted", 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_policy_raises_reaches_the_user(model, threads):
    with pytest.raises(ZeroDivisionError, match="stop"):
        mm.evaluate(
            Scripted(luck, interrupted_at(12, ZeroDivisionError)), model, 1000, 0, threads=threads, **QUIET
        )

    class Broken:
        def agent(self, model=None, *, seed=None):
            return self

        def reset(self, seen):
            raise LookupError("no idea")

        step = reset

    with pytest.raises(LookupError, match="no idea"):
        mm.evaluate(Broken(), model, 3, 0, threads=threads, **QUIET)
    assert threading.active_count() < 20


def test_tasks_begin_at_multiples_of_their_size(model):
    """So that how a policy's episodes are put into tasks does not depend on what was asked before."""
    policy = Scripted(luck, task=16)
    found = mm.evaluate(policy, model, 10, 0, until_stderr=0.02, max_episodes=2005, threads=1, **QUIET)
    assert found.episodes == 2005
    assert policy.asked[62:64] == [(992, 8), (1000, 8)]
    assert all(first % 16 == 0 for first, _ in policy.asked if first != 1000)
    assert sum(count for _, count in policy.asked) == found.episodes
    np.testing.assert_array_equal(found.returns, [luck(e) for e in range(found.episodes)])


def test_comparisons_start_with_a_few_episodes_of_everybody(model):
    """Wherever it stops, all policies have some."""
    order = []
    policies = {
        name: Scripted(luck, lambda first, name=name: order.append(name), task=64) for name in ("a", "b", "c")
    }
    mm.compare(policies, model, 512, 0, threads=1, **QUIET)
    assert order[:3] == ["a", "b", "c"]
    assert sorted(order) == sorted(order[:3] * (len(order) // 3))


def test_the_stopping_rule_is_what_was_asked():
    rule = StoppingRule(10)
    assert rule.most == 10
    assert rule.thread_count >= 1
    assert StoppingRule(10, threads=3).thread_count == 3
    assert StoppingRule(10, until_stderr=0.1).most == 10_000_000
    assert StoppingRule(10, until_stderr=0.1, max_episodes=50).most == 50
    assert [StoppingRule(n, until_stderr=0.1).first for n in (10, 1000, 1001)] == [1000, 1000, 1001]
    assert [StoppingRule(n, until_stderr=0.1, max_episodes=50).first for n in (10, 60)] == [50, 50]
    assert StoppingRule(10).first == 10


@pytest.fixture(scope="module")
def endless():
    """A model whose episodes have hundreds of millions of decisions, and policies that are simulated in all ways."""
    mdp = mm.FactoredMDP(
        features={"x": range(2)},
        actions=["stay", "move"],
        transition=lambda state, action: {state: 0.9, (1 - state.x,): 0.1},
        reward=lambda state, action: state.x - 0.5 * (action == "move"),
        initial={(0,): 1.0},
        discount=0.9999999,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda state: 0.5}))

    class Agents:
        def agent(self, model=None, *, seed=None):
            return mm.UniformPolicy().agent(model, seed=seed)

    solved = mm.Sarsop(timeout=0.1, progress=False).solve(model)
    return model, {
        "uniform": mm.UniformPolicy(),
        "vectors": solved.policy,
        "controller": solved.controller,
        "pomcp": mm.POMCP(tree_queries=5, max_depth=3).solve(model).policy,
        "long searches": mm.POMCP(tree_queries=10**6, max_depth=20).solve(model).policy,
        "agents": Agents(),
    }


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["uniform", "vectors", "controller", "pomcp", "long searches", "agents"])
def test_an_episode_that_never_ends_is_stopped_by_time_and_ctrl_c(endless, kind, threads):
    model, policies = endless
    with pytest.raises(mm.DataError, match="not one episode was finished in time"):
        mm.evaluate(policies[kind], model, 3, 0, timeout=0.05, threads=threads, **QUIET)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            mm.evaluate(policies[kind], model, 3, 0, threads=threads, **QUIET)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)


def test_what_was_finished_before_a_long_episode_is_kept():
    """Half of the episodes end at once, the others never: those before the first long one count."""
    mdp = mm.FactoredMDP(
        features={"x": range(2)},
        actions=["go"],
        transition=lambda state, action: {state: 1.0},
        reward=1.0,
        initial={(0,): 0.2, (1,): 0.8},
        terminal=lambda state: state.x == 1,
        discount=0.9999999,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
    short = mm.evaluate(None, model, 100, 0, horizon=1, **QUIET)
    ended = int(np.argmin(short.terminated))
    found = mm.evaluate(None, model, 100, 0, timeout=0.3, threads=2, **QUIET)
    assert 0 < ended == found.episodes
    assert found.status == "timeout"

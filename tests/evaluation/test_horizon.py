"""Where episodes end: at the horizon, in terminal states; and what is lost after the horizon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.evaluation.simulation import Arena
from policies import random_policy
from random_pomdps import build, random_pomdp
from strategies import missmdps, seeds

QUIET = {"progress": False}
FEW = settings(max_examples=25)


def both(model, seed):
    """Return a policy of each kind that is simulated in bulk."""
    return [random_policy(model, seed), mm.UniformPolicy()]


def models():
    return st.one_of(missmdps(), seeds().map(random_pomdp))


@FEW
@given(models(), seeds(), st.integers(1, 9))
def test_decisions_are_counted_and_bounded(model, seed, horizon):
    terminal = (model.mdp if isinstance(model, mm.MissMDP) else model).terminal
    for policy in both(model, seed):
        found = mm.evaluate(policy, model, 20, seed, horizon=horizon, threads=1, **QUIET)
        assert found.horizon == horizon
        assert found.decisions.max() <= horizon
        assert found.decisions.min() >= 0
        assert (found.decisions[~found.terminated] == horizon).all()
        assert terminal.any() or not found.terminated.any()
        assert (found.returns[found.decisions == 0] == 0.0).all()


@FEW
@given(models(), seeds())
def test_a_longer_horizon_extends_episodes_by_no_more_than_the_bound(model, seed):
    """Episode by episode, since the draws are the same."""
    for policy in both(model, seed):
        short, long = (
            mm.evaluate(policy, model, 10, seed, horizon=horizon, control_variate=True, threads=1, **QUIET)
            for horizon in (4, 400)
        )
        ended = short.decisions < 4
        np.testing.assert_array_equal(short.returns[ended], long.returns[ended])
        np.testing.assert_array_equal(short.controlled[ended], long.controlled[ended])
        plain = mm.evaluate(policy, model, 10, seed, horizon=4, threads=1, **QUIET)
        slack = 1e-9 * max(1.0, plain.truncation)
        assert np.abs(short.returns - long.returns).max() <= plain.truncation + slack
        assert short.truncation == plain.truncation
        assert (plain.truncation > 0.0) == (model.discount > 0.0 and np.abs(rewards(model)).max() > 0.0)


def rewards(model):
    return (model.mdp if isinstance(model, mm.MissMDP) else model).reward


def test_the_bound_is_tight_where_every_decision_pays_the_most():
    model = build(np.ones((1, 1, 1)), np.ones((1, 1)), [[-3.0]], [1.0], discount=0.5)
    short = mm.evaluate(None, model, 2, 0, horizon=3, **QUIET)
    assert short.mean == pytest.approx(-3.0 * (1 + 0.5 + 0.25))
    assert short.truncation == pytest.approx(3.0 * 0.25)
    assert short.mean - short.truncation == pytest.approx(-6.0), "the value for ever"
    assert short.decisions.tolist() == [3, 3]
    controlled = mm.evaluate(None, model, 2, 0, horizon=3, control_variate=True, **QUIET)
    assert controlled.mean == pytest.approx(short.mean, abs=1e-8), "the same decisions are valued"
    assert controlled.truncation == short.truncation
    np.testing.assert_array_equal(controlled.returns, short.returns)


def test_the_first_reward_is_not_discounted():
    model = build(np.ones((1, 1, 1)), np.ones((1, 1)), [[2.0]], [1.0], discount=0.25)
    for policy in both(model, 0):
        assert mm.evaluate(policy, model, 3, 0, horizon=1, **QUIET).returns.tolist() == [2.0] * 3
        assert mm.evaluate(policy, model, 3, 0, horizon=2, **QUIET).returns.tolist() == [2.5] * 3


def test_by_default_little_is_left_after_the_horizon():
    for name in ("icu-smar", "example-1"):
        model = mm.load_benchmark(name)
        found = mm.evaluate(None, model, 3, 0, **QUIET)
        assert found.horizon == model.mdp.horizon()
        assert 1e-4 < found.truncation <= 1e-3 * (1 + 1e-9)
    pomdp = build(np.ones((1, 1, 1)), np.ones((1, 1)), [[7.0]], [1.0], discount=0.9)
    assert Arena(pomdp, 0, None, control_variate=False).horizon == math.ceil(math.log(0.1 * 1e-3 / 7.0, 0.9))


def test_what_is_cut_off_is_told_where_it_counts():
    """By default less than 10⁻³ is left, which is most of it where rewards are tiny."""

    def described(reward, stay=1.0, **options):
        rewards = [[reward], [0.0]]
        T = np.array([[[stay, 1.0 - stay], [0.0, 1.0]]])
        model = build(T, np.ones((2, 1)), rewards, [1.0, 0.0], discount=0.95)
        found = mm.evaluate(None, model, 50, 0, **options, **QUIET)
        return found, [line for line in found.describe().splitlines() if line.startswith("cut off")]

    tiny, told = described(1e-5)
    assert (tiny.horizon, tiny.stderr) == (1, 0.0)
    assert told == ["cut off       decisions after the horizon are worth 0.0002 at most"]
    assert described(1e-5, horizon=400)[1] == [], "a millionth of the mean and less is left"
    random, told = described(1.0, stay=0.5)
    assert random.stderr > 10 * random.truncation > 0.0
    assert told == []
    short, told = described(1.0, stay=0.5, horizon=50)
    assert short.truncation > 0.1 * short.stderr > 0.0
    assert len(told) == 1


def test_without_a_future_one_decision_is_all():
    T = np.array([[[0.3, 0.7], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]])
    model = build(T, np.eye(2), [[1.0, 2.0], [3.0, 5.0]], [0.5, 0.5], discount=0.0, observe_initial=True)
    for policy in both(model, 1):
        for control_variate in (False, True):
            found = mm.evaluate(policy, model, 200, 0, control_variate=control_variate, **QUIET)
            assert found.horizon == 1
            assert (found.decisions == 1).all()
            assert found.truncation == 0.0
            assert set(found.returns) <= {1.0, 2.0, 3.0, 5.0}
    longer = mm.evaluate(None, model, 200, 0, horizon=3, **QUIET)
    np.testing.assert_array_equal(longer.returns, mm.evaluate(None, model, 200, 0, **QUIET).returns)


def test_without_rewards_everything_is_worth_nothing():
    model = build(np.full((2, 2, 2), 0.5), np.eye(2), np.zeros((2, 2)), [0.5, 0.5], discount=0.9)
    for control_variate in (False, True):
        found = mm.evaluate(None, model, 10, 0, control_variate=control_variate, **QUIET)
        assert found.horizon >= 1
        assert (found.mean, found.stderr, found.truncation) == (0.0, 0.0, 0.0)
        assert found.interval() == (0.0, 0.0)
        assert str(found) == "0.0000 ± 0.0000 (10 episodes; 95 % interval [0.0000, 0.0000])"


@pytest.mark.parametrize("observe_initial", [False, True])
def test_who_starts_at_the_end_decides_nothing(observe_initial):
    model = build(
        np.stack([np.eye(2)] * 2),
        np.eye(2),
        [[0.0, 0.0], [5.0, 5.0]],
        [1.0, 0.0],
        terminal=[True, False],
        observe_initial=observe_initial,
    )
    asked = []

    class Asked:
        def agent(self, model=None, *, seed=None):
            return self

        def reset(self, *seen):
            asked.append(seen)
            return "a0"

        step = reset

    for policy in (*both(model, 0), Asked()):
        found = mm.evaluate(policy, model, 5, 0, control_variate=True, **QUIET)
        assert found.terminated.all()
        assert (found.decisions == 0).all()
        assert (found.returns == 0.0).all()
        assert found.mean == 0.0
        assert "ended early   100.0 % of episodes, after 0.0 decisions" in found.describe()
    assert not asked


def test_reaching_the_end_with_the_last_decision_counts_as_the_end():
    """A chain of three states: the third ends it, after exactly two decisions."""
    T = np.array([[[0, 1, 0], [0, 0, 1], [0, 0, 1]]], dtype=float)
    model = build(T, np.ones((3, 1)), [[1.0], [10.0], [0.0]], [1, 0, 0], terminal=[0, 0, 1], discount=0.5)
    for policy in both(model, 0):
        for horizon, returns, ended in ((1, 1.0, False), (2, 6.0, True), (3, 6.0, True)):
            found = mm.evaluate(policy, model, 3, 0, horizon=horizon, **QUIET)
            assert found.returns.tolist() == [returns] * 3
            assert found.terminated.tolist() == [ended] * 3
            assert found.decisions.tolist() == [min(horizon, 2)] * 3

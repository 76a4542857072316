"""What a log earned: returns by hand, cuts, empty rewards, and when the interval is in doubt."""

import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.model.space import NO_ACTION
from oracles.off_policy import all_episodes, as_log, returns

MDP = mm.FactoredMDP(
    {"a": (0, 1)},
    ["x", "y"],
    [[[0.5, 0.5], [0.0, 1.0]]] * 2,
    np.array([[1.0, 2.0], [0.0, 0.0]]),
    [1.0, 0.0],
    terminal=[(1,)],
    discount=0.9,
)


def log_of(actions, terminated, ends=None):
    """Return a log of episodes, given as lists of actions."""
    rows = np.concatenate([[*own, NO_ACTION] for own in actions])
    offsets = np.cumsum([0, *(len(own) + 1 for own in actions)])
    states = np.zeros(len(rows), dtype=np.int32)
    states[offsets[1:] - 1] = terminated
    return mm.Dataset(MDP, states[:, None], rows, offsets, np.array(terminated, bool), states)


LOG = log_of([[0, 1, 1], [1], [0, 0]], [True, False, True])
RETURNS = [1 + 0.5 * 2 + 0.25 * 2, 2.0, 1 + 0.5]


def test_returns_by_hand():
    value = mm.logged_value(LOG, discount=0.5)
    assert value.returns.tolist() == RETURNS
    assert value.mean == pytest.approx(np.mean(RETURNS))
    assert value.stderr == pytest.approx(np.std(RETURNS, ddof=1) / math.sqrt(3))
    assert value.decisions.tolist() == [3, 1, 2]
    assert value.cut.tolist() == [False, True, False]
    assert value.reward_range == (1.0, 2.0)
    # One episode of three was cut after one decision; what follows is worth 2 / (1 − 1/2) at most, and may be nothing.
    assert value.after_the_cut == (0.0, pytest.approx(0.5 * 2.0 / 0.5 / 3))
    assert "1 of 3 episodes (33\xa0%) were cut" in value.describe()
    assert "an assumption" in value.describe()
    assert "there are only 3 episodes" in value.doubts


def test_a_horizon_leaves_out_what_comes_after():
    value = mm.logged_value(LOG, discount=0.5, horizon=1)
    assert value.returns.tolist() == [1.0, 2.0, 1.0]
    assert not value.cut.any()  # all that counts is there
    assert mm.logged_value(LOG, discount=0.5, horizon=2).cut.tolist() == [False, True, False]


def test_without_a_discount_nothing_bounds_what_follows_a_cut():
    value = mm.logged_value(LOG, discount=1.0)
    assert value.returns.tolist() == [5.0, 2.0, 2.0]
    assert value.after_the_cut == (0.0, math.inf)
    assert "nothing bounds" in value.describe()
    ended = log_of([[0, 1], [1]], [True, True])
    assert mm.logged_value(ended, discount=1.0).after_the_cut == (0.0, 0.0)


def test_the_mean_is_the_policys_value():
    model = mm.MissMDP(MDP, mm.MissingnessFunction.independent(MDP, {"a": 0.3}))
    episodes = list(all_episodes(model, lambda seen: {"x": 0.25, "y": 0.75}, 3))
    p = np.array([e.probability for e in episodes])
    value = mm.logged_value(as_log(model, episodes), discount=0.9)
    assert value.returns == pytest.approx([returns(e, 0.9) for e in episodes])
    exact = mm.evaluate(mm.BlindPolicy({"x": 0.25, "y": 0.75}), model, 20_000, 0, horizon=3)
    # Five standard errors: a pass by chance stays one, and a failure has a probability of 6e-7.
    assert abs(p @ value.returns - exact.mean) < 5 * exact.stderr


def test_a_discount_is_never_assumed():
    with pytest.raises(TypeError, match="discount"):
        mm.logged_value(LOG)
    with pytest.raises(TypeError, match="discount"):
        mm.off_policy_value(None, LOG)
    for wrong in (1.5, -0.1, None, "x"):
        with pytest.raises(mm.ParameterError, match="discount must be a number from 0 to 1"):
            mm.logged_value(LOG, discount=wrong)


def test_empty_rewards_are_named_or_zero():
    rewards = np.array([1.0, np.nan, 3.0, np.nan, 5.0, np.nan, np.nan, 1.0, np.nan])
    with pytest.raises(
        mm.DataError, match="empty: episode 0, step 1 and episode 2, step 0; empty_rewards='zero'"
    ):
        mm.logged_value(LOG, discount=0.5, rewards=rewards)
    value = mm.logged_value(LOG, discount=0.5, rewards=rewards, empty_rewards="zero")
    assert value.returns.tolist() == [1.75, 5.0, 0.5]
    with pytest.raises(mm.ParameterError, match="empty_rewards must be"):
        mm.logged_value(LOG, discount=0.5, empty_rewards="skip")
    with pytest.raises(mm.ParameterError, match="rewards must be of shape"):
        mm.logged_value(LOG, discount=0.5, rewards=[1.0])
    with pytest.raises(mm.DataError, match="infinite: episode 0, step 0"):
        mm.logged_value(LOG, discount=0.5, rewards=np.where(np.arange(9) == 0, np.inf, 0.0))


def test_a_log_without_rewards_is_refused():
    blind = mm.Dataset(MDP, LOG.observations, LOG.actions, LOG.offsets, LOG.terminated)
    with pytest.raises(mm.DataError, match="reward"):
        mm.logged_value(blind, discount=0.5)


def test_doubts():
    many = log_of([[0]] * 30, [True] * 30)
    assert mm.logged_value(many, discount=0.5).doubts == (
        "all episodes are worth the same, so nothing is known of their spread",
    )
    rare = np.zeros(60)
    rare[0] = 100.0
    (doubt,) = mm.logged_value(many, discount=0.5, rewards=rare).doubts
    assert doubt == "a few episodes decide the mean (skewness 5.2)"
    even = np.tile([1.0, 0.0, 2.0, 0.0], 15)
    assert mm.logged_value(many, discount=0.5, rewards=even).doubts == ()


def test_it_prints_in_one_line_in_several_and_in_a_notebook():
    value = mm.logged_value(LOG, discount=0.5)
    assert str(value).startswith("2.00 ± 0.29 (3 episodes; 95 % interval [")
    assert repr(value) == f"LoggedValue({value})"
    assert "What the log earned" in value._repr_html_()
    one = mm.logged_value(log_of([[0]], [True]), discount=0.5)
    assert one.interval() == (-math.inf, math.inf)
    assert "nan" not in one.describe()
    assert mm.logged_value(log_of([[]], [False]), discount=0.5).mean == 0.0


def test_an_episode_that_goes_on_without_an_action_is_refused():
    actions = LOG.actions.copy()
    actions[1] = NO_ACTION
    log = mm.Dataset(MDP, LOG.observations, actions, LOG.offsets, LOG.terminated, LOG.states)
    with pytest.raises(mm.DataError, match="goes on: episode 0, step 1"):
        mm.logged_value(log, discount=0.5)

"""A log in terms of an MDP: features, values and actions are matched by what they are called."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from strategies import missmdps, seeds

LOG = {
    "episode": [1, 1, 1, 2, 2],
    "step": [0, 1, 2, 0, 1],
    "fever": ["low", None, "high", "low", None],
    "level": [1, 2, 2, None, 1],
    "action": ["wait", "treat", None, "treat", None],
    "reward": [1, None, None, 2, None],
    "terminated": [False, False, True, False, False],
}


def stay(features, actions=("wait", "treat")):
    """Return an MDP with these features in which nothing ever changes."""
    size = int(np.prod([len(list(values)) for values in features.values()]))
    matrices = [np.eye(size) for _ in actions]
    return mm.FactoredMDP(features, actions, matrices, 0.0, np.full(size, 1 / size))


@pytest.fixture
def log():
    return mm.Dataset.from_table(LOG, reward="reward")


def test_codes_follow_the_order_of_the_mdp(log):
    mdp = stay({"level": [2, 1, 0], "fever": ["low", "high"]})
    same = log.with_mdp(mdp)
    assert same.mdp is mdp
    assert same.known_mdp is mdp
    assert same.features == mdp.features
    assert same.action_names == ("wait", "treat")
    assert same.observations.tolist() == [[1, 0], [0, -1], [0, 1], [-1, 0], [1, -1]]
    assert same.actions.tolist() == [0, 1, -1, 1, -1]
    for field in ("offsets", "terminated", "logged_rewards"):
        assert np.array_equal(getattr(same, field), getattr(log, field), equal_nan=True)
    assert (same.episode_ids, same.notes) == (log.episode_ids, log.notes)
    assert [step[1] for step in same.episode(0)] == ["wait", "treat", None]


def test_it_is_what_reading_with_the_mdp_gives(log):
    mdp = stay({"level": ["2", "1"], "fever": ["low", "high"]})
    there, read = log.with_mdp(mdp), mm.Dataset.from_table(LOG, mdp)
    assert np.array_equal(there.observations, read.observations)
    assert np.array_equal(there.actions, read.actions)
    assert np.array_equal(there.terminated, read.terminated)


@settings(max_examples=40)
@given(model=missmdps(), seed=seeds(), data=st.data())
def test_reading_without_a_model_and_then_matching_is_reading_with_it(model, seed, data):
    """Whatever the order of features, values and actions in the MDP."""
    steps = data.draw(st.integers(2, 60))
    simulated = mm.collect(model, steps, seed=seed, horizon=5)
    table = simulated.to_arrow().to_pydict()
    seen = (simulated.observations >= 0).any(axis=0)
    if not ((simulated.actions >= 0).any() and seen.any()):
        with pytest.raises(mm.DataError):
            mm.Dataset.from_table(table)
        return
    log = mm.Dataset.from_table(table)
    if not seen.all():
        with pytest.raises(mm.DataError, match="the log has no feature"):
            log.with_mdp(model.mdp)
        return
    there = log.with_mdp(model.mdp)
    assert np.array_equal(there.observations, simulated.observations)
    assert np.array_equal(there.actions, simulated.actions)
    assert there.observations.dtype == simulated.observations.dtype
    assert there.actions.dtype == simulated.actions.dtype


def test_features_that_the_mdp_lacks_are_left_out_with_a_note(log):
    same = log.with_mdp(stay({"fever": ["low", "high"]}))
    assert same.observations.tolist() == [[0], [-1], [1], [0], [-1]]
    assert same.notes[-1] == "left out, since the MDP has no such feature: 'level'"


@pytest.mark.parametrize(
    ("features", "actions", "problem"),
    [
        ({"fevr": ["low", "high"]}, ["wait", "treat"], "no feature 'fevr'.*did you mean 'fever'"),
        ({"fever": ["low"]}, ["wait", "treat"], r"feature 'fever': the log has 'high' \(in 1 of 5 rows\)"),
        ({"level": [1, 3]}, ["wait", "treat"], r"feature 'level': the log has 2 \(in 2 of 5 rows\)"),
        ({"level": [1, 2]}, ["wait"], r"the actions: the log has 'treat' \(in 2 of 5 rows\)"),
    ],
)  # fmt: skip
def test_what_the_mdp_lacks_is_named(log, features, actions, problem):
    with pytest.raises(mm.DataError, match=problem):
        log.with_mdp(stay(features, actions))


def test_values_that_never_occur_may_be_absent():
    log = mm.Dataset.from_table(LOG, features={"fever": ["low", "high", "unheard"]})
    assert log.with_mdp(stay({"fever": ["high", "low"]})).observations[:, 0].tolist() == [1, -1, 0, 1, -1]


def test_bins_match_values_in_order_unless_they_have_names():
    bins = {"level": mm.Binning.from_edges([1.5])}
    mdp = stay({"level": ["zzz", "aaa"]})
    log = mm.Dataset.from_table(LOG, bins=bins, features=["level"]).with_mdp(mdp)
    assert log.observations[:, 0].tolist() == [0, 1, 1, -1, 0]
    assert "level: below 1.5 → zzz, from 1.5 → aaa" in log.notes
    assert log.bins == bins
    named = mm.Dataset.from_table(LOG, bins=bins, features={"level": ["aaa", "zzz"]}).with_mdp(mdp)
    assert named.observations[:, 0].tolist() == [1, 0, 0, -1, 1]


def test_a_log_of_one_mdp_goes_to_another_with_its_true_states():
    model = mm.load_benchmark("icu-smar")
    log = mm.collect(model, 200, seed=0, keep_states=True)
    assert log.with_mdp(model.mdp).states is log.states
    names = list(model.mdp.features)[::-1]
    features = {name: model.mdp.features[name][::-1] for name in names}
    turned = log.with_mdp(stay(features, model.mdp.actions[::-1]))
    for before, after in zip(log.states[:50], turned.states[:50], strict=True):
        one, other = model.mdp.space.state(int(before)), turned.known_mdp.space.state(int(after))
        assert one._asdict() == other._asdict()
    assert turned.episode(0)[0][0]._asdict() == log.episode(0)[0][0]._asdict()
    assert turned.episode(0)[0][1] == log.episode(0)[0][1]


def test_only_an_mdp_will_do(log):
    with pytest.raises(mm.ParameterError, match="a FactoredMDP"):
        log.with_mdp(mm.load_benchmark("icu-smar"))


def test_a_log_may_be_given_features_of_its_own_only_if_the_mdp_has_the_same(log):
    mdp = stay({"fever": ["low", "high"]})
    with pytest.raises(mm.ParameterError, match="feature_space"):
        replace(log, mdp=mdp)
    own = mm.Dataset.from_table(LOG, mdp)
    assert own.feature_space is mdp.space.features
    with pytest.raises(mm.ParameterError, match="action_names"):
        replace(own, action_names=("treat", "wait"))

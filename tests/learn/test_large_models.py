"""Learners on models that are treated as large: the same numbers as on the same models multiplied out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import missmdp as mm
from large_models import pair, random_model, treat_all_as_large
from missmdp.learn import bounds, groups

LEARNERS = [
    mm.AMCAR(),
    mm.AsMAR(unseen="pooled"),
    mm.AIMI(),
    mm.AIMI(assume="simple MAR", blocks=[("f0", "f1")]),
    mm.AMCAR(patterns="seen"),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("seed", [0, 4])
def test_the_same_is_learned(learner, seed, monkeypatch):
    small, large = pair(seed, monkeypatch)
    data = mm.collect(small, 400, seed=seed)
    same = mm.Dataset(large.mdp, data.observations, data.actions, data.offsets, data.terminated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        found = type(learner)(**learner.get_params()).fit(same)
        monkeypatch.setattr("missmdp.model.missingness._SMALL", 10**6)
        expected = type(learner)(**learner.get_params()).fit(data)
    assert expected.missingness_.is_small
    assert not found.missingness_.is_small
    for name in small.features:
        np.testing.assert_allclose(
            found.missingness_.missing_rate(name), expected.missingness_.missing_rate(name), atol=1e-14
        )
    mine, theirs = found.bound(behaviour="blind"), expected.bound(behaviour="blind")
    np.testing.assert_allclose(mine.per_state, theirs.per_state, atol=1e-14)
    np.testing.assert_allclose(mine.per_state_tv, theirs.per_state_tv, atol=1e-14)
    np.testing.assert_allclose(
        mm.total_variation(found.missingness_, large.missingness).per_state,
        mm.total_variation(expected.missingness_, small.missingness).per_state,
        atol=1e-14,
    )
    assert len(found.unseen_) == len(expected.unseen_)


def test_groups_without_data_are_made_when_asked_for(monkeypatch):
    small, _ = pair(0, monkeypatch)
    data = mm.collect(small, 15, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        all_at_once = mm.AIMI().fit(data).unseen_
        monkeypatch.setattr(groups, "_FEW_GROUPS", 0)
        on_demand = mm.AIMI().fit(data).unseen_
    assert isinstance(all_at_once, tuple)
    assert not isinstance(on_demand, tuple)
    assert len(all_at_once) == len(on_demand) > 1
    for one, other in zip(all_at_once, on_demand, strict=True):
        assert (one.features, one.given, one.gets) == (other.features, other.given, other.gets)
        np.testing.assert_array_equal(one.states, other.states)
    assert on_demand[-1].given == all_at_once[-1].given
    assert len(on_demand[:2]) == 2
    with pytest.raises(IndexError):
        on_demand[len(on_demand)]


def test_bounds_that_would_not_fit_say_so(monkeypatch):
    small, _ = pair(0, monkeypatch)
    learner = mm.AMCAR().fit(mm.collect(small, 200, seed=0))
    monkeypatch.setattr(bounds, "_MOST_CELLS", 0)
    with pytest.raises(mm.DataError, match="kinds of states.*too many; count by fewer features"):
        learner.bound()
    monkeypatch.setattr(bounds, "_MOST_GROUPS", 0)
    with pytest.raises(mm.DataError, match="groups, at most 0 are possible; count by fewer features"):
        learner.bound()


def test_comparisons_that_would_not_fit_say_so(monkeypatch):
    small, large = pair(0, monkeypatch)
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 0.0)
    with pytest.raises(mm.ModelError, match="compare missing_rate"):
        mm.total_variation(large.missingness, small.missingness)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("learner", [mm.AMCAR, mm.AsMAR, mm.AIMI])
@pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")
def test_what_is_true_of_groups_is_found_by_kinds_of_states(seed, learner, monkeypatch):
    made = random_model(seed)
    small = made()
    fitted = learner().fit(mm.collect(small, 300, seed=seed))
    weights = np.random.default_rng(seed).random(small.n_states)
    bound = fitted.bound(0.9)
    expected = fitted.group_truths(bound, small, weights)
    treat_all_as_large(monkeypatch)
    for found, right in zip(fitted.group_truths(bound, made(), weights), expected, strict=True):
        for mine, theirs in zip(found, right, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)

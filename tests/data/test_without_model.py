"""Logs without a model: what needs no model works, and everything else says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp.model.space import FeatureSpace

MODEL = mm.load_benchmark("icu-smar")


@pytest.fixture(scope="module")
def log():
    simulated = mm.collect(MODEL, 2000, seed=0, keep_states=True)
    return mm.Dataset.from_table(simulated.to_pandas(), reward="reward")


def parts(**changes):
    return {
        "mdp": None,
        "observations": np.array([[0], [-1]]),
        "actions": np.array([0, -1]),
        "offsets": np.array([0, 2]),
        "terminated": np.array([False]),
        "feature_space": FeatureSpace({"x": [1, 2]}),
        "action_names": ("go",),
        "logged_rewards": np.array([1.5, np.nan]),
    } | changes


def test_a_log_can_be_made_from_arrays():
    log = mm.Dataset(**parts())
    assert log.features == {"x": (1, 2)}
    assert log.rewards.tolist() == [1.5, 0.0]
    assert not log.logged_rewards.flags.writeable
    assert log.missing_rates() == {"x": 0.5}
    assert list(log.episodes()) == [[((1,), "go"), ((None,), None)]]
    assert "x" in log._repr_html_()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"feature_space": None}, "a log needs an MDP, or else feature_space and action_names"),
        ({"action_names": None}, "a log needs an MDP, or else feature_space and action_names"),
        ({"feature_space": {"x": [1, 2]}}, "expected a FeatureSpace"),
        ({"action_names": "go"}, "a list of names"),
        ({"action_names": ["go", "go"]}, "listed twice"),
        ({"states": np.array([0, 0])}, "they need an MDP"),
        ({"observations": np.array([[2], [0]])}, "codes of feature 'x' must be 0 to 1"),
        ({"actions": np.array([1, -1])}, "codes from 0 to 0"),
        ({"logged_rewards": np.zeros(3)}, "shape"),
        ({"logged_rewards": ["a", "b"]}, "numbers"),
        ({"logged_rewards": np.array([np.inf, 0])}, "finite"),
    ],
)
def test_arrays_that_make_no_log_are_refused(changes, problem):
    with pytest.raises(mm.MissMDPError, match=problem):
        mm.Dataset(**parts(**changes))


def test_rewards_of_a_log_with_a_model_are_the_logged_ones():
    simulated = mm.collect(MODEL, 100, seed=0, keep_states=True)
    table = simulated.to_pandas()
    log = mm.Dataset.from_table(table, MODEL.mdp, reward="reward")
    assert np.array_equal(log.rewards, simulated.rewards)
    with pytest.raises(mm.DataError, match="reward=…"):
        _ = mm.Dataset.from_table(table, MODEL.mdp).rewards


def test_describing_needs_no_model(log):
    with_model = mm.collect(MODEL, 2000, seed=0)
    assert mm.describe(log).missing.tolist() == mm.describe(with_model).missing.tolist()


NEEDS_A_MODEL = {
    "known_mdp": lambda log: log.known_mdp,
    "counts": mm.ObservationCounts.from_dataset,
    "AsMAR": lambda log: mm.AsMAR().fit(log),
    "AMCAR": lambda log: mm.AMCAR(always_observed=["test"]).fit(log),
    "AIMI": lambda log: mm.AIMI().fit(log),
    "ICIN": lambda log: mm.ICIN().fit(log),
    "diagnose with an MDP": lambda log: mm.diagnose(log, MODEL.mdp, draws=0),
}
OTHER_TERMS = {
    "validate": lambda log: mm.validate(log, MODEL.mdp),
    "DynamicsEM": lambda log: mm.DynamicsEM(MODEL.mdp).fit(log),
    "log_likelihood": lambda log: mm.log_likelihood(log, MODEL),
    "held_out_likelihood": lambda log: mm.held_out_likelihood({"a": mm.AsMAR}, log, MODEL.mdp),
    "run": lambda log: mm.run(MODEL.mdp, log),
}


@pytest.mark.parametrize("call", NEEDS_A_MODEL.values(), ids=NEEDS_A_MODEL)
def test_what_needs_a_model_says_how_to_get_one(call, log):
    with pytest.raises(mm.DataError, match=r"this log has no model: .*with_mdp\(mdp\), or learn one"):
        call(log)


@pytest.mark.parametrize("call", OTHER_TERMS.values(), ids=OTHER_TERMS)
def test_a_log_in_other_terms_than_a_model_says_how_to_put_it_in_these(call, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert log.action_names != MODEL.mdp.actions
    with pytest.raises(mm.DataError, match=r"with_mdp\(mdp\)"):
        call(log)


def test_with_its_mdp_the_log_teaches_what_the_simulated_one_does(log):
    simulated = mm.collect(MODEL, 2000, seed=0)
    there = log.with_mdp(MODEL.mdp)
    one, other = mm.AsMAR().fit(there), mm.AsMAR().fit(simulated)
    assert mm.total_variation(one.missingness_, other.missingness_).worst == 0
    assert mm.validate(there, MODEL.mdp).ok == mm.validate(simulated, MODEL.mdp).ok

"""Which type is named, what drives missingness, and which learner suits."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import missmdp as mm
from learn.diagnosis.wards import models, patterns, ward

MDP = ward()
TRUTHS = models(MDP)


def log_of(name, steps=3000, seed=1):
    return mm.collect(TRUTHS[name], steps, seed=seed, horizon=40)


@pytest.mark.parametrize(
    ("name", "learner"),
    {
        "dependent": "amcar",
        "block": "amcar",
        "dependent by ward": "asmar",
        "fever first": "em",
        "pulse first": "em",
        "other feature": "em",
        "own value": "em",
        "own block": "em",
    }.items(),
)
def test_the_type_and_the_m_graph_of_the_truth_are_found(name, learner):
    truth = TRUTHS[name]
    found = mm.diagnose(log_of(name), MDP, draws=0)
    assert found.type == truth.types().name
    assert found.self_censoring == truth.types().self_censoring
    if found.type != "MAR":  # whose m-graph cannot say that values matter where they are seen
        assert found.graph == truth.mgraph()
    assert found.recommended == learner
    assert not found.snapshots_only
    best = max(found.classes, key=lambda row: row.score)
    assert best.behind == 0.0
    assert [row.behind for row in found.classes] == [best.score - row.score for row in found.classes]


@pytest.mark.parametrize("name", ["independent", "by ward", "own value"])
def test_the_recommended_learner_learns(name):
    found = mm.diagnose(log_of(name), MDP, draws=0)
    learner = found.learner()
    assert not hasattr(learner, "missingness_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        learner.fit(log_of(name))
    assert mm.total_variation(learner.missingness_, TRUTHS[name].missingness).average < 0.05


def test_single_observations_cannot_see_self_censoring_and_say_so():
    log = log_of("own value")
    found = mm.diagnose(log)
    assert (found.type, found.snapshots_only, found.own_tests) == ("MCAR", True, ())
    assert "Single observations cannot tell" in found.describe()
    same = mm.diagnose(mm.ObservationCounts.from_dataset(log), MDP)
    assert same.as_dict() == found.as_dict()


@pytest.mark.parametrize(
    ("name", "kind", "learner"),
    [
        ("dependent by ward", "simple MAR", "asmar"),
        ("other feature", "not simple MAR", "aimi"),
        ("pulse first", "not simple MAR", "aimi"),
    ],
)
def test_single_observations_tell_what_depends_on_values_that_are_seen(name, kind, learner):
    found = mm.diagnose(log_of(name), draws=0)
    assert (found.type, found.recommended) == (kind, learner)
    assert [row.name for row in found.classes] == ["MCAR", "simple MAR", "shown values"]
    assert [test.rejected for test in found.tests] == [name == "dependent by ward", kind == "not simple MAR"]


def test_dependent_indicators_call_for_icin_on_single_observations():
    """Fever and pulse are often forgotten together; else the fever is not measured at some pulses."""
    truth = mm.MissMDP(
        MDP,
        mm.MissingnessFunction.from_patterns(MDP, lambda s: patterns(0.3, (0.05, 0.2, 0.4)[s.pulse], 0.02)),
    )
    found = mm.diagnose(mm.collect(truth, 5000, seed=0, horizon=40), draws=0)
    assert (found.type, found.recommended) == ("not simple MAR", "icin")
    assert isinstance(found.learner(), mm.ICIN)


def test_rates_of_a_driver_are_those_in_the_log():
    """With one always-observed reason, standardised rates are plain frequencies, but for one pseudo-observation."""
    log = log_of("by ward")
    found = mm.diagnose(log, MDP, draws=40)
    (driver,) = found.drivers
    assert (driver.features, driver.driver, driver.lowest, driver.highest) == (("fever",), "ward", "a", "b")
    missing = log.observations[:, 1] == mm.MISSING
    for value, rate in ((0, driver.lowest_rate), (1, driver.highest_rate)):
        assert rate == pytest.approx(missing[log.observations[:, 0] == value].mean(), abs=1e-3)
    low, high = driver.interval
    assert low < driver.difference < high
    # Rows are independent here, so that the bootstrap has the width of a binomial difference.
    sizes = [(log.observations[:, 0] == value).sum() for value in (0, 1)]
    expected = 2 * 1.96 * np.sqrt(0.2 * 0.8 / sizes[0] + 0.6 * 0.4 / sizes[1])
    assert high - low == pytest.approx(expected, rel=0.4)


def test_rates_are_standardised_over_everything_else():
    """Two reasons that go together: the difference is that of one with the other held as it was visited."""
    mdp = mm.FactoredMDP(
        features={"site": ["n", "s"], "age": ["young", "old"], "blood": [0, 1]},
        actions=["wait"],
        transition=lambda state, action: (
            {("n", "young", b): 0.2 for b in (0, 1)}
            | {("s", "old", b): 0.2 for b in (0, 1)}
            | {("n", "old", 0): 0.1, ("s", "young", 1): 0.1}
        ),
        reward=0.0,
        initial={("n", "young", 0): 1.0},
        discount=0.9,
    )
    rates = {("n", "young"): 0.1, ("n", "old"): 0.4, ("s", "young"): 0.5, ("s", "old"): 0.8}
    missing = mm.MissingnessFunction.independent(mdp, {"blood": lambda s: rates[s.site, s.age]})
    log = mm.collect(mm.MissMDP(mdp, missing), 20_000, seed=3, horizon=100)
    by = {driver.driver: driver for driver in mm.diagnose(log, mdp, draws=0).drivers}
    # Both effects are the same in every stratum; crude differences would be 0.4 + 0.6 · 0.3 and 0.3 + 0.6 · 0.4.
    assert by["site"].difference == pytest.approx(0.4, abs=0.02)
    assert by["age"].difference == pytest.approx(0.3, abs=0.02)


def test_self_censoring_has_a_driver_of_its_own():
    found = mm.diagnose(log_of("own value"), MDP, draws=0)
    (driver,) = found.drivers
    assert driver.own
    assert driver.interval is None
    assert (driver.lowest, driver.highest) == (0, 1)
    assert driver.lowest_rate == pytest.approx(0.2, abs=0.06)
    assert driver.highest_rate == pytest.approx(0.8, abs=0.06)
    own = {test.features: test.rejected for test in found.own_tests}
    assert own == {("fever",): True, ("pulse",): False}


def test_it_is_plain_values_and_sentences():
    found = mm.diagnose(log_of("own value"), MDP, draws=10)
    plain = found.as_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["type"] == "MNAR"
    assert plain["graph"]["edges"] == [["fever", "fever"]]
    text = str(found)
    assert "Self-censoring: fever" in text
    assert "where its own value is 1" in text
    assert "pulse: missing in" in text
    assert "DynamicsEM" in text


def test_seed_and_threads():
    log = log_of("by ward")
    found = mm.diagnose(log, MDP, draws=10, seed=4, threads=1)
    assert mm.diagnose(log, MDP, draws=10, seed=4, threads=2).as_dict() == found.as_dict()
    assert mm.diagnose(log, MDP, draws=10, seed=5).drivers[0].interval != found.drivers[0].interval


def test_nothing_is_missing():
    full = mm.MissMDP(MDP, mm.MissingnessFunction.independent(MDP, {}))
    found = mm.diagnose(mm.collect(full, 100, seed=0), MDP)
    assert (found.type, found.blocks, found.recommended) == ("MCAR", (), "amcar")
    first, second = str(found).splitlines()
    assert first == "Nothing is missing in 100 observations."
    assert second.startswith("Dynamics: The log cannot tell whether the MDP is right")
    assert json.loads(json.dumps(found.as_dict()))["classes"] == []


def test_few_observations_are_noted():
    assert "only strong reasons show" in str(mm.diagnose(log_of("by ward", steps=20), MDP, draws=0))
    assert "only strong reasons show" not in str(mm.diagnose(log_of("by ward", steps=600), MDP, draws=0))


def test_a_feature_that_is_never_seen_is_noted():
    blind = mm.MissMDP(MDP, mm.MissingnessFunction.independent(MDP, {"fever": 1.0, "pulse": 0.3}))
    found = mm.diagnose(mm.collect(blind, 500, seed=0), MDP, draws=0)
    assert any("fever is missing in every observation" in note for note in found.notes)


def test_observations_that_cannot_happen_are_noted():
    log = log_of("own value", steps=300)
    observations = log.observations.copy()
    # Staying in ward a leads to no other ward.
    row = int(np.flatnonzero((log.actions[:-1] == 0) & (observations[:-1, 0] == 0))[5]) + 1
    observations[row, 0] = 1
    odd = mm.Dataset(MDP, observations, log.actions, log.offsets, log.terminated)
    found = mm.diagnose(odd, MDP, draws=0)
    assert any("cannot happen according to the model" in note for note in found.notes)


@pytest.mark.parametrize(("answer", "notes"), [(True, 0), (None, 0), (False, 1)])
def test_that_m_is_not_identified_is_noted(monkeypatch, answer, notes):
    asked = []

    def identifiability(mdp, graph, *, blocks):
        asked.append((graph, blocks))
        return SimpleNamespace(identified=answer)

    monkeypatch.setattr("missmdp.learn.diagnosis.diagnose.identifiability", identifiability)
    found = mm.diagnose(log_of("own block", steps=1500), MDP, draws=0)
    assert asked == [(found.graph, (("fever", "pulse"),))]
    assert sum("do not determine M" in note for note in found.notes) == notes


def test_what_cannot_be_is_refused():
    log = log_of("independent", steps=50)
    with pytest.raises(mm.DataError, match="other features"):
        mm.diagnose(log, mm.load_benchmark("icu-smar").mdp)
    with pytest.raises(mm.DataError, match="Dataset or ObservationCounts"):
        mm.diagnose([1, 2], MDP)
    with pytest.raises(mm.DataError, match="draws"):
        mm.diagnose(log, MDP, draws=-1)
    with pytest.raises(mm.DataError, match="level"):
        mm.diagnose(log, MDP, level=0.0)

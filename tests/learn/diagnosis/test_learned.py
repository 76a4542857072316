"""Diagnosis of logs without a model: dynamics are fitted along."""

import re

import numpy as np
import pytest

import missmdp as mm
from learn.diagnosis.wards import models, ward
from missmdp.experiments.studies.check_dynamics import pumps
from missmdp.learn.joint.fit import FittedAlong

MDP = ward()
TRUTHS = models(MDP)


def alone(log):
    """Return a log without its model."""
    return mm.Dataset(
        None,
        log.observations,
        log.actions,
        log.offsets,
        log.terminated,
        behaviour=log.behaviour,
        feature_space=log.feature_space,
        action_names=log.action_names,
    )


def log_of(name, steps=4000, seed=1):
    return alone(mm.collect(TRUTHS[name], steps, seed=seed, horizon=40))


@pytest.mark.parametrize(
    "name", ["independent", "dependent by ward", "fever first", "other feature", "own value", "own block"]
)
def test_the_type_and_the_m_graph_are_found_without_a_model(name):
    truth, log = TRUTHS[name], log_of(name)
    found = mm.diagnose(log)
    assert found.type == truth.types().name
    assert found.self_censoring == truth.types().self_censoring
    if found.type != "MAR":
        assert found.graph == truth.mgraph()
    assert not found.snapshots_only
    assert found.dynamics is None
    assert found.recommended == "joint"
    assert "The dynamics were learned from this log too" in found.describe()
    assert "Learner: JointEM" in found.describe()
    learner = found.learner()
    learner.set_params(discount=0.9, reward=0.0).fit(log)
    learned = mm.MissMDP(learner.mdp_, learner.missingness_)
    assert mm.total_variation(learned.missingness, truth.missingness).average < 0.06


def test_a_learner_of_your_own_is_used_and_recommended():
    log = log_of("own value")
    own = mm.JointEM(discount=0.5, reward=lambda state, action: state.fever, known={"ward": _moved})
    found = mm.diagnose(log, own)
    assert own.mdp_ is found.mdp
    assert found.self_censoring == ("fever",)
    recommended = found.learner()
    assert isinstance(recommended, mm.JointEM)
    assert recommended.get_params() == own.get_params() | {"missingness": found.graph}
    again = mm.diagnose(log, own)  # fitted already
    assert again.as_dict() == found.as_dict()
    with pytest.raises(mm.ParameterError, match="fitted to another log"):
        mm.diagnose(log_of("own value", seed=2), own)
    with pytest.raises(mm.ParameterError, match="whole histories"):
        mm.diagnose(mm.ObservationCounts.from_dataset(log.with_mdp(MDP)), mm.JointEM(discount=0.5, reward=0))


def _moved(state, action):
    return {"a": "b", "b": "a"}[state.ward] if action == "move" else state.ward


def test_known_dynamics_in_a_learner_are_those_of_an_mdp():
    log = mm.collect(TRUTHS["own value"], 1000, seed=3, horizon=40)
    through = mm.diagnose(alone(log), mm.JointEM(transitions=MDP), draws=0)
    assert through.as_dict() == mm.diagnose(log, MDP, draws=0).as_dict()


def test_nothing_missing_is_said():
    complete = mm.MissMDP(MDP, mm.MissingnessFunction.independent(MDP, {}))
    found = mm.diagnose(alone(mm.collect(complete, 200, seed=0, horizon=20)))
    assert found.describe() == "Nothing is missing in 200 observations."


def test_a_mark_of_a_learner_is_a_note():
    found = mm.diagnose(log_of("own value", steps=300))
    assert any(re.match("JointEM: .*episodes only", note) for note in found.notes)


def test_dynamics_that_are_fitted_along_never_explain_less():
    log = log_of("own block", steps=1000)
    learner = mm.JointEM(discount=0.9, reward=0.0).fit(log)
    evidence = FittedAlong.of(learner.prepared_.histories, learner.fit_)
    table, model = learner.fit_.table, learner.fit_.model
    before, values = evidence.point, []
    for _ in range(6):
        expected = evidence.expect(table, 1)
        values.append(expected.log_likelihood)
    assert np.all(np.diff(values) > -1e-9)
    assert expected.counts.sum() == pytest.approx(1000)
    assert evidence.point is not before
    assert learner.fit_.parameters.dynamics is before, "the learner's own dynamics stay"
    assert model is learner.fit_.model


@pytest.mark.slow
def test_tests_keep_their_level_when_the_dynamics_are_learned_too():
    """Gaps depend on load alone; p-values of what is true are spread evenly, as far as 200 logs tell."""
    plant = pumps()
    gaps = {
        "wear": lambda s: {"half": 0.35, "full": 0.65}[s.load],
        "vibration": lambda s: {"half": 0.6, "full": 0.4}[s.load],
    }
    model = mm.MissMDP(plant, mm.MissingnessFunction.independent(plant, gaps))

    def act(_):
        return {"run": 0.9, "overhaul": 0.1}

    p_values = []
    for seed in range(200):
        log = alone(mm.collect(model, 3000, act, seed=60_000 + seed, horizon=60))
        found = mm.diagnose(log, progress=False)
        assert found.type == "simple MAR"
        p_values.append([test.p_value for test in (*found.tests, *found.own_tests) if test.null != "MCAR"])
    shares = {level: np.mean(np.array(p_values) < level, axis=0) for level in (0.01, 0.05, 0.2)}
    for level, own in shares.items():
        assert (own < level + 4.0 * np.sqrt(level * (1.0 - level) / 200)).all(), (level, own)
    assert (shares[0.2] > 0.05).all()

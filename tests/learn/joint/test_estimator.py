"""JointEM: T, b₀, rewards and M from a log alone."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import missmdp as mm
from missmdp.learn.joint.search import JointSearch
from missmdp.model.space import FeatureSpace

pytestmark = pytest.mark.filterwarnings("ignore::missmdp.AssumptionWarning")


def ward(steps: int, *, seed: int = 0, gaps: bool = True, flip: float = 0.9) -> tuple[mm.MissMDP, mm.Dataset]:
    """Return a ward with a hidden level that is treated, and a log of it with rewards and without its model."""

    def move(state, action):
        target = 0 if action == "treat" else min(state.level + 1, 2)
        return [((target, "calm" if target == 0 else "loud"), flip), (tuple(state), 1.0 - flip)]

    mdp = mm.FactoredMDP(
        {"level": range(3), "alarm": ("calm", "loud")},
        ("wait", "treat"),
        move,
        lambda s, a: -s.level - 0.5 * (a == "treat"),
        {(0, "calm"): 0.5, (1, "loud"): 0.5},
        discount=0.9,
    )
    rates = {"level": lambda s: 0.4 if s.alarm == "calm" else 0.2} if gaps else {}
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, rates))
    log = mm.collect(model, steps, seed=seed, horizon=20, keep_states=True)
    return model, replace(
        log, mdp=None, states=None, logged_rewards=np.where(log.actions >= 0, log.rewards, np.nan)
    )


def reward(state, action, after):
    return -state.level - 0.5 * (action == "treat")


def learn(log: mm.Dataset, **options):
    return mm.JointEM(**{"discount": 0.9, "progress": False} | options).fit(log)


def counted(log: mm.Dataset, mdp: mm.FactoredMDP) -> tuple[np.ndarray, np.ndarray]:
    """Return steps (S, A, S) and first states (S,) of a log without gaps, counted row by row."""
    place = mdp.space.find(log.observations)
    steps, starts = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states)), np.zeros(mdp.n_states)
    for e in range(log.n_episodes):
        first, last = int(log.offsets[e]), int(log.offsets[e + 1])
        starts[place[first]] += 1
        for t in range(first, last - 1):
            steps[place[t], log.actions[t], place[t + 1]] += 1
    return steps, starts


def distance(learner: mm.JointEM, truth: mm.FactoredMDP) -> float:
    """Return the mean total variation between rows of T̂ and T over the truth's reachable states and actions."""
    place = learner.mdp_.space.find(truth.space.codes)
    apart = []
    for own, true in zip(learner.mdp_.transition, truth.transition, strict=True):
        rows = own[place].toarray()
        inside = np.abs(rows[:, place] - true.toarray()).sum(axis=1)
        apart.append(0.5 * (inside + rows.sum(axis=1) - rows[:, place].sum(axis=1))[truth.reachable])
    return float(np.mean(apart))


def test_without_gaps_saturated_is_counting():
    _, log = ward(600, gaps=False)
    learner = learn(log, transitions="saturated", reward=reward)
    steps, starts = counted(log, learner.mdp_)
    for a, matrix in enumerate(learner.mdp_.transition):
        rows = steps[:, a].sum(axis=1)
        seen = rows > 0
        np.testing.assert_allclose(
            matrix.toarray()[seen], steps[seen, a] / rows[seen, None], rtol=1e-12, atol=1e-15
        )
    np.testing.assert_allclose(learner.mdp_.initial, starts / starts.sum(), rtol=1e-12, atol=1e-15)


def test_with_the_dynamics_given_it_is_dynamics_em():
    truth = mm.load_benchmark("predator-mnar-unid")
    log = mm.collect(truth, 4000, seed=3)
    own = mm.DynamicsEM(truth.mdp, progress=False).fit(log)
    learner = mm.JointEM(transitions=truth.mdp, progress=False).fit(log)
    assert learner.missingness_ == own.missingness_
    assert learner.log_likelihood_ == own.log_likelihood_
    assert learner.mdp_ is truth.mdp
    other = mm.JointEM(transitions=truth.mdp, discount=0.5, reward=1.0, progress=False).fit(log)
    assert other.missingness_ == own.missingness_
    assert other.mdp_.discount == 0.5
    assert (other.mdp_.reward == np.where(truth.mdp.terminal[:, None], 0.0, 1.0)).all()
    with pytest.raises(mm.ParameterError, match="leave it out"):
        mm.JointEM(transitions=truth.mdp, terminal=lambda s: False).fit(log)


def test_there_are_no_intervals():
    _, log = ward(500)
    learner = learn(log, reward=reward)
    for resample in (learner.bound, learner.bootstrap):
        with pytest.raises(mm.DataError, match="no intervals"):
            resample()


def test_the_objective_never_falls():
    _, log = ward(3000)
    for options in (
        {},
        {"transitions": "saturated"},
        {"missingness": "logistic"},
        {"missingness": "saturated"},
    ):
        trace = learn(log, reward=reward, tolerance=1e-9, **options).trace_
        assert len(trace) > 1
        assert all(after >= before - 1e-7 for before, after in itertools.pairwise(trace))


def test_dynamics_and_missingness_are_found():
    """The errors at this seed are .02 and .01."""
    truth, log = ward(8000, seed=1)
    learner = learn(log, reward=reward)
    assert distance(learner, truth.mdp) < 0.04
    place = learner.mdp_.space.find(truth.space.codes)
    hidden = ~learner.missingness_.patterns[:, 0]
    rate = learner.missingness_.probabilities[:, hidden].sum(axis=1)[place]
    true = truth.missingness.probabilities[:, ~truth.missingness.patterns[:, 0]].sum(axis=1)
    assert np.abs(rate - true)[truth.mdp.reachable].max() < 0.05
    assert learner.graph_.parents("level") == ("alarm",)


def test_rewards_from_a_column():
    truth, log = ward(8000, seed=1)
    learner = learn(log)
    place = learner.mdp_.space.find(truth.space.codes)
    off = np.abs(learner.mdp_.reward[place] - truth.mdp.reward)[truth.mdp.reachable]
    assert off.max() < 0.1
    assert learner.rewards_ is not None


def test_rewards_are_no_evidence():
    _, log = ward(2000)
    other = replace(log, logged_rewards=np.where(np.isnan(log.logged_rewards), np.nan, 1.0))
    one, two = learn(log), learn(other)
    assert one.log_likelihood_ == two.log_likelihood_
    assert all((a != b).nnz == 0 for a, b in zip(one.mdp_.transition, two.mdp_.transition, strict=True))
    np.testing.assert_allclose(two.mdp_.reward, 1.0, atol=1e-9)


def test_renaming_changes_nothing():
    _, log = ward(3000)
    renamed = replace(
        log,
        feature_space=FeatureSpace({"α": (10, 20, 30), "<b>": ("quiet", "noisy")}),
        action_names=("0", "1"),
    )
    one = learn(log, reward=0.0)
    two = learn(renamed, reward=0.0)
    assert two.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-12)
    for a, b in zip(one.mdp_.transition, two.mdp_.transition, strict=True):
        np.testing.assert_allclose(a.toarray(), b.toarray(), atol=1e-12)
    assert "α" in two.describe()


def test_terminal_states_are_learned():
    truth = mm.load_benchmark("predator-mnar-unid")
    log = replace(mm.collect(truth, 30_000, seed=0), mdp=None)
    learner = learn(log, reward=0.0, missingness="mcar")
    place = learner.mdp_.space.find(truth.space.codes)
    wrong = (learner.mdp_.terminal[place] != truth.mdp.terminal)[truth.mdp.reachable]
    assert wrong.mean() < 0.02
    assert learner.mdp_.initial[learner.mdp_.terminal].sum() == 0.0


def test_what_is_known_stays_as_it_is():
    _truth, log = ward(3000)
    start = {(0, "calm"): 0.5, (1, "loud"): 0.5}
    learner = learn(
        log,
        reward=reward,
        initial=start,
        terminal=lambda s: False,
        known={"alarm": lambda s, a: {"calm": 0.25, "loud": 0.75} if a == "treat" else None},
    )
    assert learner.mdp_.initial[learner.mdp_.space.index((1, "loud"))] == pytest.approx(0.5)
    treat = learner.mdp_.transition[1].toarray()
    loud = learner.mdp_.space.codes[:, 1] == 1
    np.testing.assert_allclose(treat[:, loud].sum(axis=1), 0.75, atol=1e-12)


def test_parents_of_the_user():
    truth, log = ward(6000, gaps=False)
    learner = learn(
        log,
        reward=reward,
        transitions={"level": ["level", "alarm"], "alarm": ["level", "alarm", "next_level"]},
    )
    assert distance(learner, truth.mdp) < 0.05


def test_pessimism_and_support():
    _truth, log = ward(3000)
    learner = learn(log, reward=reward)
    careful = learner.pessimistic_model(1.0, fewest=1.0)
    assert (careful.mdp.reward <= learner.mdp_.reward + 1e-12).all()
    span = (learner.mdp_.reward.max() - learner.mdp_.reward.min()) / 0.1
    never = learner.visits_.steps == 0.0
    assert (careful.mdp.reward[never] <= learner.mdp_.reward[never] - span + 1e-9).all()
    support = learner.support_of(mm.UniformPolicy(), fewest=1e9, steps=500)
    assert support.share == 1.0
    assert support.describe().startswith("100.0")
    assert learner.support_of(mm.UniformPolicy(), fewest=0.0, steps=500).share == 0.0


def test_the_penalised_model_is_a_bound():
    """If T̂ is within ε of T everywhere, no policy is worth less in truth than in the penalised model."""
    truth, log = ward(500, gaps=False, seed=4)
    learner = learn(log, reward=reward, transitions="saturated")
    place = learner.mdp_.space.find(truth.space.codes)
    doubt = learner.visits_.doubt
    off = np.zeros_like(doubt[place])
    for a in range(2):
        rows = learner.mdp_.transition[a].toarray()[np.ix_(place, place)]
        off[:, a] = 0.5 * np.abs(rows - truth.mdp.transition[a].toarray()).sum(axis=1)
    used = truth.mdp.reachable
    caution = float((off[used] / np.maximum(doubt[place][used], 1e-12)).max()) + 1e-9
    careful = learner.pessimistic_model(caution).mdp
    for choice in ([0, 0], [1, 1], [0, 1], [1, 0]):
        # A policy of the alarm alone.
        def value(mdp, choice=choice):
            take = [choice[code] for code in mdp.space.codes[:, 1]]
            matrix = np.array([mdp.transition[a].toarray()[s] for s, a in enumerate(take)])
            gain = np.array([mdp.reward[s, a] for s, a in enumerate(take)])
            return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * matrix, gain)

        low, true = value(careful)[place][used], value(truth.mdp)[used]
        assert (low <= true + 1e-9).all()


def test_describe_and_draw(tmp_path):
    _, log = ward(2000)
    learner = learn(log)
    text = learner.describe()
    for part in ("Dynamics", "next level", "Rewards", "first level", "whether level is missing"):
        assert part in text
    assert learner.draw(tmp_path / "dynamics.svg").stat().st_size > 1000
    with pytest.raises(mm.MissMDPError, match="must end in"):
        learner.draw(tmp_path / "dynamics.txt")


def test_stopping_early_keeps_the_best_fit(monkeypatch):
    _, log = ward(3000)
    monkeypatch.setattr(
        JointSearch, "with_trees", lambda *args, **options: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    learner = learn(log, reward=reward)
    assert any("stopped early" in str(finding) for finding in learner.warnings_)
    assert learner.mdp_.n_states == 6


class TestBadInput:
    def test_no_actions(self):
        _, log = ward(100)
        single = mm.Dataset(
            None,
            log.observations[:3],
            np.full(3, -1),
            np.arange(4),
            np.zeros(3, dtype=bool),
            feature_space=log.feature_space,
            action_names=log.action_names,
        )
        with pytest.raises(mm.DataError, match="no actions"):
            learn(single, reward=reward)

    def test_a_feature_that_is_never_seen(self):
        _, log = ward(100)
        codes = log.observations.copy()
        codes[:, 0] = -1
        with pytest.raises(mm.DataError, match="'level' is never seen"):
            learn(replace(log, observations=codes), reward=reward)

    def test_too_many_values(self):
        _, log = ward(100)
        wide = FeatureSpace({"level": range(3), "alarm": range(200_000)})
        with pytest.raises(mm.DataError, match="'alarm' has 200,000 values"):
            learn(replace(log, feature_space=wide), reward=0.0)

    def test_one_episode_and_constant_columns(self):
        _, log = ward(20)
        with pytest.warns(mm.AssumptionWarning, match="1 episode only"):
            learn(log, reward=reward)
        calm = replace(log, observations=np.zeros_like(log.observations))
        calm = replace(calm, feature_space=FeatureSpace({"level": (0,), "alarm": ("calm",)}))
        with pytest.warns(mm.AssumptionWarning, match="is always 'calm'"):
            learn(calm, reward=0.0)

    def test_contradictory_ends(self):
        _, log = ward(400, gaps=False)
        with pytest.warns(mm.AssumptionWarning, match="contradict each other"):
            learn(replace(log, terminated=np.ones(log.n_episodes, dtype=bool)), reward=reward)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"discount": None}, "no default"),
            ({"discount": 1.5}, "discount"),
            ({"missingness": "mystery"}, "missingness"),
            ({"transitions": "mystery"}, "transitions"),
            ({"transitions": {"level": ["level"]}}, "'alarm' has no list"),
            ({"transitions": {"level": 3, "alarm": []}}, "a list of features"),
            ({"transitions": {"level": ["next_alarm"], "alarm": ["next_level"]}}, "circle"),
            ({"known": {"leve": lambda s, a: 0}}, "did you mean 'level'"),
            ({"known": {"level": lambda s, a: 7}}, "it cannot be 7"),
            ({"reward": lambda s: 0.0}, "state, action"),
            ({"initial": {(0, "calm"): 0.5}}, "initial"),
            ({"tolerance": 0.0}, "tolerance"),
        ],
    )
    def test_parameters(self, options, message):
        _, log = ward(100)
        with pytest.raises(mm.MissMDPError, match=message):
            learn(log, **({"reward": reward} | options))

    def test_no_rewards(self):
        _, log = ward(100)
        with pytest.raises(mm.ParameterError, match="the log has no rewards"):
            learn(replace(log, logged_rewards=None))

    def test_no_dataset(self):
        with pytest.raises(mm.ParameterError, match="Dataset"):
            mm.JointEM(discount=0.9, reward=0.0).fit([[1, 2]])


def test_no_warnings_where_all_is_well():
    _, log = ward(4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(log, reward=reward)


def test_a_switch_is_learned_though_neither_its_state_nor_the_press_says_anything_alone():
    lamp = mm.FactoredMDP(
        features={"lamp": ["off", "on"], "heat": [0, 1, 2], "wind": [0, 1]},
        actions=["wait", "press"],
        transition=lambda s, a: [
            ((_pressed(s.lamp, a), min(s.heat + 1, 2) if s.lamp == "on" else max(s.heat - 1, 0), w), 0.5)
            for w in (0, 1)
        ],
        reward=0.0,
        initial={("off", 0, 0): 1.0},
        discount=0.9,
    )
    model = mm.MissMDP(lamp, mm.MissingnessFunction.independent(lamp, {"lamp": 0.4, "heat": 0.2}))
    log = mm.collect(model, 2000, seed=4, horizon=50)
    found = mm.JointEM(discount=0.9, reward=0.0).fit(log)
    for action in range(2):
        assert abs(found.mdp_.transition[action] - lamp.transition[action]).max() < 0.1
    assert [family.partition.count for family in found.structure_.dynamics.steps.families][
        found.structure_.order.index(0)
    ] == 4


def _pressed(lamp, action):
    return {"off": "on", "on": "off"}[lamp] if action == "press" else lamp

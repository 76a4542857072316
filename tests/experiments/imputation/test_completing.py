"""Completed logs, what is counted in them, and agents that complete what they see."""

import sys
from collections import Counter

import numpy as np
import pytest

import missmdp as mm
from missmdp.errors import DataError, MissingExtra
from missmdp.experiments.imputation.completing import (
    METHODS,
    all_sights,
    carried_forward,
    commonest_value,
    complete_cases,
    last_observation,
)
from missmdp.experiments.imputation.extra import require
from missmdp.experiments.imputation.planning import PLANNERS, counted_values
from missmdp.experiments.imputation.policies import CompletedPolicy
from missmdp.experiments.imputation.steps import counted_steps, state_codes
from missmdp.model.missmdp import fully_observed_model
from missmdp.model.space import MISSING, FeatureSpace

FEATURES = FeatureSpace({"x": range(3), "y": ["low", "high"]})
ACTIONS = ("stay", "go")
HOLE = None


def log_of(episodes, terminated):
    """Return a log of episodes, lists of (x, y, action)."""
    rows = [row for episode in episodes for row in episode]
    observations = np.array([FEATURES.encode_observation(row[:2]) for row in rows])
    actions = np.array([-1 if row[2] is None else ACTIONS.index(row[2]) for row in rows])
    offsets = np.cumsum([0, *map(len, episodes)])
    return mm.Dataset(
        None,
        observations,
        actions,
        offsets,
        np.array(terminated),
        feature_space=FEATURES,
        action_names=ACTIONS,
    )


@pytest.fixture
def log():
    return log_of(
        [
            [(HOLE, "high", "go"), (2, HOLE, "stay"), (HOLE, HOLE, "go"), (1, "low", None)],
            [(HOLE, HOLE, "stay"), (1, "high", "go"), (1, "high", None)],
        ],
        [True, False],
    )


def test_the_last_observation_is_carried_forward_within_episodes(log):
    # The commonest values are 1 and "high".
    expected = [[1, 1], [2, 1], [2, 1], [1, 0], [1, 1], [1, 1], [1, 1]]
    filled = last_observation(log).completed
    assert [copy.tolist() for copy in filled.copies] == [expected]
    assert filled.used.all()


def test_carrying_forward_is_a_loop_over_rows():
    random = np.random.default_rng(3)
    data = mm.collect(mm.load_benchmark("icu-smar"), 1_000, seed=4)
    begins = random.integers(data.feature_space.sizes)
    expected = data.observations.astype(np.int64).copy()
    starts = set(data.offsets[:-1].tolist())
    for t, i in np.argwhere(expected == MISSING):
        expected[t, i] = begins[i] if t in starts else expected[t - 1, i]
    assert np.array_equal(carried_forward(data, begins), expected)


def test_complete_cases_use_only_steps_between_complete_observations(log):
    assert complete_cases(log).completed.used.tolist() == [False, False, False, True, False, True, True]
    steps = counted_steps(complete_cases(log).completed, lambda state, action, after: 10.0)
    visits = np.zeros((6, 2))
    visits[1 * 2 + 1, 1] = 1  # (1, "high") and "go"
    assert steps.visits.tolist() == visits.tolist()
    assert steps.reward.tolist() == (10.0 * visits).tolist()


def test_the_commonest_value_is_filled_in(log):
    (copy,) = commonest_value(log).completed.copies
    assert copy.tolist() == [[1, 1], [2, 1], [1, 1], [1, 0], [1, 1], [1, 1], [1, 1]]


def test_steps_are_counted_as_by_hand(log):
    """States are x · 2 + y; the step into the end of a terminated episode leads nowhere."""
    completed = last_observation(log).completed

    def reward(state, action, after):
        return 100.0 * state.x + 10.0 * (action == "go") + after.x

    steps = counted_steps(completed, reward)
    kinds = [(3, 1, 5), (5, 0, 5), (5, 1, None), (3, 0, 3), (3, 1, 3)]
    earned = {(3, 1): [112.0, 111.0], (5, 0): [202.0], (5, 1): [211.0], (3, 0): [101.0]}
    counts = Counter((s, a) for s, a, _ in kinds)
    for (s, a), times in counts.items():
        assert steps.visits[s, a] == times
        assert steps.reward[s, a] == pytest.approx(np.mean(earned[s, a]))
        row = steps.after[[s * 2 + a]].toarray()[0]
        for after in range(6):
            assert row[after] == pytest.approx(kinds.count((s, a, after)) / times)
    assert steps.visits.sum() == len(kinds)


def test_copies_are_counted_together(log):
    completed = last_observation(log).completed
    twice = type(completed)(log, completed.copies * 2, completed.used)
    one, two = (counted_steps(given, lambda *step: 1.5) for given in (completed, twice))
    assert np.array_equal(2.0 * one.visits, two.visits)
    assert np.allclose(one.after.toarray(), two.after.toarray())
    assert np.array_equal(one.reward, two.reward)


def test_a_log_of_nothing_complete_has_no_steps(log):
    completed = complete_cases(log_of([[(1, HOLE, "go"), (HOLE, "low", None)]], [False])).completed
    with pytest.raises(DataError, match="not one step"):
        counted_steps(completed, lambda *step: 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_feature_that_is_never_seen_is_named(method):
    with pytest.raises(DataError, match="'y' is never seen"):
        METHODS[method](log_of([[(1, HOLE, "go"), (2, HOLE, None)]], [False]), 0)


def preferences(choices):
    """Return values of states and actions such that "go" is best just in the given states."""
    go = np.array([tuple(state) in choices for state in map(FEATURES.decode, state_codes(FEATURES))])
    return np.stack([~go, go], axis=1).astype(np.float64)


def test_an_agent_acts_on_what_was_last_seen(log):
    values = preferences({(1, "high"), (2, "high"), (0, "low")})
    for method in (complete_cases, last_observation):
        agent = method(log).policy(values).agent()
        # (1, high) by default; (2, high), (2, high), (2, low), (0, low)
        history = [(HOLE, HOLE), (2, HOLE), {"x": None}, (HOLE, "low"), (0, HOLE)]
        actions = [agent.reset(history[0]), *map(agent.step, history[1:])]
        assert actions == ["go", "go", "go", "stay", "go"]
        # A new episode forgets.
        assert agent.reset((0, HOLE)) == "stay"


def test_an_agent_acts_on_the_commonest_value(log):
    model = mm.MissMDP(fresh_mdp(), mm.MissingnessFunction.independent(fresh_mdp(), {"x": 0.5, "y": 0.5}))
    agent = commonest_value(log).policy(preferences({(1, "high"), (2, "low")})).agent(model)
    assert [agent.reset((HOLE, HOLE)), agent.step((2, "low")), agent.step((HOLE, "low"))] == [
        "go",
        "go",
        "stay",
    ]


def fresh_mdp():
    return mm.FactoredMDP(
        features=FEATURES.as_dict(),
        actions=ACTIONS,
        transition=lambda state, action: {(x, y): 1 / 6 for x in range(3) for y in ("low", "high")},
        reward=lambda state, action: float(state.x) if action == "go" else 1.0,
        initial={(x, y): 1 / 6 for x in range(3) for y in ("low", "high")},
        discount=0.9,
    )


def test_an_agent_does_what_is_best_on_average_over_draws(log):
    mdp = fresh_mdp()
    sights = all_sights(log)
    filled = np.repeat(np.where(sights == MISSING, 0, sights)[:, None], 3, axis=1)
    filled[:, 1:, 0] = np.where(sights[:, :1] == MISSING, 2, sights[:, :1])
    values = np.zeros((6, 2))
    values[:, 1] = [-3.0, 1.0, 0.0, 0.0, 1.0, 1.0]  # by (x, y): (0, low), (0, high), …
    policy = CompletedPolicy(FEATURES, ACTIONS, filled, values)
    agent = policy.agent(mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": 0.5, "y": 0.5})))
    # x missing: once 0, twice 2. With low, −3 + 1 + 1 < 0; with high, 1 + 1 + 1 > 0.
    assert [agent.reset((HOLE, "low")), agent.step((HOLE, "high")), agent.step((2, "low"))] == [
        "stay",
        "go",
        "go",
    ]


class Stepwise:
    """A policy of which only the agents are known."""

    def __init__(self, policy):
        self.policy = policy

    def agent(self, model=None, *, seed=None):
        return self.policy.agent(model, seed=seed)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "multiple"])
def test_episodes_in_bulk_are_those_of_agents(method):
    truth = mm.load_benchmark("predator-smar")
    data = mm.collect(truth, 2_000, seed=5)
    values = np.random.default_rng(6).normal(size=(6**4, 4))
    policy = METHODS[method](data, 0).policy(values)
    bulk, stepwise = (mm.evaluate(p, truth, 30, seed=7, progress=False) for p in (policy, Stepwise(policy)))
    assert np.array_equal(bulk.decisions, stepwise.decisions)
    assert np.allclose(bulk.returns, stepwise.returns, rtol=1e-12)


@pytest.mark.parametrize("benchmark", ["icu-smar", "predator-smar"])
def test_without_gaps_all_methods_are_counting(benchmark):
    pytest.importorskip("sklearn")
    truth = fully_observed_model(mm.load_benchmark(benchmark))
    data = mm.collect(truth, 2_000, seed=8)
    space, n_actions = data.feature_space, truth.n_actions
    places = [int(np.ravel_multi_index(tuple(row), tuple(space.sizes))) for row in data.observations]
    counts = Counter()
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        counts.update((places[t], int(data.actions[t])) for t in range(first, end - 1))
    visits = np.zeros((int(np.prod(space.sizes)), n_actions))
    for (s, a), times in counts.items():
        visits[s, a] = times
    values, policies = {}, {}
    for method, complete in METHODS.items():
        filled = complete(data, 0)
        steps = counted_steps(filled.completed, lambda state, action, after: float(state[0] - after[-1]))
        copies = len(filled.completed.copies)
        assert np.array_equal(steps.visits, copies * visits)
        values[method] = counted_values(steps, space, 0.95)
        policies[method] = filled.policy(values[method])
        assert np.allclose(values[method], values["complete"], atol=1e-6)
    evaluations = [mm.evaluate(one, truth, 50, seed=9, progress=False).returns for one in policies.values()]
    assert all(np.allclose(one, evaluations[0]) for one in evaluations)


def test_multiple_imputation_keeps_what_was_seen_and_draws_the_rest():
    pytest.importorskip("sklearn")
    data = mm.collect(mm.load_benchmark("icu-smar"), 1_000, seed=10)
    copies = METHODS["multiple"](data, 1).completed.copies
    again = METHODS["multiple"](data, 1).completed.copies
    assert len(copies) == 5
    for copy, same in zip(copies, again, strict=True):
        assert np.array_equal(copy, same)
        assert np.array_equal(copy[data.observed], data.observations[data.observed])
        assert ((copy >= 0) & (copy < data.feature_space.sizes)).all()
    assert any(not np.array_equal(copies[0], other) for other in copies[1:])


def test_without_scikit_learn_it_is_said_how_to_get_it(monkeypatch, log):
    for module in ("sklearn.experimental.enable_iterative_imputer", "sklearn.ensemble"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"missmdp\[baselines\]"):
        METHODS["multiple"](log, 0)
    steps = counted_steps(last_observation(log).completed, lambda *step: 0.0)
    with pytest.raises(MissingExtra, match=r"missmdp\[baselines\]"):
        PLANNERS["fitted"](steps, FEATURES, 0.9, 0)
    assert require("json").dumps(1) == "1"

"""Intervals for the value that are no guarantee."""

import numpy as np
import pytest

import missmdp as mm
from evaluation.certificate.wards import CASES, learned
from missmdp.errors import DataError
from oracles.controllers import controller_value

SOLVER = mm.Sarsop(precision=1e-4, max_trials=40, progress=False)


@pytest.fixture(scope="module")
def case():
    learner = learned("AsMAR", 2_000, seed=1)
    return SOLVER.solve(CASES["AsMAR"][1].with_missingness(learner.missingness_)), learner


@pytest.mark.slow
def test_the_true_value_is_mostly_inside():
    truth = CASES["AsMAR"][1]
    inside = 0
    for seed in range(40):
        learner = learned("AsMAR", 500, seed=seed)
        controller = SOLVER.solve(truth.with_missingness(learner.missingness_)).controller
        found = mm.value_interval(controller, learner, confidence=0.9, draws=60, seed=seed, progress=False)
        low, high = found.interval
        inside += low <= controller_value(controller, truth.missingness) <= high
    # 36 are expected; fewer than 29 would happen once in a thousand times.
    assert inside >= 29


def test_computed_and_simulated_values_agree(case):
    result, learner = case
    exact = mm.value_interval(result.controller, learner, draws=3, seed=3, progress=False)

    class Simulated:
        def agent(self, model=None, *, seed=None):
            return result.controller.agent(model)

    simulated = mm.value_interval(Simulated(), learner, draws=3, seed=3, episodes=100, progress=False)
    assert exact.exact
    assert not simulated.exact
    assert np.abs(exact.values - simulated.values).max() < 0.5


def test_more_data_make_it_narrower(case):
    result, learner = case
    more = learned("AsMAR", 50_000, seed=1)
    widths = [
        np.subtract(*mm.value_interval(result.controller, one, draws=50, progress=False).interval[::-1])
        for one in (learner, more)
    ]
    assert widths[1] < 0.5 * widths[0]


def test_the_same_seed_gives_the_same(case):
    result, learner = case
    one, same, other = (
        mm.value_interval(result.controller, learner, draws=5, seed=seed, progress=False).values
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_it_says_that_it_is_no_guarantee(case):
    found = mm.value_interval(case[0].controller, case[1], draws=5, progress=False)
    assert "not a guarantee" in str(found)
    assert "not a guarantee" in found.describe()
    assert "posterior" in found.describe()
    assert found.interval[0] <= found.median <= found.interval[1]


def test_learners_with_a_bootstrap(case):
    result, learner = case

    class Resampled(mm.MissingnessEstimator):
        missingness_ = learner.missingness_
        data_ = learner.data_
        assumes = assumed_ = "nothing"
        fit = check_parameters = None

        def bootstrap(self, draws=100, seed=0):
            return [learner.missingness_] * draws

    found = mm.value_interval(result.controller, Resampled(), draws=4, progress=False)
    assert found.source == "bootstrap"
    exact = controller_value(result.controller, learner.missingness_)
    np.testing.assert_allclose(found.values, exact, atol=1e-3)
    assert "resampled" in found.describe()


def test_wrong_calls(case):
    result, learner = case

    with pytest.raises(DataError, match="has learned nothing yet"):
        mm.value_interval(result.controller, mm.AsMAR())
    with pytest.raises(DataError, match="learner: expected a learner, got str"):
        mm.value_interval(result.controller, "asmar")
    with pytest.raises(DataError, match="prior must be a positive number"):
        mm.value_interval(result.controller, learner, prior=0.0)
    with pytest.raises(DataError, match="for another MDP"):
        mm.value_interval(result.controller, learner, mm.load_benchmark("example-3").mdp)
    other = mm.Sarsop(max_trials=2, progress=False).solve(mm.load_benchmark("example-3")).controller
    with pytest.raises(DataError, match="the controller is for another MDP"):
        mm.value_interval(other, learner)

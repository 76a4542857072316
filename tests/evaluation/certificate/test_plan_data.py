"""How much data a certificate takes."""

import warnings

import numpy as np
import pytest

import missmdp as mm
from evaluation.certificate.wards import CASES
from missmdp.errors import DataError
from missmdp.evaluation.certificate.learned import factor_for
from missmdp.evaluation.certificate.uniform import closed_form, policy_uniform, value_span

SOLVER = mm.Sarsop(precision=1e-4, max_trials=40, progress=False)


@pytest.fixture(scope="module")
def truth():
    return CASES["AsMAR"][1]


@pytest.fixture(scope="module")
def plan(truth):
    return mm.plan_data(truth, 0.05, 0.9, relative=True, solver=SOLVER, progress=False)


def test_sharper_bounds_take_fewer_samples(plan):
    assert 100 < plan.certified < plan.uniform < plan.closed.steps
    assert plan.samples == plan.certified
    assert plan.epsilon == pytest.approx(0.05 * plan.trivial)


def test_with_so_many_samples_the_bounds_are_what_was_wanted(truth, plan):
    span = value_span(truth.mdp)
    assert 2.0 * closed_form(span, np.full(truth.n_states, plan.radius)) == pytest.approx(plan.epsilon)
    learner = mm.AsMAR().fit(mm.collect(truth, plan.uniform, seed=0, progress=False))
    reached = 2.0 * policy_uniform(span, learner.bound(0.9).per_state_tv)
    assert reached == pytest.approx(plan.epsilon, rel=0.1)
    learner = mm.AsMAR().fit(mm.collect(truth, plan.certified, seed=0, progress=False))
    result = SOLVER.solve(truth.with_missingness(learner.missingness_))
    certificate = mm.certify(result, learner, 0.9, halve=False, solver=SOLVER)
    assert certificate.epsilon == pytest.approx(plan.epsilon, rel=0.4)


def test_observations_that_are_many_and_rare_count():
    n = 30
    mdp = mm.FactoredMDP(
        {"x": tuple(range(n)), "y": tuple(range(n))},
        ["a", "b"],
        [np.full((n * n, n * n), 1.0 / n**2)] * 2,
        np.eye(2)[np.arange(n * n) % 2],
        np.full(n * n, 1.0 / n**2),
        discount=0.5,
    )
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": 0.3}))
    found = mm.plan_data(truth, 0.5, 0.9, relative=True, learner=mm.AMCAR(), timeout=0.0)
    learner = mm.AMCAR().fit(mm.collect(truth, found.uniform, seed=0, progress=False))
    reached = 2.0 * policy_uniform(value_span(mdp), learner.bound(0.9).per_state_tv)
    assert reached == pytest.approx(found.epsilon, rel=0.1)


def test_words(plan):
    text = plan.describe()
    assert text.startswith(
        f"To be within {plan.epsilon:g} of optimal with probability at least 0.9, assuming simple MAR"
    )
    assert f"about {plan.certified:,} samples" in text
    assert "The solver's gap is taken to be 0." in text
    assert "DataPlan" in repr(plan)


def test_without_time_the_sharpest_is_left_out(truth):
    found = mm.plan_data(truth, 1.0, timeout=0.0, solver_gap=0.1)
    assert found.certified is None
    assert "left out" in found.describe()
    assert found.samples == found.uniform


def test_a_model_that_is_not_as_assumed_is_said_to_be_so():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mm.plan_data(CASES["AIMI"][1], 1.0, timeout=0.0, learner=mm.AMCAR())
    assert "this model's M violates the assumption" in found.describe()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 1e6}, "without any data every policy is within"),
        ({"epsilon": -1.0}, "epsilon must be a positive number"),
        ({"epsilon": 1.5, "relative": True}, "epsilon must be a share between 0 and 1"),
        ({"epsilon": 0.1, "solver_gap": 0.2}, "more than the solver's gap of 0.2"),
        ({"epsilon": 0.1, "solver_gap": -0.2}, "solver_gap must be a number of at least 0"),
        ({"epsilon": 0.1, "learner": "asmar"}, "learner must be"),
    ],
)
def test_wrong_calls(truth, arguments, message):
    with pytest.raises(DataError, match=message):
        mm.plan_data(truth, **arguments)


def test_what_no_amount_reaches():
    assert factor_for(1.0, 0.0, lambda factor: 2.0, most=1e3) is None
    assert factor_for(1.0, 0.0, lambda factor: 10.0 / factor**0.5) == pytest.approx(100.0, rel=0.05)
    # What is said not to be enough has been tried.
    tried: list[float] = []
    assert factor_for(1.0, 0.0, lambda factor: tried.append(factor) or 2.0, most=1e3) is None
    assert max(tried) == 1e3

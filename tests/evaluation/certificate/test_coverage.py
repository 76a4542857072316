"""The bar: over many datasets, policies are within ε as often as certificates say."""

import pytest
from scipy import stats

import missmdp as mm
from evaluation.certificate.wards import CASES, learned, react
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.uniform import value_span

CONFIDENCE = 0.8
SOLVER = mm.Sarsop(precision=1e-4, max_trials=40, progress=False)


def missed(case, steps, seeds, policy):
    """Return how often each certificate was wrong, and the mean of the smallest over what was known before."""
    truth = CASES[case][1]
    optimal, span = SOLVER.solve(truth), value_span(truth.mdp)
    wrong, share = {}, 0.0
    for seed in seeds:
        learner = learned(case, steps, seed, policy)
        result = SOLVER.solve(truth.with_missingness(learner.missingness_))
        found = mm.certify(result, learner, CONFIDENCE, halve=False, solver=SOLVER, progress=False)
        assert found.bound.behaviour == ("blind" if policy is None else "adaptive")
        product = controller_product(result.controller, truth.missingness)
        low, high = ControllerValues.of(product, span).value()
        # The belief-tracking policy is worth no more than the best, and mostly no less than the controller.
        for name, certificate in found.alternatives.items():
            wrong[name] = wrong.get(name, 0) + (optimal.lower - high > certificate.epsilon)
        wrong["certified"] = wrong.get("certified", 0) + (optimal.lower - high > found.epsilon)
        wrong["value"] = wrong.get("value", 0) + (low > found.value_upper or high < found.value_lower)
        wrong["best"] = wrong.get("best", 0) + (optimal.lower > found.best_upper)
        share += found.relative / len(seeds)
    return wrong, share


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["blind", "adaptive"])
@pytest.mark.parametrize("case", CASES)
def test_certificates_hold_as_often_as_they_say(case, behaviour):
    """A one-sided binomial test at 10⁻³, for four learners and two behaviours: 640 datasets in all."""
    datasets = 80
    wrong, share = missed(case, 400, range(datasets), None if behaviour == "blind" else react)
    for name, count in wrong.items():
        assert stats.binom.sf(count - 1, datasets, 1.0 - CONFIDENCE) > 1e-3, (name, count)
    # They are not held by saying nothing.
    assert share < 0.5


def test_certificates_hold_on_a_few_datasets():
    wrong, _ = missed("AsMAR", 400, range(3), None)
    assert not any(wrong.values())

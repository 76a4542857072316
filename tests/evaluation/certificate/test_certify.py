"""What certify says, and what it refuses."""

import dataclasses
import json

import numpy as np
import pytest

import missmdp as mm
from evaluation.certificate.wards import CASES, learned
from missmdp.errors import DataError, ModelError
from missmdp.evaluation.certificate import certify as certify_module
from missmdp.evaluation.certificate.alternatives import simulated_charge
from missmdp.evaluation.certificate.controller_value import ControllerValues, controller_product
from missmdp.evaluation.certificate.learned import bound_with_more_data, data_to_halve
from missmdp.evaluation.certificate.uniform import value_span
from random_pomdps import tiger

SOLVER = mm.Sarsop(precision=1e-4, max_trials=40, progress=False)


@pytest.fixture(scope="module")
def case():
    """Return a learner with a result for what it learned."""
    learner = learned("AsMAR", 3_000, seed=5)
    return SOLVER.solve(CASES["AsMAR"][1].with_missingness(learner.missingness_)), learner


@pytest.fixture(scope="module")
def certificate(case):
    return mm.certify(*case, 0.9, minimum_probability=0.1, solver=SOLVER)


def test_terms_add_up(certificate):
    for name, found in certificate.alternatives.items():
        parts = dataclasses.astuple(found.terms)
        assert sum(parts) == pytest.approx(found.epsilon), name
        assert min(parts) >= -1e-9, name
    terms = certificate.terms
    assert certificate.epsilon == pytest.approx(terms.solver + terms.before_planning + terms.after_planning)
    assert certificate.dominating.startswith("learning")


def test_the_smallest_is_chosen(certificate):
    compared = {n: a.epsilon for n, a in certificate.alternatives.items() if not a.reference}
    assert certificate.epsilon == min(compared.values()) == compared[certificate.method]
    assert compared["policy-uniform"] <= compared["closed form"]
    assert compared["robust"] <= compared["occupancy"] <= compared["policy-uniform"]
    assert certificate.alternatives[certify_module.REFERENCE].epsilon >= compared["closed form"]
    assert not certificate.vacuous
    assert 0.0 < certificate.relative < 0.2


def test_values_are_bracketed(certificate, case):
    truth, (result, _) = CASES["AsMAR"][1], case
    found = mm.evaluate(certificate.policy, truth, 20_000, seed=1, progress=False)
    assert certificate.value_lower <= found.mean <= certificate.value_upper
    assert SOLVER.solve(truth).lower <= certificate.best_upper
    assert certificate.policy is result.controller
    assert certificate.deploys == "controller"


def test_words(certificate):
    text = certificate.describe()
    assert str(certificate).startswith(f"within {certificate.epsilon:.2f}")
    for part in (
        "Assuming simple MAR: with probability at least 0.9, the policy graph",
        "more samples would halve it",
        "(for comparison)",
        "Theorem 3",
        "failure budget of 0.1 is split over 2 groups, times 8 ways",
        "(blind)",
        "keeps track of a node instead of a belief",
    ):
        assert part in text, part
    assert "-" not in text.replace("policy-uniform", "").replace("miss-MDP", "").replace("- ", "")
    assert json.loads(json.dumps(certificate.to_dict()))["epsilon"] == certificate.epsilon


def test_what_is_printed_is_a_bound_too(certificate):
    for epsilon, printed in ((1.2301, "1.24"), (0.012301, "0.0124"), (0.25, "0.250"), (12.0, "12.00")):
        found = dataclasses.replace(certificate, epsilon=epsilon)
        assert str(found).startswith(f"within {printed} of optimal")
    found = dataclasses.replace(certificate, value_lower=-1.2301, value_upper=-0.12349, best_upper=-0.1)
    assert "in [−1.24, −0.123], and no policy is worth more than −0.100." in found.describe()


def test_rounding_does_not_make_a_policy_better_than_the_best(case, monkeypatch):
    def crossing(request, found):
        robust = found["robust"]
        return dataclasses.replace(robust, best=robust.value_lower - 1e-12)

    monkeypatch.setattr(certify_module, "_smallest", crossing)
    assert mm.certify(*case, 0.9, method="robust", halve=False).epsilon == 0.0


def test_the_policy_that_tracks_the_belief(case):
    found = mm.certify(*case, 0.9, deploy="policy")
    assert found.policy is case[0].policy
    assert found.method == "policy-uniform"
    assert found.alternatives["robust"].why == "not asked for"
    assert "tracks the belief" in found.describe()
    with pytest.raises(DataError, match="no such certificate for the policy"):
        mm.certify(*case, deploy="policy", method="robust")


def test_other_methods(case):
    for method in ("closed form", "policy-uniform", "occupancy", "robust"):
        found = mm.certify(*case, method=method, halve=False)
        assert found.method in (method, "trivial")
        assert found.samples_to_halve is None
    no_time = mm.certify(*case, timeout=0.0, halve=False)
    assert "no time" in no_time.alternatives["revealing"].why
    assert no_time.method == "robust"


def test_more_data_halve_it(certificate, case):
    halving = certificate.samples_to_halve
    assert halving.samples == pytest.approx(3_000 * halving.factor, abs=1)
    assert halving.more == halving.samples - 3_000
    larger = learned("AsMAR", int(halving.samples), seed=5)
    result = SOLVER.solve(case[0].policy.model.with_missingness(larger.missingness_))
    there = mm.certify(result, larger, 0.9, halve=False, solver=SOLVER)
    assert there.epsilon == pytest.approx(0.5 * certificate.epsilon, rel=0.25)


def test_bounds_with_more_data(case):
    learner = case[1]
    now = learner.bound(0.9)
    same = bound_with_more_data(learner, 1.0, 0.9, "auto", "blind")
    np.testing.assert_array_equal(same.per_state_tv, now.per_state_tv)
    assert (bound_with_more_data(learner, 4.0, 0.9, "auto", "blind").per_state_tv < now.per_state_tv).all()


@pytest.mark.parametrize("solver", [0.0, 1.0])
def test_halving_finds_where_the_bound_is_half(solver):
    found = data_to_halve(10.0, solver, 100, lambda factor: solver + (10.0 - solver) / factor**0.5)
    needed = ((10.0 - solver) / (5.0 - solver)) ** 2
    assert needed * 0.99 <= found.factor <= needed * 1.1
    assert "would halve it" in found.describe()


def test_halving_says_when_it_cannot():
    assert "solver's gap" in data_to_halve(10.0, 6.0, 100, lambda factor: 6.0).describe()
    assert "would not do" in data_to_halve(10.0, 1.0, 100, lambda factor: 9.0).describe()


def test_little_data_say_nothing():
    learner = learned("AsMAR", 5, seed=0)
    result = SOLVER.solve(CASES["AsMAR"][1].with_missingness(learner.missingness_))
    found = mm.certify(result, learner, halve=False, method="policy-uniform")
    assert found.vacuous
    assert found.method == "trivial"
    assert found.epsilon == found.trivial
    assert "vacuous" in found.describe()
    assert "says nothing" in str(found)


def test_support(case):
    result, learner = case
    for p, needed in ((0.3, True), (1e-4, False)):
        found = mm.certify(result, learner, method="closed form", halve=False, minimum_probability=p)
        assert found.support.established is needed
        assert found.support.describe() == found.conditions[-1]
    with pytest.raises(DataError, match="minimum_probability must be a number between 0 and 1"):
        mm.certify(result, learner, method="closed form", halve=False, minimum_probability=1.0)


def test_how_many_samples_show_all_patterns(case):
    result, learner = case
    test = mm.certify(
        result, learner, 0.9, method="closed form", halve=False, minimum_probability=0.2
    ).support
    # Two groups of four patterns and one hidden one, 2³ ways of what is always observed.
    cells = 8 * 2 * 5
    assert 0.8**test.needed * cells <= 0.1 < 0.8 ** (test.needed - 1) * cells


def test_simulated_visits(case):
    result, learner = case
    found = mm.certify(*case, 0.9, deploy="policy", method="policy-uniform", occupancy_episodes=600, seed=1)
    simulated = found.alternatives["occupancy, simulated"]
    assert simulated.deploys == "policy"
    assert "0.01 of it is set aside for simulated visits" in found.describe()
    # The policy visits about what the controller visits; the bound adds what may be chance.
    exact = mm.certify(*case, 0.9, method="occupancy", halve=False).alternatives["occupancy"]
    assert exact.terms.after_planning < simulated.terms.after_planning < 4.0 * exact.terms.after_planning
    assert sum(dataclasses.astuple(simulated.terms)) == pytest.approx(simulated.epsilon)
    compared = [a for a in found.alternatives.values() if not a.reference]
    assert found.method == min(compared, key=lambda a: a.epsilon).method
    for wrong in (1, -3, 1.5):
        with pytest.raises(mm.MissMDPError, match="occupancy_episodes"):
            mm.certify(result, learner, occupancy_episodes=wrong)


def test_simulated_charges_are_seldom_too_small():
    truth = CASES["AsMAR"][1]
    result, span = SOLVER.solve(truth), value_span(truth.mdp)
    charge = np.arange(truth.n_states) / truth.n_states
    exact = ControllerValues.of(controller_product(result.controller, truth.missingness), span).charged(
        charge
    )

    class Followed:
        def agent(self, model=None, *, seed=None):
            return result.controller.agent(model)

    found = [simulated_charge(Followed(), truth, charge, 30, 0.1, seed) for seed in range(12)]
    # Each fails with a probability of at most 0.1: more than 6 of 12 would happen less than once in a thousand times.
    assert sum(bound < exact for bound in found) <= 6
    assert np.mean(found) < 8.0 * exact


def test_wrong_calls(case):
    result, learner = case
    with pytest.raises(DataError, match="has learned nothing yet"):
        mm.certify(result, mm.AsMAR())
    with pytest.raises(ModelError, match="result: expected what a solver found"):
        mm.certify(result.policy, learner)
    with pytest.raises(ModelError, match="are for miss-MDPs"):
        mm.certify(SOLVER.solve(tiger()), learner)
    with pytest.raises(DataError, match="for another missingness function"):
        mm.certify(SOLVER.solve(CASES["AsMAR"][1]), learner)
    with pytest.raises(DataError, match="method must be 'auto', .* got 'magic'"):
        mm.certify(result, learner, method="magic")
    with pytest.raises(DataError, match="deploy must be"):
        mm.certify(result, learner, deploy="graph")
    with pytest.raises(DataError, match="timeout must be"):
        mm.certify(result, learner, timeout=-1.0)
    with pytest.raises(DataError, match="confidence"):
        mm.certify(result, learner, 1.5)
    with pytest.raises(DataError, match="result observe first, but the solver's act first"):
        mm.certify(result, learner, solver=mm.Sarsop(observe_initial=False, max_trials=2, progress=False))


def test_learners_without_a_bound_have_no_certificate(case):
    class Other:
        missingness_ = case[1].missingness_

    with pytest.raises(DataError, match="no bound on its error is known"):
        mm.certify(case[0], Other())


def test_results_without_a_controller_get_one_from_their_vectors(case):
    result, learner = case
    bare = dataclasses.replace(result, make_controller=None)
    found, own = (mm.certify(one, learner, halve=False, solver=SOLVER) for one in (bare, result))
    assert found.deploys == "controller"
    assert isinstance(found.policy, mm.FiniteController)
    # It is evaluated like any other, so that a plan which is worse shows in the solver's part.
    assert found.epsilon >= own.epsilon - 1e-3
    assert found.epsilon < 2.0 * own.epsilon

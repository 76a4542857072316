"""The benchmark in which policies are hardest to tell apart still does so; docs/results has all six."""

import pytest

import missmdp as mm

QUIET = {"progress": False}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")
def test_predator_mnar_unid_tells_prior_learned_and_optimal_apart():
    """At least 5 errors of 2,000 episodes and 5 % of optimal − random; learned policies below 0.8 of the way."""
    model = mm.load_benchmark("predator-mnar-unid")
    data = mm.collect(model, 100_000, seed=0, **QUIET)
    policies = {
        "optimal": mm.Sarsop(max_trials=15, **QUIET).solve(model).policy,
        "prior": mm.Sarsop(precision=0.05, timeout=300, **QUIET).solve(mm.prior_model(model)).policy,
        "random": None,
    }
    for learner in (mm.AMCAR(), mm.AsMAR(), mm.AIMI()):
        learned = model.with_missingness(learner.fit(data).missingness_)
        policies[type(learner).__name__] = mm.Sarsop(max_trials=12, **QUIET).solve(learned).policy
    found = mm.compare(policies, model, 20_000, 1, control_variate=True, **QUIET)
    few = mm.compare({name: policies[name] for name in ("optimal", "prior")}, model, 2_000, 1, **QUIET)
    gap = found.difference("optimal", "prior").mean
    assert gap >= 5 * few.difference("optimal", "prior").stderr
    assert gap >= 0.05 * found.difference("optimal", "random").mean
    for name in ("AMCAR", "AsMAR", "AIMI"):
        value = mm.normalised_value(found[name], found["optimal"], found["prior"])
        assert value.interval(0.999)[1] < 0.8, name

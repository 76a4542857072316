"""M⁺: no policy is worth more in M than the best is worth where whatever is open shows the state."""

import warnings

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.certificate.learned import can_go_missing, revealing, revealing_missingness
from oracles.controllers import random_model

SOLVER = mm.Sarsop(precision=1e-6, absolute_precision=1e-6, max_trials=25, progress=False)


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 130), marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_the_best_policy_is_worth_at_least_as_much_where_more_is_revealed(seeds):
    gained = 0
    for seed in seeds:
        rng, model = random_model(seed)
        M = model.missingness
        least = M.probabilities * rng.random(M.probabilities.shape)
        plus = revealing(model.space, M.patterns, least)
        here, there = SOLVER.solve(model), SOLVER.solve(model.with_missingness(plus))
        assert here.lower <= there.upper + 1e-6
        gained += there.lower > here.upper + 1e-4
    # Often it is worth more, so that the comparison says something.
    assert gained >= len(seeds) // 6


def test_nothing_changes_where_everything_is_known_and_all_is_shown_where_nothing_is():
    for seed in range(20):
        _, model = random_model(seed)
        M = model.missingness
        same = revealing(model.space, M.patterns, M.probabilities)
        assert mm.total_variation(same, M).worst < 1e-12
        nothing = revealing(model.space, M.patterns, np.zeros_like(M.probabilities))
        assert nothing == mm.MissingnessFunction.fully_observed(model.mdp)


@pytest.mark.parametrize(
    "learner",
    [
        mm.AMCAR(),
        mm.AsMAR(),
        mm.AIMI(),
        mm.AIMI(always_observed=["ward"]),
        mm.AIMI(assume="MCAR", blocks=[("ward", "level")]),
    ],
    ids=repr,
)
def test_patterns_of_a_bound_have_its_least_probabilities(learner):
    rng = np.random.default_rng(3)
    mdp = mm.FactoredMDP(
        {"ward": ("north", "south"), "level": (0, 1, 2)},
        ["go"],
        [rng.dirichlet(np.ones(6), size=6)],
        0.0,
        np.full(6, 1 / 6),
        discount=0.5,
    )
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"level": 0.4}))
    if learner.get_params().get("blocks"):
        truth = mm.MissMDP(mdp, mm.MissingnessFunction.blocks(mdp, {("ward", "level"): 0.4}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        learner.fit(mm.collect(truth, 5_000, seed=0))
    bound = learner.bound(0.95)
    plus = revealing_missingness(bound, truth.with_missingness(learner.missingness_))
    M = truth.missingness
    for k, pattern in enumerate(plus.patterns):
        there = np.flatnonzero((M.patterns == pattern).all(axis=1))
        true = M.probabilities[:, there[0]] if len(there) else np.zeros(6)
        assert (plus.probabilities[:, k] <= true + 1e-12).all() or pattern.all()
        if not pattern.all() and len(there):
            assert (plus.probabilities[:, k] > 0.3).all()
    declared = "ward" in (learner.always_observed or ())
    assert can_go_missing(learner).tolist() == [not declared, True]

"""Bounds hold as often as they say, over 1,000 datasets, and docs/bounds.md says what came out."""

import importlib.util
import sys

import numpy as np
import pytest

import missmdp as mm

LEVEL = 1e-3
"""Of each one-sided binomial test. Seeds are fixed, so that a pass stays a pass."""


@pytest.fixture(scope="module")
def script(request):
    path = request.config.rootpath / "docs" / "make_coverage.py"
    spec = importlib.util.spec_from_file_location("make_coverage", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_bounds_hold_as_often_as_they_say(script):
    rows = script.simulate()
    names = [name for name, _, _ in script.cases()]
    assert {"AMCAR", "AsMAR", "AIMI"} <= set(names)
    assert {(row.learner, row.behaviour) for row in rows} == {
        (name, behaviour) for name in names for behaviour in ("blind", "adaptive")
    }
    for row in rows:
        assert row.datasets >= 1_000
        assert row.p_value > LEVEL, row
    assert script.coverage_table(rows) in script.PAGE.read_text(), "run `make tables`"


@pytest.mark.slow
def test_bounds_for_a_fixed_number_of_samples_fail_who_peeks(script):
    rows = {(row.behaviour, row.method): row for row in script.simulate_peeking()}
    for method in ("okamoto", "clopper-pearson", "weissman", "auto"):
        assert rows["blind", method].p_value < LEVEL
    for method in script.METHODS:
        assert rows["adaptive", method].p_value > LEVEL
    assert script.peeking_table(list(rows.values())) in script.PAGE.read_text(), "run `make tables`"


def test_a_few_datasets_agree(script):
    """The quick part: nothing of the machinery is broken (60 datasets; level 1e-3 per row, seeds fixed)."""
    for row in script.simulate(datasets=20):
        assert row.p_value > LEVEL, row


def test_stopping_when_the_bound_is_wrong():
    """Somebody stops when Clopper–Pearson excludes the truth: the learner's own bounds say who is right."""
    mdp = mm.FactoredMDP(
        {"sign": [0, 1]},
        ["wait"],
        lambda state, action: [((0,), 0.5), ((1,), 0.5)],
        0.0,
        {(0,): 1.0},
        discount=0.9,
    )
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"sign": 0.3}))
    stopped = right = 0
    for seed in range(30):
        data = mm.collect(model, 1_000, seed=seed, horizon=1_000, threads=1)
        for steps in range(20, 1_001, 20):
            learner = mm.AMCAR(smoothing=0.0).fit(prefix(data, steps))
            if not inside(learner.bound(0.9, "clopper-pearson", behaviour="blind"), 0.3):
                stopped += 1
                right += inside(learner.bound(0.9, behaviour="adaptive"), 0.3)
                break
    assert stopped > 6, "with 50 looks far more than one in ten is excluded at some time"
    assert stopped - right <= 6, (
        "the mixture fails for at most 1 in 10; P(more than 6 of 30) < 0.03, seeds fixed"
    )


def prefix(data, steps):
    """Return the first steps of a dataset with one episode."""
    actions = np.array(data.actions[:steps])
    actions[-1] = -1
    return mm.Dataset(data.mdp, data.observations[:steps], actions, np.array([0, steps]), np.array([False]))


def inside(bound, probability):
    (group,) = bound.per_group
    missing = np.flatnonzero(~group.patterns[:, 0])[0]
    return group.lower[missing] <= probability <= group.upper[missing]

"""Bounds hold as often as they say, over 1,000 datasets, and docs/bounds.md says what came out."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from missmdp.experiments.grid.cell import run_cell
from missmdp.experiments.studies.bounds import (
    BOUNDS,
    CASES,
    CONFIDENCE,
    METHODS,
    CoverageCell,
    PeekingCell,
)

LEVEL = 1e-3
"""Of each one-sided binomial test. Seeds are fixed, so that a pass stays a pass."""


def p_value(held, datasets):
    """Return P(at most as many held | each holds with the stated confidence)."""
    return stats.binom.cdf(held, datasets, CONFIDENCE)


@pytest.fixture(scope="module")
def found():
    return {cell: run_cell(cell) for cell in BOUNDS.cells()}


@pytest.mark.slow
def test_bounds_hold_as_often_as_they_say(found):
    cells = [cell for cell in found if isinstance(cell, CoverageCell)]
    assert {"AMCAR", "AsMAR", "AIMI"} <= set(CASES)
    assert {(cell.case, cell.behaviour) for cell in cells} == set(product(CASES, ("blind", "adaptive")))
    for cell in cells:
        assert cell.datasets >= 1_000
        for method in METHODS:
            assert p_value(found[cell].found[method]["held"], cell.datasets) > LEVEL, (cell, method)


@pytest.mark.slow
def test_bounds_for_a_fixed_number_of_samples_fail_who_peeks(found):
    held = {cell.behaviour: result.found for cell, result in found.items() if isinstance(cell, PeekingCell)}
    for method in ("okamoto", "clopper-pearson", "weissman", "auto"):
        assert p_value(held["blind"][method], 1_000) < LEVEL
    for method in METHODS:
        assert p_value(held["adaptive"][method], 1_000) > LEVEL


@pytest.mark.slow
def test_the_page_says_what_came_out(found, request):
    text = (request.config.rootpath / "docs" / "bounds.md").read_text()
    for table in BOUNDS.tables(BOUNDS.rows(found)).values():
        assert table in text, "run `make tables`"


def test_a_few_datasets_agree():
    """The quick part: nothing of the machinery is broken (20 datasets; level 1e-3 per row, seeds fixed)."""
    for case, behaviour in product(CASES, ("blind", "adaptive")):
        result = run_cell(CoverageCell(case, behaviour, datasets=20))
        for method, own in result.found.items():
            assert p_value(own["held"], 20) > LEVEL, (case, behaviour, method)


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

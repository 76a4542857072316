"""Certificates where value iteration would never end: bounds hold wherever it stops."""

from __future__ import annotations

import numpy as np
import pytest

import missmdp as mm
from missmdp.evaluation.certificate import controller_value, uniform
from missmdp.evaluation.certificate.uniform import policy_uniform, value_span


def model(discount):
    mdp = mm.FactoredMDP(
        features={"x": range(2)},
        actions=["stay", "move"],
        transition=lambda state, action: {state: 0.9, (1 - state.x,): 0.1},
        reward=lambda state, action: state.x - 0.5 * (action == "move"),
        initial={(0,): 1.0},
        discount=discount,
    )
    return mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda state: 0.5}))


@pytest.fixture
def few_sweeps(monkeypatch):
    for module in (uniform, controller_value):
        monkeypatch.setattr(module, "MOST_SWEEPS", 50)


def test_bounds_that_are_cut_short_are_wider(monkeypatch, few_sweeps):
    mdp = model(0.99).mdp
    cut, cut_by = value_span(mdp), policy_uniform(value_span(mdp), np.full(2, 0.1))
    monkeypatch.undo()
    full, full_by = value_span(mdp), policy_uniform(value_span(mdp), np.full(2, 0.1))
    assert (cut.low <= full.low + 1e-6).all()
    assert (cut.high >= full.high - 1e-6).all()
    assert cut_by >= full_by - 1e-6


@pytest.mark.parametrize("discount", [0.9999999, 1.0 - 1e-12])
def test_discounts_next_to_one_end(few_sweeps, discount):
    """Far beyond what sweeps can settle, by rounding alone."""
    truth = model(discount)
    learner = mm.AMCAR().fit(mm.collect(truth, 2000, seed=0, progress=False))
    solver = mm.Sarsop(timeout=0.2, progress=False)
    result = solver.solve(truth.with_missingness(learner.missingness_))
    found = mm.certify(result, learner, confidence=0.95, solver=solver, progress=False)
    assert found.epsilon >= 0.0

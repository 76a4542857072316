"""Two searches after each other: whose limits count, what the second knows of the first, and what becomes of both."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from missmdp.plan.factored.parts import Parts
from missmdp.plan.sarsop import solver, structured
from missmdp.plan.sarsop.structured import after, is_spent, joined
from missmdp.plan.stopping import Goal
from missmdp.plan.trace import TraceBuilder
from random_factored import random_factored


@pytest.fixture(scope="module")
def parts() -> Parts:
    return Parts(random_factored(13))


def result(parts: Parts, lower: float, upper: float, status="trials", trials: int = 3) -> mm.SolveResult:
    trace = TraceBuilder()
    for k in range(trials + 1):
        trace.append(seconds=k, trials=k, backups=5 * k, lower=lower, upper=upper, vectors=1, points=1)
    return mm.SolveResult(
        policy=mm.MemoryPolicy.from_action(parts.model, parts.model.actions[0]),
        lower=lower,
        upper=upper,
        status=status,
        trace=trace.build(),
        beliefs=sparse.csr_array((0, parts.model.n_states)),
        seconds=1.0,
    )


def test_a_search_that_was_to_be_brief_has_not_reached_the_limit_of_the_user(monkeypatch):
    """As many trials are allowed as a brief search may make, but its time is over at once."""
    called = []

    def solve_structured(*given):
        called.append(given)

    monkeypatch.setattr(structured, "_BRIEF_SHARE", 0.0)
    monkeypatch.setattr(structured, "_BRIEF_TRIALS", 1)
    monkeypatch.setattr(solver, "solve_structured", solve_structured)
    found = mm.Sarsop(precision=0.0, max_trials=1, timeout=60.0).solve(mm.load_benchmark("fleet-3"))
    assert len(called) == 1
    assert (found.status, found.trace.trials[-1], found.sources) == ("trials", 1, "")


def test_no_second_search_where_the_trials_of_the_user_are_made(monkeypatch):
    monkeypatch.setattr(solver, "solve_structured", None)
    found = mm.Sarsop(precision=0.0, max_trials=1, timeout=60.0).solve(mm.load_benchmark("fleet-3"))
    assert (found.status, found.trace.trials[-1]) == ("trials", 1)


def test_trials_count_on_in_the_next_search(parts):
    first = result(parts, 1.0, 2.0, trials=3)
    assert after(Goal(1e-3), first).max_trials is None
    assert after(Goal(1e-3, max_trials=5), first).max_trials == 2
    assert after(Goal(1e-3, max_trials=5), None).max_trials == 5
    assert not is_spent(Goal(1e-3, max_trials=4), first)
    assert is_spent(Goal(1e-3, max_trials=3), first)
    assert not is_spent(Goal(1e-3), first)


def test_the_goal_of_the_next_search_knows_the_bounds_of_the_first(parts):
    goal = after(Goal(0.01), result(parts, 1.0, 2.0))
    assert not goal.is_reached(0.5, 3.0, 1.0)
    assert goal.is_reached(0.5, 1.005, 1.0)
    assert goal.is_reached(1.99, 3.0, 1.0)


def test_the_next_search_ends_as_soon_as_both_together_are_precise():
    """The structured search begins with an upper bound that a lower one is known to be close to."""
    model = random_factored(13)
    goal = Goal(1e-3)
    alone = structured.solve_structured(
        Parts(model), solver.SearchLimits(), Goal(1e-3, None, 1), lambda text: None, 1
    )
    assert alone is not None
    known = result(Parts(model), alone.upper - 1e-9, alone.upper + 1.0)
    found = structured.solve_structured(
        Parts(model), solver.SearchLimits(), after(goal, known), lambda text: None, 1
    )
    assert found is not None
    assert found.status == "precision"
    assert found.upper - found.lower > 1e-3 * abs(found.lower)
    assert len(found.trace) <= len(alone.trace)


@pytest.mark.parametrize("status", ["timeout", "converged", "precision"])
def test_two_results_that_are_precise_together(parts, status):
    first, second = result(parts, 1.0, 2.0), result(parts, 0.0, 1.0005, status)
    both = joined(parts, first, second, Goal(1e-3))
    assert (both.lower, both.upper, both.status) == (1.0, 1.0005, "precision")
    apart = joined(parts, first, result(parts, 0.0, 1.5, "timeout"), Goal(1e-3))
    assert (apart.lower, apart.upper, apart.status) == (1.0, 1.5, "timeout")
    assert (np.diff(apart.trace.trials) >= 0).all()


def test_bounds_that_cross_are_reported(parts, caplog):
    with caplog.at_level(logging.ERROR):
        both = joined(parts, result(parts, 1.0, 2.0), result(parts, 0.0, 1.0), Goal(1e-3))
        assert not caplog.records
        both = joined(parts, result(parts, 1.0, 2.0), result(parts, 0.0, 0.9), Goal(1e-3))
    assert "the bounds cross: lower 1.0, upper 0.9" in caplog.text
    assert (both.lower, both.upper) == (1.0, 1.0)


def test_bounds_of_a_structured_search_that_cross_are_reported(parts, caplog, monkeypatch):
    def run(search):
        search.lower, search.upper = 2.0, 1.0
        return "converged"

    monkeypatch.setattr(structured.StructuredSearch, "run", run)
    with caplog.at_level(logging.ERROR):
        structured.solve_structured(parts, solver.SearchLimits(), Goal(1e-3), lambda text: None, 1)
    assert "the bounds cross: lower 2.0, upper 1.0" in caplog.text

"""Two searches after each other: whose limits count, what the second knows of the first, and what becomes of both."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import sparse

import missmdp as mm
from missmdp.plan.factored.parts import Parts
from missmdp.plan.sarsop import solver, structured
from missmdp.plan.sarsop.structured import after, brief, is_last, joined
from missmdp.plan.stopping import Goal, SearchLimits
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
    """Its share of the time is over at once, and there is time left."""
    called = []

    def solve_structured(*given):
        called.append(given)

    monkeypatch.setattr(solver, "BRIEF_SHARE", 0.0)
    monkeypatch.setattr(solver, "solve_structured", solve_structured)
    found = mm.Sarsop(precision=0.0, max_trials=1, timeout=60.0).solve(mm.load_benchmark("plant-3"))
    assert len(called) == 1
    assert (found.status, found.trace.trials[-1], found.sources) == ("trials", 1, "")


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_search_that_comes_first_has_a_share_of_the_time(share):
    limits = SearchLimits(100.0)
    with limits.shortened(share):
        assert 100.0 * share - 1.0 < limits.left <= 100.0 * share
        limits.keep_back(1.0, 0.5)
    assert limits.left > 99.0
    assert limits.stopped_by is None
    with SearchLimits().shortened(share):
        pass


def test_a_search_that_comes_first_is_the_last_where_nothing_is_left_to_do(parts):
    goal, plenty, over = Goal(1e-3), SearchLimits(100.0), SearchLimits(0.0)
    for status, last in {"precision": True, "converged": True, "interrupted": True, "memory": False}.items():
        assert is_last(goal, plenty, result(parts, 1.0, 2.0, status)) == last
    assert not is_last(goal, plenty, result(parts, 1.0, 2.0, "timeout"))
    assert is_last(goal, over, result(parts, 1.0, 2.0, "timeout"))


def test_no_trial_begins_after_enough_work(monkeypatch):
    """Without a limit on time, work is what ends a search that comes first."""
    monkeypatch.setattr(structured, "_BRIEF_WORK", 0.0)
    assert brief(Goal(1e-3)).most_work == 0.0
    monkeypatch.setattr(solver, "solve_structured", lambda *given: None)
    monkeypatch.setattr(solver, "lists_last", lambda *given: False)
    found = mm.Sarsop(precision=0.0).solve(mm.load_benchmark("plant-3"))
    assert (found.status, found.trace.trials[-1]) == ("trials", 0)


def test_no_second_search_where_the_trials_of_the_user_are_made(monkeypatch):
    monkeypatch.setattr(solver, "solve_structured", None)
    found = mm.Sarsop(precision=0.0, max_trials=1, timeout=60.0).solve(mm.load_benchmark("plant-3"))
    assert (found.status, found.trace.trials[-1]) == ("trials", 1)


def test_trials_count_on_in_the_next_search(parts):
    first = result(parts, 1.0, 2.0, trials=3)
    assert after(Goal(1e-3), first).max_trials is None
    assert after(Goal(1e-3, max_trials=5), first).max_trials == 2
    assert after(Goal(1e-3, max_trials=5), None).max_trials == 5
    limits = SearchLimits()
    assert not is_last(Goal(1e-3, max_trials=4), limits, first)
    assert is_last(Goal(1e-3, max_trials=3), limits, first)
    assert not is_last(Goal(1e-3), limits, first)


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

"""The structured search as a part of the solver: when it is used, and what becomes of its bounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from scipy import sparse

from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.search import StructuredSearch, listed_entries
from missmdp.plan.factored.team import Team
from missmdp.plan.solving import SolveResult
from missmdp.plan.stopping import Goal, SearchLimits

_FEW_LISTED = 1e5
"""Joint probabilities up to which a search with listed states and observations comes first."""
_MOST_LISTED = 2e7
"""Joint probabilities up to which it follows where the structured search finds nothing more."""
_BRIEF_TRIALS = 30
_BRIEF_SHARE = 0.25
"""How many trials, and which share of the time, it has if it comes first."""
_BY_VECTORS = "lower bound and policy from α-vectors"
_BY_MEMORY = "lower bound and policy from a memory with one node per feature"
_BY_ACTION = "lower bound and policy from one action for ever"
_BY_POINTS = "upper bound from beliefs that were explored"
_BY_GRID = "upper bound from a grid of beliefs, one axis per feature"
_BY_REWARDS = "{} from the rewards alone"
BY_REWARDS_ALONE = "both bounds from the rewards alone"
"""Where the bounds came from."""


def lists_first(parts: Parts) -> bool:
    """Return whether states and observations are so few that they are listed first."""
    return listed_entries(parts) <= _FEW_LISTED


def lists_last(parts: Parts, structured: SolveResult | None) -> bool:
    """Return whether to go on with listed states and observations after what the structured search has found."""
    return structured is None or (structured.status == "converged" and listed_entries(parts) <= _MOST_LISTED)


def brief(goal: Goal, timeout: float | None) -> Goal:
    """Return a goal for a search that comes first: the same, but it ends sooner."""
    trials = _BRIEF_TRIALS if goal.max_trials is None else min(goal.max_trials, _BRIEF_TRIALS)
    until = float("inf") if timeout is None else _BRIEF_SHARE * timeout
    return replace(goal, max_trials=trials, until=until)


def solve_structured(
    parts: Parts, limits: SearchLimits, goal: Goal, say: Callable[[str], None], threads: int | None
) -> SolveResult | None:
    """Return what the structured search finds, with so many threads; None if too much is tied together."""
    with Team(threads or os.cpu_count() or 1) as team:
        search = StructuredSearch(parts, limits, goal, say, team)
        try:
            status = search.run()
        except TooTiedError:
            return None
    return SolveResult(
        policy=search.policy(),
        lower=search.lower,
        upper=max(search.upper, search.lower),
        status=status,
        trace=search.trace.build(),
        beliefs=sparse.csr_array((0, parts.model.n_states)),
        seconds=limits.seconds,
        sources=_sources(search),
    )


def _sources(search: StructuredSearch) -> str:
    """Return where the bounds of a structured search came from."""
    if not search.has_lower and not search.has_upper:
        return BY_REWARDS_ALONE
    below = _BY_ACTION if search.memory is None else _BY_MEMORY
    return "; ".join(
        [
            below if search.has_lower else _BY_REWARDS.format("lower bound and policy"),
            _BY_GRID if search.has_upper else _BY_REWARDS.format("upper bound"),
        ]
    )


def _source(result: SolveResult, bound: str, otherwise: str) -> str:
    """Return where one bound of a result came from."""
    if result.sources == BY_REWARDS_ALONE:
        return _BY_REWARDS.format(bound)
    return next((part for part in result.sources.split("; ") if part.startswith(bound)), otherwise)


def joined(first: SolveResult | None, second: SolveResult) -> SolveResult:
    """Return the better of both results, bound by bound; the second one came later."""
    if first is None:
        return second
    better = second if second.lower >= first.lower else first
    tighter = second if second.upper <= first.upper else first
    return replace(
        second,
        policy=better.policy,
        controller=better.controller,
        lower=better.lower,
        upper=max(tighter.upper, better.lower),
        trace=first.trace.followed_by(second.trace),
        beliefs=second.beliefs if second.beliefs.shape[0] else first.beliefs,
        sources="; ".join(
            [
                _source(better, "lower bound and policy", _BY_VECTORS),
                _source(tighter, "upper bound", _BY_POINTS),
            ]
        ),
    )

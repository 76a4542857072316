"""The structured search as a part of the solver: when it is used, and what becomes of its bounds."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace

from scipy import sparse

from missmdp.plan.factored.alike.model import find_alike
from missmdp.plan.factored.alike.search import AlikeSearch
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.search import StructuredSearch, listed_entries
from missmdp.plan.factored.team import Team
from missmdp.plan.solving import SolveResult
from missmdp.plan.stopping import Goal, SearchLimits

_FEW_LISTED, _FEW_IF_ALIKE = 5e5, 2e3
"""Joint probabilities up to which a search with listed states and observations comes first; fewer if all are alike."""
_MOST_LISTED = 2e7
"""Joint probabilities up to which it follows if the structured search finds nothing more."""
_BRIEF_TRIALS, _BRIEF_WORK = 30, 1e10
"""How many trials the search with lists has if it comes first; none begins after so many multiplications."""
BRIEF_SHARE = 0.5
"""The share of the time limit that it then has."""
_CROSSING = 1e-9
"""Of the largest value that is possible: bounds that cross by less cross by rounding."""

_log = logging.getLogger(__name__)


def lists_first(parts: Parts) -> bool:
    """Return whether states and observations are so few that they are listed first."""
    entries = listed_entries(parts)
    return entries <= _FEW_LISTED and (entries <= _FEW_IF_ALIKE or find_alike(parts) is None)


def lists_last(parts: Parts, structured: SolveResult | None) -> bool:
    """Return whether to go on with listed states and observations after what the structured search has found."""
    if structured is None:
        return True
    few = listed_entries(parts) <= _MOST_LISTED or structured.upper_source == "sight"
    return structured.status == "exhausted" and few


def brief(goal: Goal) -> Goal:
    """Return a goal for a search that comes first: the same, but it ends sooner."""
    trials = _BRIEF_TRIALS if goal.max_trials is None else min(goal.max_trials, _BRIEF_TRIALS)
    return replace(goal, max_trials=trials, most_work=_BRIEF_WORK)


def is_last(goal: Goal, limits: SearchLimits, result: SolveResult) -> bool:
    """Return whether a search that came first is also the last: it did not end merely because it was to be brief."""
    if result.status == "timeout":
        return limits.left <= 0.0
    spent = goal.max_trials is not None and _trials(result) >= goal.max_trials
    return result.status not in ("trials", "memory") or spent


def after(goal: Goal, result: SolveResult | None) -> Goal:
    """Return a goal for a search that follows another: the bounds of both count, and so do the trials."""
    if result is None:
        return goal
    trials = None if goal.max_trials is None else max(goal.max_trials - _trials(result), 0)
    return replace(goal, max_trials=trials, lower=result.lower, upper=result.upper)


def _trials(result: SolveResult) -> int:
    return int(result.trace.trials[-1]) if len(result.trace) else 0


def solve_structured(
    parts: Parts, limits: SearchLimits, goal: Goal, say: Callable[[str], None], threads: int | None
) -> SolveResult | None:
    """Return what the structured search finds, with so many threads; None if too much is tied together."""
    with Team(threads or os.cpu_count() or 1) as team:
        alike = find_alike(parts)
        search = (
            StructuredSearch(parts, limits, goal, say, team)
            if alike is None
            else AlikeSearch(parts, limits, goal, say, team, alike=alike)
        )
        try:
            status = search.run()
        except TooTiedError:
            return None
    _check_order(search.lower, search.upper, _scale(parts))
    return SolveResult(
        policy=search.policy(),
        lower=search.lower,
        upper=max(search.upper, search.lower),
        status=status,
        trace=search.trace.build(),
        beliefs=sparse.csr_array((0, parts.model.n_states)),
        seconds=limits.seconds,
        lower_source=search.lower_source,
        upper_source=search.upper_source,
    )


def joined(parts: Parts, first: SolveResult | None, second: SolveResult, goal: Goal) -> SolveResult:
    """Return the better of both results, bound by bound; the second one came later."""
    if first is None:
        return second
    scale = _scale(parts)
    better = second if second.lower >= first.lower else first
    tighter = second if second.upper <= first.upper else first
    _check_order(better.lower, tighter.upper, scale)
    upper = max(tighter.upper, better.lower)
    return replace(
        second,
        policy=better.policy,
        make_controller=better.make_controller,
        lower=better.lower,
        upper=upper,
        # Bounds that are apart in each search may be close together.
        status="precision" if goal.is_reached(better.lower, upper, scale) else second.status,
        trace=first.trace.followed_by(second.trace),
        beliefs=second.beliefs if second.beliefs.shape[0] else first.beliefs,
        lower_source=better.lower_source,
        upper_source=tighter.upper_source,
    )


def _scale(parts: Parts) -> float:
    """Return the largest value that is possible."""
    return max(abs(float(parts.reward.min())), abs(float(parts.reward.max()))) / (1.0 - parts.discount)


def _check_order(lower: float, upper: float, scale: float) -> None:
    """Log it where bounds cross by more than rounding: then one of them does not hold."""
    if upper < lower - _CROSSING * scale:
        _log.error("the bounds cross: lower %r, upper %r; please report this", lower, upper)

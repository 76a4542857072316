"""The structured search as a part of the solver: when it is used, and what becomes of its bounds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.search import StructuredSearch, listed_entries, structured_parts
from missmdp.plan.factored.team import Team
from missmdp.plan.sarsop.loop import Goal
from missmdp.plan.sarsop.search import SearchLimits
from missmdp.plan.solving import SolveResult
from missmdp.plan.stopping import Status

_MOST_LISTED = 2e7
"""Joint probabilities up to which a search with listed states and observations follows the structured one."""
_BY_MEMORY = "lower bound and policy from a memory with one node per feature"
_BY_GRID = "upper bound from a grid of beliefs, one axis per feature"


@dataclass
class Structured:
    """What the structured search found."""

    search: StructuredSearch
    status: Status
    goes_on: bool
    """Whether the model is small enough to go on with listed states and observations, and there is reason to."""

    def result(self, limits: SearchLimits) -> SolveResult:
        """Return it as a result."""
        search = self.search
        return SolveResult(
            policy=search.policy(),
            lower=search.lower,
            upper=max(search.upper, search.lower),
            status=self.status,
            trace=search.trace.build(),
            beliefs=sparse.csr_array((0, search.parts.model.n_states)),
            seconds=limits.seconds,
            sources=f"{_BY_MEMORY}; {_BY_GRID}",
        )

    def joined(self, listed: SolveResult, limits: SearchLimits) -> SolveResult:
        """Return the better of both, bound by bound."""
        search = self.search
        is_better = listed.lower >= search.lower
        lower, upper = max(listed.lower, search.lower), min(listed.upper, search.upper)
        sources = [
            "lower bound and policy from α-vectors" if is_better else _BY_MEMORY,
            "upper bound from beliefs that were explored" if listed.upper <= search.upper else _BY_GRID,
        ]
        return replace(
            listed,
            policy=listed.policy if is_better else search.policy(),
            controller=listed.controller if is_better else None,
            lower=lower,
            upper=max(upper, lower),
            trace=search.trace.build().followed_by(listed.trace),
            seconds=limits.seconds,
            sources="; ".join(sources),
        )


def solve_structured(
    model: MissMDP,
    limits: SearchLimits,
    goal: Goal,
    say: Callable[[str], None],
    threads: int | None,
) -> Structured | None:
    """Return what the structured search finds, with so many threads; None if the model is not one for it."""
    parts = structured_parts(model)
    if parts is None:
        return None
    with Team(threads or os.cpu_count() or 1) as team:
        search = StructuredSearch(parts, limits, goal, say, team)
        try:
            status = search.run()
        except TooTiedError:
            return None
    return Structured(search, status, status == "converged" and listed_entries(parts) <= _MOST_LISTED)

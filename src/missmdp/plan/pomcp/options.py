"""How POMCP searches: what users may choose, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from missmdp.checks import checked_integer
from missmdp.errors import ModelError
from missmdp.model.probabilities import number
from missmdp.plan.pomcp.memory import search_bytes

__all__ = ["BeliefKind", "SearchOptions", "checked_options"]

BeliefKind = Literal["particles", "exact"]
"""What simulations start from."""

_AT_ONCE = 256
"""Simulations between two looks at the clock."""
_MOST_STEPS = 10**7
"""Simulated steps in one call of a kernel: half a second at 50 ns each, during which nothing can be interrupted."""
_MOST_BYTES = 8 * 2**30
"""No search may take more memory than this."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search; see `POMCP`."""

    max_depth: int
    exploration: float
    tree_queries: int
    max_time: float | None
    belief: BeliefKind
    particles: int
    """How many particles there are; 0 where the belief is exact."""

    @property
    def at_once(self) -> int:
        """How many simulations are run in one call."""
        most = max(1, _MOST_STEPS // self.max_depth)
        return min(self.tree_queries, most if self.max_time is None else min(most, _AT_ONCE))

    def is_short(self, horizon: int) -> bool:
        """Return whether a whole episode can be left to one call of a kernel."""
        per_decision = self.tree_queries * self.max_depth + self.particles
        return self.max_time is None and horizon * per_decision <= _MOST_STEPS

    def check_memory(self, n_actions: int) -> None:
        """Raise `ModelError` if a search would take too much memory."""
        needed = search_bytes(
            n_actions, max_depth=self.max_depth, tree_queries=self.tree_queries, particles=self.particles
        )
        total, largest = sum(needed.values()), max(needed, key=needed.__getitem__)
        if total > _MOST_BYTES:
            raise ModelError(
                f"a search with tree_queries={self.tree_queries:,}, particles={self.particles:,} and "
                f"max_depth={self.max_depth:,} for {n_actions} actions would take {total // 2**30:,} GB; "
                f"choose a smaller {largest}"
            )

    def __str__(self) -> str:
        text = f"{self.tree_queries:,} simulations of depth {self.max_depth}"
        if self.max_time is not None:
            text = f"at most {text} and {self.max_time:g} s"
        start = "the exact belief" if self.belief == "exact" else f"{self.particles:,} particles"
        return f"{text} per decision, from {start}, exploration {self.exploration:g}"


def checked_options(
    *,
    max_depth: Any,
    exploration: Any,
    tree_queries: Any,
    max_time: Any,
    belief: Any,
    particles: Any,
) -> SearchOptions:
    """Return options; raise an error that names what cannot be."""
    if belief not in get_args(BeliefKind):
        raise ModelError(f"belief must be 'particles' or 'exact', got {belief!r}")
    if particles is not None and belief == "exact":
        raise ModelError("with belief='exact' there are no particles: leave particles out")
    queries = checked_integer("tree_queries", tree_queries, least=1)
    if queries >= 2**31:
        raise ModelError(f"tree_queries must be below 2³¹, got {tree_queries!r}")
    count = queries if particles is None else checked_integer("particles", particles, least=1)
    return SearchOptions(
        max_depth=checked_integer("max_depth", max_depth, least=1),
        exploration=_at_least_zero(exploration, "exploration"),
        tree_queries=queries,
        max_time=None if max_time is None else _at_least_zero(max_time, "max_time"),
        belief=belief,
        particles=0 if belief == "exact" else count,
    )


def _at_least_zero(value: Any, what: str) -> float:
    amount = number(value, what)
    if isinstance(value, bool) or not 0.0 <= amount < math.inf:
        raise ModelError(f"{what} must be a finite number of at least 0, got {value!r}")
    return amount

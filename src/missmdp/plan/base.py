"""The contract of solvers: a model in, a policy and bounds on its value out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.trace import Trace, TraceBuilder, TraceRow

__all__ = ["SolveResult", "Solver", "Status", "Trace", "TraceBuilder", "TraceRow"]

Status = Literal["precision", "converged", "timeout", "memory", "trials", "interrupted"]
"""Why a search ended: the precision was reached, nothing was left to do, or a limit was hit."""

_ENDS: dict[Status, str] = {
    "precision": "reached its precision",
    "converged": "converged",
    "timeout": "stopped by timeout",
    "memory": "stopped by the limit on memory",
    "trials": "stopped by the limit on trials",
    "interrupted": "interrupted",
}


@dataclass(frozen=True, eq=False)
class SolveResult:
    """What a solver found: lower ≤ value of the policy ≤ value of the best policy ≤ upper, at the start.

    Whatever made the search stop, the bounds hold.
    """

    policy: AlphaVectorPolicy
    """The policy; its value at the start is at least `lower`."""
    lower: float
    upper: float
    """No policy has a higher value at the start."""
    status: Status
    """Why the search ended."""
    trace: Trace
    """The bounds over time."""
    beliefs: sparse.csr_array
    """The beliefs that were explored, one per row, from which a later search can start; shape (points, S)."""
    seconds: float
    """Initialisation and search, without compilation."""
    controller: FiniteController | None = field(default=None, repr=False)
    """The plans of the vectors as a policy that tracks no belief; its value at the start is at least `lower` too."""

    @property
    def gap(self) -> float:
        """Upper − lower."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """(upper − lower)/|lower|; infinite where lower is 0 and upper is not."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / abs(self.lower) if self.lower != 0.0 else math.inf

    @property
    def bounds_text(self) -> str:
        """The bounds and their gap, in words."""
        low, high = _bounds(self.lower, self.upper)
        share = f", {_short(100 * self.relative_gap)} %" if self.relative_gap < 10.0 else ""
        return f"value in [{low}, {high}] (gap {_short(self.gap)}{share})"

    @property
    def ended(self) -> str:
        """Why the search ended, in words."""
        return _ENDS.get(self.status, self.status)

    def __str__(self) -> str:
        text = f"{self.bounds_text}, {self.ended} after {self.seconds:.1f} s"
        if len(self.trace):
            last = self.trace.rows()[-1]
            text += f": {_count(last.trials, 'trial')}, {_count(last.backups, 'backup')}, "
            return text + _count(self.policy.n_vectors, "vector")
        return f"{text}: {_count(self.policy.n_vectors, 'vector')}"

    def __repr__(self) -> str:
        return f"SolveResult({self})"

    def describe(self) -> str:
        """Return the result in a few lines of text."""
        relative = (
            f" ({_short(100 * self.relative_gap)} % of the lower bound)" if self.relative_gap < 10.0 else ""
        )
        lines = [
            f"lower bound   {self.lower:.10g}   what the policy is worth at the start, at least",
            f"upper bound   {self.upper:.10g}   what any policy is worth there, at most",
            f"gap           {self.gap:.6g}{relative}",
            f"status        {self.status}: {self.ended} after {self.seconds:.1f} s",
            f"policy        {_count(self.policy.n_vectors, 'vector')} in "
            f"{_count(len(self.policy.components), 'component')}",
            f"explored      {_count(self.beliefs.shape[0], 'belief')}",
        ]
        return "\n".join(lines)

    def plot(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw the bounds over time into an SVG, PNG or PDF file and return its path."""
        return self.trace.plot(path, title=title)


@runtime_checkable
class Solver(Protocol):
    """Anything that plans."""

    def solve(self, model: MissMDP | POMDP) -> SolveResult:
        """Return a policy for a model, with bounds."""
        ...


def _bounds(lower: float, upper: float) -> tuple[str, str]:
    """Return two bounds with the decimals that it takes to tell them apart, two at least, rounded outwards."""
    gap = upper - lower
    decimals = 2 if not 0.0 < gap < math.inf else min(12, max(2, 1 - math.floor(math.log10(gap))))
    return _rounded(lower, decimals, ROUND_FLOOR), _rounded(upper, decimals, ROUND_CEILING)


def _rounded(value: float, decimals: int, direction: str) -> str:
    if not abs(value) < 1e15:
        # So large that decimals mean nothing, or infinite.
        return _signed(f"{value:.17g}")
    return _signed(f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=direction):f}")


def _short(value: float) -> str:
    return _signed(f"{value:.2g}") if abs(value) < 1.0 else _signed(f"{value:,.2f}")


def _signed(number: str) -> str:
    return f"−{number[1:]}" if number.startswith("-") else number


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")

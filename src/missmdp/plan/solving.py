"""The contract of solvers: a model in, a result with a policy out, and bounds on its value where there are any.

`Sarsop`, `OnlinePlanner`, `POMCP` and `PPO` keep it, and so can a solver of your own. Every solver of missmdp takes
`seed`, `timeout` and `progress`. Every result has `policy`, `seconds` and `status`. Only some solvers know bounds:
`has_bounds` says which, and without bounds `lower`, `upper`, `gap` and `relative_gap` are None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.stopping import Status
from missmdp.plan.trace import LowerSource, Trace, UpperSource
from missmdp.words import count, gap_text, outward, printable, short

_ENDS: dict[Status, str] = {
    "precision": "reached its precision",
    "converged": "converged",
    "exhausted": "with nothing more to try",
    "timeout": "stopped by timeout",
    "memory": "stopped by the limit on memory",
    "trials": "stopped by the limit on trials",
    "interrupted": "interrupted",
    "trained": "trained",
    "online": "plans while acting",
}


_LOWER: dict[LowerSource, str] = {
    "vectors": "α-vectors",
    "memory": "a memory with one node per feature",
    "observation": "the last observation alone",
    "action": "one action for ever",
    "rewards": "the rewards alone",
}
_UPPER: dict[UpperSource, str] = {
    "points": "beliefs that were explored",
    "grid": "a grid of beliefs, one axis per feature",
    "sight": "full observation",
    "rewards": "the rewards alone",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PlanResult:
    """What a solver found: a policy, and bounds on its value if the solver knows any."""

    policy: Policy
    """What to do; `policy.agent()` is deployed, and `evaluate` says what it is worth."""
    seconds: float
    """How long solving took, without the compilation of kernels."""
    status: Status
    """Why the solver ended."""
    lower: float | None = None
    """What the policy is worth at the start, at least; None if the solver has no bounds."""
    upper: float | None = None
    """No policy is worth more at the start; None if the solver has no bounds."""
    trace: Trace | None = None
    """The bounds over time; None if the solver has no bounds."""

    @property
    def has_bounds(self) -> bool:
        """Whether `lower` and `upper` are known."""
        return self.lower is not None and self.upper is not None

    @property
    def gap(self) -> float | None:
        """Upper − lower; None without bounds."""
        return None if self.lower is None or self.upper is None else self.upper - self.lower

    @property
    def relative_gap(self) -> float | None:
        """(upper − lower)/|lower|, infinite where lower is 0 and upper is not; None without bounds."""
        if self.lower is None or self.gap is None:
            return None
        if self.gap == 0.0:
            return 0.0
        return self.gap / abs(self.lower) if self.lower != 0.0 else math.inf

    def __str__(self) -> str:
        known = "no bounds"
        if self.lower is not None and self.upper is not None:
            known = "value in [{}, {}]".format(*outward(self.lower, self.upper))
        return f"{known}, {_ENDS.get(self.status, self.status)} after {self.seconds:.1f} s"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SolveResult(PlanResult):
    """What a solver with bounds found: lower ≤ value of the policy ≤ value of the best policy ≤ upper, at the start.

    Whatever made the search stop, the bounds hold.
    """

    policy: AlphaVectorPolicy | MemoryPolicy
    """The policy; its value at the start is at least `lower`. Models too large for α-vectors get a `MemoryPolicy`."""
    lower: float = field()
    """What the policy is worth at the start, at least."""
    upper: float = field()
    """No policy has a higher value at the start."""
    trace: Trace = field()
    """The bounds over time."""
    beliefs: sparse.csr_array
    """The beliefs that were explored, one per row, from which a later search can start; shape (points, S). There are
    none where the search does without."""
    make_controller: Callable[[], FiniteController] | None = None
    """What makes `controller`, which is large where there are many vectors and observations."""
    lower_source: LowerSource = "vectors"
    """What gave the lower bound and the policy: α-vectors, a memory with one node per feature, the last observation
    alone, one action for ever, or the rewards alone."""
    upper_source: UpperSource = "points"
    """What gave the upper bound: beliefs that were explored, a grid with one axis per feature, full observation
    (sight), or the rewards alone."""

    @cached_property
    def controller(self) -> FiniteController | None:
        """The plans of the vectors as a policy that tracks no belief; its value at the start is at least `lower` too.

        None if the policy has no vectors. It is made when it is first asked for.
        """
        return None if self.make_controller is None else self.make_controller()

    @property
    def sources(self) -> str:
        """Where each bound came from, in words; empty if both came from the search with α-vectors."""
        match self.lower_source, self.upper_source:
            case "vectors", "points":
                return ""
            case "rewards", "rewards":
                return "both bounds from the rewards alone"
            case below, above:
                return f"lower bound and policy from {_LOWER[below]}; upper bound from {_UPPER[above]}"

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
        low, high = outward(self.lower, self.upper)
        return f"value in [{low}, {high}] ({gap_text(self.lower, self.upper)})"

    @property
    def ended(self) -> str:
        """Why the search ended, in words."""
        return _ENDS.get(self.status, self.status)

    def __str__(self) -> str:
        text = f"{self.bounds_text}, {self.ended} after {self.seconds:.1f} s"
        if len(self.trace):
            last = self.trace.rows()[-1]
            text += f": {count(last.trials, 'trial')}, {count(last.backups, 'backup')}, "
            return text + self._size
        return f"{text}: {self._size}"

    @property
    def _size(self) -> str:
        """The size of the policy, in words."""
        policy = self.policy
        if isinstance(policy, MemoryPolicy):
            return count(policy.n_nodes, "node")
        return count(policy.n_vectors, "vector")

    def describe(self) -> str:
        """Return the result in a few lines of text."""
        relative = (
            f" ({short(100 * self.relative_gap)} % of the lower bound)" if self.relative_gap < 10.0 else ""
        )
        lines = [
            f"lower bound   {self.lower:.10g}   the policy is worth at least this at the start",
            f"upper bound   {self.upper:.10g}   no policy is worth more",
            f"gap           {self.gap:.6g}{relative}",
            f"status        {self.status}: {self.ended} after {self.seconds:.1f} s",
            f"policy        {self._policy}",
        ]
        if self.beliefs.shape[0]:
            lines.append(f"explored      {count(self.beliefs.shape[0], 'belief')}")
        if self.sources:
            lines.append(f"bounds        {self.sources}")
        return "\n".join(lines)

    @property
    def _policy(self) -> str:
        """The policy, in words."""
        policy = self.policy
        if not isinstance(policy, MemoryPolicy):
            return f"{self._size} in {count(len(policy.components), 'component')}"
        always = policy.only_action
        if always is not None:
            return f"always {printable(str(always))}, whatever is seen"
        return f"{self._size} of {count(len(policy.sites), 'feature')} that can go missing"

    @property
    def n_vectors(self) -> int:
        """The number of α-vectors; 0 if the policy has a memory of nodes instead."""
        return 0 if isinstance(self.policy, MemoryPolicy) else self.policy.n_vectors

    def plot(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw the bounds over time into an SVG, PNG or PDF file and return its path."""
        return self.trace.plot(path, title=title)


Result = TypeVar("Result", bound=PlanResult, covariant=True)


@runtime_checkable
class Solver(Protocol[Result]):
    """Anything that plans; `Solver[SolveResult]` also gives bounds."""

    def solve(self, model: MissMDP) -> Result:
        """Return a policy for a model, with bounds if there are any."""
        ...

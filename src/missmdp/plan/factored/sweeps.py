"""What grids (upper bounds) and memories (lower bounds) share: values that improve with every sweep."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from missmdp.plan.factored.parts import Parts
from missmdp.plan.stopping import Stopwatch


class Swept(ABC):
    """Values V by scenes, and a correction that turns them into bounds after any number of sweeps.

    If a sweep changes V by between δ and Δ, the new V + γ/(1−γ)·Δ is an upper bound and V + γ/(1−γ)·δ a lower bound.
    """

    from_above: ClassVar[bool]
    """Whether it is an upper bound."""
    parts: Parts
    values: Any
    """One tensor per scene, in a list or in one array."""
    rest: float = math.inf
    """What to add to the values to get bounds; infinite before the first sweep."""
    sweeps: int = 0

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of beliefs in a grid, or of combinations of nodes in a memory."""

    @abstractmethod
    def work(self) -> float:
        """Return about how many multiplications a sweep takes."""

    @abstractmethod
    def sweep(self, clock: Stopwatch) -> tuple[float, float]:
        """Improve all values once; return the least and the largest change."""

    @abstractmethod
    def bound(self) -> float:
        """Return the bound at the start, before the first observation."""

    def solve(self, clock: Stopwatch, precision: float, max_sweeps: int = 10_000) -> float:
        """Sweep until the bound is within a precision of the value; return the bound at the start."""
        for sweep in range(max_sweeps):
            low, high = self.sweep(clock)
            if self._future * (high - low) <= precision or sweep == max_sweeps - 1:
                break
            if not self.parts.ends:
                shift = self._future * (low + high) / 2.0
                for values in self.values:
                    values += shift
                self.rest -= shift
        return self.bound()

    def _take(self, new: Any) -> tuple[float, float]:
        """Store the values after a sweep; return the least and the largest change."""
        changes = [after - before for after, before in zip(new, self.values, strict=True)]
        low, high = min(float(one.min()) for one in changes), max(float(one.max()) for one in changes)
        if self.parts.ends:
            low, high = min(low, 0.0), max(high, 0.0)
        self.values = new
        self.sweeps += 1
        self.rest = self._future * (high if self.from_above else low)
        return low, high

    @property
    def _future(self) -> float:
        return self.parts.discount / (1.0 - self.parts.discount)

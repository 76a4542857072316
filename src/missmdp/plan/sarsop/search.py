"""One search: the compiled model, the pools, the limits, and long lists worked off in pieces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop.arrays import (
    BACKUPS,
    WORK,
    Compiled,
    Entries,
    MixtureWeights,
    Points,
    Scratch,
    Vectors,
)
from missmdp.plan.sarsop.compile import Compilation
from missmdp.plan.sarsop.controller import Controller
from missmdp.plan.sarsop.limits import Limits
from missmdp.plan.sarsop.pools import Pools

__all__ = ["BUDGET", "SMALL_AT_START", "SWEEPS_AT_START", "Search"]

BUDGET = 20_000_000
"""Multiplications between two looks at the clock: some hundredths of a second."""
SWEEPS_AT_START = 1000
SMALL_AT_START = 1e-6
"""Of the largest value that is possible: changes below it end the sweeps at the start."""
_POINTS_PER_CALL = 4096


class Search:
    """The state of a search.

    Attributes
    ----------
    controller : Controller or None
        The best policy so far, in the form of vectors; None before there is one.
    lower : float
        What it is worth at the start, at least.
    root : int
        The point of the start.
    """

    def __init__(self, compiled: Compilation, limits: Limits, random: np.random.Generator) -> None:
        self.compiled = compiled
        self.model = compiled.arrays
        self.pools = Pools(compiled.arrays)
        self.limits = limits
        self.random = random
        self.controller: Controller | None = None
        self.lower = min(compiled.lowest, 0.0)
        self.root = int(np.argmax(compiled.start))

    @property
    def upper(self) -> float:
        """The upper bound at the start."""
        return self.compiled.start_mass * float(self.pools.points.upper[self.root])

    @property
    def gap(self) -> float:
        """Upper − lower."""
        return self.upper - self.lower

    @property
    def backups(self) -> int:
        """Backups of the lower bound so far."""
        return int(self.pools.counters[BACKUPS])

    @property
    def work(self) -> int:
        """Multiplications so far, more or less."""
        return int(self.pools.counters[WORK])

    def keep_controller(self, fall: float) -> None:
        """Keep the vectors if they are worth more than what was kept.

        Those that the start needs fell by at most `fall` in the last sweep, so that each is at most γ · fall above its
        plan now, and the start's vector `fall`. Acting greedily loses at most that much per step against the vectors.
        """
        value = float(self.pools.points.value[self.root]) - fall / (1.0 - self.compiled.discount)
        value *= self.compiled.start_mass
        if self.controller is None or value > self.lower:
            self.lower = max(value, self.lower)
            self.controller = Controller.copy(self.pools.vectors, self.pools.counters, fall)

    def work_off(self, kernel: Callable[[int], int], count: int) -> None:
        """Call a kernel until all of a list is done, looking at the limits in between.

        The kernel takes the place where to go on and returns the next one, or −1 − place where it needs room.
        """
        place = 0
        while place < count:
            self.limits.check()
            reached = kernel(place)
            if reached < 0:
                self.limits.check_memory(2 * self.pools.nbytes)
                self.pools.grow()
                reached = -1 - reached
            place = reached

    def sweep(self, kernel: Callable[[NDArray[np.int64]], float], order: NDArray[np.int64]) -> float:
        """Call a kernel on all points of a list, in pieces, and return its largest result."""
        largest = 0.0
        place, size = 0, _POINTS_PER_CALL
        while place < len(order):
            self.limits.check()
            before = self.work
            largest = max(largest, kernel(order[place : place + size]))
            place += size
            size = max(1, min(size, size * BUDGET // max(self.work - before, 1)))
        return largest

    def lower_arrays(self) -> tuple[Compiled, Points, Vectors, Scratch, NDArray[np.int64]]:
        """Return what kernels of the lower bound take."""
        pools = self.pools
        return self.model, pools.points, pools.vectors, pools.scratch, pools.counters

    def upper_arrays(
        self,
    ) -> tuple[Compiled, Points, Entries, MixtureWeights, Vectors, Scratch, NDArray[np.int64]]:
        """Return what kernels of the upper bound take."""
        pools = self.pools
        return (
            self.model,
            pools.points,
            pools.entries,
            pools.weights,
            pools.vectors,
            pools.scratch,
            pools.counters,
        )

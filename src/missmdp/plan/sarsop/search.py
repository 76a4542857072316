"""One search: the compiled model, arrays that grow, the limits, and long lists worked off in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop.arrays import (
    BACKUPS,
    CHOICES,
    ENTRIES,
    N_COUNTERS,
    NEAR,
    POINTS,
    SEEN,
    SUPPORT,
    VALUES,
    VECTORS,
    WEIGHTS,
    WORK,
    Compiled,
    Entries,
    MixtureWeights,
    Points,
    Scratch,
    Seen,
    Vectors,
)
from missmdp._kernels.sarsop.near import forget_classes, list_best
from missmdp._kernels.sarsop.successors import fill_slots
from missmdp.plan.sarsop.compile import Compilation
from missmdp.plan.sarsop.controller import Controller
from missmdp.plan.stopping import SearchLimits

BUDGET = 20_000_000
"""Multiplications between two looks at the clock: some hundredths of a second."""
SWEEPS_AT_START = 1000
SMALL_AT_START = 1e-6
"""Of the largest value that is possible: changes below it end the sweeps at the start."""
CANDIDATES = 16
"""Points that are looked at again and again for a mixture, before all are."""
_POINTS_PER_CALL = 4096

Pool = TypeVar("Pool", Points, Seen, Entries, MixtureWeights, Vectors)

_FEW = 1024
"""What pools have room for at least."""
_SHARED = ("first_in_component", "n_in_component", "slots", "default", "holding", "near")
"""Arrays in pools with one entry per component or node, or that grow on their own."""
_BY_SUPPORT = ("support", "prob")
"""Arrays of points with one entry for each class of each point."""
_BY_CLASS = ("values", "planned")
"""Arrays of vectors with one entry for each class of the component."""


class Pools:
    """Points, what follows them, mixtures, vectors: everything that grows."""

    def __init__(self, model: Compiled, narrow: int, *, near: bool) -> None:
        # What one call may add to a pool is at most half of it, so a pool which is less than half full has room.
        size = 2 * max(model.reward.shape[0], len(model.node_component)) + _FEW
        self.counters = np.zeros(N_COUNTERS, dtype=np.int64)
        self.points = _new_points(model, size, near=near)
        self.seen = Seen(point=np.zeros(size, np.int32), prob=np.zeros(size))
        self.entries = _new_entries(size)
        self.weights = MixtureWeights(point=np.zeros(4 * size, np.int32), weight=np.zeros(4 * size))
        self.vectors = _new_vectors(model, near=near)
        self.scratch = _new_scratch(model, narrow)

    @property
    def n_points(self) -> int:
        """Beliefs in use, the corners included."""
        return int(self.counters[POINTS])

    @property
    def n_vectors(self) -> int:
        """Vectors in use."""
        return int(self.counters[VECTORS])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        pools = (self.points, self.seen, self.entries, self.weights, self.vectors, self.scratch)
        return sum(array.nbytes for pool in pools for array in pool)

    def grow(self) -> None:
        """Make every pool that is more than half full twice as large."""
        used = self.counters
        self.points = _larger(self.points, int(used[POINTS]), except_=_BY_SUPPORT)
        self.points = _larger(self.points, int(used[SUPPORT]), only=_BY_SUPPORT)
        if len(self.points.holding):
            self.points = _larger(self.points, int(used[SUPPORT]), only=("holding",))
        if 4 * used[POINTS] > len(self.points.slots):
            self.rehash()
        self.seen = _larger(self.seen, int(used[SEEN]))
        self.entries = _larger(self.entries, int(used[ENTRIES]))
        self.weights = _larger(self.weights, int(used[WEIGHTS]))
        self.vectors = _larger(self.vectors, int(used[VECTORS]), except_=(*_BY_CLASS, "choice"))
        self.vectors = _larger(self.vectors, int(used[VALUES]), only=_BY_CLASS)
        self.vectors = _larger(self.vectors, int(used[CHOICES]), only=("choice",))
        if len(self.vectors.near):
            self.vectors = _larger(self.vectors, int(used[NEAR]), only=("near",))

    def list_near(self, model: Compiled, narrow: int) -> None:
        """Rebuild the lists of vectors by classes, if they are kept."""
        if not len(self.vectors.near):
            return
        # Room for one entry per class of every point, and for what one backup may add: the classes of a component.
        while len(self.vectors.near) < self.counters[SUPPORT] + 2 * len(model.component_of):
            self.vectors = _larger(self.vectors, len(self.vectors.near), only=("near",))
        order = np.argsort(self.points.best[: self.n_points], kind="stable")
        last = np.empty(len(model.component_of), np.int32)
        list_best(model, self.points, self.vectors, order, narrow, self.counters, last)

    def forget_points(self, n_points: int) -> None:
        """Drop all but the first points, to which nothing else refers yet; vectors that were made there stay."""
        points, counters = self.points, self.counters
        counters[POINTS] = n_points
        counters[SUPPORT] = points.start[n_points]
        points.n_in_component[:] = np.bincount(
            points.component[:n_points], minlength=len(points.n_in_component)
        )
        first = points.first_in_component
        while (late := first >= n_points).any():
            first[late] = points.next_in_component[first[late]]
        origin = self.vectors.origin[: counters[VECTORS]]
        origin[origin >= n_points] = -1
        if len(points.holding):
            forget_classes(points.holding, len(self.scratch.row_of), counters)
        points.slots[:] = -1
        fill_slots(points, n_points)

    def rehash(self) -> None:
        """Make the hash table of points four times as large."""
        slots = np.full(4 * len(self.points.slots), -1, np.int32)
        self.points = self.points._replace(slots=slots)
        fill_slots(self.points, self.n_points)


def _new_points(model: Compiled, size: int, *, near: bool) -> Points:
    n_actions, n_components = model.reward.shape[1], len(model.component_start) - 1
    return Points(
        start=np.zeros(size + 1, np.int64),
        support=np.zeros(4 * size, np.int32),
        prob=np.zeros(4 * size),
        component=np.zeros(size, np.int32),
        next_in_component=np.zeros(size, np.int32),
        first_in_component=np.full(n_components, -1, np.int32),
        n_in_component=np.zeros(n_components, np.int64),
        holding=np.zeros((4 * size if near else 0, 2), np.int32),
        hash=np.zeros(size, np.int64),
        slots=np.full(1 << (4 * size).bit_length(), -1, np.int32),
        reward=np.zeros((size, n_actions)),
        base=np.zeros((size, n_actions)),
        q=np.zeros((size, n_actions)),
        upper=np.zeros(size),
        seen=np.zeros((size, n_actions), np.int64),
        n_seen=np.zeros((size, n_actions), np.int32),
        entries=np.zeros((size, n_actions), np.int64),
        n_entries=np.zeros((size, n_actions), np.int32),
        lower=np.zeros(size),
        best=np.zeros(size, np.int32),
        value=np.zeros(size),
        visits=np.zeros(size),
    )


def _new_entries(size: int) -> Entries:
    return Entries(
        prob=np.zeros(size),
        node=np.zeros(size, np.int32),
        hash=np.zeros(size, np.int64),
        lower=np.zeros(size),
        first=np.zeros(size, np.int64),
        size=np.zeros(size, np.int32),
        room=np.zeros(size, np.int32),
        excess=np.zeros(size),
        stamp=np.zeros(size, np.int64),
    )


def _new_vectors(model: Compiled, *, near: bool) -> Vectors:
    n_classes, n_actions = model.reward.shape
    n_components, n_nodes = len(model.component_start) - 1, len(model.node_component)
    n_vectors = 2 * n_components * n_actions + _FEW
    return Vectors(
        start=np.zeros(n_vectors, np.int64),
        values=np.zeros(2 * n_classes * n_actions + _FEW),
        planned=np.zeros(2 * n_classes * n_actions + _FEW, np.bool_),
        component=np.zeros(n_vectors, np.int32),
        action=np.zeros(n_vectors, np.int32),
        choice_start=np.zeros(n_vectors, np.int64),
        choice=np.zeros(2 * len(model.next_node) + _FEW, np.int32),
        origin=np.zeros(n_vectors, np.int32),
        fall=np.zeros(n_vectors),
        needed=np.zeros(n_vectors, np.bool_),
        next_in_component=np.zeros(n_vectors, np.int32),
        first_in_component=np.full(n_components, -1, np.int32),
        default=np.zeros(n_nodes, np.int32),
        near=np.full((4 * n_classes + _FEW if near else 0, 2), -1, np.int32),
    )


def _new_scratch(model: Compiled, narrow: int) -> Scratch:
    n_classes, n_actions = model.reward.shape
    n_nodes, n_pairs = len(model.node_component), len(model.pair_class)
    largest = int(np.diff(model.component_start).max())
    narrow = min(largest, narrow)
    return Scratch(
        joint=np.zeros(n_pairs),
        touched=np.zeros(n_nodes, np.int32),
        mark=np.zeros(n_nodes, np.bool_),
        row_of=np.full(n_classes, -1, np.int32),
        support=np.zeros(largest, np.int32),
        prob=np.zeros(largest),
        inverse=np.zeros((narrow, narrow)),
        rows=np.zeros(narrow, np.int32),
        share=np.zeros(narrow),
        level=np.zeros(largest),
        rest=np.zeros(largest),
        price=model.least.copy(),
        candidate=np.zeros(CANDIDATES, np.int32),
        saving=np.zeros(CANDIDATES),
        direction=np.zeros(largest),
        basis=np.zeros(largest, np.int32),
        weight=np.zeros(2 * largest),
        mixed=np.zeros(2 * largest, np.int32),
        per_action=np.zeros(n_actions),
        base=np.zeros(n_nodes, np.int64),
        choice=np.zeros(n_nodes, np.int32),
        best_choice=np.zeros(n_nodes, np.int32),
        seen_at=np.full(n_classes, -1, np.int64),
    )


def _larger(pool: Pool, used: int, *, only: tuple[str, ...] = (), except_: tuple[str, ...] = ()) -> Pool:
    names = only or tuple(name for name in pool._fields if name not in (*except_, *_SHARED))
    if 2 * used < min(len(getattr(pool, name)) for name in names):
        return pool
    return pool._replace(**{name: _twice(getattr(pool, name)) for name in names})


def _twice(array: Any) -> Any:
    larger = np.zeros((2 * len(array), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


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
    corners : numpy.ndarray
        The upper bounds of the corners when they were last passed on, or nothing.
    """

    def __init__(self, compiled: Compilation, limits: SearchLimits, random: np.random.Generator) -> None:
        self.compiled = compiled
        self.model = compiled.arrays
        self.pools = Pools(compiled.arrays, compiled.narrow, near=compiled.backups_are_slow)
        self.limits = limits
        self.random = random
        self.controller: Controller | None = None
        self.lower = min(compiled.lowest, 0.0)
        self.root = int(np.argmax(compiled.start))
        self.corners = np.empty(0)

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

        Those that the start needs fell by at most `fall` in the last sweep, so each is at most γ · fall above its
        plan now, and the start's vector `fall`. Acting greedily loses at most that much per step against the
        vectors.
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

    def corner_arrays(self) -> tuple[Compiled, Points, Scratch, NDArray[np.int64], Seen]:
        """Return what kernels take that look at corners only."""
        pools = self.pools
        return self.model, pools.points, pools.scratch, pools.counters, pools.seen

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

"""The arrays of a search: how large they start, and how they grow."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from missmdp._kernels.sarsop.arrays import (
    CHOICES,
    ENTRIES,
    N_COUNTERS,
    POINTS,
    SEEN,
    SUPPORT,
    VALUES,
    VECTORS,
    WEIGHTS,
    Compiled,
    Entries,
    MixtureWeights,
    Points,
    Scratch,
    Seen,
    Vectors,
)
from missmdp._kernels.sarsop.successors import fill_slots

__all__ = ["Pools"]

Pool = TypeVar("Pool", Points, Seen, Entries, MixtureWeights, Vectors)

_FEW = 1024
_SHARED = ("first_in_component", "n_in_component", "slots", "default")
"""Arrays in pools that have one entry per component or node, or a growth of their own."""


class Pools:
    """Points, what follows them, mixtures, vectors: everything that grows."""

    def __init__(self, model: Compiled) -> None:
        n_classes, n_actions = model.reward.shape
        n_components, n_nodes, n_pairs = (
            len(model.component_start) - 1,
            len(model.node_component),
            len(model.pair_class),
        )
        largest = int(np.diff(model.component_start).max())
        self.counters = np.zeros(N_COUNTERS, dtype=np.int64)
        # What one call may add to a pool is at most half of it, so that a pool which is less than half full has room.
        size = 2 * max(n_classes, n_nodes) + _FEW
        self.points = Points(
            start=np.zeros(size + 1, np.int64),
            support=np.zeros(4 * size, np.int32),
            prob=np.zeros(4 * size),
            component=np.zeros(size, np.int32),
            next_in_component=np.zeros(size, np.int32),
            first_in_component=np.full(n_components, -1, np.int32),
            n_in_component=np.zeros(n_components, np.int64),
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
        self.seen = Seen(point=np.zeros(size, np.int32), prob=np.zeros(size))
        self.entries = Entries(
            prob=np.zeros(size),
            node=np.zeros(size, np.int32),
            hash=np.zeros(size, np.int64),
            lower=np.zeros(size),
            first=np.zeros(size, np.int64),
            size=np.zeros(size, np.int32),
            room=np.zeros(size, np.int32),
            stamp=np.zeros(size, np.int64),
        )
        self.weights = MixtureWeights(point=np.zeros(4 * size, np.int32), weight=np.zeros(4 * size))
        n_vectors = 2 * n_components * n_actions + _FEW
        self.vectors = Vectors(
            start=np.zeros(n_vectors, np.int64),
            values=np.zeros(2 * n_classes * n_actions + _FEW),
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
        )
        self.scratch = Scratch(
            joint=np.zeros(n_pairs),
            touched=np.zeros(n_nodes, np.int32),
            mark=np.zeros(n_nodes, np.bool_),
            row_of=np.full(n_classes, -1, np.int32),
            support=np.zeros(largest, np.int32),
            prob=np.zeros(largest),
            inverse=np.zeros((largest, largest)),
            level=np.zeros(largest),
            rest=np.zeros(largest),
            price=np.full(n_classes, -np.inf),
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
        self.points = _larger(self.points, int(used[POINTS]), except_=("support", "prob"))
        self.points = _larger(self.points, int(used[SUPPORT]), only=("support", "prob"))
        if 4 * used[POINTS] > len(self.points.slots):
            self.rehash()
        self.seen = _larger(self.seen, int(used[SEEN]))
        self.entries = _larger(self.entries, int(used[ENTRIES]))
        self.weights = _larger(self.weights, int(used[WEIGHTS]))
        self.vectors = _larger(self.vectors, int(used[VECTORS]), except_=("values", "choice"))
        self.vectors = _larger(self.vectors, int(used[VALUES]), only=("values",))
        self.vectors = _larger(self.vectors, int(used[CHOICES]), only=("choice",))

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
        points.slots[:] = -1
        fill_slots(points, n_points)

    def rehash(self) -> None:
        """Make the hash table of points four times as large."""
        slots = np.full(4 * len(self.points.slots), -1, np.int32)
        self.points = self.points._replace(slots=slots)
        fill_slots(self.points, self.n_points)


def _larger(pool: Pool, used: int, *, only: tuple[str, ...] = (), except_: tuple[str, ...] = ()) -> Pool:
    names = only or tuple(name for name in pool._fields if name not in (*except_, *_SHARED))
    if 2 * used < min(len(getattr(pool, name)) for name in names):
        return pool
    return pool._replace(**{name: _twice(getattr(pool, name)) for name in names})


def _twice(array: Any) -> Any:
    larger = np.zeros((2 * len(array), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger

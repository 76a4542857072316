"""T and b₀ near a point: their entries, and how these change with what is free in them.

Every entry of T and b₀ is a product of *chances*: one for a saturated T, one for each feature otherwise. Chances of one
group are a distribution. Entries that are zero at the point stay zero: what cannot happen counts as known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.mdp import FactoredMDP

_EVEN = 4.0
"""Concentration of random chances."""


@dataclass(frozen=True, eq=False)
class Chances:
    """Some of the probabilities that entries are products of."""

    place: NDArray[np.int64]
    """Which chance each entry takes; −1 where the factor is known, shape (entries,)."""
    value: NDArray[np.float64]
    """The chances, all positive, shape (places,)."""
    group: NDArray[np.int64]
    """The distribution that each belongs to, shape (places,)."""

    @classmethod
    def of(cls, place: NDArray[np.int64], value: NDArray[np.float64], group: NDArray[np.int64]) -> Chances:
        """Return chances from the place, the value and the group that each entry has in a larger table.

        Of the table only places in use are kept, scaled so that each group adds up to one.
        """
        known = place < 0
        _, first, own = np.unique(place[~known], return_index=True, return_inverse=True)
        found = np.full(len(place), -1, dtype=np.int64)
        found[~known] = own.reshape(-1)
        kept, label = value[~known][first], group[~known][first]
        _, number = np.unique(label, return_inverse=True)
        number = number.reshape(-1)
        return cls(found, kept / np.bincount(number, kept)[number], label)

    def drawn(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return random chances, shape (places,)."""
        size = generator.gamma(_EVEN, size=len(self.value))
        _, group = np.unique(self.group, return_inverse=True)
        group = group.reshape(-1)
        return size / np.bincount(group, size)[group]

    def free(self) -> sparse.csr_array:
        """Return how chances change with all but the first of each group, shape (places, free)."""
        order = np.argsort(self.group, kind="stable")
        first = np.append(True, np.diff(self.group[order]) != 0)[: len(order)]
        reference = order[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
        own, column = order[~first], np.arange(int((~first).sum()))
        entries = (
            np.repeat([1.0, -1.0], len(own)),
            (np.concatenate([own, reference[~first]]), np.tile(column, 2)),
        )
        return sparse.csr_array(sparse.coo_array(entries, shape=(len(order), len(own))))


@dataclass(frozen=True, eq=False)
class Entries:
    """The positive entries of T in rows of states that are reached and go on, by action, state and next state."""

    before: NDArray[np.int64]
    action: NDArray[np.int64]
    after: NDArray[np.int64]
    value: NDArray[np.float64]

    @classmethod
    def of(cls, mdp: FactoredMDP) -> Entries:
        """Return the entries of an MDP."""
        goes_on = mdp.reachable & ~mdp.terminal
        found: list[tuple[NDArray[np.int64], ...]] = []
        values: list[NDArray[np.float64]] = [np.zeros(0)]
        for a, matrix in enumerate(mdp.transition):
            rows = sparse.csr_array(matrix, copy=True)
            rows.sum_duplicates()
            entries = rows.tocoo()
            before, after = entries.coords
            kept = goes_on[before] & (entries.data > 0.0)
            count = int(kept.sum())
            found.append((before[kept].astype(np.int64), np.full(count, a), after[kept].astype(np.int64)))
            values.append(entries.data[kept])
        before, action, after = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return cls(before, action, after, np.concatenate(values))


@dataclass(frozen=True, eq=False)
class Moving:
    """T and b₀ at a point, and their derivatives by P free parameters, those of T first."""

    entries: Entries
    starts: NDArray[np.int64]
    """The states in which episodes begin."""
    start_value: NDArray[np.float64]
    change: sparse.csr_array
    """∂ entries / ∂ parameters, shape (entries, P)."""
    start_change: sparse.csr_array
    """∂ b₀ / ∂ parameters, shape (starts, P)."""

    @property
    def n_parameters(self) -> int:
        """P."""
        return int(self.change.shape[1])


@dataclass(frozen=True, eq=False)
class DynamicsStructure:
    """What is known of T and b₀: which entries share which chances."""

    name: str
    """For people."""
    entries: Entries
    steps: tuple[Chances, ...]
    starts: NDArray[np.int64]
    start_value: NDArray[np.float64]
    start: tuple[Chances, ...]
    found: bool = False
    """Whether it was found in data."""
    parents: dict[str, tuple[str, ...]] | None = None
    """The features that the next value of each feature depends on, next values included; None for all of them now."""

    def here(self) -> Moving:
        """Return T and b₀ as they are."""
        return self._at(
            self.entries.value, [c.value for c in self.steps], self.start_value, [c.value for c in self.start]
        )

    def elsewhere(self, generator: np.random.Generator) -> Moving:
        """Return a random T and b₀ of the same structure."""
        steps, start = [c.drawn(generator) for c in self.steps], [c.drawn(generator) for c in self.start]
        value = _scaled(self.entries.value, self.steps, steps)
        return self._at(value, steps, _scaled(self.start_value, self.start, start), start)

    def raised(self, by: NDArray[np.float64]) -> Moving | None:
        """Return T and b₀ with free chances raised by so much; None if some are then no longer positive."""
        free = [(c, c.free()) for c in (*self.steps, *self.start)]
        cuts = np.cumsum([matrix.shape[1] for _, matrix in free])[:-1]
        parts = np.split(by, cuts)
        found = [c.value + matrix @ own for (c, matrix), own in zip(free, parts, strict=True)]
        if any(float(chances.min(initial=1.0)) <= 0.0 for chances in found):
            return None
        steps, start = found[: len(self.steps)], found[len(self.steps) :]
        value = _scaled(self.entries.value, self.steps, steps)
        return self._at(value, steps, _scaled(self.start_value, self.start, start), start)

    def _at(
        self,
        value: NDArray[np.float64],
        steps: Sequence[NDArray[np.float64]],
        start_value: NDArray[np.float64],
        start: Sequence[NDArray[np.float64]],
    ) -> Moving:
        own, first = _slopes(value, self.steps, steps), _slopes(start_value, self.start, start)
        shapes = (own.shape[0], first.shape[1]), (first.shape[0], own.shape[1])
        entries = self.entries
        return Moving(
            Entries(entries.before, entries.action, entries.after, value),
            self.starts,
            start_value,
            sparse.csr_array(sparse.hstack([own, sparse.csr_array(shapes[0])], format="csr")),
            sparse.csr_array(sparse.hstack([sparse.csr_array(shapes[1]), first], format="csr")),
        )


def _scaled(
    value: NDArray[np.float64], chances: Sequence[Chances], drawn: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return entries with other chances."""
    found = value.copy()
    for own, other in zip(chances, drawn, strict=True):
        used = own.place >= 0
        found[used] *= (other / own.value)[own.place[used]]
    return found


def _slopes(
    value: NDArray[np.float64], chances: Sequence[Chances], at: Sequence[NDArray[np.float64]]
) -> sparse.csr_array:
    """Return the derivatives of entries, shape (entries, free)."""
    parts: list[sparse.csr_array] = [sparse.csr_array((len(value), 0))]
    for own, now in zip(chances, at, strict=True):
        row = np.flatnonzero(own.place >= 0)
        place = own.place[row]
        by_place = sparse.coo_array((value[row] / now[place], (row, place)), shape=(len(value), len(now)))
        parts.append(sparse.csr_array(sparse.csr_array(by_place) @ own.free()))
    return sparse.csr_array(sparse.hstack(parts, format="csr"))

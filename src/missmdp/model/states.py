"""The states that occur in a feature space, as an array of codes with one row per state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.model.checks import call, number
from missmdp.model.space import MISSING, FeatureSpace, Rows
from missmdp.progress import show_progress

__all__ = ["Groups", "StateSpace"]

_MAX_PATTERN_ROWS = 200_000_000
"""Rows (patterns × states) above which listing all of Z is refused."""


@dataclass(frozen=True, eq=False)
class Groups:
    """States that agree on some features, grouped."""

    label: NDArray[np.int64]
    """Group of each state, shape (S,)."""
    count: int
    """How many groups there are."""

    def among(self, kept: NDArray[np.int64]) -> Groups:
        """Return the same groups for some of the states only."""
        return Groups(self.label[kept], self.count)

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest minus the smallest value in each group, 0 where a group is empty, shape (count,)."""
        low, high = np.full(self.count, np.inf), np.full(self.count, -np.inf)
        np.minimum.at(low, self.label, values)
        np.maximum.at(high, self.label, values)
        return np.where(low <= high, high, 0.0) - np.where(low <= high, low, 0.0)


class StateSpace:
    """A feature space and the states that occur in it.

    Parameters
    ----------
    features
        The feature space.
    codes
        One row per state, shape (S, n); rows must differ.
    """

    def __init__(self, features: FeatureSpace, codes: NDArray[np.integer[Any]]) -> None:
        self.features = features
        if codes.ndim != 2 or codes.shape[1] != len(features):
            raise ModelError(f"state codes must have shape (S, {len(features)}), got {codes.shape}")
        if len(codes) == 0:
            raise ModelError("a model needs at least one state")
        if (codes < 0).any() or (codes >= features.sizes).any():
            raise ModelError("state codes are outside the features' values")
        self.codes: NDArray[np.signedinteger[Any]] = np.array(codes, dtype=features.code_dtype, order="C")
        ranks = features.rank(self.codes)
        self._order: NDArray[np.int64] = np.argsort(ranks, kind="stable").astype(np.int64)
        self._sorted: NDArray[np.int64] = ranks[self._order]
        twice = np.flatnonzero(np.diff(self._sorted) == 0)
        if twice.size:
            raise ModelError(f"the state {self.state(int(self._order[twice[0]]))!r} is listed twice")
        self.codes.setflags(write=False)

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateSpace)
            and self.features == other.features
            and np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"StateSpace({len(self)} states of {self.features!r})"

    @property
    def states(self) -> Rows:
        """The states in order, as named tuples."""
        return Rows(self.codes, self.features.decode)

    def state(self, index: int) -> Any:
        """Return the state at an index."""
        return self.features.decode(self.codes[index])

    def find(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the index of each row of codes, or −1 where there is no such state."""
        ranks = self.features.rank(codes)
        place = np.minimum(np.searchsorted(self._sorted, ranks), len(self) - 1)
        return np.where(self._sorted[place] == ranks, self._order[place], -1)

    def index(self, state: object) -> int:
        """Return the index of a state; raise `ModelError` if it is not one of them."""
        found = int(self.find(np.array([self.features.encode(state)]))[0])
        if found < 0:
            raise ModelError(f"{state!r} is not one of the {len(self)} states of this model")
        return found

    def groups(self, mask: NDArray[np.bool_]) -> Groups:
        """Return the states grouped by the values of the features that the mask picks."""
        hidden = np.where(mask, self.codes, MISSING)
        _, label = np.unique(self.features.rank(hidden), return_inverse=True)
        label = label.reshape(-1).astype(np.int64)
        return Groups(label, int(label.max()) + 1)

    def admit(self, codes: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return which states admit an observation, z ⪯ s: equal wherever it is not missing, shape (S,)."""
        observation = np.asarray(codes)
        seen = observation != MISSING
        return (self.codes[:, seen] == observation[seen]).all(axis=1)

    def all_observations(self) -> NDArray[np.signedinteger[Any]]:
        """Return Z: every way to poke holes into a state, as distinct rows of codes in order of rank.

        Raises
        ------
        ModelError
            If the 2ⁿ patterns times the states are too many to go through.
        """
        return self.features.unrank(np.sort(np.concatenate(list(self._observations_by_pattern()))))

    def count_observations(self) -> int:
        """Return |Z| without listing Z."""
        return sum(len(ranks) for ranks in self._observations_by_pattern())

    def _observations_by_pattern(self) -> Iterator[NDArray[np.int64]]:
        """Yield the ranks of the observations under each pattern; no two patterns share one."""
        n_features = len(self.features)
        rows = 2.0**n_features * len(self)
        if rows > _MAX_PATTERN_ROWS:
            raise ModelError(
                f"listing Z means 2^{n_features} patterns × {len(self):,} states = {rows:.2g} rows, "
                f"more than {_MAX_PATTERN_ROWS:.0e}; work with the observations that M produces instead"
            )
        for bits in range(2**n_features):
            mask = (bits >> np.arange(n_features)) & 1 == 1
            yield np.unique(self.features.rank(np.where(mask, self.codes, MISSING)))

    def evaluate(self, function: Callable[[Any], Any] | Any, what: str) -> NDArray[np.float64]:
        """Return a number per state, from a function of the state or one number for all, shape (S,)."""
        if not callable(function):
            return np.full(len(self), number(function, what))
        values = np.empty(len(self))
        with show_progress(f"Evaluating {what}", len(self)) as advance:
            for i, state in enumerate(self.states):
                values[i] = number(call(function, what, state), "{} of {!r}", what, state)
                advance()
        return values

    def distribution(self, pairs: Iterable[tuple[Any, float]]) -> NDArray[np.float64]:
        """Return pairs (state, probability) as an array, adding up where a state recurs, shape (S,)."""
        array = np.zeros(len(self))
        for state, probability in pairs:
            array[self.index(state)] += probability
        return array

"""T and b₀ as chains of families: the next value of one feature after the other, given what came before.

T(s′ | s, a) = Π_i P(s′_i | s, a, earlier s′_j). Each family sorts its contexts into leaves (`trees`) and has one
distribution per leaf. Whether an episode ends is one more family, which depends on the next state alone. From expected
counts of steps every family is learned by adding up and dividing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.questions import Askable
from missmdp.learn.joint.layout import ENDED, OPEN, Layout
from missmdp.learn.joint.trees import Outcomes, Partition
from missmdp.model.space import FeatureSpace
from missmdp.sums import one_by_one


@dataclass(frozen=True, eq=False)
class Variables:
    """The numbers of variables: features now, then the action, features next, and whether the episode ended."""

    features: FeatureSpace
    n_actions: int

    @property
    def action(self) -> int:
        """The action."""
        return len(self.features)

    @property
    def ended(self) -> int:
        """Whether the episode ended."""
        return 2 * len(self.features) + 1

    def next(self, feature: int) -> int:
        """Return the variable of a feature's next value."""
        return len(self.features) + 1 + feature

    def feature(self, variable: int) -> int:
        """Return the feature that a variable is about."""
        n = len(self.features)
        return variable if variable < n else variable - n - 1

    def is_feature(self, variable: int) -> bool:
        """Return whether a variable is about a feature."""
        return variable not in (self.action, self.ended)

    def size(self, variable: int) -> int:
        """Return how many values a variable has."""
        if variable == self.action:
            return self.n_actions
        return 2 if variable == self.ended else int(self.features.sizes[self.feature(variable)])

    def values(self, variable: int) -> tuple[Any, ...]:
        """Return the values of a variable about a feature."""
        return self.features.values[self.feature(variable)]

    def ordered(self, variable: int) -> bool:
        """Return whether the values of a variable have an order: whether they are numbers."""
        return self.is_feature(variable) and _are_numbers(self.values(variable))

    def askable(self, variables: Sequence[int]) -> Askable:
        """Return what can be asked of some variables."""
        ordered = [self.ordered(v) for v in variables]
        pairs = [
            (i, j)
            for i, one in enumerate(variables)
            for j, other in enumerate(variables[:i])
            if self.is_feature(one) and self.is_feature(other) and self.values(one) == self.values(other)
            and self.size(one) > 1
        ]  # fmt: skip
        return Askable(
            np.array([self.size(v) for v in variables], dtype=np.int64),
            np.array(ordered, dtype=np.bool_),
            np.array(pairs, dtype=np.int64).reshape(len(pairs), 2),
        )


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


class Cells(Protocol):
    """Steps or first states, one cell each, and the values of variables in them."""

    @property
    def count(self) -> int:
        """The number of cells."""
        ...

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (cells,)."""
        ...


@dataclass(frozen=True, eq=False)
class StepCells:
    """Steps (block, hidden part before, hidden part after), all of them or some."""

    layout: Layout
    chosen: NDArray[np.int64] | None = None
    """Which of them; None for all, in order."""

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        blocks, hidden, _ = self.layout.shape
        cells = np.arange(blocks * hidden * hidden) if self.chosen is None else self.chosen
        return cells // (hidden * hidden), cells // hidden % hidden, cells % hidden

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self._places[0])

    @property
    def state(self) -> NDArray[np.int64]:
        """The state before the step, shape (cells,)."""
        block, hidden, _ = self._places
        return self.layout.state_of[self.layout.steps.before[block], hidden]

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (cells,)."""
        layout, n = self.layout, len(self.layout.features)
        block, before, after = self._places
        if variable == n:
            return layout.steps.action[block]
        if variable == 2 * n + 1:
            return layout.steps.ending[block]
        if variable < n:
            return _part_column(layout, variable, layout.steps.before[block], before)
        return _part_column(layout, variable - n - 1, layout.steps.after[block], after)


@dataclass(frozen=True, eq=False)
class StartCells:
    """First steps (kind, hidden part), all of them or some; features are called by their next values."""

    layout: Layout
    chosen: NDArray[np.int64] | None = None

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        hidden = self.layout.n_hidden
        every = len(self.layout.starts.seen) * hidden
        cells = np.arange(every) if self.chosen is None else self.chosen
        return cells // hidden, cells % hidden

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self._places[0])

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (cells,)."""
        layout, n = self.layout, len(self.layout.features)
        kind, hidden = self._places
        if variable == 2 * n + 1:
            return layout.starts.ending[kind]
        return _part_column(layout, variable - n - 1, layout.starts.seen[kind], hidden)


def _part_column(
    layout: Layout, feature: int, seen: NDArray[np.int64], hidden: NDArray[np.int64]
) -> NDArray[np.int64]:
    place = np.flatnonzero(layout.always == feature)
    if len(place):
        return layout.seen_codes[seen, place[0]]
    return layout.hidden_codes[hidden, np.flatnonzero(layout.hidden == feature)[0]]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the next value of a feature, for some states and actions."""

    row: NDArray[np.int64]
    """The distribution of a state and an action, −1 where nothing is known, shape (S, A)."""
    rows: NDArray[np.float64]
    """Distributions, shape (rows, V)."""


@dataclass(frozen=True, eq=False)
class Family:
    """How the next value of a feature depends on other variables."""

    target: int
    """Its variable."""
    given: tuple[int, ...]
    """The variables that it might depend on."""
    partition: Partition
    outcomes: Outcomes
    way: NDArray[np.int64]
    """The way in which each leaf tells outcomes, shape (leaves,)."""
    prior: NDArray[np.float64]
    """Pseudo-counts of each leaf and column, 0 where an outcome is ruled out or told otherwise, shape (leaves, W)."""
    fallback: NDArray[np.float64]
    """The distributions of leaves without any counts, shape (leaves, W); 0 where the prior says never."""
    weight: float = 0.0
    """The pseudo-counts of each distribution."""
    known: Known | None = None
    base: NDArray[np.float64] | None = None
    """What pseudo-counts are like, shape (W,) or (leaves, W); None for the counts of all leaves together."""

    def places(self, cells: Cells, variables: Variables) -> NDArray[np.int32]:
        """Return where the probability of each cell is in `flat`, shape (cells,)."""
        after = cells.column(self.target)
        n_leaf = self.prior.size
        n_known = 0 if self.known is None else self.known.rows.size
        told = np.minimum(after, ENDED) if self.target == variables.ended else after
        before = cells.column(variables.feature(self.target)) if self.outcomes.column.shape[1] > 1 else told
        leaf = self.partition.leaf(cells.column, cells.count)
        column = self.outcomes.columns(self.way[leaf], before, told)
        place = leaf * self.outcomes.width + column
        if self.target == variables.ended:
            place[after == OPEN] = n_leaf + n_known
        elif self.known is not None and isinstance(cells, StepCells):
            row = self.known.row[cells.state, cells.column(variables.action)]
            place = np.where(row >= 0, n_leaf + row * self.known.rows.shape[1] + after, place)
        return place.astype(np.int32)

    def flat(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return all probabilities one after the other: of leaves, of what is known, then 1."""
        known = np.empty(0) if self.known is None else self.known.rows.reshape(-1)
        return np.concatenate([(theta * self.outcomes.share).reshape(-1), known, [1.0]])

    def counted(self, place: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights of cells added up by leaf and outcome, shape (leaves, W)."""
        size = self.prior.size
        counts = np.bincount(place, weight, minlength=size)[:size].astype(np.float64)
        return counts.reshape(self.prior.shape)

    def maximise(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distributions that explain counts best, pseudo-counts included, shape (leaves, W)."""
        both = np.where(self.fallback > 0.0, counts + self.prior, 0.0)
        total = self.block_sums(both)
        return np.divide(both, total, out=self.fallback.copy(), where=total > 0.0)

    def without_prior(self) -> Family:
        """Return the same family without pseudo-counts."""
        return replace(self, prior=np.zeros_like(self.prior))

    def block_sums(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over its block for every outcome, shape (leaves, W)."""
        inside = self.outcomes.block[:, None] == np.arange(self.outcomes.n_blocks)
        sums: NDArray[np.float64] = table @ inside.astype(np.float64)
        return sums[:, self.outcomes.block]

    def normalised(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a table scaled so that the outcomes of each block add up to one."""
        total = self.block_sums(theta)
        return np.divide(theta, total, out=self.fallback.copy(), where=total > 0.0)

    def log_prior(self, theta: NDArray[np.float64]) -> float:
        """Return what the prior adds to the log-likelihood, up to a constant."""
        some = self.prior > 0.0
        return float(self.prior[some] @ np.log(np.maximum(theta[some], 1e-300)))

    def n_parameters(self, counts: NDArray[np.float64]) -> int:
        """Return how many probabilities are free where there is anything to count."""
        used = self.block_sums(counts) > 0.0
        free = int(((self.fallback > 0.0) & used).sum())
        n_blocks = sum(
            int(used[:, self.outcomes.block == b].any(axis=1).sum()) for b in range(self.outcomes.n_blocks)
        )
        return free - n_blocks


@dataclass(frozen=True, eq=False)
class Chain:
    """Families whose product is the distribution of cells."""

    families: tuple[Family, ...]
    places: tuple[NDArray[np.int32], ...]

    @classmethod
    def of(cls, families: Sequence[Family], cells: Cells, variables: Variables) -> Chain:
        """Return the chain over some cells."""
        return cls(tuple(families), tuple(family.places(cells, variables) for family in families))

    def without_prior(self) -> Chain:
        """Return the same families without pseudo-counts."""
        return replace(self, families=tuple(family.without_prior() for family in self.families))

    def product(self, thetas: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the probability of each cell."""
        found = np.ones(len(self.places[0]))
        for family, place, theta in zip(self.families, self.places, thetas, strict=True):
            found *= family.flat(theta)[place]
        return found

    def counted(self, weight: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the weights of cells added up, family by family."""
        return [f.counted(place, weight) for f, place in zip(self.families, self.places, strict=True)]


class Point(NamedTuple):
    """The parameters of T and b₀."""

    steps: tuple[NDArray[np.float64], ...]
    start: tuple[NDArray[np.float64], ...]
    ending: NDArray[np.float64] | None
    """Of whether the episode ends, shape (leaves, 2); None if the log does not say."""


@dataclass(frozen=True, eq=False)
class Ending:
    """Whether an episode ends with the state that it is in."""

    family: Family
    in_steps: NDArray[np.int32]
    """Where the probability of each step is in `family.flat`, shape (cells,)."""
    in_starts: NDArray[np.int32]

    def counted(self, moved: NDArray[np.float64], began: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how often each leaf went on and ended, shape (leaves, 2)."""
        return self.family.counted(self.in_steps, moved.reshape(-1)) + self.family.counted(
            self.in_starts, began.reshape(-1)
        )


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A structure of T and b₀, over the cells of a log."""

    layout: Layout
    steps: Chain
    start: Chain
    ending: Ending | None
    initial_given: NDArray[np.float64] | None = None
    """b₀ over all states, if it is known, shape (S,)."""

    def transition(self, point: Point) -> NDArray[np.float64]:
        """Return T by blocks, times whether episodes end, and pay, as they did, shape (B, H, H)."""
        found = self.steps.product(point.steps)
        if self.ending is not None and point.ending is not None:
            found *= self.ending.family.flat(point.ending)[self.ending.in_steps]
        found = found.reshape(self.layout.shape)
        return found if self.layout.agrees is None else found * self.layout.agrees

    def initial(self, point: Point) -> NDArray[np.float64]:
        """Return b₀ by kinds of first steps, times whether episodes end there, shape (R, H)."""
        if self.initial_given is not None:
            found = self.initial_given[self.layout.state_of[self.layout.starts.seen]].reshape(-1)
        else:
            found = self.start.product(point.start)
        if self.ending is not None and point.ending is not None:
            found = found * self.ending.family.flat(point.ending)[self.ending.in_starts]
        return found.reshape(self.layout.start_shape)

    def maximise(self, moved: NDArray[np.float64], began: NDArray[np.float64]) -> Point:
        """Return the parameters that explain expected counts best, pseudo-counts included."""
        pairs = self.counted(moved, began)
        n_steps, n_start = len(self.steps.families), len(self.start.families)
        found = [family.maximise(counts) for family, counts in pairs]
        ending = None if self.ending is None else found[-1]
        return Point(tuple(found[:n_steps]), tuple(found[n_steps : n_steps + n_start]), ending)

    def without_prior(self) -> Dynamics:
        """Return the same structure without pseudo-counts."""
        ending = self.ending
        return replace(
            self,
            steps=self.steps.without_prior(),
            start=self.start.without_prior(),
            ending=None if ending is None else replace(ending, family=ending.family.without_prior()),
        )

    def counted(
        self, moved: NDArray[np.float64], began: NDArray[np.float64]
    ) -> list[tuple[Family, NDArray[np.float64]]]:
        """Return all families with their counts: of steps, of first states, and of the ending."""
        pairs = [*zip(self.steps.families, self.steps.counted(moved.reshape(-1)), strict=True)]
        pairs += zip(self.start.families, self.start.counted(began.reshape(-1)), strict=True)
        if self.ending is not None:
            pairs.append((self.ending.family, self.ending.counted(moved, began)))
        return pairs

    def fitted(self, pairs: Sequence[tuple[Family, Any]]) -> list[tuple[Family, Any]]:
        """Return those of some pairs whose family is fitted: without the first states if b₀ is known."""
        n_steps, n_start = len(self.steps.families), len(self.start.families)
        known = self.initial_given is not None
        return [pair for i, pair in enumerate(pairs) if not (known and n_steps <= i < n_steps + n_start)]

    def log_prior(self, point: Point) -> float:
        """Return what the priors add to the log-likelihood, up to a constant."""
        return one_by_one(family.log_prior(theta) for family, theta in self.fitted(self.paired(point)))

    def paired(self, point: Point) -> list[tuple[Family, NDArray[np.float64]]]:
        """Return all families with their parameters."""
        pairs = [*zip(self.steps.families, point.steps, strict=True)]
        pairs += zip(self.start.families, point.start, strict=True)
        if self.ending is not None and point.ending is not None:
            pairs.append((self.ending.family, point.ending))
        return pairs

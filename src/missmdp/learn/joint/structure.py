"""The structure of T and b₀ from expected counts: a tree for each family, and the order of the features.

In a step, features of the next state may depend on features of the same state that come earlier in the order. The
order is searched by exchanging neighbours. Trees are grown with each of three weights of the prior, told as values and
as changes; the best score decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from missmdp._kernels.questions import leaf_score
from missmdp.learn.joint.dynamics import (
    Cells,
    Chain,
    Dynamics,
    Ending,
    Family,
    Known,
    StartCells,
    StepCells,
    Variables,
)
from missmdp.learn.joint.layout import OPEN, Layout
from missmdp.learn.joint.trees import (
    Contexts,
    Outcomes,
    Partition,
    Table,
    grow_tree_of_questions,
    leaf_prior,
)
from missmdp.sums import one_by_one

WEIGHTS = (1.0, 5.0, 25.0)
"""Pseudo-counts of a leaf that are tried."""

LIKE = (5.0, 25.0, 125.0, 625.0)
"""Pseudo-counts that are tried for first states that are distributed like later ones."""

_TRACE = 1e-4
"""Expected counts below which a cell is left out while growing."""
_NOTHING, _SOMETHING = 0.3, 5.0
"""An outcome with a lower count than the first, in a leaf with a higher one than the second, is ruled out."""
_LONGEST_CHANGE = 2
"""Steps up or down to which changes are told as changes."""

Parents = Mapping[int, tuple[int, ...]]
"""Feature → the variables that it may depend on."""


@dataclass(frozen=True, eq=False)
class Rules:
    """What the user says of T and b₀."""

    saturated: bool = False
    """Whether every context has a distribution of its own, without pseudo-counts."""
    parents: Parents | None = None
    """The variables that each feature's next value depends on, if the user says so."""
    order: tuple[int, ...] | None = None
    """The order of features that goes with them."""
    known: Mapping[int, Known] = field(default_factory=dict[int, Known])
    """Feature → what is known of its next values."""
    terminal: NDArray[np.bool_] | None = None
    """Which states are terminal, shape (S,), if that is known."""
    initial: NDArray[np.float64] | None = None
    """b₀, shape (S,), if that is known."""
    ends: bool = True
    """Whether the log says where episodes ended."""

    def ordered(self, order: Sequence[int]) -> Rules:
        """Return the rules with an order of features, where the user's structure needs one."""
        return self if self.parents is None else replace(self, order=tuple(order))


@dataclass(frozen=True, eq=False)
class Structure:
    """A structure that was found."""

    dynamics: Dynamics
    order: tuple[int, ...]
    """The features in the order of the chain."""
    like_steps: bool
    """Whether features of a first state hang together as they do later."""


@dataclass(frozen=True, eq=False)
class _Fitted:
    family: Family
    score: float


@dataclass(frozen=True, eq=False)
class _Both:
    """Steps and first steps together, or some of them."""

    steps: StepCells
    starts: StartCells
    chosen: NDArray[np.bool_] | None = None

    @property
    def count(self) -> int:
        """The number of cells."""
        return self.steps.count + self.starts.count if self.chosen is None else int(self.chosen.sum())

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (cells,)."""
        found = np.concatenate([self.steps.column(variable), self.starts.column(variable)])
        return found if self.chosen is None else found[self.chosen]


class Grower:
    """Grows the families of one set of expected counts.

    Parameters
    ----------
    layout
        The log's layout.
    moved, began
        Expected counts, shapes (B, H, H) and (R, H).
    rules
        What the user says.
    eager
        How many times counts are taken when questions are chosen. Expected counts come from a model without a
        question, so they say less for it than the observations do.
    prune
        Whether outcomes that hardly ever happened are ruled out.
    like_steps
        Whether features of a first state hang together as they do later.
    """

    def __init__(
        self,
        layout: Layout,
        moved: NDArray[np.float64],
        began: NDArray[np.float64],
        rules: Rules,
        *,
        eager: float = 1.0,
        prune: bool = True,
        like_steps: bool = False,
    ) -> None:
        self.layout, self.rules, self.eager, self.prune = layout, rules, eager, prune
        self.like_steps = like_steps
        self.variables = Variables(layout.features, layout.n_actions)
        self._moved, self._began = moved.reshape(-1), began.reshape(-1)
        self._live_steps = np.flatnonzero(self._moved > _TRACE)
        self._live_starts = np.flatnonzero(self._began > _TRACE)
        self._steps = StepCells(layout, self._live_steps)
        self._starts = StartCells(layout, self._live_starts)
        self._met: dict[tuple[int, frozenset[int], bool], _Fitted] = {}

    def structure(self, order: Sequence[int] | None = None) -> Structure:
        """Return the best structure; with an order, that order is kept."""
        features = range(len(self.layout.features))
        if order is None:
            order = self._best_order(list(features))
        steps = [self._step(feature, order[:place]).family for place, feature in enumerate(order)]
        starts = [self._start(feature, order[:place]).family for place, feature in enumerate(order)]
        step_cells, start_cells = StepCells(self.layout), StartCells(self.layout)
        ending = None
        if self.rules.terminal is not None or self.rules.ends:
            own = self._ending()
            ending = Ending(own, *(own.places(cells, self.variables) for cells in (step_cells, start_cells)))
        made = Dynamics(
            self.layout,
            Chain.of(steps, step_cells, self.variables),
            Chain.of(starts, start_cells, self.variables),
            ending,
            self.rules.initial,
        )
        return Structure(made, tuple(order), self.like_steps)

    def unpruned(self, order: Sequence[int]) -> Structure:
        """Return the structure in an order, with nothing ruled out."""
        self.prune = False
        self._met.clear()
        return self.structure(order)

    def _best_order(self, order: list[int]) -> list[int]:
        if self.rules.order is not None:
            return list(self.rules.order)
        if self.rules.saturated:
            return order
        better = True
        while better:
            better = False
            for place in range(len(order) - 1):
                one, other, before = order[place], order[place + 1], order[:place]
                now = self._step(one, before).score + self._step(other, [*before, one]).score
                then = self._step(other, before).score + self._step(one, [*before, other]).score
                if then > now + 1e-6:
                    order[place : place + 2] = [other, one]
                    better = True
        return order

    def _step(self, feature: int, earlier: Sequence[int]) -> _Fitted:
        key = (feature, frozenset(earlier), True)
        if key not in self._met:
            self._met[key] = self._step_family(feature, sorted(earlier))
        return self._met[key]

    def _step_family(self, feature: int, earlier: Sequence[int]) -> _Fitted:
        variables, rules = self.variables, self.rules
        target, size = variables.next(feature), variables.size(feature)
        now = [*range(len(self.layout.features)), variables.action]
        given = tuple(now + [variables.next(i) for i in earlier])
        if rules.parents is not None and feature in rules.parents:
            given = rules.parents[feature]
        known = rules.known.get(feature)
        cells, weight = self._steps, self._moved[self._live_steps]
        if known is not None:
            free = known.row[cells.state, cells.column(variables.action)] < 0
            cells, weight = StepCells(self.layout, self._live_steps[free]), weight[free]
        if rules.saturated or rules.parents is not None:
            return self._by_table(target, given, Outcomes.values(size), cells, weight, known)
        down, up = self._small_changes(cells, feature, weight)
        outcomes = Outcomes.values_or_changes(size, down, up) if down + up > 0 else Outcomes.values(size)
        return self._grown(target, given, outcomes, cells, weight, known)

    def _small_changes(self, cells: Cells, feature: int, weight: NDArray[np.float64]) -> tuple[int, int]:
        """Return how far down and up a feature goes in a small step, 0 and 0 if changes tell nothing of it."""
        variables, size = self.variables, self.variables.size(feature)
        longest = min(_LONGEST_CHANGE, size - 2)
        if longest < 1 or not variables.ordered(feature):
            return 0, 0
        change = cells.column(variables.next(feature)) - cells.column(feature)
        often = np.bincount(change + size - 1, weight, minlength=2 * size - 1) > _NOTHING
        middle = size - 1
        near = np.flatnonzero(often[middle - longest : middle + longest + 1]) - longest
        return (0, 0) if len(near) == 0 else (max(0, -int(near[0])), max(0, int(near[-1])))

    def _start(self, feature: int, earlier: Sequence[int]) -> _Fitted:
        key = (feature, frozenset(earlier), False)
        if key not in self._met:
            variables = self.variables
            target, given = variables.next(feature), tuple(variables.next(i) for i in sorted(earlier))
            plain = Outcomes.values(variables.size(feature))
            weight = self._began[self._live_starts]
            if self.rules.saturated:
                found = self._by_table(target, given, plain, self._starts, weight, None)
            else:
                asked = set(self._step(feature, earlier).family.partition.asked).intersection(given)
                if self.like_steps and asked:
                    ways = [self._like_steps(target, tuple(sorted(asked)), one) for one in LIKE]
                    found = max(ways, key=lambda one: one.score)
                else:
                    base = self._by_leaf(target, Table((), ()), self._steps, self._moved[self._live_steps])[0]
                    found = self._grown(target, given, plain, self._starts, weight, None, base)
            self._met[key] = found
        return self._met[key]

    def _like_steps(self, target: int, given: tuple[int, ...], pseudo: float) -> _Fitted:
        """Return a family of first values with the distributions of later steps as pseudo-counts.

        Episodes are few, and how features of one state hang together is much the same in all steps.
        """
        plain, sizes = Outcomes.values(self.variables.size(target)), tuple(map(self.variables.size, given))
        table = Table(given, sizes)
        later = self._by_leaf(target, table, self._steps, self._moved[self._live_steps])
        overall = later.sum(axis=0) + 0.5
        later += overall / overall.sum()
        fallback = later / later.sum(axis=1, keepdims=True)
        way = np.zeros(table.count, dtype=np.int64)
        family = Family(target, given, table, plain, way, pseudo * fallback, fallback, pseudo, base=fallback)
        counts = self._by_leaf(target, table, self._starts, self._began[self._live_starts])
        words = math.log(len(LIKE) + 1.0)
        return _Fitted(family, _family_score(family, counts) - words)

    def _by_leaf(
        self, target: int, table: Table, cells: Cells, weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how often each next value came with each leaf, shape (leaves, V)."""
        width = self.variables.size(target)
        place = table.leaf(cells.column, cells.count) * width + cells.column(target)
        counts = np.bincount(place, weight, minlength=table.count * width)
        return counts.astype(np.float64).reshape(table.count, width)

    def _ending(self) -> Family:
        """Return whether an episode ends, as far as the next state says so."""
        variables, layout = self.variables, self.layout
        plain = Outcomes.values(2)
        given = tuple(variables.next(i) for i in range(len(layout.features)))
        if self.rules.terminal is not None:
            sizes = tuple(variables.size(v) for v in given)
            table = Table(given, sizes, merged=self.rules.terminal.astype(np.int64))
            certain = np.eye(2)
            way = np.zeros(2, dtype=np.int64)
            return Family(variables.ended, given, table, plain, way, np.zeros((2, 2)), certain)
        cells = _Both(self._steps, self._starts)
        weight = np.concatenate([self._moved[self._live_steps], self._began[self._live_starts]])
        said = cells.column(variables.ended) != OPEN
        return self._grown(
            variables.ended, given, plain, _Both(self._steps, self._starts, said), weight[said], None
        ).family

    def _contexts(self, given: tuple[int, ...], cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
        """Return the context of each cell, and the values of variables in each context."""
        key = np.zeros(cells.count, dtype=np.int64)
        for variable in given:
            key = key * self.variables.size(variable) + cells.column(variable)
        _, first, context = np.unique(key, return_index=True, return_inverse=True)
        codes = np.empty((len(first), len(given)), dtype=np.int16)
        for place, variable in enumerate(given):
            codes[:, place] = cells.column(variable)[first]
        return context.reshape(-1), codes

    def _grown(
        self,
        target: int,
        given: tuple[int, ...],
        outcomes: Outcomes,
        cells: Cells,
        weight: NDArray[np.float64],
        known: Known | None,
        base: NDArray[np.float64] | None = None,
    ) -> _Fitted:
        context, codes = self._contexts(given, cells)
        askable = self.variables.askable(given)
        counts = self._counted(target, outcomes, cells, weight, context, len(codes))
        contexts = Contexts(given, codes, self.eager * counts)
        best, pseudo = max(
            ((grow_tree_of_questions(contexts, askable, outcomes, one, base), one) for one in WEIGHTS),
            key=lambda pair: pair[0].score,
        )
        other = grow_tree_of_questions(contexts, askable, outcomes, pseudo, base, twos=True)
        best = other if other.score > best.score else best
        family = self._family(target, given, best.tree, outcomes, cells, weight, known, pseudo, base)
        return _Fitted(family, best.score)

    def _counted(
        self,
        target: int,
        outcomes: Outcomes,
        cells: Cells,
        weight: NDArray[np.float64],
        label: NDArray[np.int64],
        n_labels: int,
    ) -> NDArray[np.float64]:
        """Return how often each outcome came with each label, told in every way, shape (labels, W)."""
        after = cells.column(target)
        before = cells.column(self.variables.feature(target)) if outcomes.column.shape[1] > 1 else after
        counts = np.zeros(n_labels * outcomes.width)
        for way in range(len(outcomes.column)):
            column = outcomes.columns(np.full(len(after), way), before, after)
            counts += np.bincount(label * outcomes.width + column, weight, minlength=len(counts))
        return counts.reshape(n_labels, outcomes.width)

    def _by_table(
        self,
        target: int,
        given: tuple[int, ...],
        outcomes: Outcomes,
        cells: Cells,
        weight: NDArray[np.float64],
        known: Known | None,
    ) -> _Fitted:
        table = Table(given, tuple(self.variables.size(v) for v in given))
        prior_weight = 0.0 if self.rules.saturated else 1.0
        family = self._family(target, given, table, outcomes, cells, weight, known, prior_weight)
        return _Fitted(family, 0.0)

    def _family(
        self,
        target: int,
        given: tuple[int, ...],
        partition: Partition,
        outcomes: Outcomes,
        cells: Cells,
        weight: NDArray[np.float64],
        known: Known | None,
        prior_weight: float,
        base: NDArray[np.float64] | None = None,
    ) -> Family:
        leaf = partition.leaf(cells.column, cells.count)
        counts = self._counted(target, outcomes, cells, weight, leaf, partition.count)
        like = counts.sum(axis=0) if base is None else base
        prior = leaf_prior(like, outcomes, prior_weight or 1.0)
        way = np.array([leaf_score(prior, row)[1] for row in counts], dtype=np.int64)
        told = outcomes.way[outcomes.block] == way[:, None]
        own = leaf_prior(like, outcomes, 1.0)
        fallback = np.where(told, own.pseudo, 0.0)
        inside = (outcomes.block[:, None] == np.arange(outcomes.n_blocks)).astype(np.float64)
        if self.prune and not self.rules.saturated:
            total = (counts @ inside)[:, outcomes.block]
            fallback[(counts < _NOTHING) & (total > _SOMETHING)] = 0.0
            sums = (fallback @ inside)[:, outcomes.block]
            fallback = np.divide(fallback, sums, out=np.zeros_like(fallback), where=sums > 0.0)
        prior_counts = prior_weight * fallback
        return Family(
            target,
            given,
            partition,
            outcomes,
            way,
            prior_counts,
            fallback,
            prior_weight,
            known,
            None if base is None else base / max(float(base.sum()), 1e-300),
        )


def structure_cost(structure: Structure, moved: NDArray[np.float64], began: NDArray[np.float64]) -> float:
    """Return what a structure costs, in nats: by how much its score is below the likelihood of its best parameters.

    With the likelihood of the observations less this, structures can be compared (Cheeseman and Stutz).
    """
    dynamics = structure.dynamics
    costs: list[float] = []
    for family, counts in dynamics.fitted(dynamics.counted(moved, began)):
        theta = family.maximise(counts)
        some = counts > 0.0
        theta = np.maximum(theta * family.outcomes.share, 1e-300)
        likelihood = float(counts[some] @ np.log(theta[some]))
        costs.append(likelihood - _family_score(family, counts))
    return one_by_one(costs)


def _family_score(family: Family, counts: NDArray[np.float64]) -> float:
    some, used = counts > 0.0, counts.sum(axis=1) > 0.0
    if family.weight == 0.0:
        # Without pseudo-counts: half the log of the number of counts for each free probability.
        theta = family.maximise(counts)
        likelihood = float(counts[some] @ np.log(theta[some]))
        return likelihood - 0.5 * family.n_parameters(counts) * math.log(max(float(counts.sum()), 1.0))
    block = family.outcomes.block
    base = counts.sum(axis=0) if family.base is None else family.base
    if base.ndim == 1:
        base = leaf_prior(base, family.outcomes, 1.0).pseudo
    pseudo = family.weight * base
    log_gamma = cast("Callable[[Any], NDArray[np.float64]]", gammaln)
    # Columns that stand for no value have neither counts nor pseudo-counts.
    start = np.where(some, pseudo, 1.0)
    added = np.where(some, log_gamma(start + counts) - log_gamma(start), 0.0)
    added += counts * np.log(family.outcomes.share)
    inside = (block[:, None] == np.arange(family.outcomes.n_blocks)).astype(np.float64)
    sums = counts @ inside
    taken = log_gamma(family.weight) - log_gamma(family.weight + sums)
    return float(added[used].sum()) + float(taken[sums > 0.0].sum()) - family.partition.cost

"""Context-specific structure: trees of questions about features, whose answers are lumped.

A tree puts the cells of a factor (a state, with the indicators of earlier blocks) into leaves that share one
probability. Each question looks at one or two variables; its answers are lumped by how often the block goes missing
with them. Questions are asked as long as the score rises: log-likelihood, minus ½ log n for each further leaf, minus
what it takes to say which question was asked and how its answers were lumped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks, States
from missmdp.learn.em.structures import Factor, block_factor
from missmdp.sums import one_by_one

_MOST_LUMPS = 12

_MOST_VALUES = 400
"""Values above which neighbours are put together before lumping: the best cuts are searched in quadratic time."""

_MOST_LEAVES = 256

_MOST_PAIRED = 12
"""Variables up to which pairs of them are asked about; with more, pairs of those that tell most alone."""

_MOST_ANSWERS = 2000
"""Answers above which a pair of variables is not asked about."""


@dataclass(frozen=True, eq=False)
class Cells:
    """What trees sort: the cells of one block's indicator, and the variables that describe them."""

    factor: Factor
    """The finest factor: one group per cell."""
    variables: tuple[str | int, ...]
    """A feature by name, or an earlier block by number."""
    values: NDArray[np.int64]
    """The value of each variable, 0 .. size − 1, shape (cells, variables)."""
    sizes: tuple[int, ...]
    live: NDArray[np.bool_]
    """The cells with a state that can be reached, shape (cells,)."""
    shown: bool = False
    """Whether features have a value only where they are seen."""


@dataclass(frozen=True, eq=False)
class QuestionTree:
    """A partition of cells."""

    leaf: NDArray[np.int64]
    """The leaf of each cell, shape (cells,)."""
    count: int
    cost: float
    """What is taken off the log-likelihood: ½ log n for each leaf, and the words that the questions take."""
    asked: tuple[str | int, ...]
    """The variables that some question looks at."""


def block_cells(
    mdp: States,
    blocks: Blocks,
    block: int,
    features: Sequence[str],
    after: Sequence[int],
    *,
    shown: bool = False,
) -> Cells:
    """Return the cells of a block's indicator, told apart by some features and by indicators of earlier blocks.

    Parameters
    ----------
    shown
        Whether features have a value only where they are seen, as under MAR: that they are missing is one more
        value, 0. Features that can go missing must be from earlier blocks then.
    """
    space = mdp.space
    columns = [_column(mdp, blocks, name, shown) for name in features]
    columns += [
        np.broadcast_to(blocks.missing[:, i : i + 1], (len(blocks.missing), len(space))) for i in after
    ]
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    joint = np.zeros((len(blocks.missing), len(space)), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        joint = joint * size + column
    first, place = np.unique(joint, return_index=True, return_inverse=True)[1:]
    factor = replace(
        block_factor(mdp, blocks, block, (), ()),
        given=tuple(features),
        after=tuple(after),
        label=place.reshape(joint.shape).astype(np.int64),
        n_groups=len(first),
    )
    # Any member of a cell has the cell's values.
    values = np.array([column.reshape(-1)[first] for column in columns], dtype=np.int64)
    live = np.zeros(factor.n_groups, dtype=np.bool_)
    live[np.unique(factor.label[:, mdp.reachable])] = True
    return Cells(
        factor, (*features, *after), values.reshape(len(columns), len(first)).T, tuple(sizes), live, shown
    )


def _column(mdp: States, blocks: Blocks, name: str, shown: bool) -> NDArray[np.int64]:
    """Return the value of a feature for every pattern and state, shape (K, S)."""
    codes = mdp.space.codes[:, mdp.space.features.position(name)].astype(np.int64)
    if not shown or name not in blocks.features:
        return np.broadcast_to(codes, (len(blocks.missing), len(codes)))
    home = blocks.home(name)
    return np.where(blocks.missing[:, home : home + 1], 0, codes[None, :] + 1)


def grow(cells: Cells, counts: NDArray[np.float64], n_steps: int) -> QuestionTree:
    """Return the tree with the best score that single questions lead to.

    Parameters
    ----------
    cells
        What to sort.
    counts
        Expected counts of seen and missing in each cell, shape (cells, 2).
    n_steps
        The number of observations.
    """
    return _Growth(cells, counts, math.log(n_steps)).tree()


@dataclass(frozen=True, eq=False)
class _Question:
    gain: float
    variables: tuple[int, ...]
    answer: NDArray[np.int64]
    """The lump of each cell of the leaf."""
    count: int


class _Answers(NamedTuple):
    variables: tuple[int, ...]
    key: NDArray[np.int64]
    """The answer of each cell, shape (cells,)."""
    table: NDArray[np.float64]
    """Counts of seen and missing for each answer, shape (answers, 2)."""
    present: NDArray[np.bool_]
    """Which answers some cell gives, shape (answers,)."""


class _Growth:
    def __init__(self, cells: Cells, counts: NDArray[np.float64], log_n: float) -> None:
        self.cells = cells
        self.counts = np.where(cells.live[:, None], counts, 0.0)
        self.log_n = log_n
        n_variables = len(cells.variables)
        self.singles = [(v,) for v in range(n_variables) if cells.sizes[v] > 1]
        paired = [v for (v,) in self.singles]
        if len(paired) > _MOST_PAIRED:
            alone = {v: self._likelihood(np.arange(len(counts)), (v,)) for v in paired}
            paired = sorted(sorted(paired, key=lambda v: -alone[v])[:_MOST_PAIRED])
        self.pairs = [
            (v, w) for v, w in combinations(paired, 2) if cells.sizes[v] * cells.sizes[w] <= _MOST_ANSWERS
        ]
        # Which of the questions is asked, or none at all.
        self.words = math.log(max(len(self.singles) + len(self.pairs), 1) + 1)

    def tree(self) -> QuestionTree:
        leaves = [np.flatnonzero(np.ones(len(self.counts), dtype=np.bool_))]
        questions = [self._best(leaves[0])]
        cost = 0.5 * self.log_n
        asked: set[int] = set()
        while len(leaves) < _MOST_LEAVES:
            place = max(range(len(leaves)), key=lambda i: questions[i].gain)
            question = questions[place]
            if question.gain <= 0.0:
                break
            members = leaves[place]
            parts = [members[question.answer == lump] for lump in range(question.count)]
            rise = self._entropy(parts) - self._entropy([members])
            cost += rise - question.gain
            asked |= set(question.variables)
            leaves[place : place + 1] = parts
            questions[place : place + 1] = [self._best(part) for part in parts]
        leaf = np.empty(len(self.counts), dtype=np.int64)
        for number, members in enumerate(leaves):
            leaf[members] = number
        names = tuple(self.cells.variables[v] for v in sorted(asked))
        return QuestionTree(leaf, len(leaves), cost, names)

    def _entropy(self, parts: Sequence[NDArray[np.int64]]) -> float:
        return one_by_one(float(entropy_gain(self.counts[part].sum(axis=0))) for part in parts)

    def _best(self, members: NDArray[np.int64]) -> _Question:
        """Return the question about some cells that adds most to the score; its gain is 0 if none adds anything."""
        best = _Question(0.0, (), np.zeros(len(members), dtype=np.int64), 1)
        total = self.counts[members].sum(axis=0)
        # Frequencies of 0 and 1 cannot be told apart further, and few observations cannot pay for a question.
        if -float(entropy_gain(total)) <= 0.5 * self.log_n:
            return best
        whole = float(entropy_gain(total))
        asked = [self._answers(members, variables) for variables in (*self.singles, *self.pairs)]
        ceilings = [
            float(entropy_gain(answers.table).sum()) - whole - 0.5 * self.log_n - self.words
            for answers in asked
        ]
        # What promises most comes first: the rest need not be looked at once it cannot be better.
        for place in sorted(range(len(asked)), key=lambda i: -ceilings[i]):
            answers = asked[place]
            if ceilings[place] <= best.gain:
                break
            present = np.flatnonzero(answers.present)
            if len(present) < 2:
                continue
            lumps = best_lumps(answers.table[present], self.log_n, self.words)
            if lumps.gain > best.gain:
                label = np.zeros(len(answers.present), dtype=np.int64)
                label[present] = lumps.label
                best = _Question(lumps.gain, answers.variables, label[answers.key], lumps.count)
        return best

    def _answers(self, members: NDArray[np.int64], variables: tuple[int, ...]) -> _Answers:
        """Return the answers of some cells to a question, and the counts of each answer."""
        key, size = np.zeros(len(members), dtype=np.int64), 1
        for v in variables:
            key = key * self.cells.sizes[v] + self.cells.values[members, v]
            size *= self.cells.sizes[v]
        counts = self.counts[members]
        columns = [np.bincount(key, counts[:, o], minlength=size).astype(np.float64) for o in (0, 1)]
        table = np.stack(columns, axis=1)
        return _Answers(variables, key, table, np.bincount(key, minlength=size) > 0)

    def _likelihood(self, members: NDArray[np.int64], variables: tuple[int, ...]) -> float:
        return float(entropy_gain(self._answers(members, variables).table).sum())


@dataclass(frozen=True, eq=False)
class Lumps:
    """A partition of values."""

    label: NDArray[np.int64]
    """The lump of each value, by rising frequency, shape (V,)."""
    count: int
    gain: float
    """What it adds to the score over leaving all values in one lump."""


def best_lumps(counts: NDArray[np.float64], log_n: float, extra: float) -> Lumps:
    """Return the partition of values into lumps with the best score.

    The score is the log-likelihood minus ½ log n for each further lump, minus the log of the number of partitions
    into so many lumps, minus `extra` for lumping at all. In the best partition lumps are neighbours when values are
    ordered by frequency, so it is found exactly.

    Parameters
    ----------
    counts
        How often something happened with each value, and how often it did not, shape (V, 2).
    log_n
        The log of the number of observations.
    extra
        The cost of any partition.
    """
    size = counts.sum(axis=1)
    total = counts.sum(axis=0)
    some = size > 1e-6
    mean = float(total[1]) / max(float(total.sum()), 1e-300)
    rate: NDArray[np.float64] = np.where(some, counts[:, 1] / np.maximum(size, 1e-300), mean)
    order = np.argsort(rate, kind="stable")
    ends = _ends(size[order])
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(counts[order], axis=0)])[ends]
    between = np.maximum(sums[None, :, :] - sums[:, None, :], 0.0)
    within = entropy_gain(between)
    last = len(ends) - 1
    within[np.tril_indices(last + 1)] = -np.inf
    whole = float(entropy_gain(total))
    n_values = int((size > 0.5).sum())
    best, found = within[0].copy(), (0.0, 1)
    back: list[NDArray[np.int64]] = []
    for lumps in range(2, min(_MOST_LUMPS, last, n_values) + 1):
        through = best[:, None] + within
        cut = np.argmax(through, axis=0)
        best = through[cut, np.arange(last + 1)]
        back.append(cut)
        score = (
            best[last]
            - whole
            - 0.5 * (lumps - 1) * log_n
            - log_partitions(n_values, lumps)
            - math.log(n_values)
            - extra
        )
        if score > found[0]:
            found = (float(score), lumps)
    label = np.zeros(len(counts), dtype=np.int64)
    end = last
    for lump in range(found[1] - 1, 0, -1):
        begin = int(back[lump - 1][end])
        label[order[ends[begin] : ends[end]]] = lump
        end = begin
    return Lumps(label, found[1], found[0])


def _ends(size: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return where ordered values may be cut: everywhere, or where about equal numbers of observations end."""
    if len(size) <= _MOST_VALUES:
        return np.arange(len(size) + 1)
    passed = np.cumsum(size) / max(float(size.sum()), 1e-300)
    cuts = np.searchsorted(passed, np.arange(1, _MOST_VALUES) / _MOST_VALUES) + 1
    return np.unique(np.concatenate([[0], np.minimum(cuts, len(size)), [len(size)]])).astype(np.int64)


@lru_cache(maxsize=4096)
def log_partitions(n_values: int, n_lumps: int) -> float:
    """Return the log of the number of ways to put values into lumps that are not empty (Stirling, second kind)."""
    if n_lumps in (1, n_values):
        return 0.0
    if n_values > 60:
        # All but the last few of n^v/n! are partitions into n lumps.
        return n_values * math.log(n_lumps) - math.lgamma(n_lumps + 1)
    total = sum(
        (-1) ** j * math.comb(n_lumps, j) * (n_lumps - j) ** n_values for j in range(n_lumps + 1)
    ) // math.factorial(n_lumps)
    return math.log(total)


def entropy_gain(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-likelihood of binary counts at their own frequency, shape (…,) for counts (…, 2)."""
    return x_log_x(counts).sum(axis=-1) - x_log_x(counts.sum(axis=-1))


def x_log_x(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x log x, and 0 at 0."""
    return np.where(x > 0.0, x * np.log(np.maximum(x, 1e-300)), 0.0)

"""How the next value of a feature depends on what came before: decision trees, tables, and how they are grown.

A *variable* is a column of numbers: the features now, the action, the features next, and whether the episode ended.
A partition sorts contexts (values of some variables) into leaves, and each leaf has a distribution of its own. Trees
are grown by the Dirichlet-multinomial score: the probability of the counts when a leaf's distribution is drawn around
the overall one with a weight of some pseudo-counts, less the log of the number of questions for each that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.questions import Askable, Prior, best_first_of_two, best_question, leaf_score

Column = Callable[[int], NDArray[np.int64]]
"""Variable → its value in each context."""

LESS, EQUAL, GREATER = 0, 1, 2

_MOST_LEAVES = 512
_TWOS = 100.0
"""How many times more than a single question two must raise the score to be asked instead."""


class Partition(Protocol):
    """Contexts sorted into leaves."""

    @property
    def count(self) -> int:
        """The number of leaves."""
        ...

    @property
    def asked(self) -> tuple[int, ...]:
        """The variables that matter."""
        ...

    @property
    def cost(self) -> float:
        """What it takes to say which partition it is, in nats."""
        ...

    def leaf(self, column: Column, n: int) -> NDArray[np.int64]:
        """Return the leaf of each of n contexts."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """A leaf for each combination of values of some variables."""

    asked: tuple[int, ...]
    sizes: tuple[int, ...]
    cost: float = 0.0
    merged: NDArray[np.int64] | None = None
    """The leaf of each combination, the last variable changing fastest, if some share one."""

    @property
    def count(self) -> int:
        """The number of leaves."""
        return math.prod(self.sizes) if self.merged is None else int(self.merged.max()) + 1

    def leaf(self, column: Column, n: int) -> NDArray[np.int64]:
        """Return the leaf of each of n contexts."""
        found = np.zeros(n, dtype=np.int64)
        for variable, size in zip(self.asked, self.sizes, strict=True):
            found = found * size + column(variable)
        return found if self.merged is None else self.merged[found]


class Question(NamedTuple):
    """A question about a variable, or about two that are compared."""

    variable: int
    other: int
    """The variable that it is compared with; −1 if it is not."""
    left: NDArray[np.bool_]
    """Which answers go left; where two variables are compared, the answers are less, equal, greater."""
    yes: int
    """Where these contexts go: a node, or −1 − leaf."""
    no: int

    def goes_left(self, column: Column) -> NDArray[np.bool_]:
        """Return which contexts go left."""
        value = column(self.variable)
        if self.other >= 0:
            value = 1 + np.sign(value - column(self.other)).astype(np.int64)
        return self.left[value]


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree."""

    questions: tuple[Question, ...]
    """Parents before children; none if there is one leaf."""
    count: int
    cost: float

    @property
    def asked(self) -> tuple[int, ...]:
        """The variables that matter."""
        named = {v for q in self.questions for v in (q.variable, q.other) if v >= 0}
        return tuple(sorted(named))

    def leaf(self, column: Column, n: int) -> NDArray[np.int64]:
        """Return the leaf of each of n contexts."""
        place = np.zeros(n, dtype=np.int64) if self.questions else np.full(n, -1, dtype=np.int64)
        for number, question in enumerate(self.questions):
            here = np.flatnonzero(place == number)
            if len(here) == 0:
                continue

            def inside(variable: int, here: NDArray[np.int64] = here) -> NDArray[np.int64]:
                return column(variable)[here]

            place[here] = np.where(question.goes_left(inside), question.yes, question.no)
        return -1 - place


class Outcomes(NamedTuple):
    """The ways in which the next value of a feature can be told: as a value, or as a change of the one before."""

    column: NDArray[np.int64]
    """The column of a way, a value before and a value after, shape (ways, V, V); (1, 1, V) if there is no value before.
    """
    block: NDArray[np.int64]
    """Columns of one block make a distribution, shape (W,)."""
    way: NDArray[np.int64]
    """The way that each block belongs to, shape (blocks,)."""
    share: NDArray[np.float64]
    """The share of each value that a column stands for, shape (W,); 1 but for values that no change leads to."""

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.block)

    @property
    def n_blocks(self) -> int:
        """How many distributions there are."""
        return len(self.way)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which columns some value is told by, shape (W,)."""
        return np.isin(np.arange(self.width), self.column)

    def columns(
        self, way: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the column of each step, told in a way of its own."""
        n_before = self.column.shape[1]
        return self.column[way, before if n_before > 1 else 0, after]

    @classmethod
    def values(cls, size: int) -> Outcomes:
        """Return values only: for features with nothing before them."""
        column = np.arange(size, dtype=np.int64)[None, None, :]
        return cls(column, np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(size))

    @classmethod
    def values_or_changes(cls, size: int, down: int, up: int) -> Outcomes:
        """Return values, or changes from −down to up; values from which some are impossible have distributions apart.

        Values that no such change leads to share one column.
        """
        before, after = np.indices((size, size))
        n_kinds, span = (down + 1) * (up + 1), down + up + 2
        kind = np.minimum(before, down) * (up + 1) + np.minimum(size - 1 - before, up)
        change = after - before
        inside = (change >= -down) & (change <= up)
        column = size + kind * span + np.where(inside, change + down, span - 1)
        share = np.ones(size + n_kinds * span)
        share[column[~inside]] = 1.0 / (~inside).sum(axis=1)[before[~inside]]
        return cls(
            np.stack([after, column]),
            np.concatenate([np.zeros(size, dtype=np.int64), 1 + np.arange(n_kinds * span) // span]),
            np.append(0, np.ones(n_kinds, dtype=np.int64)),
            share,
        )


class Contexts(NamedTuple):
    """How often each outcome came in each context."""

    variables: tuple[int, ...]
    codes: NDArray[np.int16]
    """The values of the variables, shape (contexts, variables)."""
    counts: NDArray[np.float64]
    """Shape (contexts, W)."""

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable."""
        return self.codes[:, self.variables.index(variable)].astype(np.int64)


class Grown(NamedTuple):
    """A tree, and how good it is."""

    tree: Tree
    score: float


def leaf_prior(counts: NDArray[np.float64], outcomes: Outcomes, weight: float) -> Prior:
    """Return pseudo-counts like the counts of columns, shape (W,), so many in each block."""
    block, n_blocks = outcomes.block, outcomes.n_blocks
    share = np.where(outcomes.used, counts + 0.5 / len(counts), 0.0)
    total = np.bincount(block, share, minlength=n_blocks)
    count = weight * share / np.maximum(total[block], 1e-300)
    sums = np.bincount(block, count, minlength=n_blocks).astype(np.float64)
    return Prior(count, block, sums, outcomes.way, np.log(outcomes.share))


def grow_tree_of_questions(
    contexts: Contexts,
    askable: Askable,
    outcomes: Outcomes,
    weight: float,
    base: NDArray[np.float64] | None = None,
    *,
    twos: bool = False,
) -> Grown:
    """Return the tree with the best score that single questions lead to.

    Parameters
    ----------
    contexts
        What to sort; only contexts that occur.
    askable
        What can be asked of its variables.
    weight
        The pseudo-counts of a leaf.
    base
        The counts of columns that pseudo-counts are like, shape (W,); by default those of all contexts together.
    twos
        Whether two questions are asked together where single ones say next to nothing.
    """
    codes, counts = contexts.codes, contexts.counts
    prior = leaf_prior(counts.sum(axis=0) if base is None else base, outcomes, weight)
    # Values come first.
    position = np.arange(outcomes.column.shape[2], dtype=np.float64)
    room = max(int(askable.sizes.max(initial=0)), 3)
    members = [np.arange(len(codes))]
    score, _ = leaf_score(prior, counts.sum(axis=0))
    questions: list[Question] = []
    # Where a leaf hangs: the number of its question, and whether on the left.
    hangs: list[tuple[int, bool]] = [(-1, True)]
    waiting, cost = [0], 0.0
    while waiting and len(members) < _MOST_LEAVES:
        leaf = waiting.pop()
        left = np.zeros(room, dtype=np.bool_)
        gain, words, variable, other = best_question(
            codes, counts, members[leaf], askable, prior, position, left
        )
        if twos:
            first = np.zeros(room, dtype=np.bool_)
            _, alone, own_words, own = best_first_of_two(
                codes, counts, members[leaf], askable, prior, len(position), _TWOS * gain, first
            )
            if own >= 0:
                gain, words, variable, other, left = alone, own_words, own, -1, first
        if variable < 0:
            continue
        number, (above, on_left) = len(questions), hangs[leaf]
        if above >= 0:
            questions[above] = questions[above]._replace(**{"yes" if on_left else "no": number})
        value = codes[members[leaf], variable].astype(np.int64)
        if other >= 0:
            value = 1 + np.sign(value - codes[members[leaf], other]).astype(np.int64)
        goes = left[value]
        new = len(members)
        size = 3 if other >= 0 else int(askable.sizes[variable])
        named = (contexts.variables[variable], contexts.variables[other] if other >= 0 else -1)
        questions.append(Question(*named, left[:size].copy(), -1 - leaf, -1 - new))
        members.append(members[leaf][~goes])
        members[leaf] = members[leaf][goes]
        hangs[leaf] = (number, True)
        hangs.append((number, False))
        waiting += [leaf, new]
        score += gain
        cost += words
    return Grown(Tree(tuple(questions), len(members), cost), score)


class Vocabulary(Protocol):
    """What variables and their values are called."""

    def name(self, variable: int) -> str:
        """Return what a variable is called."""
        ...

    def values(self, variable: int) -> Sequence[str]:
        """Return what its values are called."""
        ...

    def ordered(self, variable: int) -> bool:
        """Return whether its values have an order."""
        ...


def leaves_in_words(tree: Tree, words: Vocabulary) -> Iterator[tuple[int, list[str]]]:
    """Yield the leaves with what holds in each, in words; what was asked of one variable is put together."""

    def walk(
        node: int, sets: dict[int, NDArray[np.bool_]], compared: dict[tuple[int, int], NDArray[np.bool_]]
    ) -> Iterator[tuple[int, list[str]]]:
        if node < 0:
            said = [_among(words, v, inside) for v, inside in sets.items()]
            for (one, other), inside in compared.items():
                sign = _SIGNS[tuple(np.flatnonzero(inside).tolist())]
                said.append(f"{words.name(one)} {sign} {words.name(other)}")
            yield -1 - node, said
            return
        question = tree.questions[node]
        variable, other = question.variable, question.other
        for side, child in ((question.left, question.yes), (~question.left, question.no)):
            if other >= 0:
                pair = variable, other
                both = compared | {pair: side & compared.get(pair, np.ones(3, dtype=np.bool_))}
                yield from walk(child, sets, both)
            else:
                inside = side & sets.get(variable, np.ones(len(side), dtype=np.bool_))
                yield from walk(child, sets | {variable: inside}, compared)

    yield from walk(0 if tree.questions else -1, {}, {})


_SIGNS: dict[tuple[int, ...], str] = {
    (): "is neither less nor more nor equal to",
    (LESS,): "<",
    (EQUAL,): "=",
    (GREATER,): ">",
    (LESS, EQUAL): "≤",
    (EQUAL, GREATER): "≥",
    (LESS, GREATER): "≠",
    (LESS, EQUAL, GREATER): "and",
}


def _among(words: Vocabulary, variable: int, inside: NDArray[np.bool_]) -> str:
    name, shown = words.name(variable), words.values(variable)
    side = np.flatnonzero(inside).tolist()
    if not side:
        return f"{name} is nothing"
    if len(side) == 1:
        return f"{name} = {shown[side[0]]}"
    run = words.ordered(variable) and side == list(range(side[0], side[-1] + 1))
    if run and side[0] == 0:
        return f"{name} ≤ {shown[side[-1]]}"
    if run and side[-1] == len(shown) - 1:
        return f"{name} ≥ {shown[side[0]]}"
    if run and len(side) > 2:
        return f"{name} from {shown[side[0]]} to {shown[side[-1]]}"
    return f"{name} in {{{', '.join(shown[i] for i in side)}}}"

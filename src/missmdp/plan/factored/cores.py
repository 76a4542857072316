"""Products of many small tables, applied to a tensor with one axis per site.

A *core* says how one site changes: rows (now) by columns (next). Where sites are tied together, their cores share
*bonds*: axes that are summed over when all of them have been used. So an operator on a tensor of G^k numbers is k small
matrix products, and the operator itself is never multiplied out.

Often a core asks only which *group* of rows or columns another site is in, such as those with the same value. Such a
bond is a *label* of the axis of that site: while the tensor has this axis, a bond of its own is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.model.factors import contracted
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]


class Core(NamedTuple):
    """How one site changes, or what ties sites together."""

    site: int
    """−1 for a table of bonds only."""
    bonds: tuple[int, ...]
    table: Tensor
    """One axis per bond, then rows and columns (for a site). One row stands for all rows that are equal."""


class Label(NamedTuple):
    """A bond that says in which group a row, or a column, of a site is."""

    bond: int
    groups: NDArray[np.int64]
    """The group of each row or column."""
    count: int
    """How many groups there are."""


MOST_IN_CORE = 20_000_000
"""Numbers in one core above which it is not made: too much is tied together."""
_FEW_CORES = 9
"""Cores of which the best order of all is found; of more, the next one is the one that leaves the smallest tensor."""


class TooTiedError(Exception):
    """Sites are tied together so much that their cores would not fit."""


def empty_core(*shape: int) -> Tensor:
    """Return zeros for a core, if they fit."""
    if math.prod(map(float, shape)) > MOST_IN_CORE:
        raise TooTiedError
    return np.zeros(shape)


def one_row(table: Tensor) -> Tensor:
    """Return the table of a core with one row where all rows are equal."""
    return table[..., :1, :] if (table == table[..., :1, :]).all() else table


class Operator:
    """A product of cores.

    Parameters
    ----------
    cores
        One for each site, and possibly some of bonds only.
    shape
        The numbers of rows of the sites.
    row_labels, column_labels
        For each site, the bond that is a label of its rows, or of its columns; none if not given. The core of a site
        has no bond that is a label of its own. Labels that no core asks for do no harm.
    """

    def __init__(
        self,
        cores: Sequence[Core],
        shape: tuple[int, ...],
        row_labels: Sequence[Label] = (),
        column_labels: Sequence[Label] = (),
    ) -> None:
        self.cores = list(cores)
        self.shape = shape
        self._n = n = len(shape)
        # Axes are numbered: rows of the sites, columns of the sites, then bonds.
        self._scopes = [
            tuple(2 * n + b for b in core.bonds) + ((core.site, n + core.site) if core.site >= 0 else ())
            for core in cores
        ]
        self._lengths: dict[int, int] = {}
        for core, scope in zip(self.cores, self._scopes, strict=True):
            self._lengths.update(zip(scope, core.table.shape, strict=True))
        asked = {bond for core in cores for bond in core.bonds}
        labels = [*enumerate(row_labels), *enumerate(column_labels, n)]
        self._labels = {axis: label for axis, label in labels if label.bond in asked}
        self._plans: dict[int, _Plan] = {}

    @cached_property
    def key(self) -> bytes:
        """What is the same for operators that do the same."""
        digest = blake2b(repr((self.shape, self._scopes)).encode())
        for core in self.cores:
            digest.update(repr(core.table.shape).encode())
            digest.update(np.ascontiguousarray(core.table).tobytes())
        for axis, label in self._labels.items():
            digest.update(repr((axis, label.bond, label.groups.tolist(), label.count)).encode())
        return digest.digest()

    def work(self) -> float:
        """Return about how many multiplications one use takes."""
        return self._plan(self._n).work

    def peak(self) -> float:
        """Return how many numbers the largest tensor on the way has."""
        return self._plan(self._n).peak

    def pull(self, values: Tensor) -> Tensor:
        """Return Σ_next operator(row, next) values(next), a tensor over rows (axes of one row kept so)."""
        return self._apply(values, self._n, 0)

    def push(self, weights: Tensor) -> Tensor:
        """Return Σ_row weights(row) operator(row, next), a tensor over columns."""
        for core in self.cores:
            if self._has_one_row(core) and core.site not in self._labels and weights.shape[core.site] > 1:
                weights = weights.sum(axis=core.site, keepdims=True)
        return self._apply(weights, 0, self._n)

    def _has_one_row(self, core: Core) -> bool:
        return core.site >= 0 and core.table.shape[-2] == 1

    def _plan(self, begin: int) -> _Plan:
        """Return how to use the cores: from columns to rows, or from rows to columns."""
        if begin not in self._plans:
            lengths = dict(self._lengths)
            for axis, label in self._labels.items():
                lengths.setdefault(2 * self._n + label.bond, label.count)
                if begin == 0:
                    # Rows that are equal are told apart by their groups.
                    lengths[axis] = len(label.groups)
            self._plans[begin] = _planned(
                tuple(self._scopes),
                tuple(sorted(lengths.items())),
                tuple((axis, 2 * self._n + label.bond, len(label.groups)) for axis, label in self._labels.items()),
                begin,
                self._n,
            )
        return self._plans[begin]

    def _apply(self, tensor: Tensor, begin: int, end: int) -> Tensor:
        n = self._n
        axes = tuple(range(begin, begin + n))
        for step in self._plan(begin).steps:
            table, scope = self._table(step, begin)
            tensor, axes = contracted(tensor, axes, table, scope, set(step.gone))
        for axis, label in self._labels.items():
            bond = 2 * n + label.bond
            if bond in axes:
                # Rows are equal but for what others ask of them.
                tensor = tensor.take(label.groups, axis=axes.index(bond)).squeeze(axes.index(axis))
                axes = tuple(axis if other == bond else other for other in axes if other != axis)
        return tensor.transpose([axes.index(axis) for axis in range(end, end + n)])

    def _table(self, step: _Step, begin: int) -> tuple[Tensor, tuple[int, ...]]:
        """Return the table of a core as a step uses it, and its axes."""
        core = self.cores[step.core]
        table = core.table
        if begin == 0 and core.site in self._labels and self._has_one_row(core):
            table = table.repeat(len(self._labels[core.site].groups), axis=-2)
        for place, (axis, bond) in enumerate(zip(step.scope, self._scopes[step.core], strict=True)):
            if axis != bond:
                table = table.take(self._labels[axis].groups, axis=place)
        scope = step.scope
        for axis in step.marked:
            label = self._labels[axis]
            mark = label.groups == np.arange(label.count)[:, None]
            table = table * mark.reshape(
                [-1, *(len(label.groups) if other == axis else 1 for other in scope)]
            )
            scope = (2 * self._n + label.bond, *scope)
        return table, scope


class _Step(NamedTuple):
    """How one core is used."""

    core: int
    scope: tuple[int, ...]
    """The axes of its table, where bonds have become axes of the tensor that they are labels of."""
    marked: tuple[int, ...]
    """Axes of its own site whose labels become axes of its table too."""
    gone: frozenset[int]
    """What is then summed over."""
    axes: frozenset[int]
    """What the tensor has then."""
    work: float
    size: float


class _Plan(NamedTuple):
    steps: list[_Step]
    work: float
    peak: float


@lru_cache(maxsize=1000)
def _planned(
    scopes: tuple[tuple[int, ...], ...],
    lengths: tuple[tuple[int, int], ...],
    labels: tuple[tuple[int, int, int], ...],
    begin: int,
    n: int,
) -> _Plan:
    """Return the order in which to use cores: the one with the least work, or a good one where there are many."""
    order = _Order(scopes, dict(lengths), labels, begin, n)
    steps = order.best() if len(scopes) <= _FEW_CORES else order.greedy()
    return _Plan(
        steps,
        sum(step.work for step in steps),
        max([order.size(order.start), *(step.size for step in steps)]),
    )


class _Order:
    """What using cores in some order comes to.

    Parameters
    ----------
    scopes, lengths
        The axes of each core, and their lengths.
    labels
        Axes of rows and columns, the bonds that are their labels, and how many indices have a group.
    begin, n
        Where the axes of the tensor begin, and the number of sites.
    """

    def __init__(
        self,
        scopes: Sequence[tuple[int, ...]],
        lengths: dict[int, int],
        labels: Sequence[tuple[int, int, int]],
        begin: int,
        n: int,
    ) -> None:
        self._scopes, self._lengths = scopes, lengths
        self._first, self._last = range(begin, begin + n), range(n - begin, 2 * n - begin)
        self._axis_of = {bond: axis for axis, bond, _ in labels}
        self._label_of = {axis: bond for axis, bond, _ in labels}
        self._whole = {axis for axis, _, length in labels if lengths[axis] == length}
        """Axes that tell their labels; if rows are equal, there is only one."""
        self.start = frozenset(self._first)
        users: dict[int, set[int]] = {}
        for k, scope in enumerate(scopes):
            for axis in scope:
                users.setdefault(axis, set()).add(k)
        self._users = users

    def size(self, axes: Iterable[int]) -> float:
        """Return how many numbers a tensor with these axes has."""
        return math.prod(float(self._lengths[axis]) for axis in axes)

    def step(self, k: int, axes: frozenset[int], left: frozenset[int]) -> _Step:
        """Return how a core is used when the tensor has some axes, with those cores that are left, itself included."""
        scope = tuple(self._told_by(axis, axes) for axis in self._scopes[k])
        left -= {k}
        marked: list[int] = []
        for axis in scope:
            bond = self._label_of.get(axis)
            if bond is None or bond in scope or axis not in self._own(k):
                continue
            asked_before = axis in self._last and bond in axes and axis in self._whole
            asked_later = axis in self._first and bool(self._users.get(bond, set()) & left)
            if asked_before or asked_later:
                marked.append(axis)
        union = axes.union(scope, (self._label_of[axis] for axis in marked))
        gone = frozenset(axis for axis in union if not self._is_needed(axis, left))
        rest = union - gone
        return _Step(k, scope, tuple(marked), gone, rest, self.size(union), self.size(rest))

    def _own(self, k: int) -> tuple[int, ...]:
        """Return the axes of the site of a core."""
        scope = self._scopes[k]
        n = len(self._first)
        return scope[-2:] if len(scope) > 1 and scope[-2] < n and scope[-1] == scope[-2] + n else ()

    def _told_by(self, axis: int, axes: frozenset[int]) -> int:
        """Return the axis of the tensor that a bond is a label of, or else itself."""
        owner = self._axis_of.get(axis)
        return axis if owner is None or owner not in axes or owner not in self._whole else owner

    def _is_needed(self, axis: int, left: frozenset[int]) -> bool:
        """Return whether an axis of the tensor is needed when some cores are left."""
        if axis in self._last or self._users.get(axis, set()) & left:
            return True
        owner = self._axis_of.get(axis)
        if owner is None or owner not in self._last:
            return False
        # The site itself has still to say which group it is in.
        return owner not in self._whole or bool(self._users[owner] & left)

    def greedy(self) -> list[_Step]:
        """Return steps of which each leaves as little as possible."""
        axes, left, steps = self.start, frozenset(range(len(self._scopes))), list[_Step]()
        while left:
            best = min((self.step(k, axes, left) for k in sorted(left)), key=lambda step: step.size)
            steps.append(best)
            axes, left = best.axes, left - {best.core}
        return steps

    def best(self) -> list[_Step]:
        """Return the steps with the least work: which axes a tensor has depends on what was used, not on its order."""
        everything = frozenset(range(len(self._scopes)))
        found: dict[frozenset[int], tuple[float, list[_Step], frozenset[int]]] = {
            everything: (0.0, [], self.start)
        }
        for _ in everything:
            following: dict[frozenset[int], tuple[float, list[_Step], frozenset[int]]] = {}
            for left, (work, steps, axes) in found.items():
                for k in sorted(left):
                    step = self.step(k, axes, left)
                    total = work + step.work + step.size
                    rest = left - {k}
                    if rest not in following or total < following[rest][0]:
                        following[rest] = (total, [*steps, step], step.axes)
            found = following
        return found[frozenset()][1]


class Way(NamedTuple):
    """Where an operator leads."""

    weight: float
    after: int
    """The next scene."""


def merged(moves: Iterable[tuple[Way, Operator]]) -> list[tuple[Operator, list[Way]]]:
    """Return each operator once, with all ways that it is used for: often the next scene makes no difference."""
    found: dict[bytes, tuple[Operator, list[Way]]] = {}
    for way, operator in moves:
        found.setdefault(operator.key, (operator, []))[1].append(way)
    return list(found.values())


def pulled(operators: Iterable[tuple[Operator, list[Way]]], values: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield what operators make of values by scenes, weighed; they add up."""
    for operator, ways in operators:
        first, *rest = ways
        weighed = first.weight * values[first.after]
        for way in rest:
            weighed += way.weight * values[way.after]
        yield operator.pull(weighed)


def push_all(
    operators: Iterable[tuple[Operator, list[Way]]],
    part: Tensor,
    discount: float,
    out: Sequence[Tensor],
    clock: Stopwatch,
) -> None:
    """Add where a mass goes, discounted, to masses by scenes."""
    for operator, ways in operators:
        clock.check()
        there = operator.push(part)
        for way in ways:
            out[way.after][...] += discount * way.weight * there

"""Products of many small tables, applied to a tensor with one axis per site.

A *core* says how one site changes: rows (now) by columns (next). Where sites are tied together, their cores share
*bonds*: axes that are summed over when all of them have been used. So an operator on a tensor of G^k numbers is k small
matrix products, and the operator itself is never multiplied out.

Often a core asks only which *group* of rows or columns another site is in, such as all those with the same value. Such
a bond is a *label* of that site's axis: while the tensor has this axis, the bond needs no axis of its own.
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
    size: int
    """How many groups there are."""


MOST_IN_CORE = 20_000_000
"""Numbers in one core above which it is not made: too much is tied together."""
_FEW_CORES = 7
"""Up to so many cores with labels, the best order is found; otherwise, the next core leaves the smallest tensor."""


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


def by_action(table: Tensor) -> Tensor:
    """Return a table whose last axis is the action with that axis first, so that what belongs to one is together."""
    return np.ascontiguousarray(np.moveaxis(table, -1, 0))


class Operator:
    """A product of cores.

    Parameters
    ----------
    cores
        One for each site, and possibly some of bonds only.
    shape
        The numbers of rows of the sites.
    row_labels, column_labels
        For each site, the bond that labels its rows, or its columns; none if not given. The core of a site never has
        a label of its own as a bond. Labels that no core asks for have no effect.
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
        self._tables: list[Tensor] = []
        self._scopes: list[tuple[int, ...]] = []
        self._lengths: dict[int, int] = {}
        self._rows = set(range(n))
        """Sites whose rows differ."""
        for core in self.cores:
            scope, table = tuple(2 * n + b for b in core.bonds), core.table
            if core.site >= 0:
                scope += (core.site, n + core.site)
                if table.shape[-2] == 1:
                    scope, table = (*scope[:-2], n + core.site), table[..., 0, :]
                    self._rows.discard(core.site)
            self._scopes.append(scope)
            self._tables.append(table)
            self._lengths.update(zip(scope, table.shape, strict=True))
        asked = {bond for core in cores for bond in core.bonds}
        labels = [*enumerate(row_labels), *enumerate(column_labels, n)]
        self._labels = {axis: label for axis, label in labels if label.bond in asked}
        self._lengths |= {2 * n + label.bond: label.size for label in self._labels.values()}
        self._plans: dict[bool, _Plan] = {}

    @cached_property
    def key(self) -> bytes:
        """What is the same for operators that do the same."""
        digest = blake2b(repr((self.shape, self._scopes)).encode())
        for core in self.cores:
            digest.update(repr(core.table.shape).encode())
            digest.update(np.ascontiguousarray(core.table).tobytes())
        for axis, label in self._labels.items():
            digest.update(repr((axis, label.bond, label.groups.tolist(), label.size)).encode())
        return digest.digest()

    def work(self) -> float:
        """Return about how many multiplications one use takes."""
        return self._plan(pull=True).work

    def peak(self) -> float:
        """Return how many numbers the largest tensor on the way has."""
        return self._plan(pull=True).peak

    def pull(self, values: Tensor) -> Tensor:
        """Return Σ_next operator(row, next) values(next), a tensor over rows; axes of equal rows have length 1."""
        n = self._n
        tensor, axes = self._apply(values, tuple(range(n, 2 * n)), pull=True)
        for site in range(n):
            if site in axes:
                continue
            # Its rows are equal, except for what other cores ask of them.
            if site in self._labels:
                place = axes.index(2 * n + self._labels[site].bond)
                tensor = tensor.take(self._labels[site].groups, axis=place)
                axes = (*axes[:place], site, *axes[place + 1 :])
            else:
                tensor, axes = tensor[..., None], (*axes, site)
        return tensor.transpose([axes.index(site) for site in range(n)])

    def push(self, weights: Tensor) -> Tensor:
        """Return Σ_row weights(row) operator(row, next), a tensor over columns."""
        n = self._n
        axes = tuple(range(n))
        for site in set(range(n)) - self._rows:
            marks, scope = np.ones(weights.shape[axes.index(site)]), (site,)
            if site in self._labels:
                marks, scope = self._marks(site), (site, 2 * n + self._labels[site].bond)
            weights, axes = contracted(weights, axes, marks, scope, {site})
        tensor, axes = self._apply(weights, axes, pull=False)
        return tensor.transpose([axes.index(axis) for axis in range(n, 2 * n)])

    def _marks(self, axis: int) -> Tensor:
        """Return 1 where an index of an axis is in a group, shape (length, groups)."""
        label = self._labels[axis]
        return (label.groups[:, None] == np.arange(label.size)).astype(np.float64)

    def _plan(self, *, pull: bool) -> _Plan:
        """Return the order in which to use the cores: from columns to rows (pull) or from rows to columns."""
        if pull not in self._plans:
            n = self._n
            labels = {axis: 2 * n + label.bond for axis, label in self._labels.items()}
            columns = set(range(n, 2 * n))
            # Where all rows are equal, the tensor has only their groups.
            rows = self._rows | {labels.pop(site) for site in set(range(n)) - self._rows if site in labels}
            self._plans[pull] = _planned(
                tuple(self._scopes),
                tuple(sorted(self._lengths.items())),
                tuple(labels.items()),
                frozenset(columns if pull else rows),
                frozenset(rows if pull else columns),
            )
        return self._plans[pull]

    def _apply(self, tensor: Tensor, axes: tuple[int, ...], *, pull: bool) -> tuple[Tensor, tuple[int, ...]]:
        """Return the product of a tensor with all cores, and its axes."""
        for step in self._plan(pull=pull).steps:
            table, scope = self._tables[step.core], step.scope
            for place, (axis, bond) in enumerate(zip(scope, self._scopes[step.core], strict=True)):
                if axis != bond:
                    table = table.take(self._labels[axis].groups, axis=place)
            for axis in step.marked:
                marks = self._marks(axis)
                table = table[..., None] * marks.reshape(
                    [*(len(marks) if other == axis else 1 for other in scope), -1]
                )
                scope = (*scope, 2 * self._n + self._labels[axis].bond)
            tensor, axes = contracted(tensor, axes, table, scope, set(step.gone))
        return tensor, axes


class _Step(NamedTuple):
    """How one core is used."""

    core: int
    scope: tuple[int, ...]
    """The axes of its table; a label is replaced by its axis if the tensor has that."""
    marked: tuple[int, ...]
    """Axes of its own site whose labels become further axes of its table."""
    gone: frozenset[int]
    """The axes that are then summed over."""
    axes: frozenset[int]
    """The axes of the tensor afterwards."""
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
    labels: tuple[tuple[int, int], ...],
    first: frozenset[int],
    last: frozenset[int],
) -> _Plan:
    """Return the order in which to use cores: the one with the least work, or a good one if there are many cores."""
    order = _Order(scopes, dict(lengths), dict(labels), first, last)
    steps = order.best() if labels and len(scopes) <= _FEW_CORES else order.greedy()
    peak = max([order.size(first), *(step.size for step in steps)])
    return _Plan(steps, sum(step.work for step in steps), peak)


class _Order:
    """Finds an order in which to use cores, and says how much work it takes.

    Parameters
    ----------
    scopes, lengths
        The axes of each core, and their lengths.
    labels
        Axes of rows and columns, and the bonds that are their labels.
    first, last
        The axes of the tensor before and after.
    """

    def __init__(
        self,
        scopes: Sequence[tuple[int, ...]],
        lengths: dict[int, int],
        labels: dict[int, int],
        first: frozenset[int],
        last: frozenset[int],
    ) -> None:
        self._scopes, self._lengths, self._labels = scopes, lengths, labels
        self._first, self._last = first, last
        self._axis_of = {bond: axis for axis, bond in labels.items()}
        self._users = {
            axis: frozenset(k for k, scope in enumerate(scopes) if axis in scope) for axis in lengths
        }

    def size(self, axes: Iterable[int]) -> float:
        """Return how many numbers a tensor with these axes has."""
        return math.prod(float(self._lengths[axis]) for axis in axes)

    def step(self, k: int, axes: frozenset[int], left: frozenset[int]) -> _Step:
        """Return how to use a core on a tensor with some axes while some cores are left, this one included."""
        own = self._scopes[k]
        # If the tensor has the axis of a label, the label is read from it.
        scope = tuple(self._axis_of[axis] if self._axis_of.get(axis) in axes else axis for axis in own)
        left -= {k}
        marked = tuple(axis for axis in own if axis in self._labels and self._is_asked(axis, axes, left))
        union = axes.union(scope, (self._labels[axis] for axis in marked))
        gone = frozenset(axis for axis in union if not self._is_needed(axis, left))
        rest = union - gone
        return _Step(k, scope, marked, gone, rest, self.size(union), self.size(rest))

    def _is_asked(self, axis: int, axes: frozenset[int], left: frozenset[int]) -> bool:
        """Return whether a core must add the label of an axis of its site, because another core asks for it."""
        label = self._labels[axis]
        return bool(self._users[label] & left) if axis in self._first else label in axes

    def _is_needed(self, axis: int, left: frozenset[int]) -> bool:
        """Return whether an axis of the tensor is needed when some cores are left."""
        if axis in self._last or self._users[axis] & left:
            return True
        owner = self._axis_of.get(axis)
        # A label that was asked for, and that the core of the site has yet to add.
        return owner in self._last and bool(self._users[owner] & left)

    def greedy(self) -> list[_Step]:
        """Return the steps found by taking, each time, the core that leaves the smallest tensor."""
        axes, left, steps = self._first, frozenset(range(len(self._scopes))), list[_Step]()
        while left:
            best = min(
                (self.step(k, axes, left) for k in sorted(left)), key=lambda step: (step.size, step.work)
            )
            steps.append(best)
            axes, left = best.axes, left - {best.core}
        return steps

    def best(self) -> list[_Step]:
        """Return the steps with the least work, found over sets of cores: the best way to use each set is extended."""
        everything = frozenset(range(len(self._scopes)))
        found: dict[frozenset[int], tuple[float, list[_Step], frozenset[int]]] = {
            everything: (0.0, [], self._first)
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
    """Return each distinct operator once, with all its ways: often the next scene makes no difference."""
    found: dict[bytes, tuple[Operator, list[Way]]] = {}
    for way, operator in moves:
        found.setdefault(operator.key, (operator, []))[1].append(way)
    return list(found.values())


def pulled(operators: Iterable[tuple[Operator, list[Way]]], values: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield each operator applied to the weighted sum of the values of its next scenes; the results add up."""
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
    """Add to `out`, by scenes, where a mass goes, discounted."""
    for operator, ways in operators:
        clock.check()
        there = operator.push(part)
        for way in ways:
            out[way.after][...] += discount * way.weight * there

"""Products of many small tables, applied to a tensor with one axis per site.

A *core* says how one site changes: rows (now) by columns (next). Where sites are tied together, their cores share
*bonds*: axes that are summed over when all of them have been used. So an operator on a tensor of G^k numbers is k small
matrix products, and the operator itself is never multiplied out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.model.factors import contracted
from missmdp.plan.stopping import Stopwatch


class Core(NamedTuple):
    """How one site changes, or what ties sites together."""

    site: int
    """−1 for a table of bonds only."""
    bonds: tuple[int, ...]
    table: NDArray[np.float64]
    """One axis per bond, then rows and columns (for a site). One row stands for all rows that are equal."""


MOST_IN_CORE = 20_000_000
"""Numbers in one core above which it is not made: too much is tied together."""


class TooTiedError(Exception):
    """Sites are tied together so much that their cores would not fit."""


def empty_core(*shape: int) -> NDArray[np.float64]:
    """Return zeros for a core, if they fit."""
    if math.prod(map(float, shape)) > MOST_IN_CORE:
        raise TooTiedError
    return np.zeros(shape)


def one_row(table: NDArray[np.float64]) -> NDArray[np.float64]:
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
    """

    def __init__(self, cores: Sequence[Core], shape: tuple[int, ...]) -> None:
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
        self._orders: dict[int, tuple[list[tuple[int, set[int]]], float, float]] = {}

    @cached_property
    def key(self) -> bytes:
        """What is the same for operators that do the same."""
        digest = blake2b(repr((self.shape, self._scopes)).encode())
        for core in self.cores:
            digest.update(repr(core.table.shape).encode())
            digest.update(np.ascontiguousarray(core.table).tobytes())
        return digest.digest()

    def work(self) -> float:
        """Return about how many multiplications one use takes."""
        return self._order(self._n)[1]

    def peak(self) -> float:
        """Return how many numbers the largest tensor on the way has."""
        return self._order(self._n)[2]

    def pull(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_next operator(row, next) values(next), a tensor over rows (axes of one row kept so)."""
        return self._apply(values, self._n, 0)

    def push(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_row weights(row) operator(row, next), a tensor over columns."""
        for core in self.cores:
            if core.site >= 0 and core.table.shape[-2] == 1 and weights.shape[core.site] > 1:
                weights = weights.sum(axis=core.site, keepdims=True)
        return self._apply(weights, 0, self._n)

    def _apply(self, tensor: NDArray[np.float64], begin: int, end: int) -> NDArray[np.float64]:
        n = self._n
        axes = tuple(range(begin, begin + n))
        for k, gone in self._order(begin)[0]:
            tensor, axes = contracted(tensor, axes, self.cores[k].table, self._scopes[k], gone)
        return tensor.transpose([axes.index(axis) for axis in range(end, end + n)])

    def _order(self, begin: int) -> tuple[list[tuple[int, set[int]]], float, float]:
        """Return in which order to use the cores, with the axes that are then summed over, and the work."""
        if begin in self._orders:
            return self._orders[begin]
        n, lengths = self._n, self._lengths
        kept = set(range(n, 2 * n)) if begin == 0 else set(range(n))
        axes = set(range(begin, begin + n))
        left = dict(enumerate(self._scopes))
        order: list[tuple[int, set[int]]] = []
        work = 0.0
        peak = math.prod(float(lengths[axis]) for axis in axes)
        while left:
            best: tuple[float, int, set[int], set[int]] | None = None
            for k, scope in left.items():
                needed = kept | {axis for j, other in left.items() if j != k for axis in other}
                union = axes | set(scope)
                rest = union & needed
                size = math.prod(float(lengths[axis]) for axis in rest)
                if best is None or size < best[0]:
                    best = (size, k, union - rest, union)
            assert best is not None
            size, k, gone, union = best
            peak = max(peak, size)
            work += math.prod(float(lengths[axis]) for axis in union)
            axes = union - gone
            order.append((k, gone))
            del left[k]
        self._orders[begin] = (order, work, peak)
        return self._orders[begin]


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


def pulled(
    operators: Iterable[tuple[Operator, list[Way]]], values: Sequence[NDArray[np.float64]]
) -> Iterator[NDArray[np.float64]]:
    """Yield what operators make of values by scenes, weighed; they add up."""
    for operator, ways in operators:
        first, *rest = ways
        weighed = first.weight * values[first.after]
        for way in rest:
            weighed += way.weight * values[way.after]
        yield operator.pull(weighed)


def push_all(
    operators: Iterable[tuple[Operator, list[Way]]],
    part: NDArray[np.float64],
    discount: float,
    out: Sequence[NDArray[np.float64]],
    clock: Stopwatch,
) -> None:
    """Add where a mass goes, discounted, to masses by scenes."""
    for operator, ways in operators:
        clock.check()
        there = operator.push(part)
        for way in ways:
            out[way.after][...] += discount * way.weight * there

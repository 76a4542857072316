"""Functions of several things whose order does not matter, and what happens to all of these things at once.

A multiset of m of n things is written in ascending order, and all of them are ordered by their largest, then their
second largest thing and so on. So those without the things from r on come first: lists for fewer things are beginnings
of lists for more. A function has one number per multiset, along the last axis of an array.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.multisets import pull_one, push_one

Tensor = NDArray[np.float64]
Ranks = NDArray[np.int64]

_KEPT = 64
"""Tables of places that are kept."""


def count(n: int, m: int) -> int:
    """Return how many multisets of m of n things there are."""
    return math.comb(n + m - 1, m) if n else int(m == 0)


@lru_cache(_KEPT)
def elements(n: int, m: int) -> Ranks:
    """Return all multisets of m of n things, shape (multisets, m)."""
    if m == 0:
        return np.zeros((1, 0), dtype=np.int64)
    shorter = elements(n, m - 1)
    parts = [np.insert(shorter[: count(r + 1, m - 1)], m - 1, r, axis=1) for r in range(n)]
    return np.concatenate(parts)


def ranks(multisets: Ranks, n: int) -> Ranks:
    """Return the places of multisets of some of n things, given in ascending order, shape (…, m)."""
    m = multisets.shape[-1]
    place = np.zeros(multisets.shape[:-1], dtype=np.int64)
    for k in range(m):
        # Those whose largest thing of k + 1 is smaller.
        smaller = np.array([count(r, k + 1) for r in range(n)], dtype=np.int64)
        place += smaller[multisets[..., k]]
    return place


@lru_cache(_KEPT)
def joined(n: int, m: int) -> Ranks:
    """Return the place of each multiset of m − 1 things with one more, shape (multisets, n)."""
    shorter = elements(n, m - 1)
    table = np.empty((len(shorter), n), dtype=np.int64)
    for r in range(n):
        longer = np.sort(np.insert(shorter, m - 1, r, axis=1), axis=1)
        table[:, r] = ranks(longer, n)
    return table


@lru_cache(_KEPT)
def without(n: int, m: int) -> Ranks:
    """Return the place of each multiset of m things without its k-th one, shape (multisets, m)."""
    longer = elements(n, m)
    return np.stack([ranks(np.delete(longer, k, axis=1), n) for k in range(m)], axis=1)


@lru_cache(_KEPT)
def _places(n: int, m: int) -> NDArray[np.int32]:
    """Return what `joined` returns, as kernels take it, shape (n, multisets)."""
    return np.ascontiguousarray(joined(n, m).T, dtype=np.int32)


def forget_tables() -> None:
    """Free the memory of the tables that are kept."""
    for kept in (elements, joined, without, _places):
        kept.cache_clear()


def sums(places: Ranks, weights: Tensor, size: int) -> Tensor:
    """Return sums of weights by places, of which there are so many."""
    found = np.bincount(places.ravel(), weights=weights.ravel(), minlength=size)
    return found.astype(np.float64, copy=False)


def opened(values: Tensor, n: int, m: int) -> Tensor:
    """Return a function of m of n things with one of them apart, shape (…, n, multisets of m − 1)."""
    return np.swapaxes(values[..., joined(n, m)], -1, -2)


def closed(mass: Tensor, n: int, m: int) -> Tensor:
    """Return masses of one of n things and m − 1 more, shape (n, multisets), put together."""
    return sums(joined(n, m).T, mass, count(n, m))


def work(n_out: int, n_in: int, m: int, per_row: float) -> float:
    """Return about how many multiplications `power` takes, with so many entries per row of the matrix."""
    return per_row * sum(float(count(n_out, j + 1)) * count(n_in, m - j - 1) for j in range(m))


def peak(n_out: int, n_in: int, m: int) -> float:
    """Return how many numbers the largest array of `power` has."""
    return max(float(count(n_out, j)) * count(n_in, m - j) for j in range(m + 1))


class Matrix(NamedTuple):
    """How one thing becomes another: rows (now) by columns (then), zeros left out."""

    start: Ranks
    column: Ranks
    weight: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, table: Tensor) -> Matrix:
        """Return a table as a matrix."""
        rows, columns = np.nonzero(table)
        start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(table)))])
        return cls(start.astype(np.int64), columns.astype(np.int64), table[rows, columns], table.shape)

    @property
    def per_row(self) -> float:
        """The number of entries per row."""
        return len(self.weight) / max(self.shape[0], 1)

    def begins(self, m: int) -> Ranks:
        """Return where the multisets of m things begin whose largest thing is each row, and where all end."""
        return np.array([count(r, m) for r in range(self.shape[0] + 1)], dtype=np.int64)


def power(values: Tensor, matrix: Matrix, m: int) -> Tensor:
    """Return what a function of m things is on average, if each thing becomes another one by itself.

    Parameters
    ----------
    values
        Shape (B, multisets of m of the things that are columns).
    matrix
        How one thing becomes another.
    m
        How many things there are.

    Notes
    -----
    One thing after the other: the function is then one of j things now, and of m − j then. The last one that becomes
    another is the largest.
    """
    n_out, n_in = matrix.shape
    x = np.ascontiguousarray(values)[:, None, :]
    for j in range(m):
        out = np.empty((len(x), count(n_out, j + 1), count(n_in, m - j - 1)))
        pull_one(x, _places(n_in, m - j), *matrix[:3], matrix.begins(j + 1), out)
        x = out
    return x[:, :, 0]


def spread(mass: Tensor, matrix: Matrix, m: int) -> Tensor:
    """Return where masses of m things go, if each thing becomes another one by itself: `power` the other way.

    Parameters
    ----------
    mass
        Shape (B, multisets of m of the things that are rows).
    matrix, m
        As for `power`.
    """
    n_out, n_in = matrix.shape
    x = np.ascontiguousarray(mass)[:, :, None]
    for j in reversed(range(m)):
        out = np.zeros((len(x), count(n_out, j), count(n_in, m - j)))
        push_one(x, _places(n_in, m - j), *matrix[:3], matrix.begins(j + 1), out)
        x = out
    return x[:, 0]

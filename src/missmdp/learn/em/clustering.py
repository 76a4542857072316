"""The best ways to lump values by how often something happens with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lumps", "best_lumps", "entropy_gain", "log_partitions", "x_log_x"]

_MOST_LUMPS = 12
_MOST_VALUES = 400
"""Values above which neighbours are put together before lumping: the best cuts are searched in quadratic time."""


@dataclass(frozen=True, eq=False)
class Lumps:
    """A partition of values."""

    label: NDArray[np.int64]
    """The lump of each value, by rising frequency, shape (V,)."""
    count: int
    gain: float
    """What it adds to the score over leaving all values in one lump."""


def x_log_x(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x log x, and 0 at 0."""
    return np.where(x > 0.0, x * np.log(np.maximum(x, 1e-300)), 0.0)


def entropy_gain(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-likelihood of binary counts at their own frequency, shape (…,) for counts (…, 2)."""
    return x_log_x(counts).sum(axis=-1) - x_log_x(counts.sum(axis=-1))


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


def best_lumps(counts: NDArray[np.float64], log_n: float, extra: float) -> Lumps:
    """Return the partition of values into lumps with the best score.

    The score is the log-likelihood minus ½ log n for each further lump, minus the log of the number of partitions into
    so many lumps, minus `extra` for lumping at all. In the best partition lumps are neighbours when values are
    ordered by frequency, so that it is found exactly.

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

"""Counting rows of codes by their rank, and what is missing where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel


@kernel
def count_ranks(codes: NDArray[Any], weights: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """Add 1 to out[rank] for every row of codes; the rank is Σ (code + 1) · weight."""
    for row in range(codes.shape[0]):
        rank = 0
        for position in range(codes.shape[1]):
            rank += (codes[row, position] + 1) * weights[position]
        out[rank] += 1


@kernel
def count_missing_by_value(
    codes: NDArray[Any],
    first: NDArray[np.int64],
    group_of: NDArray[np.int64],
    rows: NDArray[np.int64],
    missing: NDArray[np.int64],
) -> None:
    """Add to rows[g] the rows whose value is in group g, and to missing[g, i] those that lack feature i.

    The value with code c of feature j is in group group_of[first[j] + c]; a code below 0 is a missing value.
    """
    n = codes.shape[1]
    gaps = np.empty(n, dtype=np.int64)
    for row in range(codes.shape[0]):
        count = 0
        for i in range(n):
            if codes[row, i] < 0:
                gaps[count] = i
                count += 1
        for j in range(n):
            code = codes[row, j]
            if code >= 0:
                group = group_of[first[j] + code]
                rows[group] += 1
                for k in range(count):
                    missing[group, gaps[k]] += 1


@kernel
def count_missing_by_step(
    codes: NDArray[Any],
    step: NDArray[np.int64],
    group_of: NDArray[np.int64],
    rows: NDArray[np.int64],
    missing: NDArray[np.int64],
    patterns: NDArray[np.int64],
) -> None:
    """Add to rows[g] and missing[g, i] as above, for groups of steps; set bit i % 62 of patterns[i // 62, row]."""
    for row in range(codes.shape[0]):
        group = group_of[step[row]]
        rows[group] += 1
        for i in range(codes.shape[1]):
            if codes[row, i] < 0:
                missing[group, i] += 1
                patterns[i // 62, row] |= np.int64(1) << np.int64(i % 62)

"""Counting rows of codes by their rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["count_ranks"]


@kernel
def count_ranks(codes: NDArray[Any], weights: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """Add 1 to out[rank] for every row of codes; the rank is Σ (code + 1) · weight."""
    for row in range(codes.shape[0]):
        rank = 0
        for position in range(codes.shape[1]):
            rank += (codes[row, position] + 1) * weights[position]
        out[rank] += 1

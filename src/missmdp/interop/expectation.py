"""Expectations over sparse rows that do not round where there is nothing to round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["row_means"]


def row_means(
    values: NDArray[np.float64], weights: NDArray[np.float64], starts: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Return Σ weight · value of each row, where rows of equal values give that value itself.

    Weights are probabilities and sum to one only up to rounding; a constant must not suffer from that.

    Parameters
    ----------
    values, weights
        Row after row, shape (entries,).
    starts
        Where each row starts, shape (rows,); no row is empty.
    """
    if not len(starts):
        return np.zeros(0)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return np.where(low == high, low, np.add.reduceat(values * weights, starts))

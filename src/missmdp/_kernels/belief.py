"""Belief updates: predict with T, condition on what was seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["condition", "predict"]


@kernel
def predict(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float64],
    belief: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill out[S] with Σ_s T(· | s, a) b(s), from the sparse rows of the states that b holds possible."""
    out[:] = 0.0
    for s in range(len(belief)):
        if belief[s] > 0.0:
            for j in range(indptr[s], indptr[s + 1]):
                out[indices[j]] += belief[s] * data[j]


@kernel
def condition(
    predicted: NDArray[np.float64], likelihood: NDArray[np.float64], out: NDArray[np.float64]
) -> float:
    """Fill out[S] with the posterior and return the probability of what was seen; 0 leaves out all zero."""
    total = 0.0
    for s in range(len(predicted)):
        out[s] = predicted[s] * likelihood[s]
        total += out[s]
    if total > 0.0:
        for s in range(len(out)):
            out[s] /= total
    return total

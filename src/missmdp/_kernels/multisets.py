"""One thing of a multiset becomes another one: the step that functions and masses of multisets are moved by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel


@kernel
def pull_one(
    values: NDArray[np.float64],
    place: NDArray[np.int32],
    start: NDArray[np.int64],
    column: NDArray[np.int64],
    weight: NDArray[np.float64],
    begin: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Fill out[b, begin[r] + i, k] with Σ_c matrix(r, c) · values[b, i, place[c, k]].

    Row r of the matrix is column and weight from start[r] on; as many i as there are until begin[r + 1].
    """
    for b in range(len(values)):
        for r in range(len(start) - 1):
            for i in range(begin[r + 1] - begin[r]):
                target = out[b, begin[r] + i]
                target[:] = 0.0
                source = values[b, i]
                for entry in range(start[r], start[r + 1]):
                    share = weight[entry]
                    places = place[column[entry]]
                    for k in range(len(places)):
                        target[k] += share * source[places[k]]


@kernel
def push_one(
    mass: NDArray[np.float64],
    place: NDArray[np.int32],
    start: NDArray[np.int64],
    column: NDArray[np.int64],
    weight: NDArray[np.float64],
    begin: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Add matrix(r, c) · mass[b, begin[r] + i, k] to out[b, i, place[c, k]]: `pull_one` the other way."""
    for b in range(len(mass)):
        for r in range(len(start) - 1):
            for i in range(begin[r + 1] - begin[r]):
                source = mass[b, begin[r] + i]
                target = out[b, i]
                for entry in range(start[r], start[r + 1]):
                    share = weight[entry]
                    places = place[column[entry]]
                    for k in range(len(places)):
                        target[places[k]] += share * source[k]

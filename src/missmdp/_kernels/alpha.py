"""Values from α-vectors: which block a belief is in, and the best vector after every observation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["NOWHERE", "SEVERAL", "VectorTable", "block_of", "look_ahead"]

NOWHERE = -1
"""The block of terminal states, and of beliefs that hold nothing else possible."""
SEVERAL = -2
"""The block of beliefs that span more than one."""


class VectorTable(NamedTuple):
    """The α-vectors of all blocks in one row. Those of block k have numbers first[k] … first[k + 1] − 1."""

    label: NDArray[np.int64]
    """Block of each state, shape (S,); `NOWHERE` for terminal states."""
    place: NDArray[np.int64]
    """Position of each state in its block, shape (S,)."""
    first: NDArray[np.int64]
    """Shape (blocks + 1,)."""
    width: NDArray[np.int64]
    """States per block, shape (blocks,)."""
    offset: NDArray[np.int64]
    """Where the values of a block start, shape (blocks,)."""
    values: NDArray[np.float64]
    """Block by block, vector by vector, state by state."""


@kernel
def block_of(belief: NDArray[np.float64], label: NDArray[np.int64]) -> int:
    """Return the block that holds the possible states of a belief, terminal ones aside."""
    found = NOWHERE
    for s in range(len(belief)):
        if belief[s] > 0.0 and label[s] >= 0:
            if found == NOWHERE:
                found = label[s]
            elif label[s] != found:
                return SEVERAL
    return found


@kernel
def look_ahead(
    predicted: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float64],
    table: VectorTable,
    out_probability: NDArray[np.float64],
    out_value: NDArray[np.float64],
    out_vector: NDArray[np.int64],
) -> float:
    """Fill in, for every observation, P(z), P(z) · V(b_z) and the best vector at b_z; return Σ_z P(z) · V(b_z).

    The observation function comes by columns. The best vector is −1 where b_z is terminal or impossible.
    Values are linear in the belief's scale, so that no posterior is normalised.
    """
    total = 0.0
    for z in range(len(indptr) - 1):
        probability = 0.0
        block = NOWHERE
        for j in range(indptr[z], indptr[z + 1]):
            weight = predicted[indices[j]] * data[j]
            probability += weight
            if weight > 0.0 and table.label[indices[j]] >= 0:
                block = table.label[indices[j]]
        out_probability[z] = probability
        out_value[z] = 0.0
        out_vector[z] = -1
        if block < 0:
            continue
        best = -np.inf
        for v in range(table.first[block], table.first[block + 1]):
            start = table.offset[block] + (v - table.first[block]) * table.width[block]
            score = 0.0
            for j in range(indptr[z], indptr[z + 1]):
                s = indices[j]
                if table.label[s] >= 0:
                    score += predicted[s] * data[j] * table.values[start + table.place[s]]
            if score > best:
                best = score
                out_vector[z] = v
        out_value[z] = best
        total += best
    return total

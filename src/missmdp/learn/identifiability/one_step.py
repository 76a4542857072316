"""The laws of one next observation, with T, b₀ and M unknown: from b₀, and from states and actions that are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.identifiability.chains import Rows
from missmdp.learn.identifiability.moving import Moving
from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.tangent import Tangent


def rows_of(moving: Moving, known: NDArray[np.bool_]) -> tuple[Rows, sparse.csr_array]:
    """Return b₀ and the rows of T that are known, and the derivatives of their entries.

    Parameters
    ----------
    known
        Which states are seen in full before which actions, shape (S, A).
    """
    entries = moving.entries
    kept = known[entries.before, entries.action]
    row = np.concatenate(
        [
            np.zeros(len(moving.starts), dtype=np.int64),
            1 + (entries.action * len(known) + entries.before)[kept],
        ]
    )
    state = np.concatenate([moving.starts, entries.after[kept]])
    value = np.concatenate([moving.start_value, entries.value[kept]])
    change = sparse.vstack([moving.start_change, moving.change[np.flatnonzero(kept)]], format="csr")
    return Rows(row, state, value, np.zeros((len(row), 0))), sparse.csr_array(change)


def one_step_law(
    seen: PossibleObservations, tangent: Tangent, rows: Rows, change: sparse.csr_array
) -> tuple[NDArray[np.float64], sparse.csr_array]:
    """Return the probabilities of the next observation after each row, and their derivatives by M, then T and b₀."""
    n_patterns, n_states = tangent.table.shape
    label = np.full(tangent.table.shape, -1, dtype=np.int64)
    for z, states in enumerate(seen.members):
        label[seen.pattern[z], states] = z
    law: list[NDArray[np.float64]] = []
    by_m: list[sparse.csr_array] = []
    by_t: list[sparse.csr_array] = []
    row = rows.row * len(seen.members)
    for k in range(n_patterns):
        number, place = np.unique(row + label[k, rows.state], return_inverse=True)
        entries = (np.ones(len(row)), (place.reshape(-1), np.arange(len(row))))
        add = sparse.csr_array(sparse.coo_array(entries, shape=(len(number), len(row))))
        gaps = tangent.table[k, rows.state]
        law.append(np.asarray(add @ (rows.value * gaps)))
        slopes = tangent.jacobian[k * n_states + rows.state]
        by_m.append(sparse.csr_array(add @ sparse.diags_array(rows.value) @ slopes))
        by_t.append(sparse.csr_array(add @ sparse.diags_array(gaps) @ change))
    both = [sparse.vstack(by_m, format="csr"), sparse.vstack(by_t, format="csr")]
    return np.concatenate(law), sparse.csr_array(sparse.hstack(both, format="csr"))


def mixed(jacobian: sparse.csr_array) -> sparse.csr_array:
    """Return a matrix with few rows and the same null space, almost surely: random mixtures of many rows."""
    n_rows, count = jacobian.shape
    if n_rows <= 3 * count:
        return jacobian
    found = np.zeros((2 * count + 16, count))
    generator = np.random.default_rng(0)
    for start in range(0, n_rows, 4096):
        part = jacobian[start : start + 4096]
        found += np.asarray((part.T @ generator.normal(size=(part.shape[0], len(found)))).T)
    return sparse.csr_array(found)

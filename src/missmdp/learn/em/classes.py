"""States with the same future: equal rows of transitions under every action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.mdp import FactoredMDP

__all__ = ["Classes", "merged_states"]


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of states that one need not tell apart once they have been observed."""

    of_state: NDArray[np.int64]
    """The class of each state, shape (S,)."""
    transition: tuple[sparse.csc_array, ...]
    """P(state | class, action), one matrix per action, shape (C, S)."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.transition[0].shape[0]


def merged_states(mdp: FactoredMDP) -> Classes:
    """Return the classes of an MDP's states; rows are the same only if they are equal bit for bit."""
    matrices: list[sparse.csr_array] = []
    for matrix in mdp.transition:
        kept = sparse.csr_array(matrix, copy=True)
        kept.eliminate_zeros()
        kept.sort_indices()
        matrices.append(kept)
    numbers: dict[bytes, int] = {}
    of_state = np.empty(mdp.n_states, dtype=np.int64)
    firsts: list[int] = []
    for s in range(mdp.n_states):
        rows = [(m, slice(m.indptr[s], m.indptr[s + 1])) for m in matrices]
        key = b"|".join(m.indices[row].tobytes() + b"," + m.data[row].tobytes() for m, row in rows)
        number = numbers.setdefault(key, len(numbers))
        if number == len(firsts):
            firsts.append(s)
        of_state[s] = number
    return Classes(of_state, tuple(sparse.csc_array(matrix[firsts]) for matrix in matrices))

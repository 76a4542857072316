"""States with the same future: equal rows of transitions under every action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.equal_rows import canonical, equal_rows
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
    matrices = [canonical(matrix) for matrix in mdp.transition]
    equal = equal_rows(matrices)
    return Classes(equal.number, tuple(sparse.csc_array(matrix[equal.first]) for matrix in matrices))

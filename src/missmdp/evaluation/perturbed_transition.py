"""MDPs whose transition probabilities are a little different: T′ = (1 − share) · T + share · D."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.mdp import FactoredMDP

__all__ = ["anywhere", "mixed", "random_rows", "worst_successors"]

_PLACES = 10
"""To how many random states each row leads under `anywhere`; over all rows together that is everywhere."""

Rows = list[NDArray[np.float64]]
"""For every action, probabilities in the order of the stored entries of its matrix T."""


def mixed(mdp: FactoredMDP, rows: Rows, share: float) -> FactoredMDP:
    """Return the MDP with (1 − share) · T + share · rows, whose next states are those of T."""
    return _with_transition(
        mdp,
        [
            sparse.csr_array(
                ((1.0 - share) * matrix.data + share * other, matrix.indices, matrix.indptr),
                shape=matrix.shape,
            )
            for matrix, other in zip(mdp.transition, rows, strict=True)
        ],
    )


def random_rows(mdp: FactoredMDP, rng: np.random.Generator) -> Rows:
    """Return a random distribution on the next states of each state and action, all equally likely: Dirichlet(1)."""
    drawn: Rows = []
    for matrix in mdp.transition:
        weights = rng.exponential(size=matrix.nnz)
        sums = np.add.reduceat(weights, matrix.indptr[:-1])
        drawn.append(weights / np.repeat(sums, np.diff(matrix.indptr)))
    return drawn


def worst_successors(mdp: FactoredMDP, values: NDArray[np.float64]) -> Rows:
    """Return certainty of the next state with the lowest of the given values, for each state and action."""
    found: Rows = []
    for matrix in mdp.transition:
        worth = values[matrix.indices]
        lowest = np.minimum.reduceat(worth, matrix.indptr[:-1])
        row = np.repeat(np.arange(mdp.n_states), np.diff(matrix.indptr))
        place = np.flatnonzero(worth == lowest[row])
        # The first of each row, where several are equally bad.
        _, first = np.unique(row[place], return_index=True)
        certain = np.zeros(matrix.nnz)
        certain[place[first]] = 1.0
        found.append(certain)
    return found


def anywhere(mdp: FactoredMDP, share: float, rng: np.random.Generator) -> FactoredMDP:
    """Return the MDP in which a share of every transition leads to random reachable states instead.

    Ten states for every state and action, so that the matrices stay sparse. Terminal states stay as they are.
    """
    n = mdp.n_states
    reachable = np.flatnonzero(mdp.reachable)
    go_on = np.flatnonzero(~mdp.terminal)
    kept = sparse.diags_array(np.where(mdp.terminal, 1.0, 1.0 - share))
    matrices: list[sparse.csr_array] = []
    for matrix in mdp.transition:
        target = rng.choice(reachable, size=(len(go_on), _PLACES))
        jumps = sparse.coo_array(
            (np.full(target.size, share / _PLACES), (np.repeat(go_on, _PLACES), target.reshape(-1))),
            shape=(n, n),
        )
        matrices.append(sparse.csr_array(kept @ matrix + sparse.csr_array(jumps)))
    return _with_transition(mdp, matrices)


def _with_transition(mdp: FactoredMDP, matrices: list[sparse.csr_array]) -> FactoredMDP:
    return FactoredMDP(
        mdp.space.features,
        mdp.actions,
        matrices,
        mdp.reward,
        mdp.initial,
        mdp.terminal,
        mdp.discount,
        states=mdp.space,
    )

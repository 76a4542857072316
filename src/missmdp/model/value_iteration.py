"""The optimal value of an MDP whose state is seen: V*(s) = max_a ρ(s, a) + γ Σ_s′ T(s′ | s, a) V*(s′)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from missmdp.model.mdp import FactoredMDP
from missmdp.model.pomdp import POMDP

__all__ = ["action_values", "advantages", "optimal_values"]

_PRECISION = 1e-10
"""Relative to the largest value that rewards allow."""


def optimal_values(mdp: FactoredMDP | POMDP) -> NDArray[np.float64]:
    """Return V* to ten digits of the largest value that rewards allow, shape (S,)."""
    values = np.zeros(mdp.n_states)
    scale = float(np.abs(mdp.reward).max(initial=0.0))
    if scale == 0.0:
        return values
    # The error shrinks by γ per sweep and starts at most at scale / (1 − γ).
    sweeps = math.ceil(math.log(_PRECISION) / math.log(mdp.discount)) if mdp.discount > 0.0 else 1
    for _ in range(sweeps):
        values = action_values(mdp, values).max(axis=1)
    return values


def action_values(mdp: FactoredMDP | POMDP, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ρ(s, a) + γ Σ_s′ T(s′ | s, a) V(s′), 0 in terminal states, shape (S, A)."""
    future = np.stack([matrix @ values for matrix in mdp.transition], axis=1)
    return np.where(mdp.terminal[:, None], 0.0, mdp.reward + mdp.discount * future)


def advantages(mdp: FactoredMDP | POMDP, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ρ(s, a) + γ Σ_s′ T(s′ | s, a) V(s′) − V(s), shape (S, A)."""
    return action_values(mdp, values) - values[:, None]

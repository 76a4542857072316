"""What is known before the first decision: the value of the fully observed MDP, and that of a simple policy.

The simple policy acts on the last observation alone; blind policies, which always do the same, compete with it. Its
value is linear in the belief, so it bounds the best value from below everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.reactive import Dynamics, reactive_policies

_MOST_ENTRIES = 60_000_000
"""Pairs of state and observation beyond which only blind policies are tried."""


class StateBounds(NamedTuple):
    """Bounds for every state."""

    upper: NDArray[np.float64]
    """U(s), at least what a known state is worth, shape (S,)."""
    upper_actions: NDArray[np.float64]
    """ρ(s, a) + γ E[U(s′)], shape (S, A)."""
    lower: NDArray[np.float64]
    """W(s), at most what the simple policy earns from s on, before it sees anything, shape (S,)."""
    lower_actions: NDArray[np.float64]
    """ρ(s, a) + γ E[W(s′)], shape (S, A)."""
    simple: NDArray[np.int32]
    """What the simple policy does on each observation, shape (Z,)."""


def state_bounds(
    model: MissMDP | POMDP, observation: sparse.csr_array, given: NDArray[np.float64] | None
) -> StateBounds:
    """Return the bounds.

    Parameters
    ----------
    model
        The model.
    observation
        O(z | s′) with row s′ · n_watched + w, as searches take it.
    given
        An upper bound of the user, on what a known state is worth, shape (S,); None for none.
    """
    mdp = model.mdp if isinstance(model, MissMDP) else model
    dynamics = Dynamics(mdp)
    upper = dynamics.fixed_point(dynamics.best, above=True)
    if given is not None:
        upper = np.where(dynamics.live, np.minimum(upper, given), 0.0)
    upper_actions = dynamics.after_all(upper)
    n_observations = int(observation.shape[1])
    best, lower, simple = -np.inf, np.zeros(0), np.zeros(0, dtype=np.int32)
    for a in range(mdp.n_actions):
        values = dynamics.fixed_point(lambda v, a=a: dynamics.after(v, a), above=False)
        if float(mdp.initial @ values) > best:
            best, lower = float(mdp.initial @ values), values
            simple = np.full(n_observations, a, dtype=np.int32)
    if observation.shape[0] == mdp.n_states and observation.nnz <= _MOST_ENTRIES:
        for found in reactive_policies(dynamics, observation, upper_actions, best):
            worth = float(mdp.initial @ found.values)
            if worth > best:
                best, lower, simple = worth, found.values, found.chosen
    return StateBounds(upper, upper_actions, lower, dynamics.after_all(lower), simple)

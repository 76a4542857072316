"""The occupancy certificate for policies that cannot be evaluated exactly: visits are simulated, and that costs budget.

Episodes in P̂ are independent, and their discounted charges Σ_t γᵗ ε(s_t) W(s_t) are bounded. So the mean over all
episodes is at most what Maurer's and Pontil's empirical Bernstein bound says, but for a small probability.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from missmdp.data.collect import collect
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import Policy

__all__ = ["SHARE", "simulated_charge"]

SHARE = 0.1
"""The part of the failure budget that simulations get."""


def simulated_charge(
    policy: Policy, model: MissMDP, charge: NDArray[np.float64], episodes: int, failure: float, seed: int
) -> float:
    """Return an upper bound on Σ_s d(s) charge(s) in a model, which fails with probability at most `failure`.

    Parameters
    ----------
    policy
        The policy.
    model
        The miss-MDP that it acts in, P̂.
    charge
        What an observation of each state costs, not negative, shape (S,).
    episodes
        How many episodes to simulate; two at least.
    failure
        The failure budget.
    seed
        For the episodes.
    """
    discount, most = model.discount, float(charge.max(initial=0.0))
    horizon = model.mdp.horizon()
    # At least as many episodes as were decided on beforehand; that there may be more must not matter.
    data = collect(
        model, episodes * horizon, policy, seed=seed, horizon=horizon, keep_states=True, progress=False
    )
    assert data.states is not None
    starts = data.offsets[: episodes + 1]
    lengths = np.diff(starts)
    step = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
    paid = charge[data.states[: int(starts[-1])]] * discount**step
    totals = np.add.reduceat(paid, starts[:-1])
    spread = most * (1.0 - discount**horizon) / (1.0 - discount)
    later = most * discount**horizon / (1.0 - discount)
    log = math.log(2.0 / failure)
    chance = math.sqrt(2.0 * float(totals.var(ddof=1)) * log / episodes)
    return float(totals.mean()) + chance + 7.0 * spread * log / (3.0 * (episodes - 1)) + later

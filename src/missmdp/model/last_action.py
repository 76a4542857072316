"""States that remember the action which led to them, for missingness that depends on the action."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace
from missmdp.model.states import StateSpace

__all__ = ["with_last_action"]


def with_last_action(mdp: FactoredMDP, name: str, none: Any) -> FactoredMDP:
    """Return the MDP whose states also say which action led to them; see `FactoredMDP.with_last_action`."""
    if name in mdp.space.features.names:
        raise ModelError(f"there is a feature {name!r} already; give another name")
    if none in mdp.actions:
        raise ModelError(f"{none!r} is an action; give another value for 'no action yet' (none=…)")
    n_copies = mdp.n_actions + 1
    # Copy 0 of a state is "none", copy a + 1 follows action a; s * n_copies + copy keeps the order of rank.
    occurs = np.zeros((mdp.n_states, n_copies), dtype=np.bool_)
    starts = np.flatnonzero(mdp.initial > 0.0)
    occurs[starts, 0] = True
    alive = np.flatnonzero(mdp.reachable & ~mdp.terminal)
    for a, matrix in enumerate(mdp.transition):
        occurs[matrix[alive].indices, a + 1] = True
    kept = np.flatnonzero(occurs.reshape(-1))
    state, copy = np.divmod(kept, n_copies)
    place = np.full(mdp.n_states * n_copies, -1)
    place[kept] = np.arange(len(kept))

    def lift(a: int, matrix: sparse.csr_array) -> sparse.csr_array:
        rows = matrix[state]
        columns = place[rows.indices.astype(np.int64) * n_copies + a + 1]
        # Rows of terminal states lead to copies that need not exist: they are overwritten anyway.
        data = np.where(columns < 0, 0.0, rows.data)
        return sparse.csr_array((data, np.maximum(columns, 0), rows.indptr), shape=(len(kept), len(kept)))

    initial = np.zeros(len(kept))
    initial[place[starts * n_copies]] = mdp.initial[starts]
    features = FeatureSpace({**mdp.features, name: (none, *mdp.actions)})
    return FactoredMDP(
        features,
        mdp.actions,
        [lift(a, matrix) for a, matrix in enumerate(mdp.transition)],
        mdp.reward[state],
        initial,
        mdp.terminal[state],
        mdp.discount,
        states=StateSpace(features, np.column_stack([mdp.space.codes[state], copy])),
    )

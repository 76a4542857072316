"""A policy's own model, as the kernels track beliefs under it while acting in another one."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.beliefs import Tracker
from missmdp.data.simulation import interleaved, seen_codes
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["EVENTS", "compile_tracker"]

EVENTS = ("admitted", "restarted", "ignored")
"""What is done on observations of probability zero, as the kernels number it; see `AlphaVectorAgent`."""


def compile_tracker(own: MissMDP | POMDP, model: MissMDP | POMDP) -> Tracker:
    """Return how beliefs are tracked.

    Parameters
    ----------
    own
        The model that the policy was made for, under which the belief is tracked.
    model
        The model that is acted in, with the same features (or the same observations) and actions.
    """
    dynamics = own.mdp if isinstance(own, MissMDP) else own
    transition = interleaved(dynamics.transition)
    if isinstance(own, MissMDP):
        columns = [_columns_of_codes(own, seen_codes(cast("MissMDP", model)))]
        state_codes, observation_codes = own.space.codes, seen_codes(cast("MissMDP", model))
    else:
        columns = own.observation
        state_codes = observation_codes = np.empty((0, 0), dtype=np.int64)
    by_observation = interleaved([_transposed(matrix) for matrix in columns])
    # Copies: kernels are compiled anew for arrays that cannot be written to.
    return Tracker(
        initial=np.array(dynamics.initial, dtype=np.float64),
        start=np.array(transition.indptr, dtype=np.int64),
        target=np.array(transition.indices, dtype=np.int32),
        probability=np.array(transition.data, dtype=np.float64),
        seen_start=np.array(by_observation.indptr, dtype=np.int64),
        seen_state=np.array(by_observation.indices, dtype=np.int32),
        seen_probability=np.array(by_observation.data, dtype=np.float64),
        state_codes=np.ascontiguousarray(state_codes, dtype=np.int64),
        observation_codes=np.ascontiguousarray(observation_codes, dtype=np.int64),
        terminal=np.array(dynamics.terminal),
        n_actions=dynamics.n_actions,
        n_watched=len(columns),
    )


def _columns_of_codes(own: MissMDP, codes: NDArray[np.integer[Any]]) -> sparse.csr_array:
    """Return M(z | s) of a policy's own model for observations that come as codes, shape (S, Z)."""
    features, seen = own.space.features, own.missingness.occurring()
    ranks = features.rank(seen.observations.codes)
    wanted = features.rank(codes)
    place = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    known = np.flatnonzero(ranks[place] == wanted)
    # Of own observation j the one in `codes` is column[j]; −1 if the other model never shows it.
    column = np.full(len(ranks), -1, dtype=np.int64)
    column[place[known]] = known
    shown = column[seen.place] >= 0
    state, pattern = seen.state[shown], seen.pattern[shown]
    matrix = sparse.coo_array(
        (own.missingness.probabilities[state, pattern], (state, column[seen.place[shown]])),
        shape=(own.n_states, len(codes)),
    )
    return sparse.csr_array(matrix)


def _transposed(matrix: sparse.csr_array) -> sparse.csr_array:
    columns = sparse.csr_array(matrix.T)
    columns.sort_indices()
    return columns

"""A policy in a model other than its own: whether it can act there, and how kernels track its beliefs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.beliefs import Tracker
from missmdp.checks import checked_instance
from missmdp.data.simulation import interleaved, seen_codes
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.space import FeatureSpace


def checked_planning_model(model: object) -> MissMDP | POMDP:
    """Return a model that a policy can be made for."""
    return checked_instance("model", model, (MissMDP, POMDP), "a MissMDP or a POMDP")


def check_interface(own: MissMDP | POMDP, model: MissMDP | POMDP) -> None:
    """Raise unless a model is observed and acted in like the one that a policy was made for.

    It may differ in its probabilities, as the true model differs from a learned one, and for miss-MDPs in its
    states, but not in its features, observations of POMDPs, and actions.
    """
    if model is own:
        return
    tracks = "the agent tracks the belief under the model that the policy was made for"
    if isinstance(own, MissMDP) != isinstance(model, MissMDP):
        kinds = f"a {type(own).__name__}, this is a {type(model).__name__}"
        raise ModelError(f"{tracks}, {kinds}; call agent() without a model")
    if tuple(own.actions) != tuple(model.actions):
        raise ModelError(
            f"{tracks}, which has the actions {list(own.actions)}; this model has {list(model.actions)}"
        )
    if isinstance(own, MissMDP) and isinstance(model, MissMDP):
        mine, theirs = own.space.features, model.space.features
        if mine != theirs:
            raise ModelError(f"{tracks}, which has {_unlike(mine, theirs)}")
    elif list(own.observations) != list(model.observations):
        raise ModelError(f"{tracks}; this model has other observations")


def _unlike(mine: FeatureSpace, theirs: FeatureSpace) -> str:
    """Return how the features of two models differ."""
    if mine.names != theirs.names:
        return f"the features {list(mine.names)}; this model has {list(theirs.names)}"
    other = theirs.as_dict()
    name, own = next((name, own) for name, own in mine.as_dict().items() if own != other[name])
    return f"the values {list(own)} of {name}, in this order; this model has {list(other[name])}"


def check_acts_in(own: MissMDP | POMDP, observe_initial: bool, model: MissMDP | POMDP) -> None:
    """Raise unless whole episodes of a policy can be simulated in a model: the interface fits, and so does who begins.

    Parameters
    ----------
    own
        The model that the policy was made for.
    observe_initial
        Whether the policy waits for an observation before its first action.
    model
        What it is to act in.
    """
    check_interface(own, model)
    if observe_initial != (isinstance(model, MissMDP) or model.observe_initial):
        who, what = ("acts on", "acts first") if observe_initial else ("acts before", "shows one")
        raise ModelError(f"this policy {who} the first observation, and this model {what}")


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
    # Copies: kernels are compiled again for arrays that cannot be written to.
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

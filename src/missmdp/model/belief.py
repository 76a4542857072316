"""Beliefs over states: Bayes' rule with the missingness function, and without it where it cancels out.

τ(b, a, z)(s′) ∝ M(z | s′) Σ_s T(s′ | s, a) b(s). Under MAR every state that admits z gives it the same
probability (Lemma 1), so M can be replaced by 1[z ⪯ s′] and need not be known to track the belief. It is
still needed to plan, since P(z | b, a) depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from missmdp._kernels.beliefs import condition, predict
from missmdp.checks import checked_shape
from missmdp.errors import ImpossibleObservation
from missmdp.model.given import probability_pairs
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.probabilities import as_floats, checked_distribution


def initial_belief(observation: object, model: MissMDP) -> NDArray[np.float64]:
    """Return the belief after the first observation z⁽⁰⁾: b₀ conditioned on it, shape (S,)."""
    model = checked_model(model)
    likelihood = model.missingness.likelihood(observation)
    return _posterior(model.mdp.initial, likelihood, model.mdp, model.mdp.initial, None, observation)


def initial_belief_ignorable(observation: object, mdp: FactoredMDP) -> NDArray[np.float64]:
    """Return the belief after the first observation for any M that is MAR, without knowing it, shape (S,)."""
    mdp = checked_mdp(mdp)
    return _posterior(mdp.initial, _admits(observation, mdp), mdp, mdp.initial, None, observation)


def update_belief(
    belief: ArrayLike | Mapping[Any, float], action: Any, observation: object, model: MissMDP
) -> NDArray[np.float64]:
    """Return τ(b, a, z), the belief after an action and the observation that followed it, shape (S,).

    Parameters
    ----------
    belief
        A distribution over states: an array of shape (S,) or {state: probability}.
    action
        The name of the action.
    observation
        A tuple or mapping of feature values, with None or NaN for missing.
    model
        The miss-MDP whose T and M to use.

    Raises
    ------
    ImpossibleObservation
        If the observation has probability zero after that belief and action.
    """
    model = checked_model(model)
    before = _checked_belief(belief, model.mdp)
    predicted = _predicted(before, action, model.mdp)
    return _posterior(
        predicted, model.missingness.likelihood(observation), model.mdp, before, action, observation
    )


def update_belief_ignorable(
    belief: ArrayLike | Mapping[Any, float], action: Any, observation: object, mdp: FactoredMDP
) -> NDArray[np.float64]:
    """Return τ(b, a, z) for any missingness function that is MAR, without knowing it (Lemma 1), shape (S,)."""
    mdp = checked_mdp(mdp)
    before = _checked_belief(belief, mdp)
    admits = _admits(observation, mdp)
    return _posterior(_predicted(before, action, mdp), admits, mdp, before, action, observation)


def _admits(observation: object, mdp: FactoredMDP) -> NDArray[np.float64]:
    return mdp.space.admit(mdp.space.features.encode_observation(observation)).astype(np.float64)


def _checked_belief(belief: ArrayLike | Mapping[Any, float], mdp: FactoredMDP) -> NDArray[np.float64]:
    if isinstance(belief, Mapping):
        array = mdp.space.distribution(probability_pairs(belief, "the belief"))
    else:
        array = as_floats(belief, "a belief")
    checked_shape("belief", array, (mdp.n_states,))
    return checked_distribution(array, "the belief", mdp.space.state)


def _predicted(belief: NDArray[np.float64], action: Any, mdp: FactoredMDP) -> NDArray[np.float64]:
    number = mdp.action_index(action)
    if not mdp.is_small:
        return mdp.spread(belief, number)
    matrix = mdp.transition[number]
    out = np.empty(mdp.n_states)
    predict(matrix.indptr, matrix.indices, matrix.data, belief, out)
    return out


def _posterior(
    predicted: NDArray[np.float64],
    likelihood: NDArray[np.float64],
    mdp: FactoredMDP,
    belief: NDArray[np.float64],
    action: Any,
    observation: object,
) -> NDArray[np.float64]:
    out = np.empty(mdp.n_states)
    if condition(predicted, likelihood, out) > 0.0:
        return out
    features = mdp.space.features
    seen = features.decode_observation(features.encode_observation(observation))
    after = "as the first observation" if action is None else f"after the action {action!r}"
    raise ImpossibleObservation(
        f"the observation {seen!r} has probability zero {after}, starting from the belief {_summary(belief, mdp)}",
        belief=belief,
        action=action,
        observation=seen,
    )


def _summary(belief: NDArray[np.float64], mdp: FactoredMDP, most: int = 5) -> str:
    support = np.flatnonzero(belief)
    likely = support[np.argsort(-belief[support], kind="stable")][:most]
    shown = ", ".join(f"{mdp.space.state(int(s))!r}: {belief[s]:.4g}" for s in likely)
    return "{" + shown + (f", … {len(support) - most} more states" if len(support) > most else "") + "}"

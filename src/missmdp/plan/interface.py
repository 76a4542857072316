"""Whether a policy that was made for one model can act in another."""

from __future__ import annotations

from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["check_interface"]


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
            raise ModelError(f"{tracks}, which has the features {mine!r}; this model has {theirs!r}")
    elif list(own.observations) != list(model.observations):
        raise ModelError(f"{tracks}; this model has other observations")

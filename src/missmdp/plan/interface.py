"""Whether a policy that was made for one model can act in another."""

from __future__ import annotations

from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.model.space import FeatureSpace

__all__ = ["check_acts_in", "check_interface"]


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

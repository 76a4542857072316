"""The same MDP under other missingness functions: the ends between which experiments lie."""

from __future__ import annotations

from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, checked_model

__all__ = ["PRIOR_RATE", "fully_observed_model", "prior_model"]

PRIOR_RATE = 0.5
"""The probability with which each feature goes missing under the uninformed prior."""


def prior_model(model: MissMDP) -> MissMDP:
    """Return the miss-MDP with an uninformed guess at M, whose policy is the paper's baseline π^prior (Sec. 6).

    Every feature, also one that a model always observes, independently goes missing with probability 0.5, in every
    state.
    """
    mdp = checked_model(model).mdp
    return model.with_missingness(
        MissingnessFunction.independent(mdp, dict.fromkeys(mdp.features, PRIOR_RATE))
    )


def fully_observed_model(model: MissMDP) -> MissMDP:
    """Return the miss-MDP in which nothing goes missing."""
    return checked_model(model).with_missingness(MissingnessFunction.fully_observed(model.mdp))

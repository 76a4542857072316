"""What can be written to a file: a POMDP or a miss-MDP, checked for what files cannot say."""

from __future__ import annotations

import numpy as np

from missmdp.errors import ModelError
from missmdp.interop.assemble import absorbing
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["ACTS_FIRST", "outgoing_pomdp"]

ACTS_FIRST = (
    "The model makes an observation before its first action. This file acts first: it starts from the initial "
    "distribution without that observation, so values are those of acting without it."
)
"""The note in files of models that observe first."""


def outgoing_pomdp(model: POMDP | MissMDP) -> POMDP:
    """Return the POMDP to be written.

    Raises
    ------
    ModelError
        If it is no model, or a state is called terminal that can be left or that has rewards.
    """
    if isinstance(model, MissMDP):
        return model.to_pomdp()
    if not isinstance(model, POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"expected a MissMDP or a POMDP, got {type(model).__name__}")
    wrong = model.terminal & ~(absorbing(model.transition) & (model.reward == 0.0).all(axis=1))
    if wrong.any():
        state = model.states[int(np.flatnonzero(wrong)[0])]
        raise ModelError(
            f"the state {state!r} is terminal, but some action leaves it or has a reward there; "
            "files have no word for terminal, so it must be absorbing with reward 0"
        )
    return model

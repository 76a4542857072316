"""What can be written to a file: a POMDP or a miss-MDP."""

from __future__ import annotations

from missmdp.errors import ModelError
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
        If it is no model.
    """
    if isinstance(model, MissMDP):
        return model.to_pomdp()
    if not isinstance(model, POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"expected a MissMDP or a POMDP, got {type(model).__name__}")
    return model

"""Logs as learning from histories needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import NO_ACTION

__all__ = ["checked_log"]


def checked_log(mdp: FactoredMDP, data: Any, who: str) -> Dataset:
    """Return a log in terms of an MDP of one's own; raise `DataError` if it is none or does not fit."""
    if not isinstance(data, Dataset):
        raise DataError(
            f"{who} learns from whole histories, so that it needs a Dataset; got {type(data).__name__}"
        )
    checked_mdp(mdp)
    if data.mdp.space.features != mdp.space.features or data.mdp.actions != mdp.actions:
        raise DataError("the dataset has other features, values or actions than the MDP")
    goes_on = np.ones(data.n_steps, dtype=np.bool_)
    goes_on[data.offsets[1:] - 1] = False
    if (goes_on & (data.actions == NO_ACTION)).any():
        raise DataError("an episode goes on after a step without an action; see missmdp.validate")
    if data.mdp is mdp:
        return data
    return Dataset(
        mdp,
        data.observations,
        data.actions,
        data.offsets,
        data.terminated,
        behaviour=data.behaviour,
    )

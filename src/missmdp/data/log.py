"""A trajectory table as codes: what is known of a log before it is held against a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.model.space import FeatureSpace

__all__ = ["Log"]


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of a trajectory table, sorted by episode (in order of first appearance) and step."""

    features: FeatureSpace
    """The features with their values: a model's, or those that occur in the table."""
    observations: NDArray[np.integer[Any]]
    """Codes with `MISSING`, shape (N, n)."""
    episode: NDArray[np.int64]
    """The number of each row's episode, from 0 in order of first appearance, shape (N,)."""
    step: NDArray[np.int64]
    """The step of each row in its episode, from 0, shape (N,)."""
    episode_ids: tuple[Any, ...]
    """What the table calls each episode, shape (E,)."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader should know, such as which columns were left out."""

"""Datasets made of given observations, for tests that need to know every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import missmdp as mm
from missmdp.data.counts import ObservationCounts

__all__ = ["counts_of", "dataset_of"]


def dataset_of(mdp: mm.FactoredMDP, rows: Iterable[Any], behaviour: Any = None) -> mm.Dataset:
    """Return a log of one episode with these observations, None for missing, under the first action."""
    codes = np.array([mdp.space.features.encode_observation(row) for row in rows], dtype=np.int8)
    actions = np.zeros(len(codes), dtype=np.int8)
    actions[-1] = -1
    return mm.Dataset(mdp, codes, actions, np.array([0, len(codes)]), np.array([False]), behaviour=behaviour)


def counts_of(mdp: mm.FactoredMDP, counts: Mapping[Any, int], behaviour: Any = None) -> ObservationCounts:
    """Return counts of observations given as {observation: how often}."""
    features = mdp.space.features
    codes = np.array([features.encode_observation(row) for row in counts])
    times = np.array(list(counts.values()), dtype=np.int64)
    return ObservationCounts.from_ranks(mdp, features.rank(codes), times, behaviour)

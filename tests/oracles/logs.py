"""Datasets made of given observations, for tests that need to know every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import missmdp as mm
from missmdp.data.counts import ObservationCounts

__all__ = ["counts_of", "dataset_of", "episodes_of"]


def dataset_of(mdp: mm.FactoredMDP, rows: Iterable[Any], behaviour: Any = None) -> mm.Dataset:
    """Return a log of one episode with these observations, None for missing, under the first action."""
    codes = np.array([mdp.space.features.encode_observation(row) for row in rows], dtype=np.int8)
    actions = np.zeros(len(codes), dtype=np.int8)
    actions[-1] = -1
    return mm.Dataset(mdp, codes, actions, np.array([0, len(codes)]), np.array([False]), behaviour=behaviour)


def episodes_of(mdp: mm.FactoredMDP, episodes: Sequence[Sequence[tuple[Any, Any]]]) -> mm.Dataset:
    """Return a log of episodes given as (observation, action) pairs; the action of the last is None."""
    encode = mdp.space.features.encode_observation
    steps = [step for episode in episodes for step in episode]
    return mm.Dataset(
        mdp,
        np.array([encode(z) for z, _ in steps], dtype=np.int8),
        np.array([-1 if a is None else mdp.actions.index(a) for _, a in steps], dtype=np.int8),
        np.cumsum([0, *map(len, episodes)]),
        np.zeros(len(episodes), dtype=bool),
    )


def counts_of(mdp: mm.FactoredMDP, counts: Mapping[Any, int], behaviour: Any = None) -> ObservationCounts:
    """Return counts of observations given as {observation: how often}."""
    features = mdp.space.features
    codes = np.array([features.encode_observation(row) for row in counts])
    times = np.array(list(counts.values()), dtype=np.int64)
    return ObservationCounts.from_ranks(mdp, features.rank(codes), times, behaviour)

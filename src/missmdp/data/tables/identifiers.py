"""Columns whose values tell rows or episodes apart, such as ids and notes, rather than say how things stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from missmdp.data.tables.content import LogRows
from missmdp.model.space import FeatureSpace

MANY_WORDS = 50
"""Columns with at most so many different words are never taken for identifiers."""


def what_words_identify(log: LogRows, i: int, values: Sequence[Any]) -> str:
    """Return how many words a column has in how many rows or episodes if it tells these apart, otherwise nothing."""
    if len(values) <= MANY_WORDS or not all(isinstance(value, str) for value in values):
        return ""
    seen = np.flatnonzero(log.observations[:, i] >= 0)
    words = log.observations[seen, i].astype(np.int64)
    n_words = len(np.unique(words))
    if n_words <= MANY_WORDS:
        return ""
    if 2 * n_words > len(seen):
        return f"{n_words:,} different words in {len(seen):,} rows"
    episode = log.episode[seen]
    n_episodes, n_pairs = len(np.unique(episode)), len(np.unique(episode * len(values) + words))
    if n_pairs < 1.1 * n_episodes and 2 * n_words > n_episodes:
        return f"{n_words:,} different words in {n_episodes:,} episodes"
    return ""


def only_features(log: LogRows, kept: Sequence[int]) -> LogRows:
    """Return a log with the features at some positions."""
    if len(kept) == len(log.features):
        return log
    values = log.features.as_dict()
    features = FeatureSpace({log.features.names[i]: values[log.features.names[i]] for i in kept})
    return replace(log, features=features, observations=np.ascontiguousarray(log.observations[:, kept]))

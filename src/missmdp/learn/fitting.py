"""Whether a known missingness function is what a learner assumes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.groups import Counter, all_patterns, group_states
from missmdp.model.missingness import pattern_distance
from missmdp.model.missmdp import MissMDP

__all__ = ["distance_from_structure"]


def distance_from_structure(model: MissMDP, counters: Sequence[Counter]) -> float:
    """Return how far M is from one that has the learner's structure, in total variation over reachable states.

    The one compared with has, for every counter, the mean over the reachable states of each group, and independent
    counters. It is 0 exactly if M is such: equal within groups, and a product over counters.
    """
    features, reachable = model.space.features, np.flatnonzero(model.mdp.reachable)
    patterns = np.ones((1, len(features)), dtype=np.bool_)
    table = np.ones((len(reachable), 1))
    for counter in counters:
        own = all_patterns(counter.features)
        if counter.together:
            own = own[[0, -1]]
        _, label = group_states(model.space, counter.given)
        marginal = _group_means(_marginal(model, counter, own)[reachable], label[reachable])
        patterns = (patterns[:, None, :] & own[None, :, :]).reshape(-1, len(features))
        table = (table[:, :, None] * marginal[:, None, :]).reshape(len(reachable), -1)
    known = model.missingness
    return float(pattern_distance(patterns, table, known.patterns, known.probabilities[reachable]).max())


def _marginal(model: MissMDP, counter: Counter, own: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return P(the counter's features show one of its patterns | s), shape (S, K)."""
    shown = model.missingness.patterns[:, counter.features]
    match = (shown[:, None, :] == own[None][:, :, counter.features]).all(axis=2)
    return model.missingness.probabilities @ match.astype(np.float64)


def _group_means(values: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean row of each row's group, shape as values."""
    sums = np.zeros((int(label.max()) + 1, values.shape[1]))
    np.add.at(sums, label, values)
    return sums[label] / np.bincount(label)[label][:, None]

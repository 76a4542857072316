"""What a learner's groups would have shown with endless data: the true M, averaged over the states of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.bounds import GroupBound
from missmdp.learn.groups import group_states
from missmdp.model.missmdp import MissMDP

__all__ = ["GroupTruth", "group_truths"]


class GroupTruth(NamedTuple):
    """The true probabilities of a group's patterns, shape (K,) each; equal if the learner's assumption holds."""

    mean: NDArray[np.float64]
    """Over the reachable states of the group, weighted by visits."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def group_truths(
    groups: Sequence[GroupBound], truth: MissMDP, weights: NDArray[np.float64]
) -> list[GroupTruth]:
    """Return what is true of each group.

    Parameters
    ----------
    groups
        Groups with reachable states.
    truth
        The model with the true M.
    weights
        How often each state is visited, shape (S,).
    """
    parts: dict[tuple[Any, ...], _Part] = {}
    found: list[GroupTruth] = []
    for group in groups:
        key = (group.features, tuple(group.given), group.patterns.tobytes())
        if key not in parts:
            parts[key] = _Part(group, truth)
        found.append(parts[key].of(group, weights))
    return found


class _Part:
    """All groups that count the same patterns by the values of the same features."""

    def __init__(self, group: GroupBound, truth: MissMDP) -> None:
        features = truth.space.features
        given = features.mask(group.given)
        values, label = group_states(truth.space, given)
        shown = truth.missingness.patterns[:, features.mask(group.features)]
        match = (shown[:, None, :] == group.patterns[None]).all(axis=2)
        self._table = truth.missingness.probabilities @ match.astype(np.float64)
        self._members: dict[tuple[Any, ...], NDArray[np.int64]] = {}
        reachable = np.flatnonzero(truth.mdp.reachable)
        order = reachable[np.argsort(label[reachable], kind="stable")]
        numbers, starts = np.unique(label[order], return_index=True)
        for number, states in zip(numbers, np.split(order, starts[1:]), strict=True):
            codes = values[number]
            named = tuple(features.values[i][codes[i]] for i in map(features.position, group.given))
            self._members[named] = states

    def of(self, group: GroupBound, weights: NDArray[np.float64]) -> GroupTruth:
        states = self._members[tuple(group.given.values())]
        table, weight = self._table[states], weights[states]
        if not weight.sum() > 0.0:
            weight = np.ones(len(states))
        return GroupTruth(weight @ table / weight.sum(), table.min(axis=0), table.max(axis=0))

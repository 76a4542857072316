"""Ways to complete a log, and to complete what an agent sees in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.experiments.imputation.chained import chained_draws
from missmdp.experiments.imputation.policies import CarryingPolicy, CompletedPolicy
from missmdp.experiments.imputation.steps import Completed
from missmdp.model.policy import Policy
from missmdp.model.space import MISSING

Codes = NDArray[np.integer[Any]]
"""Rows of codes, shape (rows, n)."""

DRAWS = 5
"""Completed copies of a log in multiple imputation."""


class Filled(NamedTuple):
    """A completed log, and agents that fill gaps in as it was done there."""

    completed: Completed
    policy: Callable[[NDArray[np.float64]], Policy]
    """Values of states and actions, shape (S, A) → the policy that is greedy on what it fills in."""


def complete_cases(log: Dataset, seed: int = 0) -> Filled:
    """Return only the steps between complete observations; when acting, gaps keep what was last seen."""
    carried = last_observation(log)
    complete = np.asarray(log.observed.all(axis=1))
    return Filled(Completed(log, carried.completed.copies, complete), carried.policy)


def last_observation(log: Dataset, seed: int = 0) -> Filled:
    """Return the log with the last observation carried forward; at first, the commonest value."""
    common = commonest(log)

    def policy(values: NDArray[np.float64]) -> Policy:
        return CarryingPolicy(log.feature_space, log.action_names, common, values)

    return Filled(Completed(log, (carried_forward(log, common),), _all(log)), policy)


def commonest_value(log: Dataset, seed: int = 0) -> Filled:
    """Return the log with the commonest value of a feature in each of its gaps."""
    common = commonest(log)
    sights = all_sights(log)

    def policy(values: NDArray[np.float64]) -> Policy:
        filled = np.where(sights == MISSING, common, sights)[:, None]
        return CompletedPolicy(log.feature_space, log.action_names, filled, values)

    copy = np.where(log.observed, log.observations, common)
    return Filled(Completed(log, (copy,), _all(log)), policy)


def multiple_imputation(log: Dataset, seed: int = 0) -> Filled:
    """Return the log with gaps drawn from chained regressions, several times; needs the extra `baselines`."""
    _check_seen(log)
    copies, filled = chained_draws(log.observations, all_sights(log), log.feature_space.sizes, DRAWS, seed)

    def policy(values: NDArray[np.float64]) -> Policy:
        return CompletedPolicy(log.feature_space, log.action_names, filled, values)

    return Filled(Completed(log, copies, _all(log)), policy)


METHODS: dict[str, Callable[[Dataset, int], Filled]] = {
    "complete": complete_cases,
    "last": last_observation,
    "mode": commonest_value,
    "multiple": multiple_imputation,
}
"""Name → what completes a log, given a seed."""


def commonest(log: Dataset) -> NDArray[np.int64]:
    """Return the code of each feature that occurs most often, shape (n,)."""
    _check_seen(log)
    return np.array([np.bincount(column[column != MISSING]).argmax() for column in log.observations.T])


def carried_forward(log: Dataset, begins_with: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the codes with the last one seen in the episode in each gap, or else `begins_with`, shape (N, n)."""
    rows = np.arange(log.n_steps)[:, None]
    first = np.repeat(log.offsets[:-1], log.lengths)[:, None]
    seen = np.maximum.accumulate(np.where(log.observed, rows, -1), axis=0)
    found = np.take_along_axis(log.observations.astype(np.int64), np.maximum(seen, 0), axis=0)
    return np.where(seen >= first, found, begins_with)


def all_sights(log: Dataset) -> Codes:
    """Return all combinations of values and gaps, in the order of their ranks, shape (Z, n)."""
    features = log.feature_space
    return features.unrank(np.arange(int(np.prod(features.sizes + 1))))


def _all(log: Dataset) -> NDArray[np.bool_]:
    return np.ones(log.n_steps, dtype=np.bool_)


def _check_seen(log: Dataset) -> None:
    for name, seen in zip(log.feature_space.names, np.asarray(log.observed.any(axis=0)), strict=True):
        if not seen:
            raise DataError(f"the feature {name!r} is never seen, so its gaps cannot be filled in")

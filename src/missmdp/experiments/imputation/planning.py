"""What actions are worth according to a completed log: by counting, and by fitted Q-iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.experiments.imputation.extra import require
from missmdp.experiments.imputation.steps import Steps, state_codes
from missmdp.model.space import FeatureSpace

_CLOSE = 1e-9
"""Of the largest value: where sweeps stop."""
TREES, LEAF, ROUNDS = 20, 5.0, 100
"""Of fitted Q-iteration: trees, steps per leaf at least, and iterations."""


def counted_values(
    steps: Steps, features: FeatureSpace, discount: float, seed: int = 0
) -> NDArray[np.float64]:
    """Return Q of the MDP with the frequencies of the log as T, by value iteration, shape (S, A).

    Only actions that were tried in a state count there: others get the lowest value of all that were. A state in which
    nothing was tried is worth as much as the others on average; there the values of actions are means too.
    """
    tried = steps.visits > 0.0
    known = tried.any(axis=1)
    visits = steps.visits.sum(axis=1)
    weights = visits / visits.sum()
    q = np.zeros_like(steps.reward)
    while True:
        best = np.where(tried, q, -np.inf).max(axis=1)
        worth = np.where(known, best, float(weights[known] @ best[known]))
        future = np.asarray(steps.after @ worth).reshape(q.shape)
        swept = np.where(tried, steps.reward + discount * future, 0.0)
        change = float(np.abs(swept - q).max())
        q = swept
        if change <= _CLOSE * max(1.0, float(np.abs(q).max())):
            break
    q = np.where(tried, q, q[tried].min())
    q[~known] = weights @ q
    return q


def fitted_values(
    steps: Steps, features: FeatureSpace, discount: float, seed: int = 0
) -> NDArray[np.float64]:
    """Return Q by fitted Q-iteration with extremely randomised trees, shape (S, A); needs the extra `baselines`.

    A tree sees the codes of the state as numbers, and one column per action. Steps from one state with one action have
    one mean target, weighted by how many there are, which gives the same fit as all of them one by one.
    """
    forest = require("sklearn.ensemble").ExtraTreesRegressor
    inputs = _inputs(features, steps.visits.shape[1])
    weight = steps.visits.reshape(-1)
    rows = np.flatnonzero(weight)
    q = np.zeros(steps.reward.shape)
    for iteration in range(ROUNDS):
        target = steps.reward.reshape(-1) + discount * np.asarray(steps.after @ q.max(axis=1))
        model: Any = forest(
            n_estimators=TREES,
            min_weight_fraction_leaf=min(LEAF / float(weight.sum()), 0.5),
            random_state=int(np.random.SeedSequence([seed, iteration]).generate_state(1)[0]),
        )
        model.fit(inputs[rows], target[rows], sample_weight=weight[rows])
        q = np.asarray(model.predict(inputs), dtype=np.float64).reshape(q.shape)
    return q


def _inputs(features: FeatureSpace, n_actions: int) -> NDArray[np.float32]:
    """Return a row per state and action, shape (S · A, n + A)."""
    codes = state_codes(features)
    actions = np.tile(np.eye(n_actions), (len(codes), 1))
    return np.hstack([np.repeat(codes, n_actions, axis=0), actions]).astype(np.float32)


PLANNERS: dict[str, Callable[[Steps, FeatureSpace, float, int], NDArray[np.float64]]] = {
    "counted": counted_values,
    "fitted": fitted_values,
}
"""Name → what makes values of steps, given features, the discount and a seed."""

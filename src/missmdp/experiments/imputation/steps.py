"""What followed on what in a completed log: counts of steps, and their rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.data.dataset import Dataset
from missmdp.errors import DataError
from missmdp.model.space import FeatureSpace

Reward = Callable[[Any, Any, Any], float]
"""(state, action, next state) → reward."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A log without gaps, once or several times."""

    log: Dataset
    copies: tuple[NDArray[np.integer[Any]], ...]
    """Codes without `MISSING`, each of shape (N, n)."""
    used: NDArray[np.bool_]
    """The rows that count; a step counts if the rows before and after it do, shape (N,)."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Relative frequencies in a log. States are all combinations of values, the last feature changing fastest."""

    visits: NDArray[np.float64]
    """How often an action was taken in a state, shape (S, A)."""
    after: sparse.csr_array
    """Row s · A + a: how often s′ followed and the episode went on, per visit, shape (S · A, S)."""
    reward: NDArray[np.float64]
    """The mean reward, 0 where there are no visits, shape (S, A)."""


def place_weights(features: FeatureSpace) -> NDArray[np.int64]:
    """Return what one step of each feature's code adds to a state's number, shape (n,)."""
    return np.append(np.cumprod(features.sizes[:0:-1])[::-1], 1).astype(np.int64)


def counted_steps(completed: Completed, reward: Reward) -> Steps:
    """Return the frequencies of steps in all copies of a completed log together."""
    log = completed.log
    features, n_actions = log.feature_space, len(log.action_names)
    n_states = int(np.prod(features.sizes))
    last = log.offsets[1:] - 1
    goes_on = np.ones(log.n_steps, dtype=np.bool_)
    goes_on[last] = False
    ends = np.zeros(log.n_steps, dtype=np.bool_)
    ends[last] = log.terminated
    rows = np.flatnonzero(goes_on & completed.used & np.append(completed.used[1:], False))
    if not len(rows):
        raise DataError("there is not one step between complete observations")
    seen = [copy.astype(np.int64) @ place_weights(features) for copy in completed.copies]
    pair = np.concatenate([places[rows] * n_actions + log.actions[rows] for places in seen])
    after = np.concatenate([places[rows + 1] for places in seen])
    visits = np.bincount(pair, minlength=n_states * n_actions).astype(np.float64)
    share = 1.0 / np.maximum(visits, 1.0)
    live = ~np.tile(ends[rows + 1], len(seen))
    shape = (n_states * n_actions, n_states)
    following = sparse.csr_array(
        sparse.coo_array((share[pair[live]], (pair[live], after[live])), shape=shape)
    )
    kinds, times = np.unique(pair * n_states + after, return_counts=True)
    worth = _rewards(kinds // n_states, kinds % n_states, features, log.action_names, reward)
    total = np.bincount(kinds // n_states, weights=worth * times, minlength=n_states * n_actions)
    return Steps(visits.reshape(n_states, n_actions), following, (total * share).reshape(n_states, n_actions))


def _rewards(
    pairs: NDArray[np.int64],
    after: NDArray[np.int64],
    features: FeatureSpace,
    actions: tuple[Any, ...],
    reward: Reward,
) -> NDArray[np.float64]:
    """Return the reward of each kind of step, shape (kinds,)."""
    codes = state_codes(features)
    state = {int(s): features.decode(codes[s]) for s in np.union1d(pairs // len(actions), after)}
    return np.array(
        [
            float(reward(state[int(pair // len(actions))], actions[int(pair % len(actions))], state[int(s)]))
            for pair, s in zip(pairs, after, strict=True)
        ]
    )


def state_codes(features: FeatureSpace) -> NDArray[np.int64]:
    """Return the codes of all states in order, shape (S, n)."""
    sizes = tuple(map(int, features.sizes))
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1).astype(np.int64)

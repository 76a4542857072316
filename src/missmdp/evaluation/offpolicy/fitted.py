"""Action values of a policy from the log alone: fitted Q evaluation on what is seen.

Q̂_k(z, a), the value of k more decisions, is the mean reward after z and a plus γ times the mean of
Σ_a′ π(a′ | h′) Q̂_{k−1}(z′, a′) over the next steps in the log. Each mean leans on that of the action alone.
Observations are no states, so Q̂ is wrong in general; the doubly robust estimate allows for that. Each episode is given
values that were fitted without it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.data.dataset import Dataset
from missmdp.evaluation.offpolicy.decisions import Decisions
from missmdp.evaluation.offpolicy.target import Choices, distinct

_BACKOFF = 5.0
"""Decisions that the mean over all observations counts for in that of one."""
_MOST_CELLS = 2000
"""Observations that are told apart; rarer ones are one cell."""
_LONGEST = 2000
"""Decisions that are looked ahead, at most."""
_NEGLIGIBLE = 1e-4
"""A discount factor after which no further decision is looked at."""


class ActionValues(NamedTuple):
    """What an estimate starts from."""

    action_values: NDArray[np.float64]
    """Q̂(h, a) of what was done, shape (D,)."""
    values: NDArray[np.float64]
    """V̂(h) = Σ_a π(a | h) Q̂(h, a), shape (D,)."""


def looked_ahead(longest: int, discount: float) -> int:
    """Return how many decisions to look ahead."""
    if 0.0 < discount < 1.0:
        longest = min(longest, math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)))
    return max(1, min(longest, _LONGEST))


def fitted_values(
    log: Dataset,
    decisions: Decisions,
    choices: Choices,
    rewards: NDArray[np.float64],
    discount: float,
    *,
    folds: int,
    seed: int,
) -> ActionValues:
    """Return action values that were fitted to other episodes than those they are for."""
    cell = _cells(log, decisions)
    actions = log.actions[decisions.rows].astype(np.int64)
    folds = min(folds, decisions.episodes)
    dealt = np.random.default_rng(seed).permutation(decisions.episodes) % folds
    fold = dealt[decisions.episode]
    found = ActionValues(np.zeros(len(cell)), np.zeros(len(cell)))
    for k in range(folds):
        held = fold == k
        # With a single episode there is nothing else to fit to; zeros are values too.
        if held.any() and not held.all():
            _fit_one(decisions, choices, rewards, discount, cell, actions, held, found)
    return found


def _cells(log: Dataset, decisions: Decisions) -> NDArray[np.int64]:
    _, label = distinct(log.observations[decisions.rows])
    counts = np.bincount(label)
    if len(counts) <= _MOST_CELLS:
        return label
    place = np.empty(len(counts), dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(place, _MOST_CELLS - 1)[label]


def _fit_one(
    decisions: Decisions,
    choices: Choices,
    rewards: NDArray[np.float64],
    discount: float,
    cell: NDArray[np.int64],
    actions: NDArray[np.int64],
    held: NDArray[np.bool_],
    out: ActionValues,
) -> None:
    """Fit Q̂ to the decisions that are not held out, and write it down for those that are."""
    n_actions = choices.probabilities.shape[1]
    shape = (int(cell.max()) + 1, n_actions)
    last = np.zeros(len(cell), dtype=np.bool_)
    last[decisions.start[1:][decisions.counts > 0] - 1] = True
    own = cell * n_actions + actions
    reward = _Means(own[~held], shape)
    earned = reward.of(_sums(own[~held], rewards[~held], reward.size))
    # What follows a cut is not known, and what an agent does that was lost sight of is not either.
    followed = ~last & np.append(choices.known[1:], np.zeros(1, dtype=np.bool_))
    usable = ~held & (followed | (last & decisions.terminated[decisions.episode]))
    future = _Means(own[usable], shape)
    moves = np.flatnonzero(usable & followed)
    after = choices.probabilities[moves + 1]
    every: NDArray[np.int64] = np.arange(n_actions, dtype=np.int64)
    columns = np.repeat(cell[moves + 1] * n_actions, n_actions) + np.tile(every, len(moves))
    flow = sparse.csr_array(
        (after.reshape(-1), (np.repeat(own[moves], n_actions), columns)),
        shape=(reward.size, reward.size),
    )
    to_go = np.minimum(decisions.longest - decisions.step, looked_ahead(decisions.longest, discount))
    place = np.flatnonzero(held)
    place = place[np.argsort(to_go[place], kind="stable")]
    ends = np.searchsorted(to_go[place], np.arange(int(to_go.max()) + 2))
    values = np.zeros(reward.size)
    for k in range(1, int(to_go.max()) + 1):
        values = earned + discount * future.of(np.asarray(flow @ values))
        now = place[ends[k] : ends[k + 1]]
        out.action_values[now] = values[own[now]]
        out.values[now] = (choices.probabilities[now] * values.reshape(shape)[cell[now]]).sum(axis=1)


def _sums(cell: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(cell, values, minlength=size), dtype=np.float64)


class _Means:
    """Means by observation and action, leaning on those by action alone.

    Parameters
    ----------
    cell
        The cell of each decision, observation · A + action.
    shape
        How many observations and actions there are.
    """

    def __init__(self, cell: NDArray[np.int64], shape: tuple[int, int]) -> None:
        self.size = shape[0] * shape[1]
        self._counts = np.bincount(cell, minlength=self.size).reshape(shape).astype(np.float64)
        self._by_action = np.maximum(self._counts.sum(axis=0), 1.0)

    def of(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the means of something that was added up by cell, shape (cells,)."""
        table = sums.reshape(self._counts.shape)
        pooled = table.sum(axis=0) / self._by_action
        return ((table + _BACKOFF * pooled) / (self._counts + _BACKOFF)).reshape(-1)

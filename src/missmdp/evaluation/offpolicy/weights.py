"""Importance weights: how much likelier what was done is under another policy, and how many episodes that leaves.

W_t = Π_{k ≤ t} π(a_k | h_k) / β(a_k | h_k) has mean 1 over episodes at every step t. An episode that has ended
keeps its last weight, since nothing is decided after its end.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.offpolicy.decisions import Decisions

_ROUNDING = 1e-9
"""The least standard error of a mean weight."""


class Weights:
    """The weights of a log's decisions for one policy.

    Parameters
    ----------
    decisions
        The decisions.
    ratio
        π(a | h) / β(a | h) of each, shape (D,).

    Attributes
    ----------
    now : numpy.ndarray
        W_t of each decision, shape (D,).
    before : numpy.ndarray
        W_{t−1}, 1 at the first decision of an episode, shape (D,).
    last : numpy.ndarray
        The weight of each episode, 1 without decisions, shape (E,).
    """

    def __init__(self, decisions: Decisions, ratio: NDArray[np.float64]) -> None:
        self.decisions = decisions
        self.now = np.array(ratio, dtype=np.float64)
        self.before = np.ones(len(ratio))
        self.last = np.ones(decisions.episodes)
        by_length = np.argsort(-decisions.counts, kind="stable")
        lengths = decisions.counts[by_length]
        for t in range(decisions.longest):
            going_on = by_length[: int(np.searchsorted(-lengths, -t, side="left"))]
            place = decisions.start[going_on] + t
            self.before[place] = self.last[going_on]
            self.now[place] *= self.last[going_on]
            self.last[going_on] = self.now[place]

    def by_step(self, values: NDArray[np.float64], ended: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sums over all episodes at each step: `values` of decisions, `ended` of episodes before, shape (L,)."""
        size = self.decisions.longest
        now = np.bincount(self.decisions.step, values, minlength=size)
        over = np.bincount(self.decisions.counts, ended, minlength=size + 1)
        return np.asarray(now + np.cumsum(over)[:size], dtype=np.float64)

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """Σ W_t over all episodes at each step, shape (L,)."""
        return self.by_step(self.now, self.last)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """Σ W_t² over all episodes at each step, shape (L,)."""
        return self.by_step(self.now**2, self.last**2)

    @cached_property
    def effective_by_step(self) -> NDArray[np.float64]:
        """The effective sample size at each step, shape (L,)."""
        return _ratio(self.totals**2, self.squares)

    @property
    def surprises(self) -> NDArray[np.float64]:
        """By how many standard errors the mean weight at each step differs from 1, shape (L,)."""
        n = self.decisions.episodes
        mean = self.totals / n
        spread = np.sqrt(np.maximum(self.squares / n - mean**2, 0.0) / max(n - 1, 1))
        return np.abs(mean - 1.0) / np.maximum(spread, _ROUNDING)

    @property
    def effective(self) -> float:
        """The effective sample size of whole episodes, (Σ W)² / Σ W²: how many equal weights would say as much."""
        return float(_ratio(self.last.sum(keepdims=True) ** 2, (self.last**2).sum(keepdims=True))[0])

    @property
    def largest(self) -> float:
        """The largest weight of a decision."""
        return float(self.now.max(initial=0.0)) if len(self.now) else 1.0


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a quotient, 0 where both are 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)

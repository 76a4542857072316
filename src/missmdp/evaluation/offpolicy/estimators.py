"""What another policy would have earned, from importance weights: arrays in, one number per episode out.

Every estimator returns one term per episode. Their mean is the estimate, and the standard error of that mean is the
standard error of the estimate: terms are independent where nothing is normalised, and those of self-normalised
estimates are the estimate plus each episode's influence on it (the delta method).

With W_t the weight up to and including decision t, before E episodes are averaged:

- "is": W_{T−1} Σ_t γᵗ r_t
- "pdis": Σ_t γᵗ W_t r_t
- "wis": the first, divided by the mean of W_{T−1} instead of its expectation, which is 1
- "wpdis": the second, each step divided by the mean of W_t at that step
- "dr": Σ_t γᵗ (W_{t−1} V̂(h_t) + W_t (r_t − Q̂(h_t, a_t))), where V̂ = Σ_a π(a | h) Q̂(h, a)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.evaluation.offpolicy.decisions import Decisions, discounts
from missmdp.evaluation.offpolicy.weights import Weights

Weighted = Literal["is", "pdis", "wis", "wpdis"]


def weighted_terms(
    method: Weighted, weights: Weights, rewards: NDArray[np.float64], discount: float
) -> NDArray[np.float64]:
    """Return the terms of an estimator that uses nothing but weights and rewards, shape (E,)."""
    decisions = weights.decisions
    earned = discounts(decisions, discount) * rewards
    match method:
        case "is":
            return weights.last * decisions.summed(earned)
        case "pdis":
            return decisions.summed(weights.now * earned)
        case "wis":
            return _self_normalised(weights.last, decisions.summed(earned))
        case "wpdis":
            return _normalised_by_step(weights, rewards, discount)


def doubly_robust_terms(
    weights: Weights,
    rewards: NDArray[np.float64],
    discount: float,
    action_values: NDArray[np.float64],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the terms of the doubly robust estimator, with Q̂(h, a) of what was done and V̂(h), shape (E,)."""
    decisions = weights.decisions
    parts = weights.before * values + weights.now * (rewards - action_values)
    return decisions.summed(discounts(decisions, discount) * parts)


def _self_normalised(weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    mean = float(weights.mean())
    if mean == 0.0:
        return np.full(len(weights), np.nan)
    estimate = float((weights * values).mean()) / mean
    return estimate + weights / mean * (values - estimate)


def _normalised_by_step(
    weights: Weights, rewards: NDArray[np.float64], discount: float
) -> NDArray[np.float64]:
    """Return terms normalised at each step; a step at which all weights are 0 counts as earning 0."""
    decisions: Decisions = weights.decisions
    size, step = decisions.longest, decisions.step
    mean = weights.totals / decisions.episodes
    scale = np.divide(1.0, mean, out=np.zeros(size), where=mean > 0.0)
    sums = np.bincount(step, weights.now * rewards, minlength=size)
    earned = np.asarray(sums, dtype=np.float64) * scale / decisions.episodes
    powers = np.power(discount, np.arange(size))
    # What an ended episode says of each later step is that it earned 0 there.
    later = np.append(np.cumsum((powers * earned * scale)[::-1])[::-1], 0.0)
    own = decisions.summed(powers[step] * weights.now * scale[step] * (rewards - earned[step]))
    return float(powers @ earned) + own - weights.last * later[decisions.counts]

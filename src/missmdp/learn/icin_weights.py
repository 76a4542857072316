"""The closed form of ICIN, on tables of frequencies or of probabilities.

Itemwise conditionally independent nonresponse (Sadinle and Reiter): whether a feature is missing does not depend on
its own value, given all other values and indicators; indicators may depend on each other. Then the log odds of a
missing set m against nothing missing are a sum over its subsets,

    log M(m | s) / M(∅ | s) = Σ_{∅ ≠ m′ ⊆ m} η_m′(s_−m′),

where η_m′ does not depend on the values that m′ lacks. Adding up over those values gives, by increasing size of m,

    η_m(s_−m) = log P(z: m missing, s_−m) − log Σ_{s_m} P(s, nothing missing) · exp Σ_{∅ ≠ m′ ⊊ m} η_m′(s_−m′).

Missing sets are numbered by their bits: set m lacks block i if bit i of m is 1, and set 0 lacks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shown", "Weights", "pattern_probabilities", "pattern_weights"]

_CERTAIN = 800.0
"""Log odds that stand for certainty: the other side's probability is 0 in floating point."""

_MOST = 700.0
"""The logarithm of about the largest number there is."""


class Shown(NamedTuple):
    """What states look like where a set of blocks is missing, and how often that is seen."""

    label: NDArray[np.int64]
    """The observation that each state shows, shape (S,)."""
    times: NDArray[np.float64]
    """How often, or with which probability, each observation occurs, shape (G,)."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What the closed form gives: K missing sets, S states."""

    log_odds: NDArray[np.float64]
    """log M(m | s) / M(∅ | s), shape (K, S)."""
    expected: tuple[float, ...]
    """How often each set would be missing if η_m were 0, all values taken together, K entries."""
    unseen: tuple[NDArray[np.bool_], ...]
    """The observations of each set for which no data say what η_m is, shape (G,) each."""


def pattern_weights(shown: Sequence[Shown], *, smoothing: float = 0.0, pooled: bool = False) -> Weights:
    """Return the log odds of every missing set, by the closed form.

    Parameters
    ----------
    shown
        For every missing set in order, what is seen; the first is fully observed.
    smoothing
        κ: exp η_m = (seen + κ) / (expected + κ), so that little data mean odds near 1 for a single block, and
        indicators that hardly depend on each other for several.
    pooled
        Whether η_m, where no data say what it is, comes from all values taken together; otherwise it is 0.
    """
    with np.errstate(divide="ignore"):
        log_complete = np.log(shown[0].times[shown[0].label])
        log_smoothing = float(np.log(smoothing))
    eta = np.zeros((len(shown), len(log_complete)))
    log_odds = np.zeros_like(eta)
    expected_of = [float(shown[0].times.sum())]
    unseen_of = [np.zeros(len(shown[0].times), dtype=np.bool_)]
    for m in range(1, len(shown)):
        label, times = shown[m]
        below = np.zeros(len(log_complete))
        for part in _proper_subsets(m):
            below += eta[part]
        expected = _log_sums(log_complete + below, label, len(times))
        complete = _log_sums(log_complete, label, len(times)) > -np.inf
        unseen = ~complete & ((times == 0.0) if m.bit_count() == 1 else True)
        own = _log_ratio(times, expected, smoothing, log_smoothing)
        whole = float(np.logaddexp.reduce(expected))
        own[unseen] = 0.0
        if pooled and whole > -np.inf:
            own[unseen] = _log_ratio(times.sum(keepdims=True), np.array([whole]), smoothing, log_smoothing)
        eta[m] = own[label]
        log_odds[m] = below + eta[m]
        expected_of.append(float(np.exp(min(whole, _MOST))))
        unseen_of.append(unseen)
    return Weights(log_odds, tuple(expected_of), tuple(unseen_of))


def pattern_probabilities(weights: Weights) -> NDArray[np.float64]:
    """Return M(m | s), shape (S, K)."""
    odds = np.exp(weights.log_odds - weights.log_odds.max(axis=0))
    return np.ascontiguousarray((odds / odds.sum(axis=0)).T)


def _proper_subsets(m: int) -> Iterator[int]:
    """Yield the nonempty proper subsets of a set of bits."""
    part = (m - 1) & m
    while part:
        yield part
        part = (part - 1) & m


def _log_sums(log_terms: NDArray[np.float64], label: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return log Σ exp of the terms of each group, −∞ where there are none, shape (n_groups,)."""
    sums = np.full(n_groups, -np.inf)
    np.logaddexp.at(sums, label, log_terms)
    return sums


def _log_ratio(
    times: NDArray[np.float64], log_expected: NDArray[np.float64], smoothing: float, log_smoothing: float
) -> NDArray[np.float64]:
    """Return log (times + κ) / (expected + κ); where it is 0/0, odds of 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(times + smoothing) - np.logaddexp(log_expected, log_smoothing)
    return np.minimum(np.where(np.isnan(ratio), 0.0, ratio), _CERTAIN)

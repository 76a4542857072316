"""Intervals and radii for frequencies: pure functions of counts and a failure budget.

One group has counts c over K categories, n = Σ c, and frequencies p̂ = c / n. Each function bounds how far
the true p may be from p̂, failing with probability at most `failure`. Fixed-n bounds hold when n does not
depend on the outcomes; the mixture holds at every n at once, hence also at a random one.

=================  =====================================================  ==========
function           bound                                                  holds
=================  =====================================================  ==========
okamoto_radius     |p̂ₖ − pₖ| ≤ √(ln(2/α) / 2n), one category            fixed n
clopper_pearson    exact binomial interval, one category                  fixed n
weissman_radius    TV(p̂, p) ≤ √((ln(2ᴷ − 2) + ln(1/α)) / 2n)             fixed n
mcdiarmid_radius   TV(p̂, p) ≤ ½√((K − 1)/n) + √(ln(1/α) / 2n)            fixed n
mixture_divergence KL(p̂ ‖ p) ≤ (ln(1/α) + ln ML − ln mixture) / n        every n
=================  =====================================================  ==========
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = [
    "clopper_pearson",
    "divergence_interval",
    "divergence_tv",
    "mcdiarmid_radius",
    "mixture_divergence",
    "okamoto_radius",
    "weissman_radius",
]

_PRIOR = 0.5
"""Dirichlet parameter of the mixture: Jeffreys' prior, within O(1) of the best for every p."""

_MOST_SUBSETS = 1_000_000
"""Sets of categories, over all groups, up to which total variation is maximised; beyond, Pinsker's inequality."""

_BISECTIONS = 60


def okamoto_radius(n_samples: ArrayLike, failure: ArrayLike) -> NDArray[np.float64]:
    """Return the half-width for one category (App. B, eq:okamoto), infinite for no samples."""
    n = np.asarray(n_samples, dtype=np.float64)
    # Of the failure, not of the confidence 1 − failure, which is 1.0 for small ones.
    with np.errstate(divide="ignore"):
        return np.sqrt((math.log(2.0) - np.log(failure)) / (2.0 * n))


def clopper_pearson(
    successes: ArrayLike, n_samples: ArrayLike, failure: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact binomial interval, half of the failure budget on either side; [0, 1] for no samples."""
    k, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n_samples, dtype=np.float64)
    )
    half = np.asarray(failure) / 2.0
    lower = np.where(k > 0, special.betaincinv(np.maximum(k, 1.0), n - k + 1.0, half), 0.0)
    upper = np.where(k < n, 1.0 - special.betaincinv(np.maximum(n - k, 1.0), k + 1.0, half), 1.0)
    return lower, upper


def weissman_radius(n_samples: ArrayLike, n_categories: int, failure: ArrayLike) -> NDArray[np.float64]:
    """Return the radius of Weissman et al. in total variation (half the L1 distance)."""
    n = np.asarray(n_samples, dtype=np.float64)
    # ln(2ᴷ − 2) without overflow for many categories.
    subsets = math.log(2.0**n_categories - 2.0) if n_categories < 50 else n_categories * math.log(2.0)
    with np.errstate(divide="ignore"):
        return np.sqrt((subsets - np.log(failure)) / (2.0 * n))


def mcdiarmid_radius(n_samples: ArrayLike, n_categories: int, failure: ArrayLike) -> NDArray[np.float64]:
    """Return a bound on the mean total variation plus McDiarmid's deviation from it."""
    n = np.asarray(n_samples, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return 0.5 * np.sqrt((n_categories - 1.0) / n) + np.sqrt(-np.log(failure) / (2.0 * n))


def mixture_divergence(
    counts: NDArray[np.int64], n_categories: int, failure: ArrayLike
) -> NDArray[np.float64]:
    """Return how large KL(p̂ ‖ p) can be at any time, shape (G,); infinite for no samples.

    The likelihood ratio between a Dirichlet mixture and the true p is a nonnegative martingale of mean one, so
    by Ville's inequality it exceeds 1/failure at some time with probability at most `failure`.

    Parameters
    ----------
    counts
        Shape (G, K).
    n_categories
        The number of categories, of which K are listed; the others have no counts.
    """
    c = counts.astype(np.float64)
    n: NDArray[np.float64] = c.sum(axis=1)
    alpha = np.full_like(c, _PRIOR)
    whole = np.full_like(n, n_categories * _PRIOR)
    rising: NDArray[np.float64] = special.gammaln(c + alpha) - special.gammaln(alpha)
    log_mixture = rising.sum(axis=1) + special.gammaln(whole) - special.gammaln(n + whole)
    log_best = np.sum(special.xlogy(c, c), axis=1) - special.xlogy(n, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = (log_best - log_mixture - np.log(failure)) / n
    return np.where(n > 0, divergence, np.inf)


def divergence_interval(
    frequency: NDArray[np.float64], divergence: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the q with binary kl(p̂ ‖ q) ≤ divergence, as an interval around p̂."""
    return 1.0 - _upper(1.0 - frequency, divergence), _upper(frequency, divergence)


def _upper(frequency: NDArray[np.float64], divergence: NDArray[np.float64]) -> NDArray[np.float64]:
    frequency, divergence = np.broadcast_arrays(frequency, divergence)
    low, high = np.array(frequency), np.ones_like(frequency)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (
                special.rel_entr(frequency, middle) + special.rel_entr(1.0 - frequency, 1.0 - middle)
                > divergence
            )
        high = np.where(far, middle, high)
        low = np.where(far, low, middle)
    return high


def divergence_tv(
    frequency: NDArray[np.float64], divergence: NDArray[np.float64], *, unlisted: bool = False
) -> NDArray[np.float64]:
    """Return the largest TV(p̂, p) that KL(p̂ ‖ p) ≤ divergence allows, shape (G,).

    Total variation is the largest difference on any set of categories, and on a set the divergence is at most
    the whole one. With few categories all sets are tried; Pinsker's inequality bounds the rest.

    Parameters
    ----------
    frequency
        p̂ of the listed categories, shape (G, K).
    divergence
        Shape (G,).
    unlisted
        Whether there are further categories, of frequency 0.
    """
    pinsker = np.sqrt(divergence / 2.0)
    n_groups, n_categories = frequency.shape
    if not n_groups or n_groups * 2.0**n_categories > _MOST_SUBSETS:
        return pinsker
    # Sets that differ in unlisted categories have the same frequency; without these, the empty set says nothing.
    subsets = np.array(list(product((0.0, 1.0), repeat=n_categories)))[0 if unlisted else 1 :]
    on_set = np.clip(frequency @ subsets.T, 0.0, 1.0)
    return np.minimum((_upper(on_set, divergence[:, None]) - on_set).max(axis=1), pinsker)

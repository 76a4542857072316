"""Bounds on the patterns of groups: which method for what, and how it takes smoothing into account.

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
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from missmdp.checks import checked_choice
from missmdp.data.dataset import Behaviour
from missmdp.errors import ParameterError

_PRIOR = 0.5
"""Dirichlet parameter of the mixture: Jeffreys' prior, within O(1) of the best for every p."""

_MOST_SUBSETS = 1_000_000
"""Sets of categories, over all groups, up to which total variation is maximised; beyond, Pinsker's inequality."""

_BISECTIONS = 60

_LARGE = 2.0**20
"""Half the number of categories beyond which gamma functions are no longer subtracted from each other."""

Method = Literal["auto", "okamoto", "clopper-pearson", "weissman", "anytime", "bootstrap"]
"""How intervals were made. "bootstrap" is for learners without a finite-sample bound, and no guarantee."""

_METHODS: dict[str, Method] = {
    "auto": "auto",
    "okamoto": "okamoto",
    "clopper-pearson": "clopper-pearson",
    "weissman": "weissman",
    "mcdiarmid": "weissman",
    "anytime": "anytime",
}


def okamoto_radius(n_samples: ArrayLike, failure: ArrayLike) -> NDArray[np.float64]:
    """Return the half-width for one category (App. B, eq:okamoto), infinite for no samples."""
    n = np.asarray(n_samples, dtype=np.float64)
    # Of the failure, not of the confidence 1 − failure, which is 1.0 for small ones.
    with np.errstate(divide="ignore"):
        return np.sqrt((math.log(2.0) - np.log(failure)) / (2.0 * n))


def clopper_pearson(
    successes: ArrayLike, n_samples: ArrayLike, failure: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact binomial interval, half of the failure budget on either side; [0, 1] for no samples.

    Expected numbers of successes and samples, which are not whole, interpolate.
    """
    k, n = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n_samples, dtype=np.float64)
    )
    half = np.asarray(failure) / 2.0
    lower = np.where(k > 0, special.betaincinv(np.where(k > 0, k, 1.0), n - k + 1.0, half), 0.0)
    upper = np.where(k < n, 1.0 - special.betaincinv(np.where(k < n, n - k, 1.0), k + 1.0, half), 1.0)
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
    log_mixture = rising.sum(axis=1) - _log_rising(whole, n)
    log_best = np.sum(special.xlogy(c, c), axis=1) - special.xlogy(n, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = (log_best - log_mixture - np.log(failure)) / n
    return np.where(n > 0, divergence, np.inf)


def _log_rising(start: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln of start · (start + 1) ⋯ (start + n − 1) for whole numbers n, which are 0 or positive."""
    difference: NDArray[np.float64] = special.gammaln(n + start) - special.gammaln(start)
    # The difference of two large numbers says nothing: at 2⁴⁰ it is off by 0.01, at 2⁶⁰ by 10,000.
    some = np.maximum(n, 1.0)
    large = np.where(n > 0, special.gammaln(some) - special.betaln(start, some), 0.0)
    return np.where(start > _LARGE, large, difference)


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
    many = n_categories >= _MOST_SUBSETS.bit_length() or n_groups * 2**n_categories > _MOST_SUBSETS
    if not n_groups or many:
        return pinsker
    # Sets that differ in unlisted categories have the same frequency; without these, the empty set says nothing.
    subsets = np.array(list(product((0.0, 1.0), repeat=n_categories)))[0 if unlisted else 1 :]
    on_set = np.clip(frequency @ subsets.T, 0.0, 1.0)
    return np.minimum((_upper(on_set, divergence[:, None]) - on_set).max(axis=1), pinsker)


def checked_method(value: Any) -> Method:
    """Return a method by its name, in any case and with _ for -."""
    name = str(value).lower().replace("_", "-").replace(" ", "-").replace("–", "-")
    if name not in _METHODS:
        known = ", ".join(dict.fromkeys(_METHODS.values()))
        problem = f"there is no method {value!r}; the methods are {known}"
        raise ParameterError("method", value, f"one of {known}", problem)
    return _METHODS[name]


def checked_behaviour(value: Any) -> Behaviour:
    """Return "blind" or "adaptive"."""
    return checked_choice("behaviour", value, ("blind", "adaptive"))


class GroupLimits(NamedTuple):
    """Bounds on one counter: G groups, K listed patterns."""

    lower: NDArray[np.float64]
    """Shape (G, K)."""
    upper: NDArray[np.float64]
    """Shape (G, K)."""
    hidden: NDArray[np.float64]
    """The largest probability of a category that is not listed, 0 where there is none, shape (G,)."""
    tv: NDArray[np.float64]
    """The largest total variation between estimate and truth, shape (G,)."""

    def radius(self, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest |M̂ − M| of each group, shape (G,)."""
        listed = np.maximum(self.upper - estimate, estimate - self.lower).max(axis=1)
        return np.minimum(np.maximum(listed, self.hidden), self.tv)


def known_visits(counts: NDArray[np.float64], estimate: NDArray[np.float64], failure: float) -> GroupLimits:
    """Return intervals and distances as if it were known which state each row was in.

    With states to guess, nothing is known better than that, whatever a bootstrap says: if an outcome was never seen,
    no resampled log has it either.

    Parameters
    ----------
    counts
        Expected counts, shape (G, K).
    estimate
        Shape (G, K).
    failure
        Of each interval on its own, and of each distance.
    """
    n = counts.sum(axis=1)
    if counts.shape[1] == 1:
        one = np.ones_like(estimate)
        return GroupLimits(one, one, np.zeros_like(n), np.zeros_like(n))
    lower, upper = clopper_pearson(counts, n[:, None], failure)
    lower, upper = np.minimum(lower, estimate), np.maximum(upper, estimate)
    if counts.shape[1] == 2:
        tv = np.maximum(upper - estimate, estimate - lower).max(axis=1)
    else:
        few = np.minimum(*(f(n, counts.shape[1], failure) for f in (weissman_radius, mcdiarmid_radius)))
        frequency = np.divide(counts, n[:, None], out=np.zeros_like(counts), where=n[:, None] > 0.0)
        tv = np.where(n > 0.0, few + 0.5 * np.abs(estimate - frequency).sum(axis=1), 1.0)
    return GroupLimits(lower, upper, np.zeros(len(counts)), np.minimum(tv, 1.0))


def group_limits(
    counts: NDArray[np.int64],
    estimate: NDArray[np.float64],
    extra: int,
    failure: float,
    method: Method,
    behaviour: Behaviour,
) -> GroupLimits:
    """Return bounds that fail for a group with probability at most `failure`.

    Parameters
    ----------
    counts
        Shape (G, K).
    estimate
        M̂, smoothed, shape (G, K).
    extra
        How many categories are possible beside the K listed ones; none of them has been seen.
    """
    n_categories = counts.shape[1] + extra
    if n_categories == 1:
        one = np.ones_like(estimate)
        return GroupLimits(one, one, np.zeros(len(counts)), np.zeros(len(counts)))
    if method == "auto" and behaviour == "adaptive":
        method = "anytime"
    n = counts.sum(axis=1)
    if method == "anytime":
        return _mixture(counts, estimate, extra, failure)
    if method == "auto" and n_categories == 2:
        method = "clopper-pearson"
    budget = np.full(len(counts), failure)
    if behaviour == "adaptive":
        # Σ 1/(n(n + 1)) = 1: the bounds for all n hold together.
        budget = budget / (np.maximum(n, 1) * (np.maximum(n, 1) + 1.0))
    match method:
        case "okamoto" | "clopper-pearson":
            return _cells(counts, estimate, extra, budget, method)
        case "weissman":
            return _radius(counts, estimate, extra, budget)
        case _:
            return _tightest(
                _cells(counts, estimate, extra, budget / 2.0, "clopper-pearson"),
                _radius(counts, estimate, extra, budget / 2.0),
            )


def _cells(
    counts: NDArray[np.int64],
    estimate: NDArray[np.float64],
    extra: int,
    budget: NDArray[np.float64],
    method: Literal["okamoto", "clopper-pearson"],
) -> GroupLimits:
    """Bound every category on its own, the budget split over them (two categories are one event)."""
    n_categories = counts.shape[1] + extra
    n = counts.sum(axis=1)[:, None]
    each = (budget / (1 if n_categories == 2 else n_categories))[:, None]
    padded = np.concatenate([counts, np.zeros((len(counts), 1), dtype=np.int64)], axis=1)
    if method == "okamoto":
        frequency = padded / np.maximum(n, 1)
        half = okamoto_radius(n, each)
        lower, upper = np.maximum(frequency - half, 0.0), np.minimum(frequency + half, 1.0)
    else:
        lower, upper = clopper_pearson(padded, n, each)
    hidden = upper[:, -1] if extra else np.zeros(len(counts))
    return _from_box(lower[:, :-1], upper[:, :-1], hidden, extra, estimate)


def _from_box(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    hidden: NDArray[np.float64],
    extra: int,
    estimate: NDArray[np.float64],
) -> GroupLimits:
    """Return the limits where every category has an interval.

    What some categories gain, others lose: the total variation is at most all that can be lost, all that can
    be gained, and half of the sum over categories of the larger of the two.
    """
    loss, gain = np.maximum(estimate - lower, 0.0), np.maximum(upper - estimate, 0.0)
    unlisted = extra * hidden
    tv = np.minimum(loss.sum(axis=1), gain.sum(axis=1) + unlisted)
    tv = np.minimum(tv, 0.5 * (np.maximum(loss, gain).sum(axis=1) + unlisted))
    return GroupLimits(lower, upper, hidden, np.minimum(tv, 1.0))


def _radius(
    counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, budget: NDArray[np.float64]
) -> GroupLimits:
    """Bound the whole distribution by the smaller of Weissman's and McDiarmid's radius, both known beforehand."""
    n_categories = counts.shape[1] + extra
    n = counts.sum(axis=1)
    radius = np.minimum(weissman_radius(n, n_categories, budget), mcdiarmid_radius(n, n_categories, budget))
    return _from_radius(counts, estimate, extra, radius)


def _from_radius(
    counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, radius: NDArray[np.float64]
) -> GroupLimits:
    """Return the limits around the frequencies, which smoothing has moved the estimate away from."""
    n = counts.sum(axis=1, keepdims=True)
    frequency = counts / np.maximum(n, 1)
    some = radius[:, None]
    lower = np.where(n > 0, np.maximum(frequency - some, 0.0), 0.0)
    upper = np.where(n > 0, np.minimum(frequency + some, 1.0), 1.0)
    moved = 0.5 * np.abs(estimate - frequency).sum(axis=1)
    tv = np.where(n[:, 0] > 0, np.minimum(radius + moved, 1.0), 1.0)
    hidden = np.where(n[:, 0] > 0, np.minimum(radius, 1.0), 1.0) if extra else np.zeros(len(counts))
    return GroupLimits(lower, upper, hidden, tv)


def _mixture(
    counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, failure: float
) -> GroupLimits:
    """Bound the divergence by a Dirichlet mixture, at every number of samples at once."""
    n_categories = counts.shape[1] + extra
    n = counts.sum(axis=1, keepdims=True)
    divergence = mixture_divergence(counts, n_categories, failure)
    frequency = counts / np.maximum(n, 1)
    radius = divergence_tv(frequency, divergence, unlisted=extra > 0)
    around = _from_radius(counts, estimate, extra, radius)
    lower, upper = divergence_interval(frequency, divergence[:, None])
    _, unseen = divergence_interval(np.zeros(len(counts)), divergence)
    box = _from_box(
        np.where(n > 0, lower, 0.0),
        np.where(n > 0, upper, 1.0),
        unseen if extra else np.zeros(len(counts)),
        extra,
        estimate,
    )
    return _tightest(box, around)


def _tightest(one: GroupLimits, other: GroupLimits) -> GroupLimits:
    """Return the limits of two bounds that hold together."""
    return GroupLimits(
        np.maximum(one.lower, other.lower),
        np.minimum(one.upper, other.upper),
        np.minimum(one.hidden, other.hidden),
        np.minimum(one.tv, other.tv),
    )

"""Bounds on the patterns of groups: which method for what, and how it takes smoothing into account."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Behaviour
from missmdp.errors import DataError
from missmdp.learn.intervals import (
    clopper_pearson,
    divergence_interval,
    divergence_tv,
    mcdiarmid_radius,
    mixture_divergence,
    okamoto_radius,
    weissman_radius,
)

__all__ = ["Limits", "Method", "checked_behaviour", "checked_method", "group_limits"]

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


def checked_method(value: Any) -> Method:
    """Return a method by its name, in any case and with _ for -."""
    name = str(value).lower().replace("_", "-").replace(" ", "-").replace("–", "-")
    if name not in _METHODS:
        raise DataError(
            f"there is no method {value!r}; the methods are {', '.join(dict.fromkeys(_METHODS.values()))}"
        )
    return _METHODS[name]


def checked_behaviour(value: Any) -> Behaviour:
    """Return "blind" or "adaptive"."""
    if value not in ("blind", "adaptive"):
        raise DataError(f"behaviour must be 'blind' or 'adaptive', got {value!r}")
    return value


class Limits(NamedTuple):
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


def group_limits(
    counts: NDArray[np.int64],
    estimate: NDArray[np.float64],
    extra: int,
    failure: float,
    method: Method,
    behaviour: Behaviour,
) -> Limits:
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
        return Limits(one, one, np.zeros(len(counts)), np.zeros(len(counts)))
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
) -> Limits:
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
) -> Limits:
    """Return the limits where every category has an interval.

    What some categories gain, others lose: the total variation is at most all that can be lost, all that can
    be gained, and half of the sum over categories of the larger of the two.
    """
    loss, gain = np.maximum(estimate - lower, 0.0), np.maximum(upper - estimate, 0.0)
    unlisted = extra * hidden
    tv = np.minimum(loss.sum(axis=1), gain.sum(axis=1) + unlisted)
    tv = np.minimum(tv, 0.5 * (np.maximum(loss, gain).sum(axis=1) + unlisted))
    return Limits(lower, upper, hidden, np.minimum(tv, 1.0))


def _radius(
    counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, budget: NDArray[np.float64]
) -> Limits:
    """Bound the whole distribution by the smaller of Weissman's and McDiarmid's radius, both known beforehand."""
    n_categories = counts.shape[1] + extra
    n = counts.sum(axis=1)
    radius = np.minimum(weissman_radius(n, n_categories, budget), mcdiarmid_radius(n, n_categories, budget))
    return _from_radius(counts, estimate, extra, radius)


def _from_radius(
    counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, radius: NDArray[np.float64]
) -> Limits:
    """Return the limits around the frequencies, which smoothing has moved the estimate away from."""
    n = counts.sum(axis=1, keepdims=True)
    frequency = counts / np.maximum(n, 1)
    some = radius[:, None]
    lower = np.where(n > 0, np.maximum(frequency - some, 0.0), 0.0)
    upper = np.where(n > 0, np.minimum(frequency + some, 1.0), 1.0)
    moved = 0.5 * np.abs(estimate - frequency).sum(axis=1)
    tv = np.where(n[:, 0] > 0, np.minimum(radius + moved, 1.0), 1.0)
    hidden = np.where(n[:, 0] > 0, np.minimum(radius, 1.0), 1.0) if extra else np.zeros(len(counts))
    return Limits(lower, upper, hidden, tv)


def _mixture(counts: NDArray[np.int64], estimate: NDArray[np.float64], extra: int, failure: float) -> Limits:
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


def _tightest(one: Limits, other: Limits) -> Limits:
    """Return the limits of two bounds that hold together."""
    return Limits(
        np.maximum(one.lower, other.lower),
        np.minimum(one.upper, other.upper),
        np.minimum(one.hidden, other.hidden),
        np.minimum(one.tv, other.tv),
    )

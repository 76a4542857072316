"""How far a learned missingness function can be from the true one (Theorems 1 and 2, second claims).

A learner's counters form groups; each is a sample of patterns with one unknown distribution. A bound splits the
failure budget 1 − confidence over all groups with reachable states, bounds every group, and puts the groups
together per state. Indicators that are learned one by one multiply, and their errors add up:
TV(s) ≤ 1 − Π_i (1 − e_i(s)).

Deviation: the paper splits δ itself over |S|·|Z| pairs, which does not give a union bound. Here the failure
budget is split, and over the distinct counters only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Behaviour
from missmdp.errors import DataError
from missmdp.learn.groups import GroupCounts
from missmdp.learn.intervals import (
    clopper_pearson,
    divergence_interval,
    divergence_tv,
    mcdiarmid_radius,
    mixture_divergence,
    okamoto_radius,
    weissman_radius,
)
from missmdp.model.missingness import MissingnessFunction

__all__ = [
    "Bound",
    "GroupBound",
    "Method",
    "checked_confidence",
    "checked_method",
    "group_limits",
    "learned_bound",
]

Method = Literal["auto", "okamoto", "clopper-pearson", "weissman", "anytime"]

_METHODS: dict[str, Method] = {
    "auto": "auto",
    "okamoto": "okamoto",
    "clopper-pearson": "clopper-pearson",
    "weissman": "weissman",
    "mcdiarmid": "weissman",
    "anytime": "anytime",
}


@dataclass(frozen=True, eq=False)
class GroupBound:
    """What is known of the patterns of some features in one group of states."""

    features: tuple[str, ...]
    """The features whose indicators these are."""
    given: dict[str, Any]
    """The values that the states of the group share."""
    samples: int
    """Observations that count for the group."""
    patterns: NDArray[np.bool_]
    """Indicators of `features` (True = observed), shape (K, len(features))."""
    estimate: NDArray[np.float64]
    """M̂ of each pattern, shape (K,)."""
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """The interval in which M lies, shape (K,) each."""
    radius: float
    """The largest |M̂ − M| over patterns."""
    tv: float
    """The largest total variation."""
    never_missing: bool = False
    """Whether M̂ takes the features as always observed because they were never missing in the data."""


@dataclass(frozen=True, eq=False)
class Bound:
    """With probability at least `confidence`, M̂ is no farther from M than this, if `assumes` holds."""

    confidence: float
    method: Method
    behaviour: Behaviour
    assumes: str
    per_group: tuple[GroupBound, ...]
    """Every group with reachable states."""
    per_state: NDArray[np.float64]
    """The largest |M̂(z | s) − M(z | s)| over z, shape (S,); 1 for unreachable states, of which nothing is claimed."""
    per_state_tv: NDArray[np.float64]
    """TV(M̂(· | s), M(· | s)), shape (S,); 1 for unreachable states."""
    worst: float
    """The largest |M̂(z | s) − M(z | s)| over reachable states: the ε of Theorems 1 and 2."""
    tv: float
    """The largest total variation over reachable states."""

    @property
    def n_groups(self) -> int:
        """The number of groups over which the failure budget is split."""
        return len(self.per_group)

    @property
    def weakest(self) -> GroupBound | None:
        """The group that is known worst."""
        return max(self.per_group, key=lambda group: group.tv, default=None)

    def __repr__(self) -> str:
        return (
            f"Bound(worst={self.worst:.3g}, tv={self.tv:.3g}, confidence={self.confidence:g}, "
            f"method={self.method!r}, behaviour={self.behaviour!r}, groups={self.n_groups})"
        )

    def describe(self) -> str:
        """Return what the bound says, in sentences."""
        lines = [
            f"Assuming {self.assumes}: with probability at least {self.confidence:g} every learned probability is "
            f"within {self.worst:.3g} of the true one, and every state's distribution within {self.tv:.3g} in total "
            f"variation ({self.method}, {self.behaviour} behaviour, {self.n_groups} groups)."
        ]
        unseen = sum(group.samples == 0 for group in self.per_group)
        if unseen:
            lines.append(f"{unseen} groups have no data at all, so that nothing is known of them.")
        if self.weakest is not None and self.tv > 0.0:
            group = self.weakest
            given = ", ".join(f"{name} = {value}" for name, value in group.given.items()) or "all states"
            names = ", ".join(group.features)
            what = f"whether {names} is always observed" if group.never_missing else names
            lines.append(
                f"Known worst: {what} at {given} ({group.samples:,} samples, total variation up to {group.tv:.3g})."
            )
            if group.never_missing:
                lines.append("Declare always_observed=[…] where that is known.")
        return "\n".join(lines)

    __str__ = describe


def checked_confidence(value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    if not isinstance(value, float | np.floating) or not 0.0 < float(cast("float", value)) < 1.0:
        raise DataError(f"confidence must be a number between 0 and 1, such as 0.95, got {value!r}")
    return float(cast("float", value))


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


def learned_bound(
    *,
    parts: Sequence[tuple[GroupCounts, NDArray[np.float64]]],
    sentinels: Sequence[GroupCounts],
    hidden: int,
    candidates: int,
    missingness: MissingnessFunction,
    reachable: NDArray[np.bool_],
    confidence: float,
    method: Method,
    behaviour: Behaviour,
    assumes: str,
) -> Bound:
    """Return the bound on M̂ made of parts whose indicators are independent.

    Parameters
    ----------
    parts
        The counters with their estimates, shape (G, K) each.
    sentinels
        Counters of features that M̂ takes as always observed but that might go missing.
    hidden
        Categories beyond the patterns of a part that might occur.
    candidates
        In how many ways the data could have decided what the groups are.
    reachable
        The states of which something is claimed, shape (S,).
    """
    method, behaviour = checked_method(method), checked_behaviour(behaviour)
    confidence = checked_confidence(confidence)
    never_missing = [np.eye(1, len(part.patterns)).repeat(len(part.counts), axis=0) for part in sentinels]
    everything = [*parts, *zip(sentinels, never_missing, strict=True)]
    n_groups = sum(int(part.reachable.sum()) for part, _ in everything)
    failure = (1.0 - confidence) / (candidates * max(n_groups, 1))

    groups: list[GroupBound] = []
    all_limits: list[Limits] = []
    for part, estimate in everything:
        extra = part.n_possible - len(part.patterns) + hidden
        limits = group_limits(part.counts, estimate, extra, failure, method, behaviour)
        all_limits.append(limits)
        groups += _group_bounds(part, estimate, limits, never_missing=len(all_limits) > len(parts))
    per_state, per_state_tv = _per_state(everything, all_limits, len(parts), missingness)
    per_state[~reachable] = per_state_tv[~reachable] = 1.0
    return Bound(
        confidence,
        method,
        behaviour,
        assumes,
        tuple(groups),
        per_state,
        per_state_tv,
        float(per_state[reachable].max()),
        float(per_state_tv[reachable].max()),
    )


def _group_bounds(
    part: GroupCounts, estimate: NDArray[np.float64], limits: Limits, *, never_missing: bool
) -> list[GroupBound]:
    radius, samples = limits.radius(estimate), part.samples
    shown = part.patterns[:, part.counter.features]
    return [
        GroupBound(
            part.features,
            part.group(int(g)),
            int(samples[g]),
            shown,
            estimate[g],
            limits.lower[g],
            limits.upper[g],
            float(radius[g]),
            float(limits.tv[g]),
            never_missing,
        )
        for g in np.flatnonzero(part.reachable)
    ]


def _per_state(
    everything: Sequence[tuple[GroupCounts, NDArray[np.float64]]],
    all_limits: Sequence[Limits],
    n_parts: int,
    missingness: MissingnessFunction,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest |M̂ − M| and TV of each state, shape (S,) each."""
    n_states = len(missingness.space)
    agree = np.ones(n_states)
    low = high = middle = np.ones((n_states, 1))
    unlisted = np.zeros(n_states)
    for i, ((part, estimate), limits) in enumerate(zip(everything, all_limits, strict=True)):
        agree *= 1.0 - limits.tv[part.label]
        unlisted = np.maximum(unlisted, limits.hidden[part.label])
        # A sentinel's feature is never missing in M̂: only the column "observed" enters its patterns.
        columns = slice(None) if i < n_parts else slice(0, 1)
        if i >= n_parts:
            unlisted = np.maximum(unlisted, limits.upper[part.label, 1])
        low = _outer(low, limits.lower[part.label, columns])
        high = _outer(high, limits.upper[part.label, columns])
        middle = _outer(middle, estimate[part.label, columns])
    tv = 1.0 - agree
    cells = np.maximum(high - middle, middle - low).max(axis=1)
    return np.minimum(np.maximum(cells, unlisted), tv), tv


def _outer(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


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

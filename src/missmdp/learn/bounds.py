"""How far a learned missingness function can be from the true one (Theorems 1 and 2, second claims).

A learner's counters form groups; each is a sample of patterns with one unknown distribution. A bound splits the
failure budget 1 − confidence over all groups with reachable states, bounds every group, and puts the groups
together per state. Indicators that are learned one by one multiply, and their errors add up:
TV(s) ≤ 1 − Π_i (1 − e_i(s)).

Deviation: the paper splits δ itself over |S|·|Z| pairs, which does not give a union bound. Here the failure
budget is split, and over the distinct counters only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_confidence
from missmdp.data.dataset import Behaviour
from missmdp.errors import Argument, DataError, Message
from missmdp.learn.groups import GroupCounts
from missmdp.learn.limits import (
    GroupLimits,
    Method,
    checked_behaviour,
    checked_method,
    group_limits,
)
from missmdp.model.missing_factors import joint_groups
from missmdp.model.missingness import MissingnessFunction
from missmdp.pages.notebook import notebook_table
from missmdp.words import count

_MOST_GROUPS = 1_000_000
"""Groups of which a bound says something each."""

_MOST_CELLS = 100_000_000
"""Probabilities of patterns that a bound looks at (2.4 GB)."""


@dataclass(frozen=True, eq=False)
class GroupBound:
    """What is known about the patterns of some features in one group of states."""

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
    """How far M̂ can be from M, with probability at least `confidence`, if `assumes` holds.

    If `guaranteed` is False, it is a bootstrap estimate of that distance.
    """

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
    guaranteed: bool = True
    """Whether this is a bound that holds at every sample size; a bootstrap's intervals are not."""
    per_state_unlisted: NDArray[np.float64] | None = None
    """How probable patterns that the learner does not count can be in all, shape (S,); None if nobody knows."""

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

    def _repr_html_(self) -> str:
        """Return the groups, those known worst first, as a table, for notebooks."""
        title = (
            f"Bound: within {self.worst:.3g} of M with confidence {self.confidence:g} (guaranteed)"
            if self.guaranteed
            else f"Intervals by a bootstrap at {self.confidence:g} each (not guaranteed)"
        )
        rows = [
            [
                ", ".join(group.features),
                ", ".join(f"{name} = {value}" for name, value in group.given.items()) or "everywhere",
                f"{group.samples:,}",
                f"{group.radius:.3g}",
                f"{group.tv:.3g}",
            ]
            for group in sorted(self.per_group, key=lambda group: -group.tv)
        ]
        columns = ["whether these are missing", "where", "samples", "off by at most", "total variation"]
        return notebook_table(title, columns, rows)

    def describe(self) -> str:
        """Return what the bound says, in sentences."""
        lines = [self._statement()]
        unseen = sum(group.samples == 0 for group in self.per_group)
        if unseen:
            lines.append(f"No data at all: {count(unseen, 'group')}, about which nothing is known.")
        if self.weakest is not None and self.tv > 0.0:
            group = self.weakest
            given = ", ".join(f"{name} = {value}" for name, value in group.given.items()) or "all states"
            names = ", ".join(group.features)
            what = f"whether {names} is always observed" if group.never_missing else names
            lines.append(
                f"Known worst: {what} at {given} "
                f"({count(group.samples, 'sample')}, total variation up to {group.tv:.3g})."
            )
            if group.never_missing:
                lines.append(Message("Pass ", Argument("always_observed", [...]), " if you know that it is."))
        return Message.of_lines(lines)

    def _statement(self) -> str:
        if not self.guaranteed and self.tv >= 1.0:
            return (
                f"Assuming {self.assumes}: the data are too few to say how far learned probabilities are from the true "
                "ones in all states. Intervals come from a bootstrap and are not guaranteed."
            )
        if not self.guaranteed:
            # How far all states are off together is not said: such a figure hardly ever held where the structure was
            # found in the data (docs/dynamics.md).
            return (
                f"Assuming {self.assumes}: intervals come from a bootstrap, at {self.confidence:.12g} each. They are "
                "not guaranteed, and single states can be further off."
            )
        return (
            f"Assuming {self.assumes}: with probability at least {self.confidence:.12g} every learned probability is "
            f"within {self.worst:.3g} of the true one, and every state's distribution within {self.tv:.3g} in total "
            f"variation ({self.method}, {self.behaviour} behaviour, {count(self.n_groups, 'group')})."
        )

    __str__ = describe


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
    if n_groups > _MOST_GROUPS:
        raise DataError(
            f"a bound would have {n_groups:,} groups, at most {_MOST_GROUPS:,} are possible; count by fewer features: "
            "AIMI takes a graph, or assume='simple MAR', and AsMAR takes ignore"
        )
    failure = (1.0 - confidence) / (candidates * max(n_groups, 1))

    groups: list[GroupBound] = []
    all_limits: list[GroupLimits] = []
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
        per_state_unlisted=_unlisted(everything, all_limits, len(parts), hidden, per_state_tv),
    )


def _group_bounds(
    part: GroupCounts, estimate: NDArray[np.float64], limits: GroupLimits, *, never_missing: bool
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
    all_limits: Sequence[GroupLimits],
    n_parts: int,
    missingness: MissingnessFunction,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest |M̂ − M| and TV of each state, shape (S,) each."""
    space = missingness.space
    # States in the same group of every part have the same patterns, so one of them will do.
    states, kind = joint_groups(space, [part.label for part, _ in everything])
    n_patterns = math.prod(len(part.patterns) for part, _ in everything[:n_parts])
    cells = float(len(states)) * n_patterns
    if cells > _MOST_CELLS:
        raise DataError(
            f"a bound compares {n_patterns:,} patterns of {len(states):,} kinds of states, {cells:.2g} probabilities "
            f"(about {cells * 24e-9:.0f} GB), too many; count by fewer features: AIMI takes a graph, or "
            "assume='simple MAR', and AsMAR takes ignore"
        )
    agree = np.ones(len(states))
    low = high = middle = np.ones((len(states), 1))
    unlisted = np.zeros(len(states))
    for i, ((part, estimate), limits) in enumerate(zip(everything, all_limits, strict=True)):
        label = part.label[states]
        agree *= 1.0 - limits.tv[label]
        unlisted = np.maximum(unlisted, limits.hidden[label])
        # A sentinel's feature is never missing in M̂: only the column "observed" enters its patterns.
        columns = slice(None) if i < n_parts else slice(0, 1)
        if i >= n_parts:
            unlisted = np.maximum(unlisted, limits.upper[label, 1])
        low = _outer(low, limits.lower[label, columns])
        high = _outer(high, limits.upper[label, columns])
        middle = _outer(middle, estimate[label, columns])
    tv = 1.0 - agree
    cells = np.maximum(high - middle, middle - low).max(axis=1)
    return np.minimum(np.maximum(cells, unlisted), tv)[kind], tv[kind]


def _unlisted(
    everything: Sequence[tuple[GroupCounts, NDArray[np.float64]]],
    all_limits: Sequence[GroupLimits],
    n_parts: int,
    hidden: int,
    per_state_tv: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how probable patterns that the parts do not count can be in all, shape (S,)."""
    listed = np.ones_like(per_state_tv)
    for i, ((part, _), limits) in enumerate(zip(everything, all_limits, strict=True)):
        extra = part.n_possible - len(part.patterns) + hidden
        most = extra * limits.hidden if i < n_parts else limits.upper[:, 1]
        listed *= np.maximum(1.0 - most[part.label], 0.0)
    return np.minimum(1.0 - listed, per_state_tv)


def _outer(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)

"""What certificates need from a learner: what it knows of M, and what it would know with more data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Behaviour
from missmdp.errors import DataError
from missmdp.evaluation.perturbed import factor_intervals, intervals_of
from missmdp.learn.base import CountingEstimator
from missmdp.learn.bounds import Bound, GroupBound, learned_bound
from missmdp.learn.groups import GroupCounts, count_groups
from missmdp.learn.limits import Method
from missmdp.learn.registry import learners
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import StateSpace
from missmdp.words import listed

_MOST = 1e6
"""Times as much data that are not looked beyond."""


_CLOSE = 0.02
"""Of what is wanted: how close a search ends."""


_TRIES = 8


def checked_learner(learner: object) -> CountingEstimator:
    """Return a learner that has learned something and whose error is bounded; raise `DataError` for anything else."""
    name = type(learner).__name__
    if not hasattr(learner, "missingness_"):
        raise DataError(f"{name} has learned nothing yet: call fit(data) first")
    if not isinstance(learner, CountingEstimator):
        raise DataError(
            f"there is no certificate for what {name} learns: no bound on its error is known for a finite number of "
            f"samples ({with_a_bound()} have one; value_interval gives an interval without a guarantee)"
        )
    return learner


def with_a_bound() -> str:
    """Return the names of the learners whose error is bounded, as a list in words."""
    return listed([entry.name for entry in learners().values() if entry.has_bound])


def can_go_missing(learner: CountingEstimator) -> NDArray[np.bool_]:
    """Return the features that may go missing in M as far as the learner knows, shape (n,)."""
    structure = learner.structure_
    features = learner.missingness_.space.features
    found = np.zeros(len(features), dtype=np.bool_)
    for counter in (*structure.counters, *structure.sentinels):
        found |= counter.features
    if structure.hidden:
        found |= ~features.mask(learner.always_observed or ())
    return found


def counted_patterns(learner: CountingEstimator) -> NDArray[np.bool_]:
    """Return the patterns that the learner counts, also those to which M̂ gives no probability, shape (K, n)."""
    patterns = np.ones((1, len(learner.missingness_.space.features)), dtype=np.bool_)
    for part in learner.counts_:
        patterns = (patterns[:, None, :] & part.patterns[None, :, :]).reshape(-1, patterns.shape[1])
    return np.unique(patterns, axis=0)


def revealing_missingness(bound: Bound, model: MissMDP) -> MissingnessFunction:
    """Return M⁺, which shows the whole state wherever the bound leaves open what goes missing; see `revealing`.

    Parameters
    ----------
    bound
        The learner's bound.
    model
        The miss-MDP with M̂.
    """
    space = model.space
    patterns = np.ones((1, len(space.features)), dtype=np.bool_)
    least = np.ones((len(space), 1))
    for factor in intervals_of(bound, model):
        known = np.where(factor.label[:, None] >= 0, factor.lower[factor.label], 0.0)
        patterns = (patterns[:, None, :] & factor.patterns[None, :, :]).reshape(-1, patterns.shape[1])
        least = (least[:, :, None] * known[:, None, :]).reshape(len(space), -1)
    for groups in _sentinels(bound):
        factor = factor_intervals(groups, model)
        # A feature that was never missing may be: only the first pattern, in which it is not, is what M̂ has.
        least = least * np.where(factor.label >= 0, factor.lower[factor.label, 0], 0.0)[:, None]
    return revealing(space, patterns, least)


def revealing(
    space: StateSpace, patterns: NDArray[np.bool_], least: NDArray[np.float64]
) -> MissingnessFunction:
    """Return M⁺, in which the best policy is worth at least what it is worth in any M with M(r | s) ≥ least[s, r].

    M⁺ has exactly these probabilities of the patterns in which something is missing, and shows everything with what
    is left. Whoever observes by M⁺ is better informed than by M: as long as a pattern of M can be explained by `least`
    both see the same, and where not, M⁺ shows the state.
    """
    something = ~patterns.all(axis=1)
    table = np.where(something, least, 0.0)
    everything = 1.0 - table.sum(axis=1)
    whole = np.ones((1, patterns.shape[1]), dtype=np.bool_)
    return MissingnessFunction(
        space,
        np.concatenate([whole, patterns[something]]),
        np.concatenate([np.maximum(everything, 0.0)[:, None], table[:, something]], axis=1),
    )


def _sentinels(bound: Bound) -> list[list[GroupBound]]:
    """Return the groups of features that were never missing, by feature or block."""
    found: dict[tuple[str, ...], list[GroupBound]] = {}
    for group in bound.per_group:
        if group.never_missing:
            found.setdefault(group.features, []).append(group)
    return list(found.values())


@dataclass(frozen=True)
class Halving:
    """How many samples it would take to halve ε, if everything is as frequent in them."""

    factor: float | None
    """Times as much data, about; None where no amount would do."""
    samples: int | None
    """Samples in all, about."""
    more: int | None
    """Samples besides those that there are, about."""
    why: str = ""
    """Why no amount would do."""

    def describe(self) -> str:
        """Return it in a sentence."""
        if self.factor is None or self.samples is None or self.more is None:
            return f"More data alone would not halve it: {self.why}."
        return (
            f"About {self.more:,} more samples would halve it ({self.samples:,} in all, {self.factor:.3g} times as "
            "many)."
        )


def data_to_halve(
    epsilon: float, solver: float, samples: int, epsilon_with: Callable[[float], float]
) -> Halving:
    """Return how many samples would halve ε.

    Parameters
    ----------
    epsilon
        What there is now.
    solver
        The part of it that data do not change.
    samples
        How many there are.
    epsilon_with
        Times as much data → ε.
    """
    if solver >= 0.5 * epsilon:
        return Halving(
            None, None, None, "the solver's gap is more than half of it; let the solver run longer"
        )
    factor = factor_for(0.5 * epsilon, solver, epsilon_with)
    if factor is None:
        why = f"even {_MOST:,.0f} times as many samples of the same states would not do"
        return Halving(None, None, None, why)
    total = math.ceil(samples * factor)
    return Halving(factor, total, total - samples)


def factor_for(
    target: float,
    solver: float,
    epsilon_with: Callable[[float], float],
    *,
    most: float = _MOST,
    close: float = _CLOSE,
) -> float | None:
    """Return how many times as much data bring ε to a target, three digits of it, or None if that is too many.

    Parameters
    ----------
    target
        What ε is to be.
    solver
        The part of it that data do not change.
    epsilon_with
        Times as much data → ε, which does not rise.
    most
        Times as much data that are not looked beyond.
    close
        How close to the target is close enough, as a share of it.
    """
    low, high = 1.0, 4.0
    while (there := epsilon_with(high)) > target:
        if high >= most:
            return None
        low, high = high, min(16.0 * high, most)
    for _ in range(_TRIES):
        if there >= (1.0 - close) * target:
            break
        # Radii shrink with the square root of the data, and so do errors more or less.
        guess = high * ((there - solver) / (target - solver)) ** 2
        middle = min(max(guess, low * (high / low) ** 0.1), low * (high / low) ** 0.9)
        found = epsilon_with(middle)
        if found <= target:
            high, there = middle, found
        else:
            low = middle
    unit = 10.0 ** (math.floor(math.log10(high)) - 2)
    return round(math.ceil(high / unit - 1e-9) * unit, 12)


def bound_with_more_data(
    learner: CountingEstimator,
    factor: float,
    confidence: float,
    method: Method,
    behaviour: Behaviour,
) -> Bound:
    """Return the bound if there were `factor` times as much data in which everything is as frequent."""

    def more(part: GroupCounts) -> GroupCounts:
        return replace(part, counts=np.rint(part.counts * factor).astype(np.int64))

    counts, structure = learner.observation_counts_, learner.structure_
    parts = [more(part) for part in learner.counts_]
    return learned_bound(
        parts=[(part, part.probabilities(learner.smoothing, learner.unseen)) for part in parts],
        sentinels=[more(count_groups(counts, counter)) for counter in structure.sentinels],
        hidden=structure.hidden,
        candidates=structure.candidates,
        missingness=learner.missingness_,
        reachable=counts.mdp.reachable,
        confidence=confidence,
        method=method,
        behaviour=behaviour,
        assumes=learner.assumed_,
    )

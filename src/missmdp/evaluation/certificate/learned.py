"""What a learner knows of M, as certificates need it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from missmdp.data.dataset import Behaviour
from missmdp.errors import DataError
from missmdp.evaluation.perturbed_missingness import factor_intervals, intervals_of
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.bounds import Bound, GroupBound, learned_bound
from missmdp.learn.groups import GroupCounts, count_groups
from missmdp.learn.limits import Method
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import StateSpace

__all__ = [
    "bound_with_more_data",
    "can_go_missing",
    "checked_learner",
    "counted_patterns",
    "revealing",
    "revealing_missingness",
]


def checked_learner(learner: object) -> MissingnessEstimator:
    """Return a learner that has learned something and whose error is bounded; raise `DataError` for anything else."""
    if not isinstance(learner, MissingnessEstimator) or not hasattr(learner, "missingness_"):
        name = type(learner).__name__
        if hasattr(learner, "missingness_"):
            raise DataError(
                f"there is no certificate for what {name} learns: no bound on its error is known for a finite number "
                "of samples (AMCAR, AsMAR and AIMI have one; value_interval gives an interval that is no guarantee)"
            )
        raise DataError(f"{name} has learned nothing yet: call fit(data) first")
    return learner


def can_go_missing(learner: MissingnessEstimator) -> NDArray[np.bool_]:
    """Return the features that may go missing in M as far as the learner knows, shape (n,)."""
    structure = learner.structure_
    features = learner.missingness_.space.features
    found = np.zeros(len(features), dtype=np.bool_)
    for counter in (*structure.counters, *structure.sentinels):
        found |= counter.features
    if structure.hidden:
        found |= ~features.mask(learner.always_observed or ())
    return found


def counted_patterns(learner: MissingnessEstimator) -> NDArray[np.bool_]:
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


def bound_with_more_data(
    learner: MissingnessEstimator,
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

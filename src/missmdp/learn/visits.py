"""After how many histories a group of states has its samples.

Histories are independent, and the number N of samples that one history gives a group has a moment generating
function that model and policy determine, so by Chernoff's bound

    P(fewer than n samples in h histories) ≤ exp(λ(n − 1)) · E[exp(−λN)]ʰ   for every λ > 0.

E[exp(−λN)] is computed exactly, by going through the horizon backwards. λ → ∞ leaves the paper's argument, which
counts a history as one sample at most; the best λ asks for far fewer histories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import Argument, ModelError
from missmdp.learn.groups import Counter, all_patterns, group_states
from missmdp.model.factors import Factors
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missing_factors import ROUNDING
from missmdp.model.missingness import pattern_distance
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy
from missmdp.model.space import FeatureSpace
from missmdp.words import count

_SEARCHES = 14
"""Steps of the search for λ."""

_PER_MINUTE = 2e10
"""Entries of matrices that a minute is enough for, about."""

_MOST_WORK = 10.0 * _PER_MINUTE


class VisitedGroup(NamedTuple):
    """A group of states, and how a row comes to count for it."""

    counter: Counter
    states: NDArray[np.bool_]
    """Shape (S,)."""
    given: dict[str, Any]
    counted: NDArray[np.float64]
    """P(the observation counts, and action a is taken | s), shape (S, A)."""
    needed: int
    expected: float
    to_appear: bool = False
    """Whether it counts the observations in which a feature is missing."""


def acting_probabilities(model: MissMDP, policy: MemorylessPolicy) -> NDArray[np.float64]:
    """Return P(a | s), zero in terminal states, after which nothing comes, shape (S, A)."""
    table = policy.table(model)
    acting = np.einsum("sk,ska->sa", model.missingness.probabilities, table.probabilities[table.row])
    acting[model.mdp.terminal] = 0.0
    return acting


def histories_for_groups(
    model: MissMDP, acting: NDArray[np.float64], batch: list[VisitedGroup], failure: float, horizon: int
) -> NDArray[np.float64]:
    """Return how many histories it takes until each group of a batch has its samples, by the best λ of a search.

    Raises
    ------
    ModelError
        If that would take many minutes.
    """
    mdp, acting, batch = _projected(model.mdp, acting, batch)
    _check_work(mdp, len(batch), horizon)
    needed = np.array([float(group.needed) for group in batch])
    spent = -math.log(failure)

    def histories(log_rate: NDArray[np.float64]) -> NDArray[np.float64]:
        rate = np.exp(log_rate)
        complement = mgf_complement(mdp, acting, batch, -np.expm1(-rate), horizon)
        # Where nearly nothing is left of 1, rounding decides what; taking more for left is safe and costs little.
        log_mgf = np.log1p(-np.minimum(complement, 1.0 - 1e-9))
        return (rate * (needed - 1.0) + spent) / -log_mgf

    # Golden section over ln λ, for all groups of the batch at once.
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = np.full(len(batch), math.log(1e-4)), np.full(len(batch), math.log(20.0))
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = histories(left), histories(right)
    best = np.minimum(at_left, at_right)
    for _ in range(_SEARCHES - 2):
        lower = at_left < at_right
        high, low = np.where(lower, right, high), np.where(lower, low, left)
        probe = np.where(lower, high - ratio * (high - low), low + ratio * (high - low))
        value = histories(probe)
        left, right = np.where(lower, probe, right), np.where(lower, left, probe)
        at_left, at_right = np.where(lower, value, at_right), np.where(lower, at_left, value)
        best = np.minimum(best, value)
    return best


def _projected(
    mdp: FactoredMDP, acting: NDArray[np.float64], batch: list[VisitedGroup]
) -> tuple[FactoredMDP, NDArray[np.float64], list[VisitedGroup]]:
    """Return the MDP of the features that visits depend on, and what is known of its states.

    If actions, ends and what counts depend on some features only, and so do the next values of these, visits do too.
    """
    if not mdp.by_factors or mdp.factors is None:
        return mdp, acting, batch
    sizes, scopes = mdp.factors.sizes, mdp.factors.scopes
    flags = np.stack([mdp.terminal, *(group.states for group in batch)], axis=1).astype(np.float64)
    known = np.concatenate([flags, acting, *(group.counted for group in batch)], axis=1)
    matter = {i for i in range(len(sizes)) if _varies(known, i, sizes)}
    while more := {p for i in matter for p in scopes[i].parents} - matter:
        matter |= more
    if not matter or len(matter) == len(sizes):
        return mdp, acting, batch
    kept, features = sorted(matter), mdp.space.features
    own = FeatureSpace({features.names[i]: features.values[i] for i in kept})
    tables = {
        features.names[i]: ([features.names[p] for p in scopes[i].parents], scopes[i].table) for i in kept
    }
    others = tuple(i for i in range(len(sizes)) if i not in matter)
    # All states with the same values of these features are alike: the first stands for them.
    first = np.arange(mdp.n_states).reshape(sizes)[
        tuple(slice(None) if i in matter else 0 for i in range(len(sizes)))
    ]
    chosen = first.reshape(-1)
    smaller = FactoredMDP(
        own,
        mdp.actions,
        Factors(own, mdp.actions, tables),
        0.0,
        mdp.initial.reshape(sizes).sum(axis=others).reshape(-1),
        mdp.terminal[chosen],
        mdp.discount,
    )
    groups = [group._replace(states=group.states[chosen], counted=group.counted[chosen]) for group in batch]
    return smaller, acting[chosen], groups


def _varies(values: NDArray[np.float64], feature: int, sizes: Sequence[int]) -> bool:
    """Return whether an array over states, shape (S, …), differs between values of a feature, by more than rounding."""
    before, after = math.prod(sizes[:feature]), math.prod(sizes[feature + 1 :])
    table = values.reshape(before, sizes[feature], after, -1)
    return any(np.abs(table[:, 0] - table[:, code]).max() > ROUNDING for code in range(1, sizes[feature]))


def _check_work(mdp: FactoredMDP, n_groups: int, horizon: int) -> None:
    """Raise `ModelError` if going through the horizon so often would take many minutes."""
    work = float(_SEARCHES) * horizon * mdp.n_entries * n_groups
    if work > _MOST_WORK:
        raise ModelError(
            f"the visits of {mdp.n_states:,} states in {horizon:,} steps would take about "
            f"{count(max(round(work / _PER_MINUTE), 1), 'minute')}; give a shorter ",
            Argument("horizon"),
        )


def mgf_complement(
    mdp: FactoredMDP,
    acting: NDArray[np.float64],
    batch: list[VisitedGroup],
    lost: NDArray[np.float64],
    horizon: int,
) -> NDArray[np.float64]:
    """Return 1 − E[(1 − lost)ᴺ] for the number N of samples in one history, shape (groups,).

    The complement, since for groups that are hardly ever visited the mean itself rounds to 1.
    """
    states = np.stack([group.states for group in batch], axis=1)
    counted = np.stack([group.counted for group in batch], axis=1)
    # An observation that counts multiplies by 1 − lost: P(a | s) loses that share of what counts.
    loss = np.where(states[:, :, None], counted, 0.0) * lost[None, :, None]
    step = np.where(mdp.terminal[:, None, None], 0.0, acting[:, None, :] - loss)
    here = loss.sum(axis=2)
    after = here
    for _ in range(horizon - 1):
        later = here
        for a, matrix in enumerate(mdp.transition):
            later = later + step[:, :, a] * (matrix @ after)
        after = later
    return mdp.initial @ after


def surely_enough(group: VisitedGroup, histories: float, failure: float, horizon: int) -> bool:
    """Return whether so many histories suffice for a group by a bound that needs its mean only."""
    mean = histories * group.expected
    short = 1.0 - (group.needed - 1.0) / mean if mean > 0.0 else 0.0
    return short > 0.0 and short**2 * mean / (2.0 * horizon) >= -math.log(failure)


def distance_from_structure(model: MissMDP, counters: Sequence[Counter]) -> float:
    """Return how far M is from one that has the learner's structure, in total variation over reachable states.

    The one compared with has, for every counter, the mean over the reachable states of each group, and independent
    counters. It is 0 exactly if M is such: equal within groups, and a product over counters.
    """
    features, reachable = model.space.features, np.flatnonzero(model.mdp.reachable)
    patterns = np.ones((1, len(features)), dtype=np.bool_)
    table = np.ones((len(reachable), 1))
    for counter in counters:
        own = all_patterns(counter.features)
        if counter.together:
            own = own[[0, -1]]
        _, label = group_states(model.space, counter.given)
        marginal = _group_means(_marginal(model, counter, own)[reachable], label[reachable])
        patterns = (patterns[:, None, :] & own[None, :, :]).reshape(-1, len(features))
        table = (table[:, :, None] * marginal[:, None, :]).reshape(len(reachable), -1)
    known = model.missingness
    return float(pattern_distance(patterns, table, known.patterns, known.probabilities[reachable]).max())


def _marginal(model: MissMDP, counter: Counter, own: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return P(the counter's features show one of its patterns | s), shape (S, K)."""
    shown = model.missingness.patterns[:, counter.features]
    match = (shown[:, None, :] == own[None][:, :, counter.features]).all(axis=2)
    return model.missingness.probabilities @ match.astype(np.float64)


def _group_means(values: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean row of each row's group, shape as values."""
    sums = np.zeros((int(label.max()) + 1, values.shape[1]))
    np.add.at(sums, label, values)
    return sums[label] / np.bincount(label)[label][:, None]

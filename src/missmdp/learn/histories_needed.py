"""How many histories a learner needs (Theorems 1 and 2, first claims), computed from a model and a policy.

Half of the failure budget goes to estimation, half to visits. Estimation says how many samples every group needs;
`visits` says after how many histories it has them. Where the data decide what is always observed, and by that the
groups, every feature that can go missing must also do so at least once.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_confidence, checked_flag, checked_integer, checked_number
from missmdp.data.coverage import behaviour_coverage
from missmdp.data.dataset import Behaviour
from missmdp.errors import AssumptionWarning, DataError, ParameterError
from missmdp.learn.asmar import AsMAR
from missmdp.learn.base import CountingEstimator, Structure
from missmdp.learn.groups import Counter, group_states
from missmdp.learn.limits import Method, checked_method, group_limits
from missmdp.learn.visits import (
    VisitedGroup,
    acting_probabilities,
    distance_from_structure,
    histories_for_groups,
    surely_enough,
)
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.policy import ActionTable, BlindPolicy, MemorylessPolicy, Policy, as_policy
from missmdp.model.space import FeatureSpace
from missmdp.progress import show_progress

_BATCH = 8
"""Groups whose visits are computed together, those that need most histories first."""

_SHARES = 17
"""Splits of the samples over two patterns that are tried for the widest bound."""

_MOST_SAMPLES = 10**12

_MOST_PATTERNS = 4096

_TOLERANCE = 1e-9
"""How far M may be from what a learner assumes, by rounding."""


class SampleSize(int):
    """A number of histories, and where it comes from."""

    model: MissMDP
    epsilon: float
    confidence: float
    samples: int
    """Samples that the group which decides needs."""
    features: tuple[str, ...]
    given: dict[str, Any]
    """The group that decides: the features whose indicators it counts, and the values that its states share."""
    expected: float
    """Samples that one history is expected to give that group."""
    steps: float
    """Observations that so many histories are expected to hold."""
    to_appear: bool
    """Whether what decides is that a feature must be seen to go missing, not to be taken as always observed."""
    assumes: str
    """What the learner assumes."""
    off_by: float
    """How far the model's M is from what the learner assumes, in total variation; the number means something at 0."""

    @property
    def histories(self) -> int:
        """The number itself: the paper's n*."""
        return int(self)

    def describe(self) -> str:
        """Return what the number says, in sentences."""
        given = ", ".join(f"{name} = {value}" for name, value in self.given.items()) or "all states"
        names = ", ".join(self.features)
        decides = (
            f"{names} must go missing once, or it is taken as always observed, and a history has {self.expected:.3g} "
            "such observations on average."
            if self.to_appear
            else f"{names} at {given} needs {self.samples:,} samples, and a history gives {self.expected:.3g} of them "
            "on average."
        )
        broken = (
            f"\nBut this model's M does not satisfy that: it is {self.off_by:.3g} away in total variation, and "
            "no amount of data changes that."
            if self.off_by
            else ""
        )
        return (
            f"Assuming {self.assumes}: {int(self):,} histories (about {self.steps:,.0f} observations) are enough to "
            f"learn every probability to within {self.epsilon:g}, with probability at least {self.confidence:g}.\n"
            f"What decides: {decides}{broken}"
        )


def histories_needed(
    model: MissMDP,
    epsilon: float = 0.05,
    confidence: float = 0.95,
    *,
    learner: CountingEstimator | None = None,
    policy: Policy | Callable[[Any], Any] | None = None,
    method: Method = "auto",
    total_variation: bool = False,
    horizon: int | None = None,
    progress: bool | None = None,
) -> SampleSize:
    """Return how many histories it takes until |M̂(z | s) − M(z | s)| ≤ ε for all reachable states, with
    probability ≥ δ.

    Parameters
    ----------
    model
        The miss-MDP; its M says what goes missing, and how often.
    epsilon
        The paper's ε.
    confidence
        The paper's δ.
    learner
        The learner with its parameters; `AsMAR()` by default.
    policy
        The behaviour policy, which must be memoryless; uniformly random by default.
    method
        The bound to plan with, as in `learner.bound`; for a policy that reacts to observations, one that holds for
        every number of samples.
    total_variation
        Whether ε bounds the total variation of each state instead.
    horizon
        The most observations per history; by default as in `collect`.

    Deviation
    ---------
    The paper counts a history as at most one sample of a group and splits the confidence; see `visits`.

    Examples
    --------
    >>> import missmdp as mm
    >>> mm.histories_needed(mm.load_benchmark("predator-mcar"), 0.05, 0.95, learner=mm.AMCAR()).samples
    1449
    """
    model, policy = checked_model(model), as_policy(policy)
    learner = AsMAR() if learner is None else learner
    if not isinstance(learner, CountingEstimator):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("learner", learner, "a learner that counts, such as AsMAR()")
    learner.check_parameters(model.space.features)
    learner.check_declared(model.space.features, _goes_missing(model))
    confidence, method = checked_confidence(confidence), checked_method(method)
    horizon = model.mdp.horizon() if horizon is None else checked_integer("horizon", horizon, least=1)
    epsilon = checked_number("epsilon", epsilon, above=0.0, below=1.0)
    checked_flag("total_variation", total_variation)
    if not isinstance(policy, MemorylessPolicy):
        raise ParameterError("policy", policy, "a policy without memory, such as UniformPolicy()")

    _check_patterns(model, learner)
    off_by = _off_by(model, learner)
    groups, visits_failure, episode_length = _groups(
        model, learner, policy, epsilon, confidence, method, horizon, total_variation=total_variation
    )
    if not groups:
        return _result(0, None, model, learner, off_by, epsilon, confidence, episode_length)
    groups.sort(key=lambda group: group.needed / group.expected, reverse=True)
    acting = acting_probabilities(model, policy)
    best, deciding = 0.0, groups[0]
    with show_progress("Computing visits", len(groups), enabled=progress) as advance:
        while groups:
            batch, groups = groups[:_BATCH], groups[_BATCH:]
            for group, histories in zip(
                batch, histories_for_groups(model, acting, batch, visits_failure, horizon), strict=True
            ):
                if histories > best:
                    best, deciding = histories, group
            waiting = len(groups)
            groups = [g for g in groups if not surely_enough(g, best, visits_failure, horizon)]
            advance(len(batch) + waiting - len(groups))
    return _result(math.ceil(best), deciding, model, learner, off_by, epsilon, confidence, episode_length)


def _goes_missing(model: MissMDP) -> NDArray[np.bool_]:
    """Return which features go missing in some reachable state, shape (n,)."""
    missingness, reachable = model.missingness, model.mdp.reachable
    if not missingness.is_small:
        names = model.space.features.names
        return np.array([bool((missingness.missing_rate(name)[reachable] > 0.0).any()) for name in names])
    occurs = (missingness.probabilities[reachable] > 0.0).any(axis=0)
    return (~missingness.patterns[occurs]).sum(axis=0) > 0


def _count_patterns(counter: Counter) -> int:
    return 2 if counter.together else 2 ** int(counter.features.sum())


def _check_patterns(model: MissMDP, learner: CountingEstimator) -> None:
    """Raise `DataError` if a learner counts too many patterns, before any table of them is made."""
    structure = learner.structure(model.space.features, _goes_missing(model))
    for counter in (*structure.counters, *structure.sentinels):
        n_patterns = _count_patterns(counter)
        if n_patterns > _MOST_PATTERNS:
            raise DataError(
                f"{counter.features.sum()} features go missing, which makes {n_patterns:,} patterns; at most "
                f"{_MOST_PATTERNS:,} can be planned for (AIMI counts each feature on its own)"
            )


def _off_by(model: MissMDP, learner: CountingEstimator) -> float:
    """Return how far M is from what the learner assumes, and warn if it is."""
    structure = learner.structure(model.space.features, _goes_missing(model))
    distance = distance_from_structure(model, structure.counters)
    if distance < _TOLERANCE:
        return 0.0
    warnings.warn(
        f"{type(learner).__name__} assumes {learner.assumes}, but this model's M is not so "
        f"({distance:.3g} away in total variation)",
        AssumptionWarning,
        stacklevel=3,
    )
    return distance


def _result(
    histories: int,
    deciding: VisitedGroup | None,
    model: MissMDP,
    learner: CountingEstimator,
    off_by: float,
    epsilon: float,
    confidence: float,
    episode_length: float,
) -> SampleSize:
    result = SampleSize(histories)
    result.assumes, result.off_by = learner.assumes, off_by
    result.model, result.epsilon, result.confidence = model, epsilon, confidence
    result.samples = deciding.needed if deciding else 0
    result.features = model.space.features.chosen(deciding.counter.features) if deciding else ()
    result.given = deciding.given if deciding else {}
    result.expected = deciding.expected if deciding else 0.0
    result.steps = histories * episode_length
    result.to_appear = deciding.to_appear if deciding else False
    return result


def _groups(
    model: MissMDP,
    learner: CountingEstimator,
    policy: MemorylessPolicy,
    epsilon: float,
    confidence: float,
    method: Method,
    horizon: int,
    *,
    total_variation: bool,
) -> tuple[list[VisitedGroup], float, float]:
    """Return the groups that need samples, the failure budget for the visits of each, and the mean length."""
    features, reachable = model.space.features, model.mdp.reachable
    missing = _goes_missing(model)
    structure = learner.structure(features, missing)
    counters = [*structure.counters, *structure.sentinels]
    grouped = [group_states(model.space, counter.given) for counter in counters]
    labels = [np.unique(label[reachable]) for _, label in grouped]
    n_groups = sum(len(label) for label in labels)
    if n_groups == 0:
        return [], 1.0, 1.0
    failure = (1.0 - confidence) / 2.0
    each = 1.0 - (1.0 - epsilon) ** (1.0 / len(counters))
    behaviour: Behaviour = "blind" if isinstance(policy, BlindPolicy) else "adaptive"
    coverage = behaviour_coverage(model, policy, horizon=horizon)
    visits = coverage.share * coverage.episode_length
    table = policy.table(model)
    groups: list[VisitedGroup] = []
    for i, (counter, (values, label), present) in enumerate(zip(counters, grouped, labels, strict=True)):
        sentinel = i >= len(structure.counters)
        n_patterns = _count_patterns(counter)
        needed = _needed(
            n_patterns,
            structure.hidden,
            each,
            failure / (structure.candidates * n_groups),
            method,
            behaviour,
            0.0 if sentinel else learner.smoothing,
            never_missing=sentinel,
            total_variation=total_variation or len(counters) > 1,
        )
        weights = model.missingness.probabilities * _counts_for(model, counter)
        counted = _with_actions(weights, table)
        for g in present:
            states = label == g
            expected = float((visits * counted.sum(axis=1))[states].sum())
            given = {
                name: features.values[j][values[g, j]]
                for j, name in enumerate(features.names)
                if counter.given[j]
            }
            if needed and expected == 0.0:
                raise DataError(
                    f"no number of histories is enough: under this policy nothing is ever learned of "
                    f"{', '.join(features.chosen(counter.features))} at "
                    + (", ".join(f"{name} = {value}" for name, value in given.items()) or "any state")
                )
            groups.append(VisitedGroup(counter, states, given, counted, needed, expected))
    groups = [group for group in groups if group.needed]
    for j in _must_appear(learner, features, missing, structure):
        weights = model.missingness.probabilities * ~model.missingness.patterns[:, j]
        counted = _with_actions(weights, table)
        counter = Counter(np.arange(len(features)) == j, np.zeros_like(missing), together=False)
        states = np.ones(len(model.space), dtype=np.bool_)
        expected = float(visits @ counted.sum(axis=1))
        groups.append(VisitedGroup(counter, states, {}, counted, 1, expected, to_appear=True))
        n_groups += 1
        if expected == 0.0:
            raise DataError(
                f"no number of histories is enough: under this policy {features.names[j]} never goes missing, though "
                "it can elsewhere"
            )
    return groups, failure / n_groups, coverage.episode_length


def _with_actions(weights: NDArray[np.float64], table: ActionTable) -> NDArray[np.float64]:
    """Return Σ_k weights(s, k) P(action | what k shows of s), shape (S, A), without one array of all three."""
    if len(table.probabilities) == 1:
        return weights.sum(axis=1)[:, None] * table.probabilities[0]
    total = np.zeros((len(weights), table.probabilities.shape[1]))
    for of_pattern, row in zip(weights.T, table.row.T, strict=True):
        total += of_pattern[:, None] * table.probabilities[row]
    return total


def _must_appear(
    learner: CountingEstimator, features: FeatureSpace, missing: NDArray[np.bool_], structure: Structure
) -> list[int]:
    """Return the features without whose missing values in the data the learner would form other groups."""

    def given(some: Structure) -> set[bytes]:
        return {counter.given.tobytes() for counter in some.counters}

    return [
        int(j)
        for j in np.flatnonzero(missing)
        if not given(learner.structure(features, missing & (np.arange(len(missing)) != j)))
        <= given(structure)
    ]


def _counts_for(model: MissMDP, counter: Counter) -> NDArray[np.bool_]:
    """Return under which patterns an observation counts, shape (K,)."""
    patterns = model.missingness.patterns
    counts: NDArray[np.bool_] = np.asarray(patterns[:, counter.given].all(axis=1))
    if counter.together:
        seen = patterns[:, counter.features].sum(axis=1)
        counts = counts & ((seen == 0) | (seen == counter.features.sum()))
    return counts


def _needed(
    n_patterns: int,
    hidden: int,
    epsilon: float,
    failure: float,
    method: Method,
    behaviour: Behaviour,
    smoothing: float,
    *,
    never_missing: bool,
    total_variation: bool,
) -> int:
    """Return the least number of samples with which a group's bound is at most ε, whatever is counted."""
    if n_patterns + hidden == 1:
        return 0

    def enough(n: int) -> bool:
        counts = np.stack([_evenly(n, 1, n_patterns)]) if never_missing else _widest(n, n_patterns, epsilon)
        estimate = ((counts + smoothing) / (n + n_patterns * smoothing)).astype(np.float64)
        limits = group_limits(counts, estimate, hidden, failure, method, behaviour)
        # Smoothing moves one-sided counts most.
        moved = (n_patterns - 1) * smoothing / (n + n_patterns * smoothing)
        width = limits.tv if total_variation else limits.radius(estimate)
        return float(width.max()) + moved <= epsilon

    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST_SAMPLES:
            raise DataError(f"more than {_MOST_SAMPLES:.0e} samples per group would be needed")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    # Odd and even numbers differ a little where the bounds are exact.
    return high if enough(high + 1) else high + 2


def _widest(n: int, n_patterns: int, epsilon: float) -> NDArray[np.int64]:
    """Return the samples at which bounds are widest: over all patterns evenly, or over two nearly so, shape (…, K).

    The farther end of an interval is farthest where ½ lies in the middle between it and the frequency.
    """
    counts = [_evenly(n, n_patterns, n_patterns)]
    if n_patterns > 1:
        for share in 0.5 - epsilon * np.linspace(0.0, 1.0, _SHARES):
            fewer = min(max(round(n * share), 0), n)
            counts.append(np.array([fewer, n - fewer] + [0] * (n_patterns - 2)))
    return np.stack(counts)


def _evenly(n: int, over: int, n_patterns: int) -> NDArray[np.int64]:
    """Return n samples spread over the first patterns, shape (K,)."""
    counts = np.zeros(n_patterns, dtype=np.int64)
    counts[:over] = n // over
    counts[: n % over] += 1
    return counts

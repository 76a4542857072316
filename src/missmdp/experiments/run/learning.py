"""What each learner makes of a log, and which features move what it learned."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from missmdp.data.coverage import behaviour_coverage
from missmdp.errors import AssumptionWarning
from missmdp.evaluation.distance import total_variation
from missmdp.experiments.run.result import Learned, Log, Problem
from missmdp.experiments.run.settings import Maker, RunSettings
from missmdp.learn.base import CountingEstimator, MissingnessEstimator
from missmdp.learn.groups import GroupCounts
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import MISSING

THRESHOLD = 0.05
"""Differences of P(missing) up to this are not worth an edge."""
_LEVEL = 0.01
"""The probability with which any edge at all is drawn where nothing depends on anything."""


class Learning:
    """Lets learners learn from one log.

    Parameters
    ----------
    problem
        What the log is of.
    settings
        How confident bounds are, and how whoever acted behaved.
    log
        The data.
    """

    def __init__(self, problem: Problem, settings: RunSettings, log: Log) -> None:
        self._problem = problem
        self._settings = settings
        self._dataset = log.dataset
        # What is true of a group is an average over its states: as random behaviour visits them, or all the same.
        self._weights = (
            behaviour_coverage(problem.truth).share
            if problem.truth is not None and log.simulated
            else np.ones(problem.mdp.n_states)
        )

    def learn(self, label: str, make: Maker) -> Learned:
        """Return what a learner learned, with bounds or intervals.

        Raises
        ------
        DataError
            If it cannot learn from such data.
        """
        problem, truth = self._problem, self._problem.truth
        with warnings.catch_warnings():
            # Kept in the learner, and told in the report.
            warnings.simplefilter("ignore", AssumptionWarning)
            learner = make().fit(self._dataset)
            settings = self._settings
            bound = learner.bound(
                settings.confidence, behaviour=settings.behaviour, seed=settings.seeds.learn
            )
        return Learned(
            label,
            learner,
            bound,
            MissMDP(problem.mdp, learner.missingness_, name=problem.name),
            None if truth is None else total_variation(learner.missingness_, truth),
            None if truth is None else learner.group_truths(bound, truth, self._weights),
        )


def learned_graph(
    learner: MissingnessEstimator, missing: Sequence[str]
) -> tuple[MissingnessGraph, float | None]:
    """Return the arrows that a learner's M has: those of its structure, or the larger effects in what was counted.

    Beside it is the effect from which on there is an arrow, or None where a structure has them. `missing` are the
    features that are missing in the data.
    """
    if learner.graph_ is not None:
        return learner.graph_, None
    edges = learned_edges(learner) if isinstance(learner, CountingEstimator) else []
    features = learner.missingness_.space.features.names
    return MissingnessGraph(edges, features=features, can_go_missing=missing), THRESHOLD


class _Contrast(NamedTuple):
    """How much more often a feature is missing at one value of another than at a second one."""

    parent: str
    child: str
    difference: float
    stderr: float


def learned_edges(learner: CountingEstimator, threshold: float = THRESHOLD) -> list[tuple[str, str]]:
    """Return (parent, child): the value of `parent` moves P(child missing) by more than the threshold.

    Two values of the parent are compared within groups of rows that agree in all else that the learner counts by, and
    the differences are averaged over these groups, weighted by n₁n₀/(n₁ + n₀) as Mantel and Haenszel do. Only groups
    with data count. An edge needs two values whose difference is above the threshold, and clear of chance over
    all comparisons together. What cancels out over groups is not seen.
    """
    contrasts = [contrast for part in learner.counts_ for contrast in _contrasts(part)]
    if not contrasts:
        return []
    clear = float(stats.norm.ppf(1.0 - _LEVEL / (2.0 * len(contrasts))))
    edges = {
        (contrast.parent, contrast.child)
        for contrast in contrasts
        if abs(contrast.difference) > max(threshold, clear * contrast.stderr)
    }
    order = learner.observation_counts_.mdp.space.features.names.index
    return sorted(edges, key=lambda edge: (order(edge[1]), order(edge[0])))


def _contrasts(part: GroupCounts) -> Iterator[_Contrast]:
    features = part.mdp.space.features
    seen = part.samples > 0
    values, samples = part.values[seen], part.samples[seen]
    for parent in part.given:
        place = features.position(parent)
        rest = values.copy()
        rest[:, place] = MISSING
        _, stratum = np.unique(features.rank(rest), return_inverse=True)
        at = _Strata(stratum.reshape(-1), values[:, place])
        for child in part.features:
            missing = part.counts[seen][:, ~part.patterns[:, features.position(child)]].sum(axis=1)
            for one, other in combinations(np.unique(values[:, place]).tolist(), 2):
                found = at.difference(samples, missing, one, other)
                if found is not None:
                    yield _Contrast(parent, child, *found)


class _Strata:
    """Groups by what they share, and by the value of one feature more."""

    def __init__(self, stratum: NDArray[np.int64], value: NDArray[np.signedinteger[Any]]) -> None:
        self._stratum = stratum
        self._value = value

    def difference(
        self, samples: NDArray[np.int64], missing: NDArray[np.int64], one: int, other: int
    ) -> tuple[float, float] | None:
        """Return the mean difference of rates between two values and its error, or None if no stratum has both."""
        here, there = self._value == one, self._value == other
        _, mine, theirs = np.intersect1d(
            self._stratum[here], self._stratum[there], assume_unique=True, return_indices=True
        )
        if not len(mine):
            return None
        n1, k1 = samples[here][mine], missing[here][mine]
        n0, k0 = samples[there][theirs], missing[there][theirs]
        weight = n1 * n0 / (n1 + n0)
        gap = weight @ (k1 / n1 - k0 / n0) / weight.sum()
        variance = weight**2 @ (_variance(k1, n1) + _variance(k0, n0))
        return float(gap), math.sqrt(variance) / float(weight.sum())


def _variance(count: NDArray[np.int64], total: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the variance of a frequency; one that is 0 or 1 by chance is not certain (two observations are added)."""
    share = (count + 1.0) / (total + 2.0)
    return share * (1.0 - share) / total

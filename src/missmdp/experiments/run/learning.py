"""What each learner makes of a log, beside the truth where that is known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.coverage import behaviour_coverage
from missmdp.errors import AssumptionWarning
from missmdp.evaluation.distance import total_variation
from missmdp.experiments.run.result import GroupTruth, Learned, Log, Problem
from missmdp.experiments.run.settings import Maker, RunSettings
from missmdp.learn.base import Estimator, MissingnessEstimator
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.em.estimator import DynamicsEM
from missmdp.learn.em.iterate import PenalisedFactors
from missmdp.learn.em.structures import Blocks, Factor
from missmdp.learn.groups import group_states
from missmdp.model.missmdp import MissMDP

__all__ = ["Learning", "factor_truths", "group_truths"]


def group_truths(
    groups: Sequence[GroupBound], truth: MissMDP, weights: NDArray[np.float64]
) -> list[GroupTruth]:
    """Return what is true of each group.

    Parameters
    ----------
    groups
        Groups with reachable states.
    truth
        The model with the true M.
    weights
        How often each state is visited, shape (S,).
    """
    parts: dict[tuple[Any, ...], _Part] = {}
    found: list[GroupTruth] = []
    for group in groups:
        key = (group.features, tuple(group.given), group.patterns.tobytes())
        if key not in parts:
            parts[key] = _Part(group, truth)
        found.append(parts[key].of(group, weights))
    return found


class _Part:
    """All groups that count the same patterns by the values of the same features."""

    def __init__(self, group: GroupBound, truth: MissMDP) -> None:
        features = truth.space.features
        given = features.mask(group.given)
        values, label = group_states(truth.space, given)
        shown = truth.missingness.patterns[:, features.mask(group.features)]
        match = (shown[:, None, :] == group.patterns[None]).all(axis=2)
        self._table = truth.missingness.probabilities @ match.astype(np.float64)
        self._members: dict[tuple[Any, ...], NDArray[np.int64]] = {}
        reachable = np.flatnonzero(truth.mdp.reachable)
        order = reachable[np.argsort(label[reachable], kind="stable")]
        numbers, starts = np.unique(label[order], return_index=True)
        for number, states in zip(numbers, np.split(order, starts[1:]), strict=True):
            codes = values[number]
            named = tuple(features.values[i][codes[i]] for i in map(features.position, group.given))
            self._members[named] = states

    def of(self, group: GroupBound, weights: NDArray[np.float64]) -> GroupTruth:
        states = self._members[tuple(group.given.values())]
        table, weight = self._table[states], weights[states]
        if not weight.sum() > 0.0:
            weight = np.ones(len(states))
        return GroupTruth(weight @ table / weight.sum(), table.min(axis=0), table.max(axis=0))


def factor_truths(learner: DynamicsEM, truth: MissMDP, weights: NDArray[np.float64]) -> list[GroupTruth]:
    """Return what is true of each group of the learner's bound, in the bound's order.

    A group may be one of states in which earlier indicators came out in a certain way; then it is the true
    probability given that they did.

    Parameters
    ----------
    learner
        Fitted; a structure without groups has none here.
    truth
        The model with the true M.
    weights
        How often each state is visited, shape (S,).
    """
    model = learner.fit_.model
    if not isinstance(model, PenalisedFactors):
        return []
    table = _over_blocks(truth, model.blocks)
    return [
        found for part in model.factors.parts for found in _truths(part, table, weights, truth.mdp.reachable)
    ]


def _over_blocks(truth: MissMDP, blocks: Blocks) -> NDArray[np.float64]:
    """Return the true P(pattern of the blocks | state), shape (K, S); patterns that split a block are left out."""
    places = truth.space.features.mask(blocks.features)
    own = truth.missingness
    match = (blocks.patterns[:, None, places] == own.patterns[None, :, places]).all(axis=2)
    return match.astype(np.float64) @ own.probabilities.T


def _truths(
    part: Factor, table: NDArray[np.float64], weights: NDArray[np.float64], reachable: NDArray[np.bool_]
) -> Iterator[GroupTruth]:
    outcomes = np.arange(part.n_outcomes)[:, None] == part.outcome[None, :]
    for group in np.unique(part.label[:, reachable]):
        inside = (part.label == group) & reachable[None, :]
        joint = outcomes.astype(np.float64) @ np.where(inside, table, 0.0)
        occurs = joint.sum(axis=0)
        states = np.flatnonzero(occurs > 0.0)
        if not len(states):
            # In truth the earlier indicators never come out like this.
            unknown = np.full(part.n_outcomes, np.nan)
            yield GroupTruth(unknown, unknown, unknown)
            continue
        given = (joint[:, states] / occurs[states]).T
        weight = weights[states] * occurs[states]
        if not weight.sum() > 0.0:
            weight = occurs[states]
        yield GroupTruth(weight @ given / weight.sum(), given.min(axis=0), given.max(axis=0))


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
        bound = self._bound(learner)
        return Learned(
            label,
            learner,
            bound,
            MissMDP(problem.mdp, learner.missingness_, name=problem.name),
            None if truth is None else total_variation(learner.missingness_, truth),
            None if truth is None else self._truths(learner, bound, truth),
        )

    def _bound(self, learner: Estimator) -> Bound:
        """Return how far off it may be: a bound where there is one, intervals of a bootstrap where not."""
        confidence = self._settings.confidence
        if isinstance(learner, DynamicsEM):
            return learner.bound(confidence, seed=self._settings.seeds.learn)
        assert isinstance(learner, MissingnessEstimator)
        return learner.bound(confidence, behaviour=self._settings.behaviour)

    def _truths(self, learner: Estimator, bound: Bound, truth: MissMDP) -> list[GroupTruth]:
        if isinstance(learner, DynamicsEM):
            return factor_truths(learner, truth, self._weights)
        return group_truths(bound.per_group, truth, self._weights)

"""What each learner makes of a log, beside the truth where that is known."""

from __future__ import annotations

import warnings

import numpy as np

from missmdp.data.coverage import behaviour_coverage
from missmdp.errors import AssumptionWarning
from missmdp.evaluation.distance import total_variation
from missmdp.experiments.run.result import Learned, Log, Problem
from missmdp.experiments.run.settings import Maker, RunSettings
from missmdp.model.missmdp import MissMDP

__all__ = ["Learning"]


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
        bound = learner.bound(settings.confidence, behaviour=settings.behaviour, seed=settings.seeds.learn)
        return Learned(
            label,
            learner,
            bound,
            MissMDP(problem.mdp, learner.missingness_, name=problem.name),
            None if truth is None else total_variation(learner.missingness_, truth),
            None if truth is None else learner.group_truths(bound, truth, self._weights),
        )

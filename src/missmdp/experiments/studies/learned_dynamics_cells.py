"""Cells of the study `dynamics`: what comes of a log alone, by JointEM, and by filling in its gaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.benchmarks.icu import ACTION_COST, INFECTION_PENALTY
from missmdp.benchmarks.predator import CATCH
from missmdp.data.dataset import Dataset
from missmdp.evaluation.distance import total_variation
from missmdp.evaluation.likelihood import log_likelihood
from missmdp.experiments.grid.cell import CellResult, Count, Finite, Share, Value
from missmdp.experiments.imputation.completing import METHODS
from missmdp.experiments.imputation.planning import PLANNERS
from missmdp.experiments.imputation.steps import counted_steps
from missmdp.experiments.reproduce.cells import (
    BenchmarkCell,
    Simulated,
    benchmark_model,
    benchmark_visits,
    evaluated,
    simulated_log,
)
from missmdp.experiments.studies.beyond import VALUE_EPISODES
from missmdp.learn.joint.estimator import JointEM
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.plan.stopping import Status, raise_if_interrupted


def _icu_reward(state: Any, action: str, after: Any) -> float:
    level: int = state.infection
    return -INFECTION_PENALTY[level] - ACTION_COST[action]


def _predator_reward(state: Any, action: str, after: Any) -> float:
    """Return what a step that ends in a catch earns; before the first step, all are off the board together."""
    caught, before = ((one.u, one.v) == (one.x, one.y) for one in (after, state))
    return CATCH if caught and not before else 0.0


REWARDS: dict[str, Callable[[Any, str, Any], float]] = {"icu": _icu_reward, "predator": _predator_reward}
"""Family of benchmarks → its reward as a function of state, action and next state."""


def reward_of(benchmark: str) -> Callable[[Any, str, Any], float]:
    """Return the reward that learners are told."""
    return REWARDS[benchmark.partition("-")[0]]


@lru_cache(maxsize=1)
def log_alone(benchmark: str, size: int, seed: int) -> Dataset:
    """Return a log of random behaviour without its model: features, actions, and which episodes ended."""
    log = simulated_log(benchmark, size, seed)
    return Dataset(
        None,
        log.observations,
        log.actions,
        log.offsets,
        log.terminated,
        behaviour=log.behaviour,
        feature_space=log.feature_space,
        action_names=log.action_names,
    )


def transition_distance(learned: FactoredMDP, truth: FactoredMDP, visits: NDArray[np.float64]) -> float:
    """Return the mean total variation between T̂(· | s, a) and T(· | s, a), with states as in `visits`.

    States are matched by their values; the learned MDP has all states of the truth, and may have more. Actions weigh
    the same, and terminal states nothing.
    """
    place = learned.space.find(truth.space.codes)
    assert (place >= 0).all(), "a state of the truth is missing"
    weights = np.where(truth.terminal, 0.0, visits)
    weights = weights / weights.sum()
    lifted = sparse.csr_array(
        (np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), learned.n_states)
    )
    own = [
        0.5 * np.asarray(abs(mine[place] - theirs @ lifted).sum(axis=1)).reshape(-1)
        for mine, theirs in zip(learned.transition, truth.transition, strict=True)
    ]
    return float(np.mean([weights @ one for one in own]))


def missingness_on(learned: MissingnessFunction, truth: MissMDP) -> MissingnessFunction:
    """Return a missingness function over the states of the truth, matched by their values."""
    place = learned.space.find(truth.space.codes)
    return MissingnessFunction(truth.space, learned.patterns, learned.probabilities[place])


class LearnedDynamics(Simulated):
    """What comes of learning everything from a log, and of solving what was learned."""

    tv: Share
    atv: Share
    gain: Finite
    """The log-likelihood minus that of the truth."""
    parameters: Count
    converged: bool
    fit_seconds: Finite
    """Processor time."""
    lower: Value
    upper: Value
    status: Status


@dataclass(frozen=True)
class LearnedDynamicsCell(BenchmarkCell, kind="learned-dynamics", version=2):
    """What JointEM makes of one log, and what its policy is worth."""

    size: int
    run: int
    data_seed: int
    evaluation_seed: int
    """The first of those of the episodes."""
    episodes: int
    """In all; each seed is for `VALUE_EPISODES` of them."""
    precision: float
    max_trials: int | None

    @property
    def seeds(self) -> list[int]:
        """The seeds of the episodes."""
        return [self.evaluation_seed + i for i in range(max(self.episodes // VALUE_EPISODES, 1))]

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"learned-dynamics-{self.benchmark}-{self.size}-{self.run:02d}"

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return LearnedDynamics

    def estimates_shape(self) -> tuple[int, int]:
        """Return the shape of the estimates."""
        return (len(self.seeds), self.episodes // len(self.seeds))

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return dynamics_seconds(self.benchmark, self.size)

    def work(self) -> CellResult:
        """Learn, solve the learned model, and evaluate in the true one."""
        truth = benchmark_model(self.benchmark)
        log = log_alone(self.benchmark, self.size, self.data_seed)
        learner = JointEM(
            discount=truth.mdp.discount, reward=reward_of(self.benchmark), threads=1, progress=False
        )
        began = time.process_time()
        learner.fit(log)
        seconds = time.process_time() - began
        true = log_likelihood(simulated_log(self.benchmark, self.size, self.data_seed), truth).total
        visits = benchmark_visits(self.benchmark)
        missingness = missingness_on(learner.missingness_, truth)
        solver = Sarsop(precision=self.precision, max_trials=self.max_trials, timeout=None, progress=False)
        result = solver.solve(learner.miss_mdp_)
        raise_if_interrupted(result.status)
        found = {
            "tv": transition_distance(learner.mdp_, truth.mdp, visits.share),
            "atv": total_variation(missingness, truth, visits=visits).average,
            "gain": learner.log_likelihood_ - true,
            "parameters": learner.n_parameters_,
            "converged": learner.converged_,
            "fit_seconds": seconds,
            "lower": result.lower,
            "upper": result.upper,
            "status": result.status,
        }
        return evaluated(result.policy, truth, found, self.seeds, self.episodes // len(self.seeds))


class Imputed(Simulated):
    """What comes of a policy learned from a completed log."""


@dataclass(frozen=True)
class ImputationCell(BenchmarkCell, kind="imputation", version=1):
    """What a policy is worth that was learned from one log, completed in one way."""

    method: str
    """Of `METHODS`."""
    planner: str
    """Of `PLANNERS`."""
    size: int
    run: int
    data_seed: int
    evaluation_seed: int
    episodes: int

    @property
    def seeds(self) -> list[int]:
        """The seeds of the episodes."""
        return [self.evaluation_seed]

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"imputation-{self.benchmark}-{self.method}-{self.planner}-{self.size}-{self.run:02d}"

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return Imputed

    def estimates_shape(self) -> tuple[int, int]:
        """Return the shape of the estimates."""
        return (1, self.episodes)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return imputation_seconds(self.method, self.planner, self.size)

    def work(self) -> CellResult:
        """Complete the log, learn from it, and evaluate in the true model."""
        truth = benchmark_model(self.benchmark)
        log = log_alone(self.benchmark, self.size, self.data_seed)
        filled = METHODS[self.method](log, self.data_seed)
        steps = counted_steps(filled.completed, reward_of(self.benchmark))
        planner = PLANNERS[self.planner]
        values = planner(steps, log.feature_space, truth.mdp.discount, self.data_seed)
        return evaluated(filled.policy(values), truth, {}, [self.evaluation_seed], self.episodes)


_SECONDS = {"icu": 20.0, "predator": 8.0, "predator-mcar": 60.0}
"""Family or benchmark → seconds of one core for a cell of JointEM with 10⁴ steps."""


def dynamics_seconds(benchmark: str, size: int) -> float:
    """Return how long a cell of JointEM may take on one core: solving takes no longer with more steps."""
    start = _SECONDS.get(benchmark) or _SECONDS[benchmark.partition("-")[0]]
    return start * (size / 10_000) ** 0.4


def imputation_seconds(method: str, planner: str, size: int) -> float:
    """Return how long a cell of an imputation may take on one core."""
    return 1.0 + (3e-5 * size if method == "multiple" else 0.0) + (6.0 if planner == "fitted" else 0.0)

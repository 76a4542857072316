"""The kinds of cells of the paper's experiments: what they do (learn, solve, evaluate), and how long it may take.

Cells of one kind differ in their fields alone. So another study, with seeds and learners of its own, is another list of
the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np

from missmdp.benchmarks.registry import load_benchmark
from missmdp.data.collect import collect
from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.data.coverage import Coverage, behaviour_coverage
from missmdp.data.dataset import Dataset
from missmdp.evaluation.distance import TotalVariation, total_variation
from missmdp.evaluation.value import evaluate
from missmdp.experiments.baselines import BaselineSettings, baseline_settings, make_baseline
from missmdp.experiments.grid.cell import Cell, CellResult, Count, Share, Value, each
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.learn.base import MissingnessEstimator
from missmdp.learn.registry import RegisteredLearner, find_learner, learners
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, fully_observed_model
from missmdp.model.policy import Policy
from missmdp.plan.sarsop.solver import Sarsop
from missmdp.plan.stopping import Status, raise_if_interrupted

TOLD = "+graph"
"""At the end of a learner's name: it is told the true m-graph."""
SCALE = ("random", "prior", "optimal")
"""Baselines that are made once and evaluated on the luck of every run, to be paired with what was learned."""


@lru_cache(maxsize=8)
def benchmark_model(benchmark: str) -> MissMDP:
    """Return a benchmark, built once per process."""
    return load_benchmark(benchmark)


@lru_cache
def benchmark_hash(benchmark: str) -> str:
    """Return the hash of a benchmark's model."""
    return model_hash(benchmark_model(benchmark))


@dataclass(frozen=True)
class BenchmarkCell(Cell):
    """What cells on a benchmark have in common."""

    benchmark: str

    def inputs(self) -> dict[str, str]:
        """Return a hash of the model, which may change under its name."""
        return {"model": benchmark_hash(self.benchmark)}


class Distances(TypedDict):
    """How far what a learner made of a dataset is from the truth."""

    atv: Share
    weighted: Share
    wtv: Share
    parameters: Count


@dataclass(frozen=True)
class LearningCell(BenchmarkCell, kind="learning", version=1):
    """Total variation of what learners make of one dataset."""

    learners: tuple[str, ...]
    size: int
    run: int
    """Which of the independent repetitions."""
    data_seed: int

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"learning-{self.benchmark}-{self.size}-{self.run:02d}"

    def found_type(self) -> Any:
        """Return the type of what is found, by learner."""
        return each(self.learners, Distances)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return _learning_seconds(self.size, _slow(self.learners))

    def work(self) -> CellResult:
        """Return average, visit-weighted and worst total variation by learner."""
        found: dict[str, Any] = {}
        for name in self.learners:
            learner = _fitted(name, self.benchmark, self.size, self.data_seed)
            distance = _distance(learner.missingness_, self.benchmark)
            found[name] = {
                "atv": distance.average,
                "weighted": distance.weighted,
                "wtv": distance.worst,
                "parameters": learner.n_parameters_,
            }
        return CellResult(found)


class Simulated(TypedDict):
    """What evaluating a policy tells besides its value."""

    returns: Value
    impossible: Count
    decisions: Count


class LearnedPolicy(Simulated):
    """What comes of solving a learned model."""

    lower: Value
    upper: Value
    status: Status
    vectors: Count
    atv: Share
    wtv: Share


class BaselinePolicy(Simulated):
    """What comes of making a baseline."""

    lower: Value | None
    upper: Value | None
    status: Status | None


@dataclass(frozen=True)
class ValueCell(BenchmarkCell, kind="value", version=1):
    """The policy of one learner from one dataset, and what it is worth."""

    policy: str
    """The learner."""
    size: int
    run: int
    data_seed: int
    evaluation_seed: int
    episodes: int
    precision: float
    max_trials: int | None
    timeout: float | None

    def label(self) -> str:
        """Return what it is in a few words."""
        return f"value-{self.benchmark}-{self.policy}-{self.size}-{self.run:02d}"

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return LearnedPolicy

    def estimates_shape(self) -> tuple[int, int]:
        """Return the shape of the estimates."""
        return (1, self.episodes)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        learning = _learning_seconds(self.size, _slow([self.policy]))
        return learning + _value_seconds(self.benchmark, self.max_trials, self.timeout, self.episodes)

    def work(self) -> CellResult:
        """Learn, solve the learned model, and evaluate in the true one."""
        truth = benchmark_model(self.benchmark)
        missingness = _fitted(self.policy, self.benchmark, self.size, self.data_seed).missingness_
        distance = _distance(missingness, self.benchmark)
        solver = Sarsop(
            precision=self.precision, max_trials=self.max_trials, timeout=self.timeout, progress=False
        )
        result = solver.solve(truth.with_missingness(missingness))
        raise_if_interrupted(result.status)
        found = {
            "lower": result.lower,
            "upper": result.upper,
            "status": result.status,
            "vectors": result.n_vectors,
            "atv": distance.average,
            "wtv": distance.worst,
        }
        return evaluated(result.policy, truth, found, [self.evaluation_seed], self.episodes)


@dataclass(frozen=True)
class BaselineCell(BenchmarkCell, kind="baseline", version=1):
    """A policy that needs no data, and what it is worth."""

    policy: str
    run: int
    """Which of several seeds; 0 for baselines that are made once."""
    fully_observed: bool
    """Whether nothing goes missing."""
    settings: BaselineSettings
    evaluation_seeds: tuple[int, ...]
    episodes: int
    """For each seed."""

    def label(self) -> str:
        """Return what it is in a few words."""
        missing = "-nothing-missing" if self.fully_observed else ""
        return f"baseline-{self.benchmark}-{self.policy}{missing}-{self.run:02d}"

    def parameters(self) -> dict[str, Any]:
        """Return what decides what comes out: of the settings, those of this baseline."""
        return super().parameters() | {"settings": baseline_settings(self.policy, self.settings)}

    def found_type(self) -> Any:
        """Return the type of what is found."""
        return BaselinePolicy

    def estimates_shape(self) -> tuple[int, int]:
        """Return the shape of the estimates."""
        return (len(self.evaluation_seeds), self.episodes)

    def expected_seconds(self) -> float:
        """Return how long it may take."""
        return _baseline_seconds(
            self.benchmark, self.policy, self.settings, self.episodes * len(self.evaluation_seeds)
        )

    def work(self) -> CellResult:
        """Make the policy and evaluate it, once for each seed."""
        model = benchmark_model(self.benchmark)
        if self.fully_observed:
            model = fully_observed_model(model)
        made = make_baseline(self.policy, model, self.settings, progress=False)
        raise_if_interrupted(made.status)
        found = {"lower": made.lower, "upper": made.upper, "status": made.status}
        return evaluated(made.policy, model, found, self.evaluation_seeds, self.episodes)


def learner_names() -> list[str]:
    """Return the names of the package's learners; with "+graph" those that can be told the true m-graph.

    A learner that was registered in this process alone is not among them: others, which do the work, do not know it.
    """
    known = [entry for entry in learners().values() if isinstance(entry.home, str)]
    return [
        *(entry.name for entry in known),
        *(f"{entry.name}{TOLD}" for entry in known if "graph" in entry.options),
    ]


def registered(name: str) -> RegisteredLearner:
    """Return the entry of a learner, told the m-graph or not."""
    return find_learner(name.removesuffix(TOLD))


def _fitted(name: str, benchmark: str, size: int, seed: int) -> MissingnessEstimator:
    """Return a learner that has learned from a dataset."""
    truth, entry = benchmark_model(benchmark), registered(name)
    learner = entry.make(truth.mdp, graph=truth.mgraph() if name.endswith(TOLD) else None)
    return learner.fit((simulated_log if entry.needs_histories else _counts)(benchmark, size, seed))


def _slow(names: Sequence[str]) -> int:
    """Return how many learners go through whole histories."""
    return sum(registered(name).needs_histories for name in names)


@lru_cache(maxsize=1)
def _counts(benchmark: str, size: int, seed: int) -> ObservationCounts:
    """Return the counts of a dataset, which cells that follow each other share."""
    return as_counts(_simulated(benchmark, size, seed))


@lru_cache(maxsize=1)
def simulated_log(benchmark: str, size: int, seed: int) -> Dataset:
    """Return a log of random behaviour, which cells that follow each other share."""
    return _simulated(benchmark, size, seed)


def _simulated(benchmark: str, size: int, seed: int) -> Dataset:
    return collect(benchmark_model(benchmark), size, seed=seed, threads=1, progress=False)


@lru_cache(maxsize=8)
def benchmark_visits(benchmark: str) -> Coverage:
    """Return how often random behaviour visits the states of a benchmark."""
    return behaviour_coverage(benchmark_model(benchmark))


def _distance(missingness: MissingnessFunction, benchmark: str) -> TotalVariation:
    return total_variation(missingness, benchmark_model(benchmark), visits=benchmark_visits(benchmark))


def evaluated(
    policy: Policy, model: MissMDP, found: dict[str, Any], seeds: Sequence[int], episodes: int
) -> CellResult:
    """Return what was found and what a policy is worth, with the episodes of each seed."""
    evaluations = [
        evaluate(policy, model, episodes, seed, control_variate=True, threads=1, progress=False)
        for seed in seeds
    ]
    for evaluation in evaluations:
        raise_if_interrupted(evaluation.status)
    found |= {
        "returns": float(np.mean([evaluation.returns.mean() for evaluation in evaluations])),
        "impossible": sum(evaluation.impossible for evaluation in evaluations),
        "decisions": int(sum(evaluation.decisions.sum() for evaluation in evaluations)),
    }
    return CellResult(found, np.stack([evaluation.estimates for evaluation in evaluations]))


@dataclass(frozen=True)
class _Speed:
    """Seconds of one core for a group of benchmarks, roughly: what the same work took on an ordinary machine."""

    solve: float
    """To a relative gap of 10⁻³; infinite where that takes longer than anyone waits."""
    trial: float
    """Per trial of solving a learned model."""
    prior_trial: float
    episode: float
    """Per evaluated episode of α-vectors."""
    pomcp: float
    """Per POMCP episode and tree query."""


_SPEEDS = {
    "icu": _Speed(solve=10.0, trial=0.25, prior_trial=0.7, episode=1e-3, pomcp=2e-4),
    "predator": _Speed(solve=8.0, trial=0.25, prior_trial=4.0, episode=5e-5, pomcp=2e-5),
    "predator-mcar": _Speed(solve=math.inf, trial=0.7, prior_trial=6.0, episode=2e-4, pomcp=5e-5),
}
_LONGEST = 300.0
"""Seconds to assume for solving that has no limit and does not get to its precision."""
_OBSERVATION, _EM_OBSERVATION = 5e-7, 1e-4
"""Seconds per observation: to simulate and count, and for a learner that uses whole histories."""
_PPO_STEP, _MEMORY_STEP = 4e-5, 8e-5
_PPO_EPISODE, _MEMORY_EPISODE = 2e-3, 3e-2


def _learning_seconds(size: int, slow: int) -> float:
    """Return how long simulating a dataset and learning from it may take; `slow` learners use whole histories."""
    return 0.02 + size * (_OBSERVATION + slow * _EM_OBSERVATION)


def _value_seconds(benchmark: str, trials: int | None, timeout: float | None, episodes: int) -> float:
    """Return how long solving a learned model and evaluating its policy may take."""
    speed = _speed(benchmark)
    return _solving(speed.solve, speed.trial, trials, timeout) + episodes * speed.episode


def _baseline_seconds(benchmark: str, policy: str, settings: BaselineSettings, episodes: int) -> float:
    """Return how long making a baseline and evaluating it may take."""
    speed = _speed(benchmark)
    match policy:
        case "pomcp":
            return episodes * settings.tree_queries * speed.pomcp
        case "ppo":
            return settings.ppo.steps * _PPO_STEP + episodes * _PPO_EPISODE
        case "ppo-memory":
            return settings.ppo_memory.steps * _MEMORY_STEP + episodes * _MEMORY_EPISODE
        case "random":
            return 0.1 * episodes * speed.episode
        case "prior":
            solve, trial = math.inf, speed.prior_trial
        case _:
            solve, trial = speed.solve, speed.trial
    solving = _solving(solve, trial, settings.max_trials, settings.solve_timeout)
    return solving + episodes * speed.episode


def _speed(benchmark: str) -> _Speed:
    family = benchmark.partition("-")[0]
    return _SPEEDS.get(benchmark) or _SPEEDS.get(family, _SPEEDS["icu"])


def _solving(to_precision: float, per_trial: float, trials: int | None, timeout: float | None) -> float:
    limits = (
        to_precision,
        math.inf if trials is None else trials * per_trial,
        math.inf if timeout is None else timeout,
    )
    return min(limits) if math.isfinite(min(limits)) else _LONGEST

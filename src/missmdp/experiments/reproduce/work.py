"""What a cell does: a cell in, numbers out. Runs in any process, on any machine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._version import __version__
from missmdp.data.collect import collect
from missmdp.data.counts import ObservationCounts, as_counts
from missmdp.errors import AssumptionWarning
from missmdp.evaluation.distance import total_variation
from missmdp.evaluation.value import evaluate
from missmdp.experiments.baselines import BaselineSettings, MadePolicy, make_baseline
from missmdp.experiments.reproduce.cells import SCALE, Cell, benchmark_model
from missmdp.experiments.reproduce.config import LEARNERS
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, fully_observed_model
from missmdp.model.policy import Policy
from missmdp.plan.ppo.settings import PPOSettings
from missmdp.plan.sarsop.solver import Sarsop

__all__ = ["CellResult", "run_cell"]


@dataclass(frozen=True, eq=False)
class CellResult:
    """What came out of a cell."""

    found: dict[str, Any]
    """Figures; the same whenever and wherever the cell runs, unless time is limited."""
    estimates: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """Of the value, one per run and episode, with the control variate; shape (runs, episodes)."""
    seconds: float = 0.0
    """Wall time."""
    version: str = __version__


def run_cell(cell: Cell) -> CellResult:
    """Return what comes out of a cell."""
    began = time.monotonic()
    with warnings.catch_warnings():
        # That a learner's assumption does not hold is what some cells are there to show.
        warnings.simplefilter("ignore", AssumptionWarning)
        result = {"learning": _learning, "value": _value, "baseline": _baseline}[cell.kind](cell)
    return CellResult(result.found, result.estimates, time.monotonic() - began)


def _learning(cell: Cell) -> CellResult:
    truth = benchmark_model(cell.benchmark)
    found: dict[str, Any] = {}
    for name in cell["learners"]:
        distance = total_variation(_learned(cell, name), truth.missingness)
        found[name] = {"atv": distance.average, "wtv": distance.worst}
    return CellResult(found)


def _learned(cell: Cell, learner: str) -> MissingnessFunction:
    return LEARNERS[learner]().fit(_counts(cell.benchmark, cell.size, cell.data_seed)).missingness_


@lru_cache(maxsize=1)
def _counts(benchmark: str, size: int, seed: int) -> ObservationCounts:
    """Return the counts of a dataset, which cells that follow each other share."""
    model = benchmark_model(benchmark)
    return as_counts(collect(model, size, seed=seed, threads=1, progress=False))


def _value(cell: Cell) -> CellResult:
    truth = benchmark_model(cell.benchmark)
    missingness = _learned(cell, cell.policy)
    distance = total_variation(missingness, truth.missingness)
    solver = Sarsop(
        precision=cell["precision"],
        max_trials=cell["max_trials"],
        timeout=cell["solve_timeout"],
        progress=False,
    )
    result = solver.solve(truth.with_missingness(missingness))
    _raise_if_interrupted(result.status)
    found = {
        "lower": result.lower,
        "upper": result.upper,
        "status": result.status,
        "vectors": result.policy.n_vectors,
        "atv": distance.average,
        "wtv": distance.worst,
    }
    return _evaluated(cell, result.policy, truth, found, runs=[cell.run], episodes=cell["episodes"])


def _baseline(cell: Cell) -> CellResult:
    model = benchmark_model(cell.benchmark)
    if cell.fully_observed:
        model = fully_observed_model(model)
    made = make_baseline(cell.policy, model, _settings_of(cell), progress=False)
    _raise_if_interrupted(made.status)
    runs = list(range(cell["value_runs"])) if cell.policy in SCALE else [cell.run]
    episodes = cell["episodes" if cell.policy in SCALE else f"{cell.policy.partition('-')[0]}_episodes"]
    return _evaluated(cell, made.policy, model, _made(made), runs=runs, episodes=episodes)


def _settings_of(cell: Cell) -> BaselineSettings:
    given = dict(cell.settings)
    if cell.policy == "pomcp":
        return BaselineSettings(tree_queries=given["tree_queries"])
    if cell.policy.startswith("ppo"):
        steps = given["ppo_steps"]
        return BaselineSettings(
            ppo=PPOSettings(steps=steps),
            ppo_memory=PPOSettings(steps=steps, memory=True),
            seed=cell.training_seed,
        )
    if cell.policy == "random":
        return BaselineSettings()
    trials = given[f"{cell.policy}_trials"]
    return BaselineSettings(
        precision=given["precision"], max_trials=trials, solve_timeout=given["baseline_timeout"]
    )


def _made(made: MadePolicy) -> dict[str, Any]:
    return {"lower": made.lower, "upper": made.upper, "status": made.status}


def _evaluated(
    cell: Cell, policy: Policy, model: MissMDP, found: dict[str, Any], *, runs: list[int], episodes: int
) -> CellResult:
    evaluations = [
        evaluate(
            policy,
            model,
            episodes,
            cell.evaluation_seed(run),
            control_variate=True,
            workers=1,
            progress=False,
        )
        for run in runs
    ]
    for evaluation in evaluations:
        _raise_if_interrupted(evaluation.status)
    found |= {
        "returns": float(np.mean([evaluation.returns.mean() for evaluation in evaluations])),
        "impossible": sum(evaluation.impossible for evaluation in evaluations),
        "decisions": int(sum(evaluation.decisions.sum() for evaluation in evaluations)),
    }
    return CellResult(found, np.stack([evaluation.estimates for evaluation in evaluations]))


def _raise_if_interrupted(status: str | None) -> None:
    """Raise what solvers and evaluations have caught: half a cell is no cell."""
    if status == "interrupted":
        raise KeyboardInterrupt

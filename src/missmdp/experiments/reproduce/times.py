"""How long cells may take, roughly: from what the same kind of work took on two cores of an ordinary machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from missmdp.experiments.baselines import BaselineSettings

__all__ = ["baseline_seconds", "learning_seconds", "value_seconds"]


@dataclass(frozen=True)
class _Speed:
    """Seconds of one core, for a group of benchmarks."""

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


def learning_seconds(size: int, slow: int) -> float:
    """Return how long simulating a dataset and learning from it may take; `slow` learners use whole histories."""
    return 0.02 + size * (_OBSERVATION + slow * _EM_OBSERVATION)


def value_seconds(benchmark: str, trials: int | None, timeout: float | None, episodes: int) -> float:
    """Return how long solving a learned model and evaluating its policy may take."""
    speed = _speed(benchmark)
    return _solving(speed.solve, speed.trial, trials, timeout) + episodes * speed.episode


def baseline_seconds(benchmark: str, policy: str, settings: BaselineSettings, episodes: int) -> float:
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

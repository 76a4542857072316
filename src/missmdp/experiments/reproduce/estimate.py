"""How long cells may take, roughly: from what the same kind of work took on two cores of an ordinary machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from missmdp.experiments.reproduce.cells import SCALE, Cell

__all__ = ["expected_seconds", "in_words"]


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
_OBSERVATION = 5e-7
"""Seconds per observation, to simulate and count."""
_PPO_STEP, _MEMORY_STEP = 4e-5, 8e-5
_PPO_EPISODE, _MEMORY_EPISODE = 2e-3, 3e-2


def expected_seconds(cell: Cell) -> float:
    """Return how long a cell may take on one core."""
    family = cell.benchmark.partition("-")[0]
    speed = _SPEEDS.get(cell.benchmark) or _SPEEDS.get(family, _SPEEDS["icu"])
    given = dict(cell.settings)
    if cell.kind == "learning":
        return 0.02 + cell.size * _OBSERVATION
    if cell.kind == "value":
        solving = _solving(speed.solve, speed.trial, given["max_trials"], given["solve_timeout"])
        return cell.size * _OBSERVATION + solving + given["episodes"] * speed.episode
    if cell.policy == "pomcp":
        return given["pomcp_episodes"] * given["tree_queries"] * speed.pomcp
    if cell.policy not in SCALE:
        step, episode = (
            (_MEMORY_STEP, _MEMORY_EPISODE) if "memory" in cell.policy else (_PPO_STEP, _PPO_EPISODE)
        )
        return given["ppo_steps"] * step + given["ppo_episodes"] * episode
    evaluating = given["episodes"] * given["value_runs"] * speed.episode
    if cell.policy == "random":
        return 0.1 * evaluating
    per_trial = speed.prior_trial if cell.policy == "prior" else speed.trial
    trials = given[f"{cell.policy}_trials"]
    solve = math.inf if cell.policy == "prior" else speed.solve
    return _solving(solve, per_trial, trials, given["baseline_timeout"]) + evaluating


def _solving(to_precision: float, per_trial: float, trials: int | None, timeout: float | None) -> float:
    limits = (
        to_precision,
        math.inf if trials is None else trials * per_trial,
        math.inf if timeout is None else timeout,
    )
    return min(limits) if math.isfinite(min(limits)) else _LONGEST


def in_words(seconds: float) -> str:
    """Return a time in words, in the unit that fits."""
    if seconds < 90.0:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400.0:
        return f"{round(seconds / 60)} min"
    if seconds < 172_800.0:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"

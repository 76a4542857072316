"""The paper's search space for PPO (App., tab:parameter-search), and how trials draw from it.

| hyperparameter | values | drawn |
|---|---|---|
| hidden layers | 2, 3, 4, 5 | uniformly |
| units per layer | 32, 64, 128, 256, 512 | uniformly |
| clip range | [0.1, 0.3] | uniformly |
| entropy coefficient | [10⁻⁴, 5 · 10⁻²] | log-uniformly |
| target KL divergence | [5 · 10⁻³, 3 · 10⁻²] | log-uniformly |
| actor's learning rate | [10⁻⁵, 3 · 10⁻⁴] | log-uniformly |
| critic's learning rate | [10⁻⁴, 3 · 10⁻³] | log-uniformly |
| minibatch | 32, 64, 128, 256 | uniformly |
| epochs per update | 5, 10, 20 | uniformly |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from missmdp.checks import checked_integer, checked_seed
from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["CHOICES", "INTERVALS", "fresh_seed", "sample_settings", "selection_seed", "training_seed"]

CHOICES = {
    "layers": (2, 3, 4, 5),
    "units": (32, 64, 128, 256, 512),
    "minibatch": (32, 64, 128, 256),
    "epochs": (5, 10, 20),
}
INTERVALS = {
    "clip_range": (0.1, 0.3),
    "entropy": (1e-4, 5e-2),
    "target_kl": (5e-3, 3e-2),
    "actor_learning_rate": (1e-5, 3e-4),
    "critic_learning_rate": (1e-4, 3e-3),
}
"""What is drawn from an interval: `clip_range` uniformly, the rest log-uniformly."""

_SETTINGS, _TRAINING, _SELECTION, _FRESH = range(4)
"""What a search draws for; each has a stream of its own."""


def sample_settings(
    seed: int, trial: int, *, steps: int = 1_000_000, memory: bool = False, horizon: int | None = None
) -> PPOSettings:
    """Return the hyperparameters of a trial, which depend on the seed and the trial's number alone.

    What the paper's table does not name is as in `PPOSettings`, but for learning rates, which stay what they are
    throughout: the paper speaks of no schedule.
    """
    random = np.random.default_rng(_sequence(seed, _SETTINGS, trial))
    drawn: dict[str, Any] = {name: int(random.choice(values)) for name, values in CHOICES.items()}
    drawn |= {name: _between(random, *ends, log=name != "clip_range") for name, ends in INTERVALS.items()}
    return PPOSettings(memory=memory, steps=steps, horizon=horizon, anneal=False, **drawn)


def training_seed(seed: int, trial: int) -> int:
    """Return the seed that a trial trains with."""
    return _number(_sequence(seed, _TRAINING, trial))


def selection_seed(seed: int) -> int:
    """Return the seed of the episodes in which all trials are evaluated, so they share their luck."""
    return _number(_sequence(seed, _SELECTION))


def fresh_seed(seed: int) -> int:
    """Return the seed of the episodes in which the winner is evaluated once more."""
    return _number(_sequence(seed, _FRESH))


def _sequence(seed: int, purpose: int, trial: int = 0) -> np.random.SeedSequence:
    return np.random.SeedSequence(
        checked_seed(seed), spawn_key=(purpose, checked_integer("the number of a trial", trial, least=0))
    )


def _number(sequence: np.random.SeedSequence) -> int:
    return int(sequence.generate_state(1, np.uint64)[0])


def _between(random: np.random.Generator, low: float, high: float, *, log: bool) -> float:
    if not log:
        return float(random.uniform(low, high))
    # Clipped for the last bit, which the exponential may round outwards.
    return min(high, max(low, math.exp(random.uniform(math.log(low), math.log(high)))))

"""What training returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["PPOResult", "TrainingCurve", "TrainingStatus"]

TrainingStatus = Literal["trained", "interrupted"]
"""Why training ended: all steps were made, or Ctrl-C."""


class TrainingCurve(NamedTuple):
    """Returns while training, a point after every round of episodes in which at least one ended."""

    steps: NDArray[np.int64]
    """Steps that had been made, shape (points,)."""
    returns: NDArray[np.float64]
    """Mean discounted return of the episodes that ended since the point before, shape (points,)."""
    episodes: NDArray[np.int64]
    """How many those were, shape (points,)."""


@dataclass(frozen=True, eq=False)
class PPOResult:
    """A trained policy, and how it was trained."""

    policy: PPOPolicy
    curve: TrainingCurve
    """Returns of the policies that were tried on the way; they explore, and are not a value of the last one."""
    steps: int
    """Steps that were made: whole rounds, so a few more than asked for."""
    seconds: float
    """Training, without loading libraries and compiling kernels."""
    environment_seconds: float
    """The part of `seconds` that was spent in stepping the environments."""
    status: TrainingStatus
    settings: PPOSettings
    seed: int

    def __str__(self) -> str:
        end = "trained" if self.status == "trained" else "interrupted"
        speed = self.steps / self.seconds if self.seconds > 0.0 else 0.0
        text = f"{end} for {self.steps:,} steps in {self.seconds:.1f} s ({speed:,.0f} per second)"
        if len(self.curve.returns):
            text += f", return while training {self.curve.returns[-1]:.2f}".replace("-", "−")
        return text

    def __repr__(self) -> str:
        return f"PPOResult({self})"

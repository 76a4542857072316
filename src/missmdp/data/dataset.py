"""Logs of actions and incomplete observations: flat arrays and the offsets of episodes in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING

__all__ = ["Behaviour", "Dataset", "Step"]

NO_ACTION = -1
"""The code of "no action": the last observation of an episode is not acted on."""

Behaviour = Literal["blind", "adaptive"]
"""Whether the policy that made a log never reacts to observations, or may."""

Step = tuple[Any, Any]
"""An observation and the action that followed it, or None."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Histories z⁽⁰⁾ a⁽⁰⁾ z⁽¹⁾ a⁽¹⁾ …, one after the other.

    Parameters
    ----------
    mdp
        The MDP whose features and actions the codes stand for.
    observations
        Codes with `MISSING`, shape (N, n).
    actions
        Codes, −1 at the last observation of an episode, shape (N,).
    offsets
        Episode e is rows offsets[e] .. offsets[e + 1], shape (E + 1,).
    terminated
        Whether an episode ended in a terminal state (rather than being cut), shape (E,).
    states
        The true states (indices), where a simulation kept them, shape (N,).
    seed
        The seed of the simulation, if there was one.
    behaviour
        Whether the log comes from a policy that does not react to observations ("blind") or may
        ("adaptive"); None where nobody knows. Bounds on what is learned depend on it.
    """

    mdp: FactoredMDP
    observations: NDArray[np.integer[Any]]
    actions: NDArray[np.integer[Any]]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    states: NDArray[np.int32] | None = None
    seed: int | None = None
    behaviour: Behaviour | None = None

    def __post_init__(self) -> None:
        n_steps, n_features = len(self.observations), len(self.mdp.space.features)
        if self.observations.shape != (n_steps, n_features):
            raise DataError(
                f"observations must have shape (steps, {n_features}), got {self.observations.shape}"
            )
        if self.actions.shape != (n_steps,) or (self.states is not None and self.states.shape != (n_steps,)):
            raise DataError(f"actions and states must have one entry for each of the {n_steps} observations")
        if (
            len(self.offsets) != len(self.terminated) + 1
            or self.offsets[0] != 0
            or self.offsets[-1] != n_steps
            or (np.diff(self.offsets) < 1).any()
        ):
            raise DataError(
                "offsets must rise from 0 to the number of observations, one step per episode at least"
            )
        for array in (self.observations, self.actions, self.offsets, self.terminated, self.states):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return self.n_steps

    def __repr__(self) -> str:
        return (
            f"Dataset({self.n_steps:,} observations in {self.n_episodes:,} episodes of "
            f"{', '.join(self.mdp.space.features.names)})"
        )

    @property
    def n_steps(self) -> int:
        """The number of observations."""
        return len(self.observations)

    @property
    def n_episodes(self) -> int:
        """The number of episodes."""
        return len(self.terminated)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Observations per episode, shape (E,)."""
        return np.diff(self.offsets)

    @property
    def observed(self) -> NDArray[np.bool_]:
        """The paper's r: which features each observation shows, shape (N, n)."""
        return self.observations != MISSING

    @property
    def rewards(self) -> NDArray[np.float64]:
        """ρ(s, a) of each step, 0 where no action was taken, shape (N,); needs the true states."""
        if self.states is None:
            raise DataError("rewards depend on the true states, which this dataset has not kept")
        taken = self.actions != NO_ACTION
        return np.where(taken, self.mdp.reward[self.states, np.where(taken, self.actions, 0)], 0.0)

    def missing_rates(self) -> dict[str, float]:
        """Return feature → share of observations in which it is missing."""
        columns = zip(self.mdp.space.features.names, self.observations.T, strict=True)
        return {name: float(np.count_nonzero(column == MISSING)) / self.n_steps for name, column in columns}

    def always_observed(self) -> tuple[str, ...]:
        """Return Î_always: the features that are never missing in these data."""
        return tuple(name for name, rate in self.missing_rates().items() if rate == 0.0)

    def episode(self, index: int) -> list[Step]:
        """Return one episode as (observation, action) pairs; the last action is None."""
        index = range(self.n_episodes)[index]
        return list(self._steps(int(self.offsets[index]), int(self.offsets[index + 1])))

    def episodes(self) -> Iterator[list[Step]]:
        """Yield every episode."""
        return (self.episode(index) for index in range(self.n_episodes))

    def _steps(self, start: int, stop: int) -> Iterator[Step]:
        decode = self.mdp.space.features.decode_observation
        for codes, action in zip(self.observations[start:stop], self.actions[start:stop], strict=True):
            yield decode(codes), None if action == NO_ACTION else self.mdp.actions[action]

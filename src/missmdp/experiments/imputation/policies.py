"""Policies without a model of gaps: they fill in what they see, and do what is best if that is the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.simulator import Simulation
from missmdp._kernels.table_episodes import run_carrying_episodes
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, seen_codes
from missmdp.errors import ModelError
from missmdp.experiments.imputation.steps import place_weights
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy
from missmdp.model.pomdp import POMDP
from missmdp.model.space import MISSING, FeatureSpace


class CarryingPolicy:
    """Acts as if what is missing had kept the value that it was last seen with.

    Parameters
    ----------
    features, actions
        What is seen, and what can be done.
    begins_with
        The codes of features that were not seen yet, shape (n,).
    values
        What an action in a state is worth; all combinations of values are states, the last feature changing
        fastest, shape (S, A).
    """

    def __init__(
        self,
        features: FeatureSpace,
        actions: Sequence[Any],
        begins_with: NDArray[np.integer[Any]],
        values: NDArray[np.float64],
    ) -> None:
        self.features = features
        self.actions = tuple(actions)
        self.begins_with = np.array(begins_with, dtype=np.int64)
        self.action_of: NDArray[np.int64] = values.argmax(axis=1)

    def agent(self, model: MissMDP | None = None, *, seed: int | None = None) -> CarryingAgent:
        """Return a new agent; nothing is random."""
        return CarryingAgent(self)

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model; see `BulkPolicy`."""
        if not isinstance(model, MissMDP) or (model.space.features, tuple(model.actions)) != (
            self.features,
            self.actions,
        ):
            raise ModelError("the policy has other features or actions than the model")
        codes, weights = seen_codes(model).astype(np.int64), place_weights(self.features)

        def run(first: int, count: int) -> Episodes:
            out = empty_episodes(count)
            done = run_carrying_episodes(
                simulation,
                codes,
                self.begins_with,
                weights,
                self.action_of,
                words,
                first,
                horizon,
                model.discount,
                out.outcomes,
            )
            return out.first(done)

        return EpisodeRunner(run, task=256)


class CarryingAgent:
    """An agent that remembers the last value seen of each feature."""

    def __init__(self, policy: CarryingPolicy) -> None:
        self._policy = policy
        self._values = policy.begins_with

    def reset(self, observation: Any) -> Any:
        """Start an episode with its first observation and return the first action."""
        self._values = self._policy.begins_with
        return self.step(observation)

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation."""
        codes = np.array(self._policy.features.encode_observation(observation))
        self._values = np.where(codes == MISSING, self._values, codes)
        place = int(place_weights(self._policy.features) @ self._values)
        return self._policy.actions[self._policy.action_of[place]]


class CompletedPolicy(MemorylessPolicy):
    """Completes the current observation, in one or several ways, and does what is best on average over these.

    Parameters
    ----------
    features, actions
        What is seen, and what can be done.
    filled
        The completed codes of all combinations of values and gaps, in the order of their ranks, shape (Z, m, n).
    values
        As in `CarryingPolicy`.
    """

    def __init__(
        self,
        features: FeatureSpace,
        actions: Sequence[Any],
        filled: NDArray[np.integer[Any]],
        values: NDArray[np.float64],
    ) -> None:
        self.features = features
        self.actions = tuple(actions)
        places = filled.astype(np.int64) @ place_weights(features)
        self.action_of: NDArray[np.int64] = values[places].mean(axis=1).argmax(axis=1)

    def probabilities(self, observation: Any, model: MissMDP) -> NDArray[np.float64]:
        """Return 1 for the best action, shape (A,)."""
        codes = np.array([self.features.encode_observation(observation)])
        chosen = self.actions[self.action_of[self.features.rank(codes)[0]]]
        return np.eye(model.n_actions)[model.mdp.action_index(chosen)]

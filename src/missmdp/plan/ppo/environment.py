"""The environments that stable-baselines3 trains in: all are stepped by one kernel call."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.network import (
    GOING_ON,
    TRUNCATED,
    Frames,
    begin_episodes,
    running_places,
    step_episodes,
)
from missmdp.data.simulation import compile_simulation, seen_codes
from missmdp.model.missmdp import MissMDP
from missmdp.plan.ppo.encoding import Encoder
from missmdp.plan.ppo.extra import require

__all__ = ["Environments"]

_VecEnv: Any = require("stable_baselines3.common.vec_env").VecEnv
_spaces: Any = require("gymnasium.spaces")


class Environments(_VecEnv):
    """Episodes of one miss-MDP, side by side, as a stable-baselines3 `VecEnv`; inputs are weighted by their recency.

    Where an episode ends, the next one begins in the same step, and the `info` of its place carries
    "terminal_observation", "TimeLimit.truncated" and "episode" (r: the discounted return, not scaled; l: its
    decisions); the other infos are empty. Episodes are numbered in the order in which they begin and draw with
    `episode_key(words, number)`.

    Parameters
    ----------
    model
        The miss-MDP.
    encoder
        How observations become inputs.
    n
        How many episodes run side by side.
    horizon
        The most decisions per episode.
    words
        The seed as `seed_words` gives it.
    reward_scale
        What rewards are divided by.
    """

    def __init__(
        self,
        model: MissMDP,
        encoder: Encoder,
        n: int,
        *,
        horizon: int,
        words: NDArray[np.uint64],
        reward_scale: float,
    ) -> None:
        self._simulation = compile_simulation(model)
        self._frames: Frames = encoder.frames_of(seen_codes(model))
        self.recency = encoder.recency()
        self._words = words
        self._horizon = horizon
        self._discount = model.discount
        self._reward_scale = reward_scale
        self._running = running_places(n)
        self._inputs = np.zeros((n, encoder.size), dtype=np.float32)
        self._actions = np.zeros(n, dtype=np.int64)
        self._rewards = np.zeros(n)
        self._ends = np.zeros(n, dtype=np.int8)
        self._last = np.zeros_like(self._inputs)
        self._totals = np.zeros(n)
        self._lengths = np.zeros(n, dtype=np.int64)
        self._infos: list[dict[str, Any]] = [{} for _ in range(n)]
        self._next_episode = 0
        self.returns: list[float] = []
        """The discounted returns of all episodes that have ended; to be emptied by who reads it."""
        self.seconds = 0.0
        """Time spent in stepping."""
        low = 0.0 if encoder.encoding == "one-hot" else -1.0
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            n,
            _spaces.Box(low, 1.0, (encoder.size,), np.float32),
            _spaces.Discrete(model.n_actions),
        )

    @property
    def states(self) -> NDArray[np.int64]:
        """The current state in every place, as an index; a copy."""
        return self._running.state.copy()

    def reset(self) -> NDArray[np.float32]:
        """Begin a new episode in every place."""
        begin_episodes(
            self._simulation, self._frames, self._words, self._next_episode, self._running, self._inputs
        )
        self._next_episode += self.num_envs
        return self._inputs * self.recency

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take note of the actions."""
        self._actions[:] = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], list[dict[str, Any]]]:
        """Make the decisions; return inputs, scaled rewards, which episodes ended, and infos."""
        started = time.perf_counter()
        self._next_episode = step_episodes(
            self._simulation,
            self._frames,
            self._words,
            self._next_episode,
            self._horizon,
            self._discount,
            self._actions,
            self._running,
            self._inputs,
            self._rewards,
            self._ends,
            self._last,
            self._totals,
            self._lengths,
        )
        ended = self._ends != GOING_ON
        infos = self._infos
        if ended.any():
            infos = list(infos)
            for i in np.flatnonzero(ended):
                infos[i] = self._ended(int(i))
        answer = (self._inputs * self.recency, self._rewards / self._reward_scale, ended, infos)
        self.seconds += time.perf_counter() - started
        return answer

    def _ended(self, i: int) -> dict[str, Any]:
        self.returns.append(float(self._totals[i]))
        return {
            "terminal_observation": self._last[i] * self.recency,
            "TimeLimit.truncated": bool(self._ends[i] == TRUNCATED),
            "episode": {"r": float(self._totals[i]), "l": int(self._lengths[i])},
        }

    def make_ready(self) -> None:
        """Compile the kernels, so that it does not count as training."""
        self.reset()
        self.step(np.zeros(self.num_envs, dtype=np.int64))
        self._next_episode = 0
        self.returns.clear()
        self.seconds = 0.0

    def close(self) -> None:
        """Nothing to do."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute once per place."""
        value = None if attr_name == "render_mode" else getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Places have no attributes of their own."""
        raise AttributeError(f"{attr_name!r} cannot be set: the environments are one array")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> Any:
        """Places have no methods of their own."""
        raise AttributeError(f"{method_name!r} cannot be called: the environments are one array")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return that nothing is wrapped."""
        return [False for _ in self._get_indices(indices)]

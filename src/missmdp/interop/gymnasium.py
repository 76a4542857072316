"""A miss-MDP as a Gymnasium environment.

The benchmarks are registered when missmdp is imported: `gymnasium.make("missmdp/ICU-sMAR-v0")`. Gymnasium comes
with the extra `ppo`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.random import episode_key
from missmdp._kernels.simulator import first_state, next_state, seen_as
from missmdp.benchmarks.registry import load_benchmark
from missmdp.checks import checked_choice, checked_integer
from missmdp.data.simulation import compile_simulation, seed_words, seen_codes
from missmdp.errors import ModelError, ParameterError
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.space import MISSING
from missmdp.plan.ppo.extra import require

_gymnasium: Any = require("gymnasium")


class MissMDPEnv(_gymnasium.Env):
    """A miss-MDP in which some values are missing from observations.

    An observation has one integer per feature: the position of its value among the nᵢ values of the feature, or nᵢ,
    the last that the space allows, where it is missing. An action is the position of its name among the actions. The
    reward is ρ(s, a). An episode is terminated in a terminal state and truncated after `horizon` decisions.

    `info` has what an agent does not see: "state", the true state as a named tuple, and "observed", which features
    were seen, as booleans. With `reset(seed=…)` everything repeats. Episodes that follow, without a seed, are
    numbered and draw as those of `collect` and `evaluate` do, so the same seed brings the same luck.

    Parameters
    ----------
    model
        The miss-MDP, or the name of a benchmark.
    horizon
        The most decisions per episode; by default L, after which less than 10⁻³ of discounted reward is left.
    fully_observed
        Whether nothing goes missing, whatever the model says.
    render_mode
        "ansi" for `render()` to return a line of text, in which what is missing stands in brackets.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        model: MissMDP | str,
        horizon: int | None = None,
        *,
        fully_observed: bool = False,
        render_mode: str | None = None,
    ) -> None:
        model = load_benchmark(model) if isinstance(model, str) else checked_model(model)
        if fully_observed:
            model = model.with_missingness(MissingnessFunction.fully_observed(model.mdp))
        checked_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self.model = model
        self.horizon: int = (
            model.mdp.horizon() if horizon is None else checked_integer("horizon", horizon, least=1)
        )
        self.render_mode = render_mode
        sizes = model.space.features.sizes
        self.observation_space: Any = _gymnasium.spaces.MultiDiscrete(sizes + 1)
        self.action_space: Any = _gymnasium.spaces.Discrete(model.n_actions)
        self._simulation = compile_simulation(model)
        self._seen_codes: NDArray[np.int64] = seen_codes(model).astype(np.int64)
        self._observations = np.where(self._seen_codes == MISSING, sizes, self._seen_codes)
        self._words: NDArray[np.uint64] | None = None
        self._next_episode = 0
        self._key = np.uint64(0)
        self._step: int | None = None
        self._state = 0
        self._seen = 0
        self._last_action: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Begin an episode; return its first observation, and info."""
        super().reset(seed=seed)  # pyright: ignore[reportUnknownMemberType]
        if seed is not None:
            self._words, self._next_episode = seed_words(seed)[1], 0
        if self._words is None:
            self._words = seed_words(int(self.np_random.integers(2**63)))[1]
        self._key = np.uint64(episode_key(self._words, self._next_episode))
        self._next_episode += 1
        self._step, self._last_action = 0, None
        self._state = first_state(self._simulation, self._key)
        self._seen = seen_as(self._simulation, self._key, 0, self._state, 0)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        """Take an action; return the next observation, the reward, whether terminated, whether truncated, and info."""
        if self._step is None:
            raise ModelError("the episode has not started: call reset first")
        if not self.action_space.contains(action):
            raise ParameterError("action", action, f"an integer from 0 to {self.model.n_actions - 1}")
        action = int(action)
        reward = float(self._simulation.reward[self._state, action])
        self._step += 1
        self._state = next_state(self._simulation, self._key, self._step, self._state, action)
        self._seen = seen_as(self._simulation, self._key, self._step, self._state, action)
        self._last_action = self.model.actions[action]
        terminated = bool(self._simulation.terminal[self._state])
        truncated = not terminated and self._step >= self.horizon
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> str | None:
        """Return the current step as a line of text, if `render_mode` is "ansi"."""
        if self.render_mode is None or self._step is None:
            return None
        codes = self._seen_codes[self._seen]
        cells = [
            f"{name} {f'[{value}]' if code == MISSING else value}"
            for name, value, code in zip(
                self.model.space.features.names, self.model.states[self._state], codes, strict=True
            )
        ]
        after = "" if self._last_action is None else f" after {self._last_action}"
        return f"step {self._step}{after}: {', '.join(cells)}"

    def decode(self, observation: Any) -> Any:
        """Return an observation as missmdp's agents take it: a named tuple of values, with None for missing."""
        if not self.observation_space.contains(observation):
            raise ParameterError("observation", observation, "one of this environment")
        features = self.model.space.features
        codes = np.where(observation == features.sizes, MISSING, observation)
        return features.decode_observation(codes)

    def _observation(self) -> NDArray[np.int64]:
        return self._observations[self._seen].copy()

    def _info(self) -> dict[str, Any]:
        return {
            "state": self.model.states[self._state],
            "observed": self._seen_codes[self._seen] != MISSING,
        }

"""Training with stable-baselines3: its PPO with a learning rate for each network, from the environments to arrays.

Importing this module loads torch.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

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
from missmdp.plan.ppo.policy import Layer
from missmdp.plan.ppo.settings import PPOSettings

_VecEnv: Any = require("stable_baselines3.common.vec_env").VecEnv
_spaces: Any = require("gymnasium.spaces")
torch: Any = require("torch")
# The first optimiser would load it, a second's work, while Ctrl-C waits for training to stop.
require("torch._dynamo")
_sb3: Any = require("stable_baselines3")
_policies: Any = require("stable_baselines3.common.policies")
_callbacks: Any = require("stable_baselines3.common.callbacks")
_logger: Any = require("stable_baselines3.common.logger")


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
        """Compile the kernels, so it does not count as training."""
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


class Trained(NamedTuple):
    """What one run left."""

    layers: list[Layer]
    steps: int
    seconds: float
    stopped: bool
    """Whether it ended before all steps were made."""
    curve: list[tuple[int, float, int]]
    """Steps so far, mean return of the episodes that ended since, and how many those were."""


class TwoRatePolicy(_policies.ActorCriticPolicy):
    """An actor and a critic that share nothing, in one Adam with a group of parameters for each."""

    def __init__(self, *args: Any, rates: tuple[float, float], **kwargs: Any) -> None:
        self._rates = rates
        super().__init__(*args, **kwargs)  # pyright: ignore[reportUnknownMemberType]

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)  # pyright: ignore[reportUnknownMemberType]
        actor = [*self.mlp_extractor.policy_net.parameters(), *self.action_net.parameters()]
        critic = [*self.mlp_extractor.value_net.parameters(), *self.value_net.parameters()]
        groups = [
            {"params": parameters, "lr": rate, "initial_lr": rate}
            for parameters, rate in zip((actor, critic), self._rates, strict=True)
        ]
        self.optimizer = self.optimizer_class(groups, **self.optimizer_kwargs)


class TwoRatePPO(_sb3.PPO):
    """PPO whose learning rates are those of the policy's groups, times the schedule, which begins at 1."""

    def _update_learning_rate(self, optimizers: Any) -> None:
        share = self.lr_schedule(self._current_progress_remaining)
        for group in optimizers.param_groups:
            group["lr"] = group["initial_lr"] * share


class _Stopped(Exception):  # noqa: N818 (not an error: what was asked for)
    """Training was asked to stop while the networks were changed."""


class _Watch(_callbacks.BaseCallback):
    """Keeps the curve, reports, and stops when asked to."""

    def __init__(
        self,
        environments: Environments,
        stop: Callable[[], bool],
        report: Callable[[int, float | None], None],
    ):
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._environments = environments
        self._stop = stop
        self._report = report
        self.curve: list[tuple[int, float, int]] = []
        self.stopped = False

    def _on_step(self) -> bool:
        self.stopped = self._stop()
        return not self.stopped

    def after_minibatch(self, *_: object) -> None:
        """Raise `_Stopped` if asked to stop; a round of many minibatches may take seconds."""
        if not self._on_step():
            raise _Stopped

    def _on_rollout_end(self) -> None:
        returns = self._environments.returns
        if returns:
            self.curve.append((self.num_timesteps, float(np.mean(returns)), len(returns)))
            returns.clear()
        self._report(self.num_timesteps, self.curve[-1][1] if self.curve else None)


def _falling(settings: PPOSettings) -> Callable[[float], float]:
    """Return the share of the learning rates by the share of steps that is left when a round has been simulated."""
    a_round = settings.environments * settings.rollout / settings.steps
    return lambda left: min(1.0, max(0.0, left + a_round))


def make_learner(environments: Environments, settings: PPOSettings, discount: float, seed: int) -> Any:
    """Return stable-baselines3's PPO with our settings."""
    units = [settings.units] * settings.layers
    learner = TwoRatePPO(
        TwoRatePolicy,
        environments,
        learning_rate=_falling(settings) if settings.anneal else 1.0,
        n_steps=settings.rollout,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=discount,
        gae_lambda=settings.trace,
        clip_range=settings.clip_range,
        ent_coef=settings.entropy,
        target_kl=settings.target_kl,
        policy_kwargs={
            "net_arch": {"pi": units, "vf": units},
            "rates": (settings.actor_learning_rate, settings.critic_learning_rate),
        },
        seed=seed,
        device="cpu",
    )
    # The default one makes a folder in the temporary directory, for every run.
    learner.set_logger(_logger.Logger(folder=None, output_formats=[]))
    return learner


def actor_layers(policy: Any, recency: NDArray[np.float32]) -> list[Layer]:
    """Return the actor of a stable-baselines3 policy as arrays, for inputs that are not weighted by their recency."""
    hidden = [module for module in policy.mlp_extractor.policy_net if isinstance(module, torch.nn.Linear)]
    first, *others = [
        Layer(
            np.array(module.weight.detach().numpy().T, dtype=np.float32, order="C"),
            np.array(module.bias.detach().numpy(), dtype=np.float32),
        )
        for module in (*hidden, policy.action_net)
    ]
    return [first._replace(weight=first.weight * recency[:, None]), *others]


def train(
    environments: Environments,
    settings: PPOSettings,
    *,
    discount: float,
    seed: int,
    stop: Callable[[], bool],
    report: Callable[[int, float | None], None],
) -> Trained:
    """Train in the environments until all steps are made or `stop()` says so."""
    with undisturbed():
        learner = make_learner(environments, settings, discount, seed)
        watch = _Watch(environments, stop, report)
        start = time.perf_counter()
        learner.policy.optimizer.register_step_post_hook(watch.after_minibatch)
        with suppress(_Stopped):
            learner.learn(settings.steps, callback=watch)
        seconds = time.perf_counter() - start
        layers = actor_layers(learner.policy, environments.recency)
        return Trained(layers, learner.num_timesteps, seconds, watch.stopped, watch.curve)


@contextmanager
def undisturbed() -> Generator[None, None, None]:
    """Put back what training changes for the whole process: global generators, and torch's number of threads."""
    python, legacy, own = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    # The networks are small: a second thread costs more than it brings.
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(own)
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(python)

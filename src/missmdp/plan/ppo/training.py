"""Training with stable-baselines3: its PPO with a learning rate for each network, from the environments to arrays.

Importing this module loads torch.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.ppo.environment import Environments
from missmdp.plan.ppo.extra import require
from missmdp.plan.ppo.policy import Layer
from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["Trained", "TwoRatePPO", "TwoRatePolicy", "actor_layers", "make_learner", "train", "undisturbed"]

torch: Any = require("torch")
_sb3: Any = require("stable_baselines3")
_policies: Any = require("stable_baselines3.common.policies")
_callbacks: Any = require("stable_baselines3.common.callbacks")
_logger: Any = require("stable_baselines3.common.logger")


class Trained(NamedTuple):
    """What one run left."""

    layers: list[Layer]
    steps: int
    seconds: float
    interrupted: bool
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
        self.interrupted = False

    def _on_step(self) -> bool:
        self.interrupted = self._stop()
        return not self.interrupted

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
        learner.learn(settings.steps, callback=watch)
        seconds = time.perf_counter() - start
        layers = actor_layers(learner.policy, environments.recency)
        return Trained(layers, learner.num_timesteps, seconds, watch.interrupted, watch.curve)


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

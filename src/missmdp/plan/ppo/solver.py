"""Train a policy by proximal policy optimisation."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_instance, checked_number, checked_seed
from missmdp.data.simulation import seed_words
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.plan.ppo.encoding import Encoder, n_frames
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings
from missmdp.plan.solving import PlanResult
from missmdp.plan.stopping import Stopwatch
from missmdp.progress import show_status
from missmdp.words import signed, significant

_log = logging.getLogger(__name__)
_MOST_GIGABYTES = 4.0
"""For what is kept of one round."""


class TrainingCurve(NamedTuple):
    """Returns while training, a point after every round of episodes in which at least one ended."""

    steps: NDArray[np.int64]
    """Steps that had been made, shape (points,)."""
    returns: NDArray[np.float64]
    """Mean discounted return of the episodes that ended since the point before, shape (points,)."""
    episodes: NDArray[np.int64]
    """How many those were, shape (points,)."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PPOResult(PlanResult):
    """A trained policy, and how it was trained. There are no bounds; `evaluate` says what the policy is worth."""

    policy: PPOPolicy
    """The policy; it does not need the extra `ppo`."""
    curve: TrainingCurve
    """Returns of the policies that were tried on the way; they explore, and are not a value of the last one."""
    steps: int
    """Steps that were made: whole rounds, so a few more than asked for."""
    environment_seconds: float
    """The part of `seconds` that was spent in stepping the environments."""
    settings: PPOSettings
    """How it was trained."""
    seed: int
    """With this seed the same policy comes again, on this machine."""

    def __str__(self) -> str:
        end = {"trained": "trained", "timeout": "stopped by timeout, trained"}.get(self.status, self.status)
        speed = self.steps / self.seconds if self.seconds > 0.0 else 0.0
        text = f"{end} for {self.steps:,} steps in {self.seconds:.1f} s ({speed:,.0f} per second)"
        if len(self.curve.returns):
            text += f", return while training {signed(self.curve.returns[-1], 2)}"
        return text


@dataclass(frozen=True, kw_only=True, repr=False)
class PPO(PPOSettings):
    """Trains a network by proximal policy optimisation, in simulated episodes: the paper's baseline PPO.

    It knows neither the model's probabilities nor the belief: it sees what an agent would see. Training is
    stable-baselines3's, in environments that are stepped together by one kernel; it needs the extra `ppo`. The same
    seed gives the same policy on one machine.

    Parameters
    ----------
    seed
        For everything random; None for a fresh one.
    timeout
        Stop training after so many seconds, with the policy so far; None for never. Loading libraries and compiling
        kernels do not count.
    progress
        Whether to show steps and returns while training; None for on a terminal only.

    All others are those of `PPOSettings`, and are documented there.

    Notes
    -----
    Rewards are divided by max |ρ| while training, so values are of moderate size; reported returns are not divided.
    Ctrl-C ends training with the policy so far.

    Deviation: the paper used Crux.jl. Here gradients are those of stable-baselines3: one loss with the critic's
    squared error weighted 0.5, clipped to norm 0.5 for both networks together; advantages are normalised per
    minibatch, GAE has λ = 0.95, and the epochs stop at 1.5 times `target_kl`. The paper does not say how it turns
    observations into numbers; `missmdp.plan.ppo.encoding` says what we do. The defaults are one setting for all
    benchmarks, where the paper searches 20 for each: minibatches are larger than in its search space, epochs fewer,
    and learning rates higher.
    """

    seed: int | None = None
    timeout: float | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None:
            self._set("seed", checked_seed(self.seed))
        if self.timeout is not None:
            self._set("timeout", checked_number("timeout", self.timeout, least=0.0, finite=False))

    @classmethod
    def from_settings(
        cls,
        settings: PPOSettings,
        *,
        seed: int | None = None,
        timeout: float | None = None,
        progress: bool | None = None,
    ) -> PPO:
        """Return a solver with saved settings."""
        checked_instance("settings", settings, PPOSettings, "PPOSettings")
        return cls(**_as_dict(settings), seed=seed, timeout=timeout, progress=progress)

    @property
    def settings(self) -> PPOSettings:
        """The hyperparameters alone."""
        return PPOSettings(**_as_dict(self))

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name != "progress" and getattr(self, field.name) != field.default
        ]
        return f"PPO({', '.join(changed)})"

    def solve(self, model: MissMDP) -> PPOResult:
        """Return a policy for a model, trained in simulated episodes of it."""
        model = checked_model(model)
        from missmdp.plan.ppo.training import Environments, train

        seed, words = seed_words(self.seed, training=True)
        encoder = self.encoder(model)
        _check_memory(self, encoder)
        environments = Environments(
            model,
            encoder,
            self.environments,
            horizon=model.mdp.horizon() if self.horizon is None else self.horizon,
            words=words,
            reward_scale=float(np.abs(model.mdp.reward).max()) or 1.0,
        )
        environments.make_ready()
        watch = Stopwatch(self.timeout)
        with watch.catch_interrupts(), show_status("PPO", enabled=self.progress) as say:
            trained = train(
                environments,
                self,
                discount=model.discount,
                seed=int(words[0] % np.uint64(2**32)),
                stop=lambda: watch.stopped_by is not None,
                report=lambda steps, value: say(_progress_text(steps, self.steps, value)),
            )
        stopped = trained.stopped or watch.interrupted
        steps, returns, episodes = zip(*trained.curve, strict=True) if trained.curve else ((), (), ())
        settings = self.settings
        result = PPOResult(
            policy=PPOPolicy(model.actions, trained.layers, encoder, settings=settings),
            curve=TrainingCurve(
                np.array(steps, dtype=np.int64),
                np.array(returns, dtype=np.float64),
                np.array(episodes, dtype=np.int64),
            ),
            steps=trained.steps,
            seconds=trained.seconds,
            environment_seconds=environments.seconds,
            status=(watch.stopped_by or "interrupted") if stopped else "trained",
            settings=settings,
            seed=seed,
        )
        _log.info("%s", result)
        return result

    def encoder(self, model: MissMDP) -> Encoder:
        """Return how the network sees a model."""
        if not self.memory:
            return Encoder(model.space.features, model.n_actions, self.encoding or "one-hot")
        frames = n_frames(model.discount) if self.frames is None else self.frames
        return Encoder(model.space.features, model.n_actions, self.encoding or "mixed", frames)


def _check_memory(settings: PPOSettings, encoder: Encoder) -> None:
    # What a round has seen is kept twice, once in the order in which it is gone through.
    gigabytes = 2 * settings.environments * settings.rollout * encoder.size * 4 / 1e9
    if gigabytes > _MOST_GIGABYTES:
        raise ModelError(
            f"a round of {settings.environments} · {settings.rollout} inputs of {encoder.size:,} numbers takes "
            f"{gigabytes:.1f} GB, more than {_MOST_GIGABYTES:g}; set fewer frames, environments, or a shorter rollout"
        )


def _progress_text(steps: int, of: int, value: float | None) -> str:
    text = f"{steps:,} of {of:,} steps ({100 * min(1.0, steps / of):.0f} %)"
    return text if value is None else f"{text}, return {significant(value)}"


def _as_dict(settings: PPOSettings) -> dict[str, Any]:
    return {field.name: getattr(settings, field.name) for field in fields(PPOSettings)}

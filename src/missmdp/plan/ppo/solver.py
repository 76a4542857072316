"""Train a policy by proximal policy optimisation."""

from __future__ import annotations

import logging
from dataclasses import asdict

import numpy as np

from missmdp.checks import checked_seed
from missmdp.data.simulation import seed_words
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.plan.ppo.encoding import Encoder, Encoding, n_frames
from missmdp.plan.ppo.policy import PPOPolicy
from missmdp.plan.ppo.result import PPOResult, TrainingCurve
from missmdp.plan.ppo.settings import PPOSettings
from missmdp.plan.sarsop.limits import Limits, Stop
from missmdp.progress import show_status

__all__ = ["PPO"]

_log = logging.getLogger(__name__)
_DEFAULTS = PPOSettings()
_MOST_GIGABYTES = 4.0
"""For what is kept of one round."""


class PPO:
    """Trains a network by proximal policy optimisation, in simulated episodes: the paper's baseline PPO.

    It knows neither the model's probabilities nor the belief: it sees what an agent would see. Training is
    stable-baselines3's, in environments that are stepped together by one kernel; it needs the extra `ppo`. The same
    seed gives the same policy on one machine.

    Parameters
    ----------
    memory
        Whether the network sees the last frames rather than the current observation alone.
    steps
        Decisions to train for, in all environments together; whole rounds are made, so that it may be a few more.
    layers, units
        Hidden layers, and units in each, of the actor and of the critic, which share none. Units are tanh.
    clip_range
        How far the new probability of an action may be from the old one before the objective is cut off, as a share.
    entropy
        Weight of the entropy of actions in the objective.
    target_kl
        Stop the epochs of a round when the policy has moved 1.5 times as far as this; None for never.
    actor_learning_rate, critic_learning_rate
        Adam's, each for its own network.
    anneal
        Whether both learning rates go down to 0 in a straight line over all steps.
    minibatch
        Decisions per step of Adam; divides environments · rollout.
    epochs
        How often a round's decisions are gone through.
    environments
        Episodes that are simulated side by side.
    rollout
        Decisions per environment and round.
    trace
        λ of generalised advantage estimation.
    frames
        How many frames there are with memory; None for `n_frames(discount)`, which is 148 for γ = 0.95.
    encoding
        "one-hot", "scaled" or "mixed", see `missmdp.plan.ppo.encoding`; None for "mixed" with memory and "one-hot"
        without.
    horizon
        The most decisions per episode while training; None for the model's L. What would come after is estimated by the
        critic, so that the policy is for the infinite horizon.
    seed
        For everything random; None for a fresh one.
    progress
        Whether to show steps and returns while training; None for on a terminal only.

    Notes
    -----
    Rewards are divided by max |ρ| while training, so that values are of moderate size; returns are reported as they
    are. Ctrl-C ends training with the policy so far.

    Deviation: the paper used Crux.jl. Here gradients are those of stable-baselines3: one loss with the critic's squared
    error weighted 0.5, clipped to norm 0.5 for both networks together; advantages are normalised per minibatch, GAE has
    λ = 0.95, and the epochs stop at 1.5 times `target_kl`. How the paper turns observations into numbers is not said;
    `missmdp.plan.ppo.encoding` says what we do. The defaults are one setting for all benchmarks, where
    the paper searches 20 for each: minibatches are larger than in its search space, epochs fewer, and learning rates
    higher.
    """

    def __init__(
        self,
        *,
        memory: bool = _DEFAULTS.memory,
        steps: int = _DEFAULTS.steps,
        layers: int = _DEFAULTS.layers,
        units: int = _DEFAULTS.units,
        clip_range: float = _DEFAULTS.clip_range,
        entropy: float = _DEFAULTS.entropy,
        target_kl: float | None = _DEFAULTS.target_kl,
        actor_learning_rate: float = _DEFAULTS.actor_learning_rate,
        critic_learning_rate: float = _DEFAULTS.critic_learning_rate,
        anneal: bool = _DEFAULTS.anneal,
        minibatch: int = _DEFAULTS.minibatch,
        epochs: int = _DEFAULTS.epochs,
        environments: int = _DEFAULTS.environments,
        rollout: int = _DEFAULTS.rollout,
        trace: float = _DEFAULTS.trace,
        frames: int | None = _DEFAULTS.frames,
        encoding: Encoding | None = _DEFAULTS.encoding,
        horizon: int | None = _DEFAULTS.horizon,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.settings = PPOSettings(
            memory=memory,
            steps=steps,
            layers=layers,
            units=units,
            clip_range=clip_range,
            entropy=entropy,
            target_kl=target_kl,
            actor_learning_rate=actor_learning_rate,
            critic_learning_rate=critic_learning_rate,
            anneal=anneal,
            minibatch=minibatch,
            epochs=epochs,
            environments=environments,
            rollout=rollout,
            trace=trace,
            frames=frames,
            encoding=encoding,
            horizon=horizon,
        )
        self.seed = None if seed is None else checked_seed(seed)
        self.progress = progress

    @classmethod
    def from_settings(
        cls, settings: PPOSettings, *, seed: int | None = None, progress: bool | None = None
    ) -> PPO:
        """Return a trainer with settings that were written down."""
        return cls(**asdict(settings), seed=seed, progress=progress)

    def __repr__(self) -> str:
        changed = {
            name: value for name, value in asdict(self.settings).items() if value != getattr(_DEFAULTS, name)
        }
        if self.seed is not None:
            changed["seed"] = self.seed
        return f"PPO({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def train(self, model: MissMDP) -> PPOResult:
        """Return a policy for a model, trained in simulated episodes of it."""
        model = checked_model(model)
        from missmdp.plan.ppo.environment import Environments
        from missmdp.plan.ppo.training import train

        settings = self.settings
        seed, words = seed_words(self.seed, training=True)
        encoder = self.encoder(model)
        _check_memory(settings, encoder)
        environments = Environments(
            model,
            encoder,
            settings.environments,
            horizon=model.mdp.horizon() if settings.horizon is None else settings.horizon,
            words=words,
            reward_scale=float(np.abs(model.mdp.reward).max()) or 1.0,
        )
        environments.make_ready()
        limits = Limits(None, None)
        with limits.catch_interrupts(), show_status("PPO", enabled=self.progress) as say:

            def report(steps: int, value: float | None) -> None:
                share = 100 * min(1.0, steps / settings.steps)
                text = f"{steps:,} of {settings.steps:,} steps ({share:.0f} %)"
                say(text if value is None else f"{text}, return {value:.4g}".replace("-", "−"))

            trained = train(
                environments,
                settings,
                discount=model.discount,
                seed=int(words[0] % np.uint64(2**32)),
                stop=lambda: _wants_to_stop(limits),
                report=report,
            )
        result = PPOResult(
            policy=PPOPolicy(model.actions, trained.layers, encoder, settings=settings),
            curve=TrainingCurve(
                np.array([steps for steps, _, _ in trained.curve], dtype=np.int64),
                np.array([value for _, value, _ in trained.curve], dtype=np.float64),
                np.array([episodes for _, _, episodes in trained.curve], dtype=np.int64),
            ),
            steps=trained.steps,
            seconds=trained.seconds,
            environment_seconds=environments.seconds,
            status="interrupted" if trained.interrupted else "trained",
            settings=settings,
            seed=seed,
        )
        _log.info("%s", result)
        return result

    solve = train

    def encoder(self, model: MissMDP) -> Encoder:
        """Return how the network sees a model."""
        settings = self.settings
        if not settings.memory:
            return Encoder(model.space.features, model.n_actions, settings.encoding or "one-hot")
        frames = n_frames(model.discount) if settings.frames is None else settings.frames
        return Encoder(model.space.features, model.n_actions, settings.encoding or "mixed", frames)


def _check_memory(settings: PPOSettings, encoder: Encoder) -> None:
    # What a round has seen is kept twice, once in the order in which it is gone through.
    gigabytes = 2 * settings.environments * settings.rollout * encoder.size * 4 / 1e9
    if gigabytes > _MOST_GIGABYTES:
        raise ModelError(
            f"a round of {settings.environments} · {settings.rollout} inputs of {encoder.size:,} numbers takes "
            f"{gigabytes:.1f} GB, more than {_MOST_GIGABYTES:g}; set fewer frames, environments, or a shorter rollout"
        )


def _wants_to_stop(limits: Limits) -> bool:
    try:
        limits.check()
    except Stop:
        return True
    return False

"""The hyperparameters of PPO: one frozen record from which `PPO` has its arguments; it goes to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from missmdp.checks import (
    checked_choice,
    checked_flag,
    checked_integer,
    checked_mapping,
    checked_number,
    checked_text,
)
from missmdp.errors import ModelError, ParameterError
from missmdp.plan.ppo.encoding import ENCODINGS, Encoding
from missmdp.words import did_you_mean


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """What a training run does.

    Parameters
    ----------
    memory
        Whether the network sees the last frames or only the current observation.
    steps
        Decisions to train for, in all environments together; rounded up to whole rounds.
    layers, units
        Hidden layers, and units in each, for actor and critic each. Units are tanh.
    clip_range
        How far the new probability of an action may be from the old one before the objective is cut off, as a share.
    entropy
        Weight of the entropy of actions in the objective.
    target_kl
        Stop the epochs of a round when the policy has moved 1.5 times as far as this; None for never.
    actor_learning_rate, critic_learning_rate
        Adam's learning rate for each network.
    anneal
        Whether both learning rates decrease linearly to 0 over all steps.
    minibatch
        Decisions per step of Adam; divides environments · rollout.
    epochs
        How many passes to make over a round's decisions.
    environments
        Episodes that are simulated in parallel.
    rollout
        Decisions per environment and round.
    trace
        λ of generalised advantage estimation.
    frames
        The number of frames with memory; None for `n_frames(discount)`, which is 148 for γ = 0.95.
    encoding
        "one-hot", "scaled" or "mixed", see `missmdp.plan.ppo.encoding`; None for "mixed" with memory and "one-hot"
        without.
    horizon
        The most decisions per episode while training; None for the model's L. The critic estimates what would
        follow, so the policy is for the infinite horizon.
    """

    memory: bool = False
    steps: int = 1_000_000
    layers: int = 2
    units: int = 64
    clip_range: float = 0.2
    entropy: float = 1e-3
    target_kl: float | None = 0.03
    actor_learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    anneal: bool = True
    minibatch: int = 1024
    epochs: int = 4
    environments: int = 32
    rollout: int = 128
    trace: float = 0.95
    frames: int | None = None
    encoding: Encoding | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "layers", "units", "minibatch", "epochs", "environments", "rollout"):
            self._set(name, checked_integer(name, getattr(self, name), least=1))
        for name in ("frames", "horizon"):
            if getattr(self, name) is not None:
                self._set(name, checked_integer(name, getattr(self, name), least=1))
        for name in ("clip_range", "actor_learning_rate", "critic_learning_rate"):
            self._set(name, checked_number(name, getattr(self, name), above=0.0))
        if self.target_kl is not None:
            self._set("target_kl", checked_number("target_kl", self.target_kl, above=0.0))
        self._set("entropy", checked_number("entropy", self.entropy, least=0.0))
        self._set("trace", checked_number("trace", self.trace, least=0.0, most=1.0))
        for name in ("memory", "anneal"):
            checked_flag(name, getattr(self, name))
        checked_choice("encoding", self.encoding, (*ENCODINGS, None))
        if self.frames is not None and not self.memory:
            raise ParameterError("frames", self.frames, "None without memory", "it is for memory=True")
        collected = self.environments * self.rollout
        if self.minibatch < 2 or collected % self.minibatch:
            expected = f"at least 2 and divide environments · rollout = {collected}"
            raise ParameterError("minibatch", self.minibatch, expected)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(PPOSettings)}, indent=1)

    @staticmethod
    def from_json(text: str) -> PPOSettings:
        """Return what `to_json` wrote; settings that are not named have their defaults."""
        try:
            given = json.loads(checked_text("text", text))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"settings are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ModelError(f"settings must be a JSON object, got {type(given).__name__}")
        return PPOSettings.from_dict(cast("dict[str, Any]", given))

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> PPOSettings:
        """Return settings from their names and values."""
        known = [field.name for field in fields(PPOSettings)]
        given = checked_mapping("given", given, "settings by name")
        for name in given:
            if name not in known:
                raise ModelError(
                    f"there is no setting {name!r}; the settings are {', '.join(known)}{did_you_mean(name, known)}"
                )
        return PPOSettings(**given)

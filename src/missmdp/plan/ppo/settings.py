"""The hyperparameters of PPO: one frozen record that can be written down as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from missmdp.checks import checked_integer
from missmdp.errors import ModelError
from missmdp.model.probabilities import number
from missmdp.plan.ppo.encoding import ENCODINGS, Encoding

__all__ = ["PPOSettings"]


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """What a training run does; `PPO` says what each of these means."""

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
            self._set(name, self._number(name, positive=True))
        self._set("entropy", self._number("entropy", positive=False))
        if self.target_kl is not None:
            self._set("target_kl", self._number("target_kl", positive=True))
        self._set("trace", self._number("trace", positive=False))
        if self.trace > 1.0:
            raise ModelError(f"trace must be at most 1, got {self.trace!r}")
        for name in ("memory", "anneal"):
            if not isinstance(getattr(self, name), bool):
                raise ModelError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.encoding is not None and self.encoding not in ENCODINGS:
            raise ModelError(
                f"encoding must be one of {', '.join(ENCODINGS)}, or None, got {self.encoding!r}"
            )
        if self.frames is not None and not self.memory:
            raise ModelError("frames= is for memory=True")
        collected = self.environments * self.rollout
        if self.minibatch < 2 or collected % self.minibatch:
            raise ModelError(
                f"minibatch must be at least 2 and divide environments · rollout = {collected}, got {self.minibatch}"
            )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _number(self, name: str, *, positive: bool) -> float:
        value = getattr(self, name)
        checked = number(value, name)
        if isinstance(value, bool) or not 0.0 <= checked < math.inf or (positive and checked == 0.0):
            least = "positive" if positive else "a number of at least 0"
            raise ModelError(f"{name} must be {least}, got {value!r}")
        return checked

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> PPOSettings:
        """Return what `to_json` wrote; settings that are not named have their defaults."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"settings are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ModelError(f"settings must be a JSON object, got {type(given).__name__}")
        return cls.from_dict(cast("dict[str, Any]", given))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PPOSettings:
        """Return settings from their names and values."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ModelError(f"there is no setting {unknown[0]!r}; the settings are {', '.join(known)}")
        return cls(**given)

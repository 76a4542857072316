"""What is deployed of a network policy: it keeps the frames and answers observations with actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.network import choose
from missmdp.errors import ModelError

if TYPE_CHECKING:
    from missmdp.plan.ppo.policy import PPOPolicy

__all__ = ["PPOAgent"]


class PPOAgent:
    """An agent that keeps what the network looks at, and draws from its action distribution.

    Observations are tuples or mappings of feature values with None or NaN for missing; a feature that a mapping
    leaves out is missing. Values that the policy does not know raise `ModelError` and leave the agent as it was.
    """

    def __init__(self, policy: PPOPolicy, random: np.random.Generator) -> None:
        self.policy = policy
        self._random = random
        self._inputs: NDArray[np.float32] = policy.encoder.blank()
        self._last: int | None = None

    def __repr__(self) -> str:
        return f"PPOAgent({self.policy!r})"

    @property
    def last_action(self) -> Any:
        """The action that was returned last, or None before the first."""
        return None if self._last is None else self.policy.actions[self._last]

    @property
    def probabilities(self) -> dict[Any, float]:
        """Action → the probability with which the last action was drawn."""
        if self._last is None:
            raise ModelError("the episode has not started: call reset first")
        return dict(zip(self.policy.actions, self.policy.probabilities(self._inputs).tolist(), strict=True))

    def reset(self, observation: Any) -> Any:
        """Start an episode with its first observation and return the first action."""
        return self._act(self.policy.seen(self.policy.encoder.blank(), observation))

    def step(self, observation: Any) -> Any:
        """Return the action after the next observation, which followed the last action."""
        if self._last is None:
            raise ModelError("the episode has not started: call reset first")
        return self._act(self.policy.seen(self._inputs, observation, self._last))

    def _act(self, inputs: NDArray[np.float32]) -> Any:
        self._inputs = inputs
        u: float = self._random.random()
        self._last = choose(self.policy.logits(inputs), u, self.policy.deterministic)
        return self.policy.actions[self._last]

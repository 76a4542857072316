"""What the network sees: observations and actions as numbers.

Without memory the input is the current observation. With memory it is the last frames, where a frame is an observation
and the action that led to it; frames before the start of an episode, and the action before the first observation, are
padded with the symbol for missing. The oldest frame comes first.

"one-hot" gives every feature one place per value and one more for missing, so exactly one of nᵢ + 1 numbers is 1;
an action likewise has one place per action and one for none. It is what we use without memory.

"scaled" gives every feature, and every action, one number: code/(nᵢ − 1), which lies in [0, 1], and −1 for missing. 148
frames of ICU are then 148 · (4 + 1) = 740 numbers, where "one-hot" would take 4,588.

"mixed" has scaled frames, and the current observation once more at the end, one-hot: 767 numbers. It is what we use
with memory, and learns far better than "scaled", since decisions hang on the current observation most.

While training, what was seen k steps ago is divided by k + 1 (`recency`), so hundreds of old numbers do not drown
the new ones. The weights that are learned are divided instead when training is over: the policy sees plain frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.network import Frames
from missmdp.checks import checked_choice, checked_instance, checked_integer, checked_number
from missmdp.model.probabilities import checked_discount
from missmdp.model.space import MISSING, FeatureSpace

Encoding = Literal["one-hot", "scaled", "mixed"]
ENCODINGS: tuple[Encoding, ...] = ("one-hot", "scaled", "mixed")


def n_frames(discount: float, precision: float = 1e-2) -> int:
    """Return how many frames matter: ⌊log_γ(ε(1 − γ))⌋, at least 1; 148 for γ = 0.95.

    Deviation: the paper rounds up and does not say what its ε is. No round ε gives its 148 that way: 10⁻² gives
    148.19. We take ε = 10⁻² and round down.
    """
    discount, precision = checked_discount(discount), checked_number("precision", precision, above=0.0)
    if discount == 0.0:
        return 1
    return max(1, math.floor((math.log(precision) + math.log1p(-discount)) / math.log(discount)))


@dataclass(frozen=True)
class Encoder:
    """Turns observations and actions into the network's input."""

    features: FeatureSpace
    n_actions: int
    encoding: Encoding
    frames: int | None = None
    """How many frames the input has; None for the current observation alone, without actions."""

    def __post_init__(self) -> None:
        checked_instance("features", self.features, FeatureSpace, "a FeatureSpace")
        checked_integer("n_actions", self.n_actions, least=1)
        checked_choice("encoding", self.encoding, ENCODINGS)
        if self.frames is not None:
            checked_integer("frames", self.frames, least=1)

    @property
    def frame_size(self) -> int:
        """The length of a frame."""
        if self.encoding == "one-hot":
            return self._one_hot_size + (0 if self.frames is None else self.n_actions + 1)
        return len(self.features) + (self.frames is not None)

    @property
    def size(self) -> int:
        """The length of the input."""
        return self.frame_size * (self.frames or 1) + (self._one_hot_size if self.encoding == "mixed" else 0)

    @property
    def _one_hot_size(self) -> int:
        return int(self.features.sizes.sum()) + len(self.features)

    def frames_of(self, codes: NDArray[np.integer[Any]]) -> Frames:
        """Return the numbers of observations, given as codes of shape (Z, n), and of all actions."""
        columns = _one_hot if self.encoding == "one-hot" else _scaled
        codes, sizes = np.asarray(codes, dtype=np.int64), self.features.sizes
        actions = np.append(np.arange(self.n_actions), MISSING)[:, None]
        action = columns(actions, np.array([self.n_actions]))
        if self.frames is None:
            action = action[:, :0].copy()
        nothing = columns(np.full((1, len(sizes)), MISSING), sizes)
        now = _one_hot(codes, sizes) if self.encoding == "mixed" else np.empty((len(codes), 0), np.float32)
        return Frames(columns(codes, sizes), action, np.concatenate([nothing[0], action[-1]]), now)

    def blank(self) -> NDArray[np.float32]:
        """Return the input before anything was seen, shape (D,)."""
        frames = self.frames_of(np.full((1, len(self.features)), MISSING))
        return np.concatenate([np.tile(frames.blank, self.frames or 1), frames.now[0]])

    def recency(self) -> NDArray[np.float32]:
        """Return what inputs are multiplied with while training, shape (D,)."""
        age = np.arange(self.frames or 1)[::-1]
        weights = np.ones(self.size, dtype=np.float32)
        weights[: len(age) * self.frame_size] = np.repeat(1.0 / (1.0 + age), self.frame_size)
        return weights


def _scaled(codes: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return codes of shape (rows, k) as one number each, shape (rows, k)."""
    scaled = np.where(codes == MISSING, -1.0, codes / np.maximum(sizes - 1, 1))
    return np.ascontiguousarray(scaled, dtype=np.float32)


def _one_hot(codes: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return codes of shape (rows, k) as sizeᵢ + 1 numbers each, one of which is 1."""
    out = np.zeros((len(codes), int(sizes.sum()) + len(sizes)), dtype=np.float32)
    first = np.cumsum(sizes + 1) - (sizes + 1)
    np.put_along_axis(out, first + np.where(codes == MISSING, sizes, codes), 1.0, axis=1)
    return out

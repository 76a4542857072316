"""The input of a network policy, from the words of its definition, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["network_input"]


def network_input(
    features: Mapping[str, Sequence[Any]],
    actions: Sequence[Any],
    encoding: str,
    frames: int | None,
    history: Sequence[Any],
) -> list[float]:
    """Return the input after a history z₀, a₀, z₁, …, z_t, where None in an observation is missing."""

    def number(value: Any, values: Sequence[Any], one_hot: bool = encoding == "one-hot") -> list[float]:
        place = len(values) if value is None else list(values).index(value)
        if one_hot:
            return [1.0 if k == place else 0.0 for k in range(len(values) + 1)]
        return [-1.0] if value is None else [place / (len(values) - 1) if len(values) > 1 else 0.0]

    def seen(observation: Sequence[Any], **how: bool) -> list[float]:
        return [
            x
            for value, values in zip(observation, features.values(), strict=True)
            for x in number(value, values, **how)
        ]

    now = seen(history[-1], one_hot=True) if encoding == "mixed" else []
    if frames is None:
        return seen(history[-1]) + now
    nothing = [None] * len(features)
    pairs = [(nothing, None)] * frames + [(history[0], None)]
    pairs += [(history[i + 1], history[i]) for i in range(1, len(history), 2)]
    return [x for z, a in pairs[-frames:] for x in (*seen(z), *number(a, actions))] + now

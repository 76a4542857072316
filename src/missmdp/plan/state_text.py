"""States and observations in words, for explanations and pictures."""

from __future__ import annotations

from typing import Any, cast

from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP


def full_text(label: Any, model: MissMDP | POMDP) -> str:
    """Return a state or observation with the names of its features, "?" for missing; other labels as they are."""
    if isinstance(model, MissMDP):
        named = zip(model.space.features.names, cast("tuple[Any, ...]", label), strict=True)
        return ", ".join(f"{name}={_value(value)}" for name, value in named)
    return short_text(label)


def short_text(label: Any) -> str:
    """Return a state or observation without names: the values of a tuple, "?" for missing."""
    if isinstance(label, tuple) and label:
        return ", ".join(_value(value) for value in cast("tuple[Any, ...]", label))
    return str(cast("object", label))


def _value(value: Any) -> str:
    return "?" if value is None else str(value)

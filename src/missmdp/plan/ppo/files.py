"""Saved network policies: one archive with the weights and what they look at."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError
from missmdp.model.archive import decode_values, encode_values, read_archive, write_archive
from missmdp.model.missmdp import named_damage
from missmdp.model.space import FeatureSpace
from missmdp.plan.ppo.encoding import ENCODINGS, Encoder
from missmdp.plan.ppo.policy import Layer, PPOPolicy
from missmdp.plan.ppo.settings import PPOSettings

__all__ = ["KIND", "load_policy", "save_policy"]

KIND = "PPO policy"


def save_policy(policy: PPOPolicy, path: str | Path) -> None:
    """Write a policy to a file."""
    encoder = policy.encoder
    meta: dict[str, Any] = {
        "features": [
            [name, encode_values(values, f"feature {name!r}")]
            for name, values in encoder.features.as_dict().items()
        ],
        "actions": encode_values(policy.actions, "actions"),
        "encoding": encoder.encoding,
        "frames": encoder.frames,
        "deterministic": policy.deterministic,
        "settings": None if policy.settings is None else asdict(policy.settings),
        "layers": len(policy.layers),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for i, layer in enumerate(policy.layers):
        arrays |= {f"weight_{i}": layer.weight, f"bias_{i}": layer.bias}
    write_archive(path, KIND, meta, arrays)


def load_policy(path: str | Path) -> PPOPolicy:
    """Return the policy in a file."""
    meta, arrays = read_archive(path, KIND)
    with named_damage(path):
        features = FeatureSpace(
            {
                str(name): decode_values(values, f"feature {name!r}")
                for name, values in cast("list[tuple[Any, Any]]", meta["features"])
            }
        )
        actions = decode_values(meta["actions"], "actions")
        encoding, frames = meta["encoding"], meta["frames"]
        if encoding not in ENCODINGS or not (frames is None or (type(frames) is int and frames > 0)):
            raise FormatError(f"its input is {encoding!r} with {frames!r} frames")
        deterministic = meta["deterministic"]
        if not isinstance(deterministic, bool):
            raise FormatError(f"deterministic is {deterministic!r}, not true or false")
        layers = [
            Layer(np.asarray(arrays[f"weight_{i}"]), np.asarray(arrays[f"bias_{i}"]))
            for i in range(meta["layers"])
        ]
        settings = meta["settings"]
        return PPOPolicy(
            actions,
            layers,
            Encoder(features, len(actions), encoding, frames),
            deterministic=deterministic,
            settings=None if settings is None else PPOSettings.from_dict(settings),
        )

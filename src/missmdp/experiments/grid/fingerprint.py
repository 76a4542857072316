"""Hashes of models: whether what is stored was made for the model at hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from missmdp.model.missmdp import MissMDP, model_parts
from missmdp.model.pomdp import POMDP


def content_hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what can be written as JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def model_hash(model: MissMDP | POMDP) -> str:
    """Return the SHA-256 of all that matters in a model: labels and numbers, not its name."""
    if isinstance(model, MissMDP):
        meta, arrays = model_parts(model)
        labels = msgspec.to_builtins(meta)
        del labels["name"]
    else:
        labels, arrays = _pomdp_parts(model)
    digest = hashlib.sha256(json.dumps(labels, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}{array.shape}".encode())
        # Whatever the width of integers, which differs between platforms.
        wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        digest.update(np.ascontiguousarray(wide).tobytes())
    return digest.hexdigest()


def _pomdp_parts(pomdp: POMDP) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    labels: dict[str, Any] = {
        name: list(map(repr, getattr(pomdp, name))) for name in ("states", "actions", "observations")
    }
    labels |= {"discount": pomdp.discount, "observe_initial": pomdp.observe_initial}
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(pomdp, name) for name in ("reward", "initial", "terminal")
    }
    for kind, matrices in (("transition", pomdp.transition), ("observation", pomdp.observation)):
        for a, matrix in enumerate(matrices):
            arrays |= {f"{kind}_{a}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    return labels, arrays

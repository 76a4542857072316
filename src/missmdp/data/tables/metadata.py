"""What a table says about itself: where it is from, in the metadata of its schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from missmdp._version import __version__
from missmdp.data.binning import Binning
from missmdp.data.dataset import Behaviour, Dataset
from missmdp.data.tables.sources import Part
from missmdp.errors import DataError
from missmdp.model.space import FeatureSpace

__all__ = ["TableMetadata", "read_metadata", "write_metadata"]

_KEY = b"missmdp"


class TableMetadata(NamedTuple):
    """What is known about how a log came about."""

    seed: int | None = None
    behaviour: Behaviour | None = None
    bins: dict[str, Binning] | None = None


def write_metadata(dataset: Dataset) -> dict[bytes, bytes]:
    """Return metadata for the schema of a table."""
    content = {
        "version": __version__,
        "seed": dataset.seed,
        "behaviour": dataset.behaviour,
        "bins": None if dataset.bins is None else {n: b.to_json() for n, b in dataset.bins.items()},
        "features_sha256": _digest(dataset.mdp.space.features),
    }
    return {_KEY: json.dumps(content).encode()}


def read_metadata(parts: Sequence[Part]) -> TableMetadata:
    """Return what all parts agree on; metadata that make no sense count as absent."""
    each = [_parsed(part.metadata) for part in parts]
    first = each[0]
    return TableMetadata(
        first.seed if len(each) == 1 else None,
        first.behaviour if all(one.behaviour == first.behaviour for one in each) else None,
        first.bins if all(one.bins == first.bins for one in each) else None,
    )


def _parsed(metadata: Mapping[bytes, bytes]) -> TableMetadata:
    try:
        found = json.loads(metadata.get(_KEY, b"{}"))
    except (ValueError, RecursionError):
        return TableMetadata()
    if not isinstance(found, dict):
        return TableMetadata()
    content = cast("dict[str, Any]", found)
    seed, behaviour = content.get("seed"), content.get("behaviour")
    return TableMetadata(
        seed if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 else None,
        behaviour if behaviour in ("blind", "adaptive") else None,
        _parsed_bins(content.get("bins")),
    )


def _parsed_bins(content: Any) -> dict[str, Binning] | None:
    if not isinstance(content, dict):
        return None
    try:
        return {name: Binning.from_json(value) for name, value in cast("dict[str, Any]", content).items()}
    except DataError:
        return None


def _digest(features: FeatureSpace) -> str:
    return hashlib.sha256(repr(list(features.as_dict().items())).encode(errors="replace")).hexdigest()

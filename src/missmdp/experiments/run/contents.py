"""What run.json holds: all that a run found, as plain numbers and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from missmdp._version import __version__
from missmdp.evaluation.sensitivity import SensitivityRow
from missmdp.experiments.run.cannot_know import cannot_know
from missmdp.experiments.run.contents_certificates import certificate_contents
from missmdp.experiments.run.contents_data import data_contents, model_contents
from missmdp.experiments.run.contents_diagnosis import diagnosis_contents
from missmdp.experiments.run.contents_learners import learner_contents, thinned
from missmdp.experiments.run.folder import KIND, RunIdentity
from missmdp.experiments.run.meaning import meaning
from missmdp.experiments.run.result import Baseline, RunResult, World

__all__ = ["SENSITIVITY", "run_contents", "sensitivity_rows", "value_rows"]

SENSITIVITY = ("what", "how", "size", "value", "stderr", "difference", "difference_stderr")
"""What is kept of each change of the model."""


def run_contents(result: RunResult, identity: RunIdentity) -> dict[str, Any]:
    """Return what run.json holds; apart from times it is the same for the same run, unless time ran out in it."""
    settings = result.settings
    found = {
        "kind": KIND,
        "version": __version__,
        "seed": settings.seed,
        "confidence": settings.confidence,
        "settings": identity.settings,
        "timings": result.timings,
        "model": model_contents(result.problem),
        "data": data_contents(result),
        "diagnosis": diagnosis_contents(result.reasons),
        "learners": learner_contents(result),
        "skipped": [{"label": label, "why": why} for label, why in result.skipped.items()],
        "recommended": {"label": result.recommendation.label, "why": result.recommendation.why},
        "baselines": [_baseline(baseline) for baseline in result.baselines.values()],
        "values": [_world(world, settings.confidence) for world in result.worlds.values()],
        "sensitivity": (
            None
            if result.sensitivity is None
            else {"label": result.recommendation.label, "rows": sensitivity_rows(result.sensitivity)}
        ),
        "certificates": certificate_contents(result),
        "meaning": meaning(result),
        "cannot_know": cannot_know(result),
    }
    return cast("dict[str, Any]", _plain(found))


def _plain(value: Any) -> Any:
    """Return what JSON can hold: Python's numbers, lists, and null for what is not finite."""
    match value:
        case Mapping():
            items = cast("Mapping[Any, Any]", value)
            return {str(key): _plain(item) for key, item in items.items()}
        case list() | tuple():
            return [_plain(item) for item in cast("list[Any]", value)]
        case np.generic():
            return _plain(value.item())
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def _baseline(baseline: Baseline) -> dict[str, Any]:
    search = baseline.result
    return {
        "name": baseline.name,
        "how": baseline.how,
        "lower": None if search is None else search.lower,
        "upper": None if search is None else search.upper,
        "status": None if search is None else search.status,
        "trace": None if search is None else thinned(search.trace),
    }


def _world(world: World, confidence: float) -> dict[str, Any]:
    evaluation = world.comparison[world.comparison.reference]
    return {
        "world": world.name,
        "episodes": min(each.episodes for each in world.comparison.evaluations.values()),
        "seed": evaluation.seed,
        "reference": world.comparison.reference,
        "horizon": evaluation.horizon,
        "truncation": evaluation.truncation,
        "status": evaluation.status,
        "control_variate": evaluation.controlled is not None,
        "rows": value_rows(world, confidence),
    }


def value_rows(world: World, confidence: float) -> list[dict[str, Any]]:
    """Return one row per policy: its value, its difference to the reference, and its normalised value."""
    rows: list[dict[str, Any]] = []
    for row in world.comparison.rows(confidence):
        name = row["policy"]
        scaled = world.normalised.get(name)
        low, high = (None, None) if scaled is None else scaled.interval(confidence)
        rows.append(
            {
                "policy": name,
                "kind": world.kinds[name],
                **{key: row[key] for key in ("value", "stderr", "low", "high", "episodes")},
                **{key: value for key, value in row.items() if key.startswith("difference")},
                "normalised": None if scaled is None else scaled.mean,
                "normalised_stderr": None if scaled is None else scaled.stderr,
                "normalised_low": low,
                "normalised_high": high,
                "impossible": world.comparison[name].impossible,
            }
        )
    return rows


def sensitivity_rows(found: Iterable[SensitivityRow]) -> list[dict[str, Any]]:
    """Return one row per change of the model: what it is, and what it does to the value."""
    return [{name: getattr(row, name) for name in SENSITIVITY} for row in found]

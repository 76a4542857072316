"""What run.json and the tables say about how far from optimal policies can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from missmdp.evaluation.certificate.value_interval import ValueInterval
from missmdp.experiments.run.result import Certified, RunResult

__all__ = ["CERTIFICATES", "certificate_contents", "certificate_rows"]

CERTIFICATES = (
    "learner",
    "certificate",
    "epsilon",
    "deploys",
    "taken",
    "vacuous",
    "for_comparison",
    "why_not",
)
"""The columns of the table."""


def certificate_contents(result: RunResult) -> list[dict[str, Any]]:
    """Return what is certain of each learner's policy, the recommended one first."""
    return [_contents(result, found) for found in result.certified.values()]


def _contents(result: RunResult, found: Certified) -> dict[str, Any]:
    certificate, loss = found.certificate, found.loss
    file = result.folder.learner(found.label, "certified.mmpolicy")
    if result.recommendation.label == found.label:
        file = result.folder.certified
    return {
        "label": found.label,
        "name": result.learned[found.label].name,
        "why_not": found.why_not,
        "found": None if certificate is None else certificate.to_dict(),
        "text": None if certificate is None else certificate.describe(),
        "halving": (
            certificate.samples_to_halve.describe()
            if certificate is not None and certificate.samples_to_halve is not None
            else None
        ),
        "loss": None
        if loss is None
        else {"mean": loss.mean, "stderr": loss.stderr, "episodes": loss.episodes},
        "contradicted": found.contradicted,
        "interval": _interval(found.interval),
        "file": result.folder.relative(file) if file.exists() else None,
    }


def _interval(found: ValueInterval | None) -> dict[str, Any] | None:
    """Return what a policy may be worth where nothing is certain."""
    if found is None:
        return None
    low, high = found.interval
    return {
        "low": low,
        "high": high,
        "median": found.median,
        "spread": float(found.values.std()),
        "draws": len(found.values),
        "confidence": found.confidence,
        "source": found.source,
        "text": found.describe(),
    }


def certificate_rows(found: Mapping[str, Certified]) -> list[dict[str, Any]]:
    """Return one row for each learner and kind of certificate; one alone where there is none."""
    rows: list[dict[str, Any]] = []
    for label, one in found.items():
        if one.certificate is None:
            rows.append({**dict.fromkeys(CERTIFICATES), "learner": label, "why_not": one.why_not})
            continue
        rows += [
            {
                "learner": label,
                "certificate": name,
                "epsilon": None if other.why else float(other.epsilon),
                "deploys": other.deploys,
                "taken": name == one.certificate.method,
                "vacuous": None if other.why else bool(other.epsilon >= one.certificate.trivial),
                "for_comparison": other.reference,
                "why_not": other.why or None,
            }
            for name, other in one.certificate.alternatives.items()
        ]
    return rows

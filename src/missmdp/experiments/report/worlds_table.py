"""Every policy in every world: what is at stake if another learner is right."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.markup import Html
from missmdp.experiments.report.page import bullets, table
from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.report.words import UNKNOWN, number

__all__ = ["across_worlds"]

World = dict[str, Any]
Row = dict[str, Any]


def across_worlds(run: RunFile, worlds: list[World]) -> list[Html]:
    """Return what every policy loses in every world, and what the recommended one risks."""
    ordered = [learner["label"] for learner in run.learners]
    policies = dict.fromkeys([*ordered, *(row["policy"] for world in worlds for row in world["rows"])])
    cells = {(world["world"], row["policy"]): row for world in worlds for row in world["rows"]}
    rows = [
        [run.policy_name(policy), *(_cell(cells.get((world["world"], policy))) for world in worlds)]
        for policy in policies
    ]
    columns = ["policy", *(f"if {run.learner_name(world['world'])} is right" for world in worlds)]
    content = [table("Worth of every policy in every world", columns, rows, numbers=range(1, len(columns)))]
    risks = [risk for world in worlds if (risk := _risk(run, world)) is not None]
    return [*content, bullets(risks)] if risks else content


def _risk(run: RunFile, world: World) -> str | None:
    """Return what the recommended policy would lose in a world that it was not made for."""
    loss, label = _loss(world, run.recommended_label), world["world"]
    if loss is None or label == run.recommended_label:
        return None
    learner = next((one for one in run.learners if one["label"] == label), None)
    doubt = ", against which the data speak" if learner is not None and learner["warnings"] else ""
    lost = (
        f"would lose {number(loss)} against the best one tried"
        if loss > 0.0
        else "is still the best one tried"
    )
    return f"Should {run.learner_name(label)} be right instead{doubt}: the recommended policy {lost}."


def _cell(row: Row | None) -> str:
    return UNKNOWN if row is None else number(row["value"], row["stderr"])


def _loss(world: World, policy: str | None) -> float | None:
    values = {row["policy"]: row["value"] for row in world["rows"] if row["value"] is not None}
    return max(values.values()) - values[policy] if policy in values else None

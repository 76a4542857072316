"""Every policy in every world: what is at stake if another learner is right."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.markup import Html
from missmdp.experiments.report.page import paragraph, table
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
    losses = [
        (_loss(world, run.recommended_label), world["world"])
        for world in worlds
        if world["world"] != run.recommended_label
    ]
    known = [(loss, label) for loss, label in losses if loss is not None]
    content = [table("Worth of every policy in every world", columns, rows, numbers=range(1, len(columns)))]
    if not known:
        return content
    loss, label = max(known)
    lost = f"would lose {number(loss)} against the best one tried there"
    risk = f"Should {run.learner_name(label)} be right instead, the recommended policy {lost}."
    fine = "Whichever learner is right, no other policy that was tried is better than the recommended one."
    return [*content, paragraph(risk if loss > 0.0 else fine)]


def _cell(row: Row | None) -> str:
    return UNKNOWN if row is None else number(row["value"], row["stderr"])


def _loss(world: World, policy: str | None) -> float | None:
    values = {row["policy"]: row["value"] for row in world["rows"] if row["value"] is not None}
    return max(values.values()) - values[policy] if policy in values else None

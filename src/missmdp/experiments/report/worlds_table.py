"""Every policy in every world: what is at stake if another learner is right."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.markup import Html
from missmdp.pages.page import bullets, table
from missmdp.words import UNKNOWN, number

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
    row, label = _row(world, run.recommended_label), world["world"]
    if row is None or row["difference"] is None or label == run.recommended_label:
        return None
    learner = next((one for one in run.learners if one["label"] == label), None)
    doubt = ", against which the data speak" if learner is not None and learner["warnings"] else ""
    name = run.learner_name(label)
    lost = number(abs(row["difference"]), row["difference_stderr"])
    if row["difference_high"] is not None and row["difference_high"] < 0.0:
        fares = f"would lose {lost} against that of {name}"
    elif row["difference_low"] is not None and row["difference_low"] > 0.0:
        fares = f"would be worth {lost} more than that of {name}, which is not solved to the end then, or had bad luck"
    else:
        fares = f"and that of {name} cannot be told apart there"
    return f"Should {name} be right instead{doubt}: the recommended policy {fares}."


def _cell(row: Row | None) -> str:
    return UNKNOWN if row is None else number(row["value"], row["stderr"])


def _row(world: World, policy: str | None) -> Row | None:
    return next((row for row in world["rows"] if row["policy"] == policy), None)

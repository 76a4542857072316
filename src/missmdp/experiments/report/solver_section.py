"""How surely each problem was solved: bounds over time."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.bounds_chart import BoundsPanel, bounds_chart
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, figure, note, paragraph, table
from missmdp.pages.svg import Chart
from missmdp.words import UNKNOWN, number, percent

__all__ = ["solver_section"]

_WIDE_GAP = 0.05
"""Relative gap from which a solution deserves a warning."""
_ENDS = {
    "precision": "as precise as asked for",
    "converged": "solved exactly",
    "timeout": "time was up",
    "memory": "memory was used up",
    "trials": "as many trials as asked for",
    "interrupted": "interrupted",
}


def solver_section(run: RunFile) -> Section:
    """Return the section on how policies were computed."""
    solved = [(learner["label"], learner["solve"]) for learner in run.learners if learner["solve"]]
    solved += [(one["name"], one) for one in run["baselines"] if one["lower"] is not None]
    content: list[Html] = [
        paragraph(
            "A policy was computed for what each learner learned. The solver keeps two bounds: the policy is worth at "
            "least the lower one, and no policy can be worth more than the upper one. Where they meet, nothing is "
            "left to gain by computing longer. Both are for the model that was solved, which need not be true."
        )
    ]
    panels = [panel for label, result in solved if (panel := _panel(run, label, result)) is not None]
    if panels:
        chart = Chart(
            "bounds",
            "Bounds on what the best policy is worth, over time",
            "; ".join(f"{panel.title}: {panel.text}" for panel in panels),
            bounds_chart(panels),
        )
        key = [
            element("span", element("span", "", class_="dash dashed"), "no policy is worth more"),
            element("span", element("span", "", class_="dash"), "the policy is worth at least this"),
        ]
        content.append(figure(chart, _meaning(run, solved), key=key))
    content += [
        note(
            f"{run.policy_name(label)} is not solved well (gap {percent(gap)}):",
            "with more time its policy may get better.",
        )
        for label, result in solved
        if (gap := _gap(result)) is not None and gap > _WIDE_GAP
    ]
    if solved:
        content.append(
            table(
                "How each problem was solved",
                ["solved for", "worth at least", "at most", "gap", "ended because"],
                [_row(run, label, result) for label, result in solved],
                numbers=[1, 2, 3],
            )
        )
    return Section("solving", "How surely the policies were computed", tuple(content))


def _panel(run: RunFile, label: str, result: dict[str, Any]) -> BoundsPanel | None:
    rows = [row for row in result["trace"] if None not in (row["seconds"], row["lower"], row["upper"])]
    if not rows:
        return None
    seconds, lower, upper = (tuple(row[key] for row in rows) for key in ("seconds", "lower", "upper"))
    return BoundsPanel(run.policy_name(label), _between(result), seconds, lower, upper, run.style(label))


def _between(result: dict[str, Any]) -> str:
    lower, upper = _ends(result)
    gap = _gap(result)
    return f"{lower} to {upper}" + ("" if gap is None else f", gap {percent(gap)}")


def _ends(result: dict[str, Any]) -> tuple[str, str]:
    lower, upper = result["lower"], result["upper"]
    width = None if lower is None or upper is None else upper - lower
    return number(lower, width or None), number(upper, width or None)


def _gap(result: dict[str, Any]) -> float | None:
    if result.get("relative_gap") is not None:
        return result["relative_gap"]
    lower, upper = result["lower"], result["upper"]
    return None if not lower or upper is None else (upper - lower) / abs(lower)


def _row(run: RunFile, label: str, result: dict[str, Any]) -> list[str]:
    gap = _gap(result)
    status = result["status"]
    return [
        run.policy_name(label),
        *_ends(result),
        UNKNOWN if gap is None else percent(gap, 2 if gap < 0.01 else 1),
        _ENDS.get(status, str(status)) if status else UNKNOWN,
    ]


def _meaning(run: RunFile, solved: list[tuple[str, dict[str, Any]]]) -> str:
    chosen = next((result for label, result in solved if label == run.recommended_label), None)
    gap = None if chosen is None else _gap(chosen)
    if gap is None:
        return "Where the lines have met, more computing would not change the decision."
    return (
        f"For the recommended policy at most {percent(gap, 2 if gap < 0.01 else 1)} of its worth is left to gain by "
        "computing longer; the early part of the search runs out of the picture."
    )

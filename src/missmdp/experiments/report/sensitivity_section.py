"""How much the recommended policy loses if the model is a little wrong."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.page import Section, figure, paragraph
from missmdp.pages.row_charts import Dot, Heading, dot_chart
from missmdp.pages.svg import Chart
from missmdp.words import number, plus

__all__ = ["sensitivity_section"]

_TWO_SIDED = 1.959963984540054
_ROUNDING = 1e-9
"""Losses up to this are those of the arithmetic."""
_TITLE = "If the model is a little wrong"
_WHAT = {
    "transition": "Changes of how the state moves on",
    "missingness": "Changes of how values go missing",
}

Row = dict[str, Any]


def sensitivity_section(run: RunFile) -> Section:
    """Return the section on sensitivity."""
    found: dict[str, Any] = run["sensitivity"] or {"rows": []}
    rows: list[Row] = [row for row in found["rows"] if row["difference"] is not None]
    if not rows:
        return Section("sensitivity", _TITLE, (paragraph("This was not looked at in this run."),))
    label: str = found["label"]
    drawn: list[Dot | Heading] = []
    for kind in dict.fromkeys(row["what"] for row in rows):
        drawn.append(Heading(_kind(kind)))
        drawn += [_dot(run, label, row) for row in rows if row["what"] == kind]
    chart = Chart(
        "sensitivity",
        "Change in worth of the recommended policy",
        "; ".join(f"{row['how']}: {_text(row)}" for row in rows),
        dot_chart(drawn, axis_title="change in worth per episode", marks=[0.0]),
    )
    introduction = paragraph(
        f"The policy of {run.learner_name(label)} was tried in models that differ from the one it was made for.",
        "One that loses little depends little on changes of these kinds; others, which were not tried, may cost more.",
    )
    return Section("sensitivity", _TITLE, (introduction, figure(chart, *_meaning(rows))))


def _kind(what: Any) -> str:
    return _WHAT.get(what, str(what))


def _dot(run: RunFile, label: str, row: Row) -> Dot:
    half = _TWO_SIDED * (row["difference_stderr"] or 0.0)
    gap = row["difference"]
    text, style, shape = _text(row), run.style(label), run.shape(label)
    return Dot(row["how"], gap, gap - half, gap + half, text, style=style, shape=shape)


def _text(row: Row) -> str:
    error = row["difference_stderr"]
    text = plus(row["difference"], error)
    return text if not error else f"{text} ± {number(error, error)}"


def _meaning(rows: list[Row]) -> list[str]:
    clear = [
        row for row in rows if -row["difference"] > max(2.0 * (row["difference_stderr"] or 0.0), _ROUNDING)
    ]
    if not clear:
        return ["None of these changes costs the policy anything that can be told from chance."]
    worst = min(clear, key=lambda row: row["difference"])
    lost, error = -worst["difference"], worst["difference_stderr"]
    return [
        f"The largest loss is {number(lost, error)} ({_kind(worst['what']).lower()}: {worst['how']}).",
        "If your doubts about the model are of that kind, check it there first.",
    ]

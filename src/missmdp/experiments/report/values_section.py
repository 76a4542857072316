"""What policies are worth, with intervals, and compared with each other."""

from __future__ import annotations

from typing import Any

from missmdp.experiments.report.run_file import RunFile
from missmdp.experiments.report.worlds_table import across_worlds
from missmdp.pages.markup import Html
from missmdp.pages.page import Section, details, figure, note, paragraph, table
from missmdp.pages.row_charts import Dot, dot_chart
from missmdp.pages.svg import Chart, padded, percent_tick
from missmdp.words import UNKNOWN, count, interval, number, plus, share_text

__all__ = ["values_section"]

World = dict[str, Any]
Row = dict[str, Any]


def values_section(run: RunFile) -> Section:
    """Return the section on what policies are worth."""
    worlds = run.worlds
    if not worlds:
        return Section("values", "What the policies are worth", (paragraph("No policy was evaluated."),))
    content: list[Html] = [paragraph(*_introduction(run, worlds[0]))]
    content += _world(run, worlds[0])
    if len(worlds) > 1:
        content += across_worlds(run, worlds)
    content += [
        details(f"If {run.learner_name(world['world'])} is right", *_world(run, world))
        for world in worlds[1:]
    ]
    return Section("values", "What the policies are worth", tuple(content))


def _introduction(run: RunFile, world: World) -> list[str]:
    episodes = count(world["episodes"], "episode")
    how = f"Every policy was simulated in {episodes} with the same luck"
    if world["horizon"] is not None:
        how += f", at most {world['horizon']:,} decisions each"
    if run.truth_known:
        return [f"{how}, in the true model. Other policies show what is to be gained."]
    return [
        f"{how}. The truth is not known, so each learner in turn is taken to be right, and all policies are tried in "
        "the world as it sees it."
    ]


def _world(run: RunFile, world: World) -> list[Html]:
    rows: list[Row] = [row for row in world["rows"] if row["value"] is not None]
    ordered = sorted(rows, key=lambda row: -row["value"])
    place = (
        "the true model"
        if world["world"] == "truth"
        else f"the world as {run.learner_name(world['world'])} sees it"
    )
    chart = Chart(
        f"values-{world['world']}",
        f"What each policy is worth in {place}",
        "; ".join(f"{run.policy_name(row['policy'])}: {_value(row)}" for row in ordered),
        dot_chart(
            [_dot(run, row, _value(row)) for row in ordered],
            domain=_domain(ordered),
            axis_title="worth per episode",
        ),
    )
    content: list[Html] = [figure(chart, _meaning(run, world, rows))]
    scaled = [row for row in ordered if row["normalised"] is not None]
    if world["world"] == "truth" and scaled:
        content.append(_normalised(run, scaled))
    content += [
        note(
            f"{run.policy_name(row['policy'])} saw {row['impossible']:,} times what its own model says cannot be, and "
            "went on as best it could."
        )
        for row in rows
        if row["impossible"]
    ]
    content.append(_table(run, world))
    return content


def _domain(rows: list[Row]) -> tuple[float, float]:
    """Return what the axis shows: all but acting at random, if that is so bad that nothing else could be told apart."""
    others = [row for row in rows if row["kind"] != "random"]
    near = padded(x for row in others for x in (row["value"], row["low"], row["high"]))
    far = padded(x for row in rows for x in (row["value"], row["low"], row["high"]))
    return near if others and far[1] - far[0] > 2.5 * (near[1] - near[0]) else far


def _dot(run: RunFile, row: Row, text: str, prefix: str = "") -> Dot:
    value = "normalised" if prefix else "value"
    policy = row["policy"]
    return Dot(
        run.policy_name(policy),
        row[value],
        row[f"{prefix}low"],
        row[f"{prefix}high"],
        text,
        short=None if prefix else number(row["value"], row["stderr"]),
        style=run.style(policy),
        shape=run.shape(policy),
        strong=policy == run.recommended_label,
    )


def _value(row: Row) -> str:
    return f"{number(row['value'], row['stderr'])} ({interval(row['low'], row['high'], row['stderr'])})"


def _normalised(run: RunFile, rows: list[Row]) -> Html:
    near = [row for row in rows if row["kind"] != "random" and row["normalised"] > -1.0]
    low, high = padded(
        [x for row in near for x in (row["normalised"], row["normalised_low"], row["normalised_high"])]
    )
    chart = Chart(
        "normalised",
        "The same on a scale from guessing to perfect knowledge",
        "; ".join(f"{run.policy_name(row['policy'])}: {_share(row)}" for row in rows),
        dot_chart(
            [_dot(run, row, _share(row), "normalised_") for row in rows],
            domain=(max(low, -1.5), min(high, 2.0)),
            form=percent_tick,
            axis_title="0 % is guessing, 100 % is perfect knowledge",
            marks=[0.0, 1.0],
        ),
    )
    return figure(
        chart,
        "100 % is what a policy is worth that knows exactly how values go missing, 0 % what one is worth that takes "
        "every gap for the toss of a coin. An arrow points to what lies outside.",
    )


def _share(row: Row) -> str:
    return share_text(row["normalised"], row["normalised_stderr"])


def _meaning(run: RunFile, world: World, rows: list[Row]) -> str:
    chosen = next((row for row in rows if row["policy"] == run.recommended_label), None)
    reference = world["reference"]
    if chosen is None:
        return "The further right, the better."
    learner = run.learner_name(chosen["policy"])
    if chosen["policy"] == reference:
        others = [row for row in rows if row["kind"] == "learned" and row["policy"] != reference]
        worst = min(others, key=lambda row: row["difference"] or 0.0, default=None)
        if worst is None or worst["difference"] is None:
            return f"The further right, the better; {learner} is what the others are compared with."
        made = f"In this world {learner}’s policy is the one made for it"
        if worst["difference_high"] is None or worst["difference_high"] >= 0.0:
            return f"{made}; that those of other learners are worth less cannot be told from chance."
        loss = number(-worst["difference"], worst["difference_stderr"])
        return f"{made}; {run.policy_name(worst['policy'])} would lose {loss}."
    gap, low, high = chosen["difference"], chosen["difference_low"], chosen["difference_high"]
    if gap is None:
        return "The further right, the better."
    size = number(abs(gap), chosen["difference_stderr"])
    if low is not None and high is not None and low <= 0.0 <= high:
        error = chosen["difference_stderr"]
        sure = f"difference {plus(gap, error)}, {run.confidence} interval {interval(low, high, error)}"
        return f"{learner} and {run.policy_name(reference)} cannot be told apart here ({sure})."
    if gap < 0.0:
        return f"{learner} is worth {size} less than {run.policy_name(reference)}."
    than = f"more than {run.policy_name(reference)}, which is not solved to the end then, or had bad luck"
    return f"{learner} is worth {size} {than}."


def _table(run: RunFile, world: World) -> Html:
    scaled = any(row["normalised"] is not None for row in world["rows"]) and world["world"] == "truth"
    columns = [
        "policy",
        "worth",
        f"{run.confidence} interval",
        f"minus {run.short_name(world['reference'])}",
    ]
    columns += [f"{run.confidence} interval", *(["share of gain"] if scaled else [])]
    rows = [
        [
            run.policy_name(row["policy"]),
            number(row["value"], row["stderr"]),
            interval(row["low"], row["high"], row["stderr"]),
            *_difference(row, world["reference"]),
            *([_share(row)] if scaled else []),
        ]
        for row in sorted(
            world["rows"], key=lambda row: -(row["value"] if row["value"] is not None else -1e300)
        )
    ]
    return table("Worth of each policy", columns, rows, numbers=[1, 2, 3, 4, 5])


def _difference(row: Row, reference: str) -> list[str]:
    if row["policy"] == reference:
        return [UNKNOWN, UNKNOWN]
    error = row["difference_stderr"]
    return [plus(row["difference"], error), interval(row["difference_low"], row["difference_high"], error)]

"""How a run was made, and how its policy is used."""

from __future__ import annotations

import json
from typing import Any, cast

from missmdp.experiments.report.run_file import RunFile
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, bullets, code, details, facts, paragraph, subsection
from missmdp.words import UNKNOWN, count, duration, listed

__all__ = ["method_section"]


def method_section(run: RunFile) -> Section:
    """Return the section on how a run was made."""
    return Section(
        "method",
        "How this was made, and how to use the policy",
        (
            subsection("Use the policy", *_use(run)),
            subsection("The model", facts(_model(run))),
            subsection("The run", facts(_run(run)), details("All settings", facts(_settings(run)))),
            subsection("Files", bullets(_files(run))),
        ),
    )


def _use(run: RunFile) -> list[Html]:
    missing = [feature for feature, rate in run.data["missing_rates"].items() if rate]
    gap = f"{missing[0]!r}: None, …" if missing and len(missing[0]) <= 20 else "…"
    lines = [
        "import missmdp as mm",
        'agent = mm.load_policy("policy.mmpolicy").agent()',
        f"action = agent.reset({{{gap}}})  # seen first",
        "action = agent.step({…})  # seen after that action",
        "agent.belief  # how likely each state is",
    ]
    names = listed([feature["name"] for feature in run.model["features"]], most=12)
    return [
        code("\n".join(lines)),
        paragraph(
            f"What is seen is given by name ({names}); None, or left out, means missing.",
            "The agent says what to do next, and keeps track of what it has seen and done.",
        ),
    ]


def _model(run: RunFile) -> list[tuple[str, str]]:
    model = run.model
    return [
        ("model", f"{model['name']}" + (f" ({model['source']})" if model["source"] != model["name"] else "")),
        ("states", f"{_whole(model['states'])}, of which {_whole(model['reachable'])} can be reached"),
        *([] if model["observations"] is None else [("observations", _whole(model["observations"]))]),
        ("actions", listed([str(action) for action in model["actions"]], most=12)),
        ("discount", f"{model['discount']:g}" if model["discount"] is not None else UNKNOWN),
        ("decisions per episode", f"at most {_whole(model['horizon'])}"),
        ("SHA-256 of the model", str(model["sha256"] or UNKNOWN)),
    ]


def _run(run: RunFile) -> list[tuple[str, str]]:
    timings: dict[str, float | None] = run["timings"]
    known = [seconds for seconds in timings.values() if seconds is not None]
    each = ", ".join(f"{what} {duration(seconds)}" for what, seconds in timings.items())
    total = f"{duration(sum(known))} ({each})" if known else UNKNOWN
    return [
        ("version", f"missmdp {run['version']}"),
        ("seed", f"{run['seed']}"),
        ("confidence", run.confidence),
        ("time", total),
    ]


def _settings(run: RunFile) -> list[tuple[str, str]]:
    """Return the settings that say something: what was left open is not there."""
    told = {key: value for key, value in run["settings"].items() if not _says_nothing(value)}
    told.pop("data", None)
    set_aside = told.pop("unknown_truth", False)
    data = "simulated from the model" if run.data["source"] == "simulated" else "read from a table"
    unknown = "set aside, as if it were not known" if set_aside else "not known"
    truth = "known, and used to judge policies" if run.truth_known else unknown
    words = [("data", data), ("how values go missing in truth", truth)]
    return [*words, *((key.replace("_", " "), _setting(value)) for key, value in told.items())]


def _says_nothing(value: Any) -> bool:
    """Return whether a setting is null or empty, or holds nothing else."""
    if isinstance(value, dict):
        return all(map(_says_nothing, cast("dict[str, Any]", value).values()))
    return value is None or value == []


def _setting(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value)):
        return ", ".join(cast("list[str]", value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _files(run: RunFile) -> list[Html]:
    listed_files = [("policy.mmpolicy", "the recommended policy")]
    certificates: list[dict[str, Any]] = run.content.get("certificates") or []
    if any(one["file"] == "certified.mmpolicy" for one in certificates):
        listed_files.append(("certified.mmpolicy", "the policy graph that the certificate is for"))
    if run.data["source"] == "simulated":
        listed_files.append(("log.parquet", f"the simulated log, {count(run.data['steps'], 'step')}"))
    for learner in run.learners:
        files: dict[str, str] = learner["files"] or {}
        if files.get("model"):
            listed_files.append((files["model"], f"the model as {learner['name']} learned it"))
        if files.get("policy"):
            listed_files.append((files["policy"], f"the policy of {learner['name']}"))
    listed_files += [
        ("tables/", "what is on this page as tables, .csv and .parquet"),
        ("run.json", "everything that this page was made from"),
    ]
    return [element("span", element("code", path), f": {text}") for path, text in listed_files]


def _whole(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"

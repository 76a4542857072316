"""How a run was made, and how its policy is used."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from missmdp.experiments.record.record import RunRecord
from missmdp.experiments.report.naming import confidence_text
from missmdp.pages.markup import Html, element
from missmdp.pages.page import Section, bullets, code, details, facts, paragraph, subsection
from missmdp.words import UNKNOWN, count, duration, listed


def method_section(run: RunRecord) -> Section:
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


def _use(run: RunRecord) -> list[Html]:
    missing = list(run.data.gaps)
    gap = f"{missing[0]!r}: None, …" if missing and len(missing[0]) <= 20 else "…"
    lines = [
        "import missmdp as mm",
        'agent = mm.load_policy("policy.mmpolicy").agent()',
        f"action = agent.reset({{{gap}}})  # seen first",
        "action = agent.step({…})  # seen after that action",
        "agent.belief  # how likely each state is",
    ]
    names = listed([feature.name for feature in run.model.features], most=12)
    return [
        code("\n".join(lines)),
        paragraph(
            f"What is seen is given by name ({names}); None, or left out, means missing.",
            "The agent says what to do next, and keeps track of what it has seen and done.",
        ),
    ]


def _model(run: RunRecord) -> list[tuple[str, str]]:
    model, truth = run.model, run.model.truth
    source = f" ({model.source})" if model.source != model.name else ""
    return [
        ("model", f"{model.name}{source}"),
        ("states", f"{model.states:,}, of which {model.reachable:,} can be reached"),
        *([] if truth is None else [("observations", f"{truth.observations:,}")]),
        ("actions", listed(model.actions, most=12)),
        ("discount", f"{model.discount:g}"),
        ("decisions per episode", f"at most {model.horizon:,}"),
        ("SHA-256 of the model", model.sha256),
    ]


def _run(run: RunRecord) -> list[tuple[str, str]]:
    each = ", ".join(f"{what} {duration(seconds)}" for what, seconds in run.timings.items())
    total = f"{duration(sum(run.timings.values()))} ({each})" if run.timings else UNKNOWN
    return [
        ("version", f"missmdp {run.version}"),
        ("seed", f"{run.settings.seed}"),
        ("confidence", confidence_text(run)),
        ("time", total),
    ]


def _settings(run: RunRecord) -> list[tuple[str, str]]:
    """Return the settings that say something: what was left open is not there."""
    data = "simulated from the model" if run.data.source == "simulated" else "read from a table"
    unknown = "set aside, as if it were not known" if run.settings.unknown_truth else "not known"
    truth = "known, and used to judge policies" if run.truth_known else unknown
    told = [
        (name.replace("_", " "), _setting(value))
        for name, value in msgspec.structs.asdict(run.settings).items()
        if name not in ("data", "unknown_truth") and not _says_nothing(value)
    ]
    return [("data", data), ("how values really go missing", truth), *told]


def _says_nothing(value: Any) -> bool:
    """Return whether a setting is null or empty, or holds nothing else."""
    if isinstance(value, dict):
        return all(map(_says_nothing, cast("dict[str, Any]", value).values()))
    return value is None or value in ([], ())


def _setting(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(item, str) for item in cast("tuple[Any, ...]", value)):
        return ", ".join(cast("tuple[str, ...]", value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _files(run: RunRecord) -> list[Html]:
    listed_files = [("policy.mmpolicy", "the recommended policy")]
    if any(one.file == "certified.mmpolicy" for one in run.certificates):
        listed_files.append(("certified.mmpolicy", "the policy graph that the certificate is for"))
    if run.data.source == "simulated":
        listed_files.append(("log.parquet", f"the simulated log, {count(run.data.steps, 'step')}"))
    for learner in run.ordered_learners:
        listed_files.append((learner.files.model, f"the model as {learner.name} learned it"))
        if learner.files.policy is not None:
            listed_files.append((learner.files.policy, f"the policy of {learner.name}"))
    listed_files += [
        ("tables/", "what is on this page as tables, .csv and .parquet"),
        ("run.json", "everything that this page was made from"),
    ]
    return [element("span", element("code", path), f": {text}") for path, text in listed_files]

"""What `missmdp run` wrote, ready to be asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from missmdp.errors import FormatError

__all__ = ["RUN_FILE", "RunFile", "read_run"]

RUN_FILE = "run.json"
_KIND = "missmdp run"
# fmt: off
_LISTS = frozenset((
    "actions", "always_observed", "associations", "baselines", "between", "cannot_know", "edges", "features", "groups",
    "learners", "nodes", "notes", "patterns", "problems", "rows", "trace", "values", "warnings",
))
# fmt: on
_OBJECTS = frozenset(("missing_rates", "recommended", "settings", "timings"))
"""Keys under which nothing is the same as nothing known."""

_POLICIES = {
    "optimal": "perfect knowledge (optimal)",
    "prior": "guessing (prior)",
    "random": "acting at random (random)",
}
_MEANINGS = {
    "amcar": "gaps are pure chance",
    "asmar": "gaps depend only on values that are always seen",
    "aimi": "a gap may depend on all other values, but not on the missing one nor on other gaps",
    "em": "a gap may depend on anything, in the way that was found in the data; the dynamics are as in the model",
}
"""What the learners assume, in short words."""
_SHORTEST = {
    "amcar": "gaps are pure chance",
    "asmar": "gaps depend only on values that are always recorded",
    "aimi": "no value hides itself, and no gap depends on another",
    "em": "gaps depend on what was found in the data, and the dynamics are as in the model",
}
"""The same where a sentence goes on after it."""
_SHAPES = {
    "amcar": "triangle",
    "asmar": "circle",
    "aimi": "square",
    "em": "wedge",
    "optimal": "diamond",
    "prior": "ring",
    "random": "cross",
}
"""So that colours are not needed to tell policies apart."""


@dataclass(frozen=True)
class RunFile:
    """The content of a run's file; see the sections for what is read from it."""

    content: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    @property
    def model(self) -> dict[str, Any]:
        """What is known of the model."""
        return self.content["model"]

    @property
    def data(self) -> dict[str, Any]:
        """What is known of the data."""
        return self.content["data"]

    @property
    def learners(self) -> list[dict[str, Any]]:
        """What every learner learned, the recommended one first."""
        listed: list[dict[str, Any]] = self.content["learners"]
        return sorted(listed, key=lambda learner: learner["label"] != self.recommended_label)

    @property
    def recommended_label(self) -> str | None:
        """The label of the learner whose policy is recommended."""
        return self.content["recommended"].get("label")

    @property
    def recommended(self) -> dict[str, Any] | None:
        """What the recommended learner learned."""
        return next((one for one in self.learners if one["label"] == self.recommended_label), None)

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """The learners that could not learn, and why."""
        return self.content.get("skipped", [])

    @property
    def worlds(self) -> list[dict[str, Any]]:
        """Where policies were evaluated: in the truth, or in what each learner learned, the recommended one first."""
        listed: list[dict[str, Any]] = self.content["values"]
        return sorted(listed, key=lambda world: world["world"] != self.recommended_label)

    @property
    def truth_known(self) -> bool:
        """Whether the true missingness function is known."""
        return bool(self.model["truth_known"])

    @property
    def confidence(self) -> str:
        """The confidence of intervals, in words."""
        return f"{100 * self.content['confidence']:g}\u00a0%"

    def learner_name(self, label: str) -> str:
        """Return the name of a learner by its label."""
        return next((one["name"] for one in self.learners if one["label"] == label), label)

    def assumption(self, learner: dict[str, Any]) -> str:
        """Return what a learner assumes, in short words and in the words of the field."""
        plain, known = _MEANINGS.get(learner["label"]), str(learner["assumes"])
        return f"{plain} ({known})" if plain else known

    def assumed(self, label: str) -> str:
        """Return what a learner assumes, in words that fit into a sentence."""
        return _SHORTEST.get(label) or next(
            (str(one["assumes"]) for one in self.learners if one["label"] == label), ""
        )

    def same_as_amcar(self, learner: dict[str, Any]) -> bool:
        """Return whether AsMAR has no always-observed feature to look at, so that it learns what AMCAR does."""
        groups = learner["groups"]
        return learner["label"] == "asmar" and bool(groups) and not any(group["given"] for group in groups)

    def is_guaranteed(self, learner: dict[str, Any]) -> bool:
        """Return whether a learner's intervals are bounds that hold, rather than a bootstrap's."""
        bound: dict[str, Any] | None = learner["bound"]
        return bound is None or bool(bound.get("guaranteed", True))

    def policy_name(self, policy: str) -> str:
        """Return the name of a policy: what it knows."""
        return _POLICIES.get(policy) or self.learner_name(policy)

    def short_name(self, policy: str) -> str:
        """Return the name of a policy where there is little room."""
        return policy if policy in _POLICIES else self.learner_name(policy)

    def style(self, policy: str) -> str:
        """Return the class of the colour of a policy or learner."""
        return f"is-{policy}" if policy in _SHAPES else "is-other"

    def shape(self, policy: str) -> str:
        """Return the mark of a policy or learner."""
        return _SHAPES.get(policy, "circle")


def read_run(folder: Path) -> RunFile:
    """Return what the run in a folder wrote.

    Raises
    ------
    FormatError
        If there is no such file, or it is something else.
    """
    path = folder / RUN_FILE
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise FormatError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: damaged (not JSON: {error})") from error
    if not isinstance(content, dict) or cast("dict[str, Any]", content).get("kind") != _KIND:
        raise FormatError(f"{path}: not what `missmdp run` writes")
    return RunFile(cast("dict[str, Any]", _filled(content)))


def _filled(value: Any, key: str = "") -> Any:
    """Return content in which lists and objects that are unknown are empty."""
    if value is None and (key in _LISTS or key in _OBJECTS):
        return [] if key in _LISTS else {}
    if isinstance(value, dict):
        return {key: _filled(item, key) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(item) for item in cast("list[Any]", value)]
    return value

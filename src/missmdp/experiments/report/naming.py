"""What policies and learners are called in a report, what they assume in plain words, and how they are drawn."""

from __future__ import annotations

from missmdp.experiments.record.record import LearnerRecord, RunRecord

__all__ = [
    "assumed",
    "assumption",
    "confidence_text",
    "policy_name",
    "same_as_amcar",
    "shape",
    "short_name",
    "style",
]

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
"""Marks, so that colours are not needed to tell policies apart."""


def confidence_text(run: RunRecord) -> str:
    """Return the confidence of intervals, in words."""
    return f"{100 * run.confidence:g}\u00a0%"


def policy_name(run: RunRecord, policy: str) -> str:
    """Return the name of a policy: what it knows."""
    return _POLICIES.get(policy) or run.learner_name(policy)


def short_name(run: RunRecord, policy: str) -> str:
    """Return the name of a policy where there is little room."""
    return policy if policy in _POLICIES else run.learner_name(policy)


def assumption(learner: LearnerRecord) -> str:
    """Return what a learner assumes, in short words and in the words of the field."""
    plain = _MEANINGS.get(learner.label)
    return f"{plain} ({learner.assumes})" if plain else learner.assumes


def assumed(learner: LearnerRecord) -> str:
    """Return what a learner assumes, in words that fit into a sentence."""
    return _SHORTEST.get(learner.label, learner.assumes)


def same_as_amcar(learner: LearnerRecord) -> bool:
    """Return whether AsMAR has no always-observed feature to look at, so that it learns what AMCAR does."""
    groups = learner.groups
    return learner.label == "asmar" and bool(groups) and not any(group.given for group in groups)


def style(policy: str) -> str:
    """Return the class of the colour of a policy or learner."""
    return f"is-{policy}" if policy in _SHAPES else "is-other"


def shape(policy: str) -> str:
    """Return the mark of a policy or learner."""
    return _SHAPES.get(policy, "circle")

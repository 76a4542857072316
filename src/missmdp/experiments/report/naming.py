"""What policies and learners are called in a report, what they assume in plain words, and how they are drawn."""

from __future__ import annotations

from missmdp.experiments.record.record import LearnerRecord, RunRecord
from missmdp.learn.registry import learners

_POLICIES = {
    "optimal": "perfect knowledge (optimal)",
    "prior": "guessing (prior)",
    "random": "acting at random (random)",
}
_SHAPES = {"optimal": "diamond", "prior": "ring", "random": "cross"}
"""Marks, so colours are not needed to tell policies apart."""


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
    """Return what a learner assumes, in plain words and in the words of the field."""
    same = learner.meaning == learner.assumes
    return learner.assumes if same else f"{learner.meaning} ({learner.assumes})"


def twin(run: RunRecord, learner: LearnerRecord) -> LearnerRecord | None:
    """Return a learner that assumes more and learned just the same, if there is one."""
    earlier = run.learners[: run.learners.index(learner)]
    return next((other for other in earlier if other.groups and other.groups == learner.groups), None)


def style(policy: str) -> str:
    """Return the classes of the colour of a policy or learner."""
    return f"is-other is-{policy}"


def shape(policy: str) -> str:
    """Return the mark of a policy or learner."""
    learner = learners().get(policy)
    return _SHAPES.get(policy, "hexagon") if learner is None else learner.shape

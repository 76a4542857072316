"""What a policy with memory does in a situation, and what that depends on, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from missmdp.words import listed

if TYPE_CHECKING:
    from missmdp.plan.factored.policy import MemoryPolicy


class Situation(NamedTuple):
    """What a policy with memory acts on."""

    scene: int
    """The scene: the values of the features that are always seen, as a number."""
    nodes: tuple[int, ...]
    """The node of each feature that can go missing."""


@dataclass(frozen=True)
class FeatureMemory:
    """What is remembered of a feature that can go missing."""

    feature: str
    belief: tuple[tuple[Any, float], ...]
    """Value → probability, those that are possible, in order: what its node stands for."""
    if_seen: tuple[tuple[Any, Any], ...]
    """Value → the action if that were seen of it, all else as it is; for the values that are possible."""


@dataclass(frozen=True)
class MemoryExplanation:
    """What a policy with memory does in a situation. Printing it gives text for people."""

    action: Any
    """The action that the policy takes."""
    drawn_from: tuple[Any, ...]
    """The actions of which one is drawn, each as likely: on features that are alike and at the same node."""
    seen: tuple[tuple[str, Any], ...]
    """The features that are always seen, with their values."""
    remembered: tuple[FeatureMemory, ...]
    """The features that can go missing."""

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return the explanation as plain text."""
        action = str(self.action)
        if len(self.drawn_from) > 1:
            action = f"one of {listed([*map(str, self.drawn_from)])}, each as likely"
        parts = [f"Action: {action}   (one node is remembered for each feature that can go missing)"]
        if self.seen:
            parts.append("Seen\n" + "\n".join(f"  {name}={value}" for name, value in self.seen))
        if self.remembered:
            parts.append(
                "Remembered of each feature, and what would be done if it were known\n" + self._rows()
            )
        return "\n\n".join(parts)

    def _rows(self) -> str:
        rows = [(one.feature, _belief_text(one), _actions_text(one)) for one in self.remembered]
        widths = [max(len(row[j]) for row in rows) for j in (0, 1)]
        return "\n".join(
            f"  {name.ljust(widths[0])}  {belief.ljust(widths[1])}  {then}".rstrip()
            for name, belief, then in rows
        )


def explain(policy: MemoryPolicy, situation: Situation) -> MemoryExplanation:
    """Return what a policy does in a situation; see `MemoryPolicy.explain`."""
    values, actions = policy.model.space.features.as_dict(), policy.model.actions
    table_action = int(policy.table[situation.scene, *situation.nodes])
    remembered: list[FeatureMemory] = []
    for k, name in enumerate(policy.sites):
        belief = policy.beliefs[k][situation.nodes[k]]
        nodes = list(situation.nodes)
        then: list[tuple[Any, Any]] = []
        for code in np.flatnonzero(belief).tolist():
            nodes[k] = code
            then.append((values[name][code], actions[int(policy.table[situation.scene, *nodes])]))
        possible = tuple((values[name][c], float(belief[c])) for c in np.flatnonzero(belief).tolist())
        remembered.append(FeatureMemory(name, possible, tuple(then)))
    return MemoryExplanation(
        action=policy.action(situation),
        drawn_from=tuple(actions[a] for a in policy.tied(table_action, situation.nodes)),
        seen=tuple(policy.scene_values(situation.scene).items()),
        remembered=tuple(remembered),
    )


def _belief_text(one: FeatureMemory) -> str:
    if len(one.belief) == 1:
        return str(one.belief[0][0])
    return ", ".join(f"{value}: {p:.3f}" for value, p in one.belief)


def _actions_text(one: FeatureMemory) -> str:
    if len(one.if_seen) == 1:
        return ""
    if len({str(action) for _, action in one.if_seen}) == 1:
        return f"→ {one.if_seen[0][1]} in any case"
    return ", ".join(f"{value} → {action}" for value, action in one.if_seen)

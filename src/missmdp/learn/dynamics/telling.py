"""What a test found, in terms that people use: where, by how much, and why it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.dynamics.next_rows import Target, where_words
from missmdp.learn.dynamics.ratios import Curvature, Ratio, Tester, largest_change, power
from missmdp.learn.dynamics.result import DynamicsRow, ProbabilityChange, Verdict
from missmdp.learn.em.observation_classes import Classes
from missmdp.model.mdp import FactoredMDP
from missmdp.words import listed

_PROBABLE = 0.5
"""Power from which a test that does not reject says that the MDP fits."""


@dataclass(frozen=True, eq=False)
class Tested:
    """A test that was made."""

    target: Target
    curvature: Curvature
    ratio: Ratio | None


def p_value(tested: Tested) -> float:
    """Return the p-value of a test; 1 where there was too little information."""
    return 1.0 if tested.ratio is None else tested.ratio.p_value


@dataclass(frozen=True, eq=False)
class Teller:
    """Makes rows of tests."""

    mdp: FactoredMDP
    classes: Classes
    tester: Tester
    level: float
    each: float
    """The level at which the clearest of all tests rejects."""
    shift: float

    def row(self, tested: Tested, adjusted: float) -> DynamicsRow:
        """Return the row of a test."""
        target, ratio = tested.target, tested.ratio
        counts = target.rows.counts(self.tester.uses)
        used = counts.sum(axis=1)
        chance = power(target, tested.curvature.left, used, self.shift, self.each)
        verdict: Verdict = "fits" if chance >= _PROBABLE else "cannot tell"
        if ratio is not None and adjusted < self.level:
            verdict = "rejected"
        names = self.mdp.space.features.names
        return DynamicsRow(
            names[target.rows.feature],
            self._action(target),
            self._where(target),
            target.kind == "start",
            0.0 if ratio is None else ratio.statistic,
            0 if ratio is None else ratio.freedom,
            p_value(tested),
            adjusted,
            None if ratio is None else self._change(target, ratio, used),
            self.tester.seen_steps(target),
            chance,
            verdict,
            self._reason(tested, used) if verdict == "cannot tell" else "",
        )

    def _action(self, target: Target) -> Any:
        at = target.action
        return None if at is None or at == self.mdp.n_actions else self.mdp.actions[at]

    def _where(self, target: Target) -> str:
        if target.kind not in ("row", "value"):
            return ""
        return where_words(self.mdp, self.classes, target.rows, target.cells)

    def _change(self, target: Target, ratio: Ratio, used: NDArray[np.float64]) -> ProbabilityChange:
        found = largest_change(target, ratio.tilt, used)
        values = self.mdp.space.features.values[target.rows.feature]
        return ProbabilityChange(values[found.value], found.before, found.after)

    def _reason(self, tested: Tested, used: NDArray[np.float64]) -> str:
        """Return why a test cannot tell: too few steps, or gaps that could explain a change."""
        target, curvature = tested.target, tested.curvature
        points = f"{100.0 * self.shift:g} points"
        if power(target, curvature.own, used, self.shift, self.each) < _PROBABLE:
            return f"too few steps show it to see an error of {points}"
        blocks = self.tester.likelihood.histories.blocks.names
        chances = [
            power(target, self.tester.left_beside(curvature, i), used, self.shift, self.each)
            for i in range(len(blocks))
        ]
        least = min(chances)
        guilty = [block for block, chance in zip(blocks, chances, strict=True) if chance < _PROBABLE]
        if not guilty:
            guilty = [block for block, chance in zip(blocks, chances, strict=True) if chance == least]
        gaps = listed([name for block in guilty for name in block])
        return f"gaps in {gaps} that depend on what is missing could look like an error of {points}"

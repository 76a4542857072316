"""Likelihood-ratio tests of rows of T and of b₀, with the effects of M fitted along on both sides.

The information on a tilt is what is left of it once the effects of M have explained what they can. Directions on
which there is little are left out, since the chi-square distribution would be a poor guide there. That depends on
what is tested only, so the tests keep their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from missmdp.learn.dynamics.climbing import climb, pseudo_inverse
from missmdp.learn.dynamics.next_rows import Target
from missmdp.learn.dynamics.tilted import TiltedLikelihood, changed_rows, tilt_slope
from missmdp.learn.em.effects import Effects
from missmdp.learn.em.histories import Histories

_LEAST = 10.0
"""Information on a direction from which it is tested: as much as 40 observations at a rate of one half have."""

_STEP, _SHORT_STEP = 1e-3, 1e-4
"""By how much log-odds are changed for derivatives: to both sides, and to one side where less will do."""

_STARTS = 8
"""Maximisation steps before the climb."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """The information on a tilt: itself, with M's effects, and what is left of it once these are fitted along."""

    own: NDArray[np.float64]
    """Shape (q, q)."""
    cross: NDArray[np.float64]
    """Shape (q, effects)."""
    left: NDArray[np.float64]
    """Shape (q, q)."""


class Ratio(NamedTuple):
    """The outcome of a test."""

    statistic: float
    freedom: int
    p_value: float
    tilt: NDArray[np.float64]
    """What the data ask for, shape (q,)."""


class Tester:
    """Tests rows of T against tilts; fits M once without any."""

    def __init__(
        self, histories: Histories, model: Effects, table: NDArray[np.float64], threads: int | None
    ) -> None:
        self.likelihood = TiltedLikelihood(histories, model, threads)
        start = self._first_effects(table)
        first = self.likelihood.at(start)
        top = climb(self._without_tilt, start, self.likelihood.information(start, first.uses))
        self.inside = self._information_of_effects(top.where)
        top = climb(self._without_tilt, top.where, self.inside)
        self.effects, self.value, self.converged = top.where, top.value, top.converged
        _, self.slope, self.uses = self.likelihood.at(self.effects)
        self.inverse = pseudo_inverse(self.inside)

    def _first_effects(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        likelihood = self.likelihood
        if not likelihood.model.designs:
            return np.zeros(0)
        expected = likelihood.histories.expect(table, likelihood.threads).counts
        found = likelihood.model.maximise(expected)
        for _ in range(_STARTS):
            found = likelihood.model.maximise(expected, found)
        return np.clip(np.concatenate(found.parameters), -12.0, 12.0)

    def _without_tilt(self, effects: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        point = self.likelihood.at(effects)
        return point.value, point.slope

    def _information_of_effects(self, effects: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return minus the second derivatives in the effects of M."""
        size = len(effects)
        found = np.zeros((size, size))
        for i, step in enumerate(_STEP * np.eye(size)):
            up, down = self.likelihood.at(effects + step), self.likelihood.at(effects - step)
            found[i] = (down.slope - up.slope) / (2.0 * _STEP)
        return 0.5 * (found + found.T)

    def curvature(self, target: Target) -> Curvature:
        """Return the information on a tilt at none."""
        size = len(target.values)
        own, cross = np.zeros((size, size)), np.zeros((size, len(self.effects)))
        here = tilt_slope(target, np.zeros(size), self.uses)
        for i, tilt in enumerate(_SHORT_STEP * np.eye(size)):
            there = self.likelihood.at(self.effects, target, tilt)
            own[i] = (here - tilt_slope(target, tilt, there.uses)) / _SHORT_STEP
            cross[i] = (self.slope - there.slope) / _SHORT_STEP
        own = 0.5 * (own + own.T)
        return Curvature(own, cross, own - cross @ self.inverse @ cross.T)

    def left_beside(self, curvature: Curvature, block: int) -> NDArray[np.float64]:
        """Return what is left of the information once the effects of one block are fitted along."""
        ends = np.cumsum([0, *(design.shape[1] for design in self.likelihood.model.designs)])
        inside = slice(int(ends[block]), int(ends[block + 1]))
        cross = curvature.cross[:, inside]
        return curvature.own - cross @ pseudo_inverse(self.inside[inside, inside]) @ cross.T

    def ratio(self, target: Target, curvature: Curvature) -> Ratio | None:
        """Return the test of the rows as given against a tilt; None if there is too little information."""
        values, vectors = np.linalg.eigh(curvature.left)
        ways = vectors[:, values > _LEAST]
        freedom, size = ways.shape[1], len(self.effects)
        if freedom == 0:
            return None
        likelihood = self.likelihood

        def function(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            tilt = ways @ point[size:]
            there = likelihood.at(point[:size], target, tilt)
            return there.value, np.concatenate([there.slope, ways.T @ tilt_slope(target, tilt, there.uses)])

        cross = ways.T @ curvature.cross
        joint = np.block([[self.inside, cross.T], [cross, ways.T @ curvature.own @ ways]])
        top = climb(function, np.concatenate([self.effects, np.zeros(freedom)]), joint)
        statistic = 2.0 * max(top.value - self.value, 0.0)
        return Ratio(
            statistic,
            freedom,
            float(special.chdtrc(float(freedom), statistic)),
            ways @ top.where[size:],
        )

    def seen_steps(self, target: Target) -> float:
        """Return how many steps use the rows of a target and show what came next, in expectation."""
        blocks, details = self.likelihood.histories.blocks, self.likelihood.histories.details
        shows = blocks.patterns[:, target.rows.feature][details.place // self.likelihood.histories.n_states]
        return float(target.rows.counts(self.uses * shows)[target.cells].sum())


def power(
    target: Target,
    left: NDArray[np.float64],
    used: NDArray[np.float64],
    shift: float,
    level: float,
) -> float:
    """Return the chance to reject a shift of one next value's probability: that of the value where it is best seen.

    Parameters
    ----------
    left
        The information on the tilt, shape (q, q).
    used
        How often each cell is used, shape (K,).
    shift
        By how much the probability is off, on average over the steps that use the rows.
    level
        The p-value from which on the test rejects.
    """
    values, vectors = np.linalg.eigh(left)
    kept = values > _LEAST
    if not kept.any():
        return 0.0
    weight = used[target.cells] / max(float(used[target.cells].sum()), 1e-300)
    mean = weight @ target.rows.probability[target.cells]
    found = 0.0
    bar = float(special.chdtri(float(kept.sum()), level))
    for value in np.flatnonzero(mean > 0.0):
        p = float(mean[value])
        other = p + shift if p + shift < 1.0 else p - shift
        if not 0.0 < other < 1.0:
            continue
        step = np.log(other / (1.0 - other)) - np.log(p / (1.0 - p))
        # All other values lose in proportion; the most frequent one is what others are compared with.
        tilt = (
            (target.values == value) * step if value in target.values else np.full(len(target.values), -step)
        )
        apart = float(values[kept] @ (vectors[:, kept].T @ tilt) ** 2)
        found = max(found, 1.0 - float(special.chndtr(bar, float(kept.sum()), apart)))
    return found


class Change(NamedTuple):
    """The largest change of a probability that the data ask for, on average over the steps that use the rows."""

    value: int
    before: float
    after: float


def largest_change(target: Target, tilt: NDArray[np.float64], used: NDArray[np.float64]) -> Change:
    """Return which probability a tilt changes most, where each cell is used so often."""
    weight = used[target.cells] / max(float(used[target.cells].sum()), 1e-300)
    before = weight @ target.rows.probability[target.cells]
    after = weight @ changed_rows(target, tilt)[target.cells]
    value = int(np.argmax(np.abs(after - before)))
    return Change(value, float(before[value]), float(after[value]))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for how many there are (Holm): below the level, and it is rejected at that level."""
    order = np.argsort(p_values, kind="stable")
    adjusted = [1.0] * len(p_values)
    worst = 0.0
    for rank, place in enumerate(order):
        worst = max(worst, min((len(p_values) - rank) * p_values[int(place)], 1.0))
        adjusted[int(place)] = worst
    return adjusted

"""The likelihood of a log when M has effects that add up, and some rows of T are changed; with its slopes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.dynamics.next_rows import Target
from missmdp.learn.em.effects import Effects
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.logistic import log_expit

_RIDGE = 1e-6
"""Of effects on missingness: keeps those finite that the data would have infinite."""


class Point(NamedTuple):
    """The penalised log-likelihood somewhere, its slopes in M's effects, and how often each detail is used."""

    value: float
    slope: NDArray[np.float64]
    uses: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TiltedLikelihood:
    """The log-likelihood in the effects of M (all blocks, one after the other) and the tilt of a target."""

    histories: Histories
    model: Effects
    threads: int | None = None

    @property
    def n_effects(self) -> int:
        """How many effects there are."""
        return sum(design.shape[1] for design in self.model.designs)

    def split(self, effects: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the effects of each block."""
        ends = np.cumsum([design.shape[1] for design in self.model.designs])[:-1]
        return tuple(np.split(effects, ends)) if self.model.designs else ()

    def table(self, effects: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return M as P(pattern | state), shape (K, S)."""
        if not self.model.designs:
            return np.ones((1, self.histories.n_states))
        return self.model.table(self.split(effects))

    def at(
        self,
        effects: NDArray[np.float64],
        target: Target | None = None,
        tilt: NDArray[np.float64] | None = None,
    ) -> Point:
        """Return the likelihood with the rows of a target changed."""
        histories = self.histories
        if target is not None and tilt is not None:
            histories = tilted_histories(histories, target, tilt)
        table = self.table(effects)
        uses, log = histories.uses(table, self.threads)
        flat = np.bincount(histories.details.place, uses, minlength=table.size).astype(np.float64)
        expected = flat.reshape(table.shape)
        slopes: list[NDArray[np.float64]] = []
        for part, design, own in zip(
            self.model.factors.parts, self.model.designs, self.split(effects), strict=True
        ):
            counts = part.counts(expected)
            slopes.append(design.T @ (counts[:, 1] - counts.sum(axis=1) * np.exp(log_expit(design @ own))))
        slope = np.concatenate([np.zeros(0), *slopes]) - _RIDGE * effects
        return Point(log - 0.5 * _RIDGE * float(effects @ effects), slope, uses)

    def information(self, effects: NDArray[np.float64], uses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the information on the effects if nothing were hidden, shape (effects, effects)."""
        size = self.n_effects
        found = _RIDGE * np.eye(size)
        shape = (len(self.model.blocks.patterns), self.histories.n_states)
        flat = np.bincount(self.histories.details.place, uses, minlength=shape[0] * shape[1])
        begin = 0
        for part, design, own in zip(
            self.model.factors.parts, self.model.designs, self.split(effects), strict=True
        ):
            visits = part.counts(flat.astype(np.float64).reshape(shape)).sum(axis=1)
            odds = np.clip(design @ own, -30.0, 30.0)
            weight = visits / (2.0 * np.cosh(0.5 * odds)) ** 2
            end = begin + design.shape[1]
            found[begin:end, begin:end] += (design * weight[:, None]).T @ design
            begin = end
        return found


def tilted_histories(histories: Histories, target: Target, tilt: NDArray[np.float64]) -> Histories:
    """Return histories under T with the rows of a target changed."""
    rows = target.rows
    ratio = np.divide(
        changed_rows(target, tilt),
        rows.probability,
        out=np.ones_like(rows.probability),
        where=rows.probability > 0.0,
    )
    details = histories.details
    probability = details.probability * ratio.reshape(-1)[rows.place]
    return replace(histories, details=details._replace(probability=probability))


def full_tilt(target: Target, tilt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a tilt with a zero for the values that it is compared with, shape (V,)."""
    full = np.zeros(target.rows.probability.shape[1])
    full[target.values] = tilt
    return full


def changed_rows(target: Target, tilt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows of a feature after a tilt, shape (K, V)."""
    return target.rows.tilted(target.cells, full_tilt(target, tilt))


def tilt_slope(target: Target, tilt: NDArray[np.float64], uses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slope of the log-likelihood in the tilt of a target, where `uses` are those under that tilt."""
    own = target.rows.counts(uses)[target.cells]
    expected = own.sum(axis=1, keepdims=True) * changed_rows(target, tilt)[target.cells]
    return np.asarray((own - expected).sum(axis=0)[target.values], dtype=np.float64)

"""An upper bound on multisets of beliefs: value iteration on a grid with the same beliefs for every site."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.model import Alike
from missmdp.plan.factored.alike.multisets import (
    Matrix,
    count,
    elements,
    opened,
    power,
    spread,
    sums,
    without,
)
from missmdp.plan.factored.alike.steps import USUAL, Key, Places, Steps, keys, rewards_over, rewards_with_one
from missmdp.plan.factored.mixtures import Mixer
from missmdp.plan.factored.sweeps import Swept
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]

_LOOKED_AT = 32
"""Beliefs that could join a grid, of which so many are looked at."""
_APART = 0.02
"""How far they are from those of the grid, at least (sum of differences)."""
_RARE, _FOLLOWED = 1e-5, 500
"""Of all: beliefs that are met less often are not looked at; and from how many on the way to go on."""


class AlikeGrid(Swept):
    """An upper bound where all sites are alike; see `Grid`.

    Parameters
    ----------
    alike
        The model.
    beliefs
        Beliefs about one site, corners first, shape (G, values).
    prices
        What they are worth, about, shape (G,).
    values
        Where to begin, by scenes and multisets of beliefs; anything will do.
    team
        Threads to use; one if not given.
    """

    values: Tensor
    from_above = True

    def __init__(
        self,
        alike: Alike,
        beliefs: Tensor,
        prices: Tensor,
        values: Tensor | None = None,
        team: Team | None = None,
    ) -> None:
        self.alike, self.parts, self.beliefs, self.prices = alike, alike.parts, beliefs, prices
        self.team = team or Team()
        self.mixer = Mixer(beliefs, prices)
        self.steps = self.steps_from(beliefs)
        self.values = np.zeros((alike.n_scenes, self.size)) if values is None else values.copy()
        self.choices: Places = np.zeros(self.values.shape, dtype=np.int64)
        self._first = [
            (scene, mass, Matrix.of(self._seen_or_mixed(rows, np.eye(alike.n_values), scene)))
            for scene, rows, mass in alike.starts()
        ]
        self._drift = 0.0
        """How much all values will change in the next sweep, about."""

    def steps_from(self, rows: Tensor) -> Steps:
        """Return what happens from multisets of other beliefs to multisets of those of the grid."""
        return Steps(self.alike, self._matrices(rows), rewards_over(self.alike, rows), self.team)

    def _matrices(self, rows: Tensor) -> dict[Key, Tensor]:
        kinds = self.alike.kinds
        return {
            key: self._seen_or_mixed(rows, kinds[key.kind].kernels[key.role][key.scene], key.after)
            for key in keys(self.alike)
        }

    def _seen_or_mixed(self, rows: Tensor, kernel: Tensor, scene: int) -> Tensor:
        """Return P(belief of the grid | belief), one step later in a scene, shape (rows, G)."""
        after, missing = rows @ kernel, self.alike.missing[scene]
        table = np.zeros((len(rows), len(self.beliefs)))
        table[:, : self.alike.n_values] = after * (1.0 - missing)
        hidden = after * missing
        total = hidden.sum(axis=1)
        some = total > 0.0
        if some.any():
            table[some] += total[some, None] * self.mixer.weights(hidden[some] / total[some, None])
        return table

    @property
    def size(self) -> int:
        """The number of multisets of beliefs."""
        return count(len(self.beliefs), self.alike.n_sites)

    def work(self) -> float:
        """Return about how many multiplications a sweep takes."""
        return self.steps.work()

    def sweep(self, clock: Stopwatch) -> tuple[float, float]:
        """Improve all values once; return the least and the largest change."""
        new, self.choices = self.steps.best(self.steps.action_values(self.values, clock))
        low, high = self._take(new)
        self._drift = self.parts.discount * (low + high) / 2.0
        return low, high

    def bound(self) -> float:
        """Return the upper bound at the start, before the first observation."""
        total = self.rest * float(self.alike.initial.sum())
        for scene, mass, rows in self._first:
            total += float(mass @ power(self.values[scene][None], rows, self.alike.n_sites)[0])
        return total

    def prolonged(self, beliefs: Tensor) -> Tensor:
        """Return the values at multisets of other beliefs, mixed."""
        return power(self.values, Matrix.of(self.mixer.weights(beliefs)), self.alike.n_sites)

    def occupancy(self, clock: Stopwatch, steps: int = 12) -> Tensor:
        """Return how often (discounted) multisets of beliefs are met under the greedy policy, by scenes."""
        n, discount = self.alike.n_sites, self.alike.parts.discount
        now = np.zeros(self.values.shape)
        for scene, mass, rows in self._first:
            now[scene] += spread(mass[None], rows, n)[0]
        total = now.copy()
        for step in range(steps):
            now = self.steps.pushed(now, self.choices, clock)
            # The last step stands for all that would follow.
            total += now / (1.0 - discount) if step == steps - 1 else now
        return total

    def usage(self, occupancy: Tensor) -> Tensor:
        """Return how often a site is at each belief, by scenes, shape (X, G)."""
        n, size = self.alike.n_sites, len(self.beliefs)
        things = elements(size, n)
        found = [sums(things, np.repeat(mass, n), size) for mass in occupancy]
        return np.array(found) / n

    def contexts(self, occupancy: Tensor) -> Tensor:
        """Return how likely the other sites are at multisets of beliefs, by scenes; all sum to 1."""
        n, size = self.alike.n_sites, count(len(self.beliefs), self.alike.n_sites - 1)
        rest = without(len(self.beliefs), n)
        found = [sums(rest, np.repeat(mass, n), size) for mass in occupancy]
        return np.array(found) / np.sum(found)

    def priced(self, contexts: Tensor) -> Tensor:
        """Return what beliefs about one site are worth, the others as they mostly are, shape (G,)."""
        n = self.alike.n_sites
        apart = opened(self.values, len(self.beliefs), n)
        return np.einsum("sgc,sc->g", apart, contexts)

    def gains(self, wanted: Tensor, contexts: Tensor, clock: Stopwatch) -> tuple[Tensor, Tensor]:
        """Return what other beliefs are worth one step ahead, and how much less that is than mixed; (wanted,) each."""
        rewards = rewards_with_one(self.alike, wanted, self.beliefs)
        stepped = self.steps.best_with_one(self.values, self._matrices(wanted), rewards, clock)
        prices = np.einsum("swc,sc->w", stepped, contexts) - self._drift
        return prices, self.mixer.weights(wanted) @ self.priced(contexts) - prices

    def refined(self, most: int, clock: Stopwatch) -> tuple[Tensor, Tensor]:
        """Return more beliefs, at most so many, with their prices: those that gain most."""
        occupancy = self.occupancy(clock)
        contexts, usage = self.contexts(occupancy), self.usage(occupancy)
        wanted, often = passed_through(self.alike, usage[:, : self.alike.n_values])
        beliefs, prices = self.beliefs, self.priced(contexts)
        if not len(wanted):
            return beliefs, prices
        squares = (wanted**2).sum(axis=1)
        spare = often * (self.mixer.weights(wanted) @ (beliefs**2).sum(axis=1) - squares)
        top = np.argsort(-spare, kind="stable")[:_LOOKED_AT]
        top = top[spare[top] > 1e-6 * often.max()]
        if not len(top):
            return beliefs, prices
        worth, gains = self.gains(wanted[top], contexts, clock)
        for k in np.argsort(-often[top] * gains, kind="stable"):
            if len(beliefs) >= most or gains[k] <= 0.0:
                break
            if np.abs(beliefs - wanted[top[k]]).sum(axis=1).min() > _APART:
                beliefs = np.vstack([beliefs, wanted[top[k]]])
                prices = np.append(prices, worth[k])
        return beliefs, prices


def passed_through(alike: Alike, often: Tensor, steps: int = 16) -> tuple[Tensor, Tensor]:
    """Return beliefs that a site passes through while it is missing, and how often that happens.

    Parameters
    ----------
    alike
        The model.
    often
        How often a site is seen with each value, by scenes, shape (X, V).
    steps
        For how long a site is missing at most.
    """
    found: dict[tuple[float, ...], Tensor] = {}
    now = [
        (scene, often[scene, value] * np.eye(alike.n_values)[value])
        for scene, value in np.argwhere(often > 0.0).tolist()
    ]
    least = _RARE * float(often.sum())
    for _ in range(steps):
        after: dict[tuple[int, tuple[float, ...]], Tensor] = {}
        for scene, mass in now:
            for following, hidden in _one_step(alike, scene, mass):
                total = float(hidden.sum())
                if total > least:
                    key = (following, tuple((hidden / total).round(2).tolist()))
                    after[key] = after.get(key, 0.0) + hidden
        for (_, close), mass in after.items():
            found[close] = found.get(close, 0.0) + mass
        now = [(scene, mass) for (scene, _), mass in after.items()]
        now = sorted(now, key=lambda one: -float(one[1].sum()))[:_FOLLOWED]
    joint = np.array(list(found.values())).reshape(-1, alike.n_values)
    sizes = joint.sum(axis=1)
    return joint / sizes[:, None], sizes


def _one_step(alike: Alike, scene: int, mass: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield next scenes, and what becomes of the mass of a site that is missing then; all kinds of actions alike."""
    for kind in alike.kinds:
        after = mass @ kind.kernels[USUAL][scene]
        for following in np.flatnonzero(kind.weights[scene]).tolist():
            weight = alike.parts.discount * kind.weights[scene, following] / len(alike.kinds)
            yield following, weight * after * alike.missing[following]

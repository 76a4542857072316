"""What a step does to multisets of things: beliefs of a grid, or nodes with values.

The things of all sites change by themselves, each by the same matrix, but for the one that an action is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.model import Alike
from missmdp.plan.factored.alike.multisets import (
    Matrix,
    closed,
    count,
    elements,
    opened,
    power,
    spread,
    sums,
    without,
    work,
)
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]
Places = NDArray[np.int64]

USUAL, ACTED = 0, 1
"""A site that nothing is done to in particular, and the one that an action is on."""


class Key(NamedTuple):
    """What a matrix is for."""

    kind: int
    role: int
    scene: int
    after: int


def keys(alike: Alike) -> list[Key]:
    """Return all keys of matrices."""
    return [
        Key(k, role, scene, after)
        for k, kind in enumerate(alike.kinds)
        for scene, after in np.argwhere(kind.weights > 0.0).tolist()
        for role in range(len(kind.kernels))
    ]


class OneRewards(NamedTuple):
    """Rewards where one site is at something else than the others can be, for a kind of action."""

    it: Tensor
    """By scenes, what that site is at, and the multiset of the others; if a site is acted on, it is that one."""
    other: Tensor
    """The same with another site acted on, which comes apart."""


class Steps:
    """What each kind of action does, from multisets of rows to multisets of columns.

    Parameters
    ----------
    alike
        The model.
    matrices
        How one thing becomes another, rows by columns.
    rewards
        For each kind, by scenes and multisets of rows; where a site is acted on, by its row and those of the others.
    team
        Threads to use.
    labels
        What an agent can tell rows apart by, ascending; rows themselves if not given.
    """

    def __init__(
        self,
        alike: Alike,
        matrices: Mapping[Key, Tensor],
        rewards: list[Tensor],
        team: Team,
        labels: Places | None = None,
    ) -> None:
        self.alike = alike
        self.n_rows, self.n_columns = next(iter(matrices.values())).shape
        self.team = team
        self._labels: Places = np.arange(self.n_rows, dtype=np.int64) if labels is None else labels
        self._usual = {key: Matrix.of(table) for key, table in matrices.items() if key.role == USUAL}
        self._acted = {key: _one_row(table) for key, table in matrices.items() if key.role == ACTED}
        self._rewards = rewards

    def work(self) -> float:
        """Return about how many multiplications the values of all actions take."""
        n, total = self.alike.n_sites, 0.0
        for key, matrix in self._usual.items():
            if self.alike.kinds[key.kind].on_one:
                rows = len(self._acted[key._replace(role=ACTED)])
                total += rows * work(*matrix.shape, n - 1, matrix.per_row)
            else:
                total += work(*matrix.shape, n, matrix.per_row)
        return total

    def action_values(
        self, values: Tensor, clock: Stopwatch, starts: list[tuple[int, int]] | None = None
    ) -> dict[tuple[int, int], Tensor]:
        """Return the value of each kind of action in each scene, one step ahead.

        By multisets of rows; where a site is acted on, by its row and the multiset of the others.

        Parameters
        ----------
        values
            What follows, by scenes and multisets of columns.
        clock
            When to stop.
        starts
            Pairs (kind, scene) that are asked for; all if not given.
        """
        alike = self.alike
        if starts is None:
            starts = [(k, scene) for k in range(len(alike.kinds)) for scene in range(alike.n_scenes)]

        def value_of(start: tuple[int, int]) -> Tensor:
            k, scene = start
            kind = alike.kinds[k]
            value = self._rewards[k][scene].copy()
            for after in np.flatnonzero(kind.weights[scene]).tolist():
                clock.check()
                weight = alike.parts.discount * kind.weights[scene, after]
                value += weight * self._pulled(values[after], k, scene, after)
            return value

        return dict(zip(starts, self.team.results(value_of, starts), strict=True))

    def _pulled(self, values: Tensor, k: int, scene: int, after: int) -> Tensor:
        n, usual = self.alike.n_sites, self._usual[Key(k, USUAL, scene, after)]
        if not self.alike.kinds[k].on_one:
            return power(values[None], usual, n)[0]
        acted = self._acted[Key(k, ACTED, scene, after)]
        return power(acted @ opened(values, self.n_columns, n), usual, n - 1)

    def best_with_one(
        self, values: Tensor, one: Mapping[Key, Tensor], rewards: list[OneRewards], clock: Stopwatch
    ) -> Tensor:
        """Return the best values, one step ahead, where one site is at something else than a row.

        Parameters
        ----------
        values
            What follows, by scenes and multisets of columns.
        one
            What becomes of that site, rows (of its own) by columns.
        rewards
            As `rewards_with_one` returns them.
        clock
            When to stop.

        Returns
        -------
        By scenes, rows of that site, and multisets of rows of the others.
        """
        alike, n, n_rows = self.alike, self.alike.n_sites, self.n_rows
        best = np.full(rewards[0].it.shape, -np.inf)
        things, rest = elements(n_rows, n - 1), without(n_rows, n - 1)
        apart = [opened(of_scene, self.n_columns, n) for of_scene in values]
        for (k, kind), scene in product(enumerate(alike.kinds), range(alike.n_scenes)):
            it = rewards[k].it[scene].copy()
            other = rewards[k].other[scene].copy()
            for after in np.flatnonzero(kind.weights[scene]).tolist():
                clock.check()
                weight = alike.parts.discount * kind.weights[scene, after]
                key = Key(k, USUAL, scene, after)
                usual = self._usual[key]
                if not kind.on_one:
                    it += weight * power(one[key] @ apart[after], usual, n - 1)
                    continue
                acting = key._replace(role=ACTED)
                it += weight * power(one[acting] @ apart[after], usual, n - 1)
                twice = opened(apart[after], self.n_columns, n - 1)
                both = np.einsum("wg,ax,gxc->wac", one[key], self._acted[acting], twice, optimize=True)
                flat = power(both.reshape(-1, both.shape[2]), usual, n - 2)
                other += weight * flat.reshape(*both.shape[:2], -1)
            np.maximum(best[scene], it, out=best[scene])
            if kind.on_one:
                for t in range(n - 1):
                    np.maximum(best[scene], other[:, things[:, t], rest[:, t]], out=best[scene])
        return best

    def pushed(self, mass: Tensor, choices: Places, clock: Stopwatch) -> Tensor:
        """Return where masses of multisets go in one step, discounted, by scenes.

        Parameters
        ----------
        mass
            By scenes and multisets of rows.
        choices
            What is done, as `best` numbers it.
        clock
            When to stop.
        """
        alike, n = self.alike, self.alike.n_sites
        out = np.zeros((alike.n_scenes, count(self.n_columns, n)))
        for k, kind in enumerate(alike.kinds):
            for scene in range(alike.n_scenes):
                part = self.parted(mass[scene], choices[scene], k)
                if part.max() <= 0.0:
                    continue
                for after in np.flatnonzero(kind.weights[scene]).tolist():
                    clock.check()
                    weight = alike.parts.discount * kind.weights[scene, after]
                    out[after] += weight * self._pushed(part, k, scene, after)
        return out

    def parted(self, mass: Tensor, choices: Places, k: int) -> Tensor:
        """Return the mass of multisets where an action of a kind is taken; by the thing acted on, if there is one."""
        n = self.alike.n_sites
        kinds, positions = np.divmod(choices, n)
        mine = kinds == k
        if not self.alike.kinds[k].on_one:
            return np.where(mine, mass, 0.0)
        here = np.flatnonzero(mine)
        things, rest = elements(self.n_rows, n)[here], without(self.n_rows, n)[here]
        # Of those that cannot be told apart, each is as likely to be the one.
        tied = self.ties(here, positions[here])
        shares = (mass[here] / tied.sum(axis=1))[:, None] * tied
        part = np.zeros((self.n_rows, count(self.n_rows, n - 1)))
        np.add.at(part, (things, rest), shares)
        return part

    def ties(self, places: Places, positions: Places) -> NDArray[np.bool_]:
        """Return which things of multisets an agent cannot tell from those at some positions, shape (places, n)."""
        labels = self._labels[elements(self.n_rows, self.alike.n_sites)[places]]
        return labels == np.take_along_axis(labels, positions[:, None], axis=1)

    def _pushed(self, part: Tensor, k: int, scene: int, after: int) -> Tensor:
        n, usual = self.alike.n_sites, self._usual[Key(k, USUAL, scene, after)]
        if not self.alike.kinds[k].on_one:
            return spread(part[None], usual, n)[0]
        acted = self._acted[Key(k, ACTED, scene, after)]
        if len(acted) == 1:
            part = part.sum(axis=0, keepdims=True)
        return closed(acted.T @ spread(part, usual, n - 1), self.n_columns, n)

    def apart(self, mass: Tensor, m: int) -> Tensor:
        """Return masses of multisets of m rows, by one of them and the others, each one in turn."""
        size = count(self.n_rows, m - 1)
        places = elements(self.n_rows, m) * size + without(self.n_rows, m)
        found = sums(places, np.repeat(mass, m), self.n_rows * size)
        return found.reshape(self.n_rows, size)

    def crossings(self, part: Tensor, values: Tensor, k: int, scene: int, after: int) -> dict[int, Tensor]:
        """Return what it is worth that one site goes from a row to a column, the others as they do; by roles.

        Parameters
        ----------
        part
            Where an action of the kind is taken, as `parted` returns it.
        values
            What follows, by multisets of columns.
        k, scene, after
            The kind of action, the scene and the next one.

        Returns
        -------
        Sums over all sites in a role, weighed by masses, shape (rows, columns) each.
        """
        n, usual = self.alike.n_sites, self._usual[Key(k, USUAL, scene, after)]
        one = opened(values, self.n_columns, n)
        follows = power(one, usual, n - 1)
        if not self.alike.kinds[k].on_one:
            return {USUAL: self.apart(part, n) @ follows.T}
        acted = self._acted[Key(k, ACTED, scene, after)]
        two = np.einsum("ax,gxc->gac", acted, opened(one, self.n_columns, n - 1), optimize=True)
        beside = power(two.reshape(-1, two.shape[2]), usual, n - 2).reshape(*two.shape[:2], -1)
        others = part.sum(axis=0, keepdims=True) if len(acted) == 1 else part
        masses = np.stack([self.apart(mass, n - 1) for mass in others], axis=1)
        return {
            USUAL: np.tensordot(masses, beside, axes=((1, 2), (1, 2))),
            ACTED: part @ follows.T,
        }

    def best(self, found: Mapping[tuple[int, int], Tensor]) -> tuple[Tensor, Places]:
        """Return the best values by scenes and multisets of rows, and the choices: kind · sites + position."""
        alike, n = self.alike, self.alike.n_sites
        size = count(self.n_rows, n)
        values = np.full((alike.n_scenes, size), -np.inf)
        choices = np.zeros((alike.n_scenes, size), dtype=np.int64)
        for (k, scene), value in found.items():
            for position in range(n if alike.kinds[k].on_one else 1):
                here = self.at(value, k, position)
                better = here > values[scene]
                values[scene][better] = here[better]
                choices[scene][better] = k * n + position
        return values, choices

    def at(self, value: Tensor, k: int, position: int) -> Tensor:
        """Return the value of an action by multisets of rows: on the thing at a position, if it is on one."""
        if not self.alike.kinds[k].on_one:
            return value
        n = self.alike.n_sites
        return value[elements(self.n_rows, n)[:, position], without(self.n_rows, n)[:, position]]


def _one_row(table: Tensor) -> Tensor:
    """Return a table with one row where all rows are equal."""
    return table[:1] if (table == table[:1]).all() else table


def rewards_over(alike: Alike, rows: Tensor) -> list[Tensor]:
    """Return rewards by multisets of beliefs about sites, for each kind."""
    n, found, matrix = alike.n_sites, list[Tensor](), Matrix.of(rows)
    for kind in alike.kinds:
        if kind.on_one:
            acted = rows @ kind.rewards
            flat = acted.reshape(-1, acted.shape[-1])
            found.append(power(flat, matrix, n - 1).reshape(*acted.shape[:2], -1))
        else:
            found.append(power(kind.rewards, matrix, n))
    return found


def rewards_with_one(alike: Alike, one: Tensor, rows: Tensor) -> list[OneRewards]:
    """Return rewards where the belief about one site is one of some, and those about the others are rows."""
    n, n_values, matrix = alike.n_sites, alike.n_values, Matrix.of(rows)

    def over(table: Tensor, m: int) -> Tensor:
        return power(table.reshape(-1, table.shape[-1]), matrix, m).reshape(*table.shape[:-1], -1)

    found: list[OneRewards] = []
    for kind in alike.kinds:
        if kind.on_one:
            # Axes: scene, the site acted on, the one that is apart, the others.
            twice = opened(kind.rewards, n_values, n - 1)
            apart = np.einsum("wv,gu,suvc->swgc", one, rows, twice, optimize=True)
            found.append(OneRewards(over(one @ kind.rewards, n - 1), over(apart, n - 2)))
        else:
            it = over(one @ opened(kind.rewards, n_values, n), n - 1)
            found.append(OneRewards(it, np.zeros((len(it), 1, 1, 1))))
    return found

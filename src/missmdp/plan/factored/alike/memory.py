"""A lower bound, and a policy: a controller with one node per site, the same for all sites, on multisets of nodes.

An action on one site says at which node that site is. If several are there, one of them is drawn, each as likely; so it
only matters how many sites are at which node, and the value is worked out exactly on multisets of pairs (node, value).
"""

from __future__ import annotations

import math
from copy import copy
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.model import Alike
from missmdp.plan.factored.alike.multisets import Matrix, count, elements, power, ranks, spread, sums, without
from missmdp.plan.factored.alike.steps import Key, Places, Steps, keys
from missmdp.plan.factored.memory import threshold
from missmdp.plan.factored.nodes import near, one_step_later
from missmdp.plan.factored.sweeps import Swept
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]


class AlikeMemory(Swept):
    """A controller with the same nodes for every site, and its value; see `Memory`.

    Parameters
    ----------
    alike
        The model.
    beliefs
        What nodes stand for, corners first, shape (N, values).
    choices
        What is done, by scenes and multisets of nodes: kind · sites + position in the multiset.
    team
        Threads to use; one if not given.
    like
        Another memory that acts like this one at first, as far as it has the same nodes; `choices` are then not used.
    """

    values: Tensor
    from_above = False

    def __init__(
        self,
        alike: Alike,
        beliefs: Tensor,
        choices: Places,
        team: Team | None = None,
        *,
        like: AlikeMemory | None = None,
    ) -> None:
        self.alike, self.parts, self.beliefs, self.choices = alike, alike.parts, beliefs, choices
        n, n_nodes = alike.n_sites, len(beliefs)
        self.moves = {key: self._moved(key) for key in keys(alike)}
        self.first = np.array([self._first(scene) for scene in range(alike.n_scenes)])
        ways = [self.moves]
        if like is not None:
            self.choices, self.moves = self._choices_of(like), self._moves_of(like)
            ways.append(self.moves)
        self.pairs = self._reached(ways)
        things = elements(len(self.pairs), n)
        self._of_nodes = ranks(self.pairs[things, 0], n_nodes)
        self._rewards = self._of_pairs()
        self.steps = self._stepping(team or Team())
        self.values = np.zeros((alike.n_scenes, len(things)))
        self._starts = [
            (scene, mass, Matrix.of(self._begun(rows, scene))) for scene, rows, mass in alike.starts()
        ]
        self._better: dict[str, Any] = {}

    def _moved(self, key: Key) -> Tensor:
        """Return P(next node | node) while a site is missing."""
        kernel = self.alike.kinds[key.kind].kernels[key.role][key.scene] * self.alike.missing[key.after]
        return near(self.beliefs, one_step_later(self.beliefs, kernel))

    def _choices_of(self, like: AlikeMemory) -> Places:
        """Return what another memory does, where its nearest nodes stand for these."""
        n, kinds = self.alike.n_sites, self.alike.kinds
        theirs = _nearest(like.beliefs, self.beliefs)[elements(len(self.beliefs), n)]
        order = np.argsort(theirs, axis=1, kind="stable")
        places = ranks(np.take_along_axis(theirs, order, axis=1), len(like.beliefs))
        kind, position = np.divmod(like.choices[:, places], n)
        mine = np.take_along_axis(np.broadcast_to(order, (*kind.shape, n)), position[..., None], axis=2)[
            ..., 0
        ]
        on_one = np.array([kind.on_one for kind in kinds])[kind]
        return kind * n + np.where(on_one, mine, position)

    def _moves_of(self, like: AlikeMemory) -> dict[Key, Tensor]:
        """Return how nodes of another memory move, where these stand for its nodes."""
        theirs, mine = _nearest(like.beliefs, self.beliefs), _nearest(self.beliefs, like.beliefs)
        back = np.eye(len(self.beliefs))[mine]
        return {key: move[theirs] @ back for key, move in like.moves.items()}

    def _first(self, scene: int) -> Tensor:
        """Return P(node | first value missing), shape (N,)."""
        whole = self.alike.parts.initial[scene]
        mass = whole.sum(axis=tuple(range(1, whole.ndim))) * self.alike.missing[scene]
        total = float(mass.sum())
        if total <= 0.0:
            return np.eye(len(self.beliefs))[0]
        # One node only, so that fewer pairs can be met.
        excluded = ((self.beliefs <= 0.0) & (mass > 0.0)).any(axis=1)
        distance = np.abs(self.beliefs - mass / total).sum(axis=1) + 10.0 * excluded
        return np.eye(len(self.beliefs))[int(np.argmin(distance))]

    def _reached(self, ways: list[dict[Key, Tensor]]) -> NDArray[np.int64]:
        """Return the pairs (node, value) that can occur at a site with any of some moves, in order."""
        alike = self.alike
        met = np.zeros(self.beliefs.shape, dtype=bool)
        corners = np.arange(alike.n_values)
        met[corners, corners] = True
        for scene, first in enumerate(self.first):
            whole = alike.parts.initial[scene]
            met |= (first > 0.0)[:, None] & (whole.sum(axis=tuple(range(1, whole.ndim))) > 0.0)
        steps = [
            (move > 0.0, alike.kinds[key.kind].kernels[key.role][key.scene] > 0.0)
            for moves in ways
            for key, move in moves.items()
        ]
        while True:
            before = int(met.sum())
            for move, kernel in steps:
                met |= move.T @ met @ kernel
            if int(met.sum()) == before:
                return np.argwhere(met)

    def _matrix(self, key: Key) -> Tensor:
        """Return P(next pair | pair), shape (P, P)."""
        nodes, values = self.pairs.T
        kernel = self.alike.kinds[key.kind].kernels[key.role][key.scene][np.ix_(values, values)]
        missing = self.alike.missing[key.after][values]
        return kernel * (
            missing * self.moves[key][np.ix_(nodes, nodes)] + (1.0 - missing) * (nodes == values)
        )

    def _begun(self, rows: Tensor, scene: int) -> Tensor:
        """Return P(pair after the first observation | belief), shape (rows, P)."""
        nodes, values = self.pairs.T
        missing = self.alike.missing[scene][values]
        return rows[:, values] * (missing * self.first[scene][nodes] + (1.0 - missing) * (nodes == values))

    def _stepping(self, team: Team) -> Steps:
        matrices = {key: self._matrix(key) for key in self.moves}
        return Steps(self.alike, matrices, self._rewards, team, self.pairs[:, 0])

    def _of_pairs(self) -> list[Tensor]:
        """Return rewards by multisets of pairs, for each kind."""
        n, n_pairs, values = self.alike.n_sites, len(self.pairs), self.pairs[:, 1]

        def by_values(m: int) -> Places:
            return ranks(np.sort(values[elements(n_pairs, m)], axis=1), self.alike.n_values)

        return [
            kind.rewards[:, values][:, :, by_values(n - 1)] if kind.on_one else kind.rewards[:, by_values(n)]
            for kind in self.alike.kinds
        ]

    @property
    def n_pairs(self) -> int:
        """The number of pairs of a node and a value that can occur."""
        return len(self.pairs)

    @property
    def size(self) -> int:
        """The number of multisets of nodes."""
        return count(len(self.beliefs), self.alike.n_sites)

    def work(self) -> float:
        """Return about how many multiplications a sweep over all actions takes."""
        return self.steps.work()

    def _at_positions(self, value: Tensor, here: Places) -> Tensor:
        """Return the value of an action on each thing of some multisets of pairs, shape (here, n)."""
        n, n_pairs = self.alike.n_sites, len(self.pairs)
        return value[elements(n_pairs, n)[here], without(n_pairs, n)[here]]

    def sweep(self, clock: Stopwatch) -> tuple[float, float]:
        """Improve all values once; return the least and the largest change."""
        alike, n = self.alike, self.alike.n_sites
        new = np.zeros(self.values.shape)
        kinds, positions = np.divmod(self.choices[:, self._of_nodes], n)
        starts = [
            (k, scene)
            for scene in range(alike.n_scenes)
            for k in np.unique(self.choices[scene] // n).tolist()
        ]
        for (k, scene), value in self.steps.action_values(self.values, clock, starts).items():
            here = np.flatnonzero(kinds[scene] == k)
            if alike.kinds[k].on_one:
                tied = self.steps.ties(here, positions[scene, here])
                total = (self._at_positions(value, here) * tied).sum(axis=1)
                new[scene, here] = total / tied.sum(axis=1)
            else:
                new[scene, here] = value[here]
        return self._take(new)

    def bound(self) -> float:
        """Return the lower bound at the start, before the first observation."""
        total = self.rest * float(self.alike.initial.sum())
        for scene, mass, rows in self._starts:
            total += float(mass @ power(self.values[scene][None], rows, self.alike.n_sites)[0])
        return total

    def occupancy(self, clock: Stopwatch, steps: int = 10) -> Tensor:
        """Return how often (discounted) multisets of pairs are met, by scenes."""
        now = np.zeros(self.values.shape)
        for scene, mass, rows in self._starts:
            now[scene] += spread(mass[None], rows, self.alike.n_sites)[0]
        total, choices = now.copy(), self.choices[:, self._of_nodes]
        for step in range(steps):
            now = self.steps.pushed(now, choices, clock)
            # The last step stands for all that would follow.
            total += now / (1.0 - self.alike.parts.discount) if step == steps - 1 else now
        return total

    def better_choices(self, occupancy: Tensor, clock: Stopwatch) -> tuple[Places, Tensor]:
        """Return the best choice at every multiset of nodes, and what it gains over the present one."""
        alike, n = self.alike, self.alike.n_sites
        weights = occupancy + 1e-9 * self._usual()
        nodes = elements(len(self.beliefs), n)
        tied = nodes[:, :, None] == nodes[:, None, :]
        best = np.full((alike.n_scenes, len(nodes)), -np.inf)
        present, chosen = np.zeros(best.shape), self.choices.copy()
        everything = np.arange(len(self._of_nodes))
        for (k, scene), value in self.steps.action_values(self.values, clock).items():
            clock.check()
            found = self._at_positions(value, everything) if alike.kinds[k].on_one else value[:, None]
            by_nodes = np.stack(
                [sums(self._of_nodes, weights[scene] * one, len(nodes)) for one in found.T], axis=1
            )
            if alike.kinds[k].on_one:
                by_nodes = (tied * by_nodes[:, None, :]).sum(axis=2) / tied.sum(axis=2)
            for position, of_choice in enumerate(by_nodes.T):
                choice = k * n + position
                np.copyto(present[scene], of_choice, where=self.choices[scene] == choice)
                better = of_choice > best[scene]
                best[scene][better] = of_choice[better]
                chosen[scene][better] = choice
        return chosen, best - present

    def better_moves(
        self, occupancy: Tensor, clock: Stopwatch
    ) -> tuple[dict[Key, Tensor], dict[Key, Tensor]]:
        """Return, for every node, where it is best to go while its site is missing, and what that gains."""
        alike, choices = self.alike, self.choices[:, self._of_nodes]
        moves, gains = dict(self.moves), {key: np.zeros(len(self.beliefs)) for key in self.moves}
        for (k, kind), scene in product(enumerate(alike.kinds), range(alike.n_scenes)):
            part = self.steps.parted(occupancy[scene], choices[scene], k)
            if part.max() <= 0.0:
                continue
            for after in np.flatnonzero(kind.weights[scene]).tolist():
                clock.check()
                worth = self.steps.crossings(part, self.values[after], k, scene, after)
                weight = alike.parts.discount * kind.weights[scene, after]
                for role, crossing in worth.items():
                    key = Key(k, role, scene, after)
                    moves[key], gain = self._better_move(key, crossing)
                    gains[key] = weight * gain
        return moves, gains

    def _better_move(self, key: Key, crossing: Tensor) -> tuple[Tensor, Tensor]:
        nodes, values = self.pairs.T
        kernel = self.alike.kinds[key.kind].kernels[key.role][key.scene]
        at = np.arange(len(self.beliefs))[:, None] == nodes
        total = (
            at @ (crossing * kernel[np.ix_(values, values)] * self.alike.missing[key.after][values]) @ at.T
        )
        there = np.zeros(self.beliefs.shape, dtype=bool)
        there[nodes, values] = True
        follow = there @ (kernel > 0.0)
        possible = ~(follow[:, None, :] & ~there[None]).any(axis=2)
        old = self.moves[key]
        present = (old * total).sum(axis=1)
        total = np.where(possible, total, -np.inf)
        best = np.argmax(total, axis=1)
        gain = total[np.arange(len(best)), best] - present
        gain = np.where(np.isfinite(gain), gain, 0.0)
        return np.where(gain[:, None] > 0.0, np.eye(len(best))[best], old), gain

    def _usual(self) -> Tensor:
        """Return how likely pairs are if nodes are what they stand for, up to a factor for each multiset of nodes."""
        things = elements(len(self.pairs), self.alike.n_sites)
        likely = self.beliefs[tuple(self.pairs.T)][things].prod(axis=1)
        run = np.ones(len(things))
        for k in range(1, things.shape[1]):
            run = np.where(things[:, k] == things[:, k - 1], run + 1.0, 1.0)
            likely /= run
        return likely

    def proposed(self, clock: Stopwatch, share: float, what: str) -> AlikeMemory:
        """Return a controller with those changes of choices or moves that gain most: a share of all."""
        if "occupancy" not in self._better:
            self._better["occupancy"] = self.occupancy(clock)
        if what not in self._better:
            better = self.better_choices if what == "choices" else self.better_moves
            self._better[what] = better(self._better["occupancy"], clock)
        found, gains = self._better[what]
        other = copy(self)
        other.values, other.rest, other._better = self.values.copy(), math.inf, {}
        if what == "choices":
            other.choices = np.where(gains >= threshold([gains.ravel()], share), found, self.choices)
        else:
            least = threshold(list(gains.values()), share)
            other.moves = {
                key: np.where((gains[key] >= least)[:, None], found[key], move)
                for key, move in self.moves.items()
            }
            other.steps = other._stepping(self.steps.team)
        return other


def _nearest(beliefs: Tensor, wanted: Tensor) -> NDArray[np.int64]:
    """Return which of some beliefs is nearest to each other one."""
    return np.abs(wanted[:, None] - beliefs[None]).sum(axis=2).argmin(axis=1)

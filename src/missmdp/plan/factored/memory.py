"""A lower bound, and a policy: a controller whose memory is one node per site.

A node stands for a belief about its site. A seen value sets the node of its corner; a missing one moves the node as the
scene and the action say. The action depends on the scene and all nodes. Such a controller knows less than the whole
history, so its value is a lower bound; it is worked out exactly, on pairs (node, value) of all sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.cores import (
    Core,
    Label,
    Operator,
    TooTiedError,
    Way,
    by_action,
    merged,
    one_row,
    pulled,
    push_all,
)
from missmdp.plan.factored.links import missing_chance, shown
from missmdp.plan.factored.nodes import one_step_later
from missmdp.plan.factored.parts import Gaps, Move, Part, Parts
from missmdp.plan.factored.sweeps import Swept
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import Stop, Stopwatch

Tensor = NDArray[np.float64]
_RARE = 1e-4
"""Share of all visits: steps are not improved for an action in a scene that is taken less often than this."""
Steps = dict[tuple[int, int, int], list[NDArray[np.float64]]]
"""(action, scene, next scene) → for each site, P(next node | node) while it is missing, shape (N, N)."""


class Memory(Swept):
    """A controller with one node per site, and its value.

    Parameters
    ----------
    parts
        The model.
    beliefs
        For each site, the beliefs that its nodes stand for, corners first, shape (N, values).
    marginals
        For each site, about how often each of its values occurs: what an unseen neighbour is taken for.
    actions
        For each scene, the action at each combination of nodes.
    team
        Threads to use; one if not given.
    clock
        When to stop while the controller is made; never if not given.
    most
        How many entries it may have.
    fits
        Says of the numbers of pairs and of nodes, by sites, whether there is memory for them; always if not given.
    like
        A memory to start from: this one then acts and moves as much like it as its nodes allow, and `actions` is not
        used.

    Raises
    ------
    TooTiedError
        If it would have more entries.
    Stop
        If there is too little memory.
    """

    values: list[Tensor]
    from_above = False

    def __init__(
        self,
        parts: Parts,
        beliefs: Sequence[Tensor],
        marginals: Sequence[Tensor],
        actions: Sequence[NDArray[np.int16]],
        team: Team | None = None,
        clock: Stopwatch | None = None,
        most: float = math.inf,
        fits: Callable[[Sequence[float], Sequence[float]], bool] | None = None,
        *,
        like: Memory | None = None,
    ) -> None:
        clock = clock or Stopwatch(None)
        self.parts = parts
        self.team = team or Team()
        self.beliefs = list(beliefs)
        self.marginals = list(marginals)
        self.actions = list(actions)
        self.moves = list(parts.moves())
        self._gaps = [parts.gaps(scene) for scene in range(len(parts.scenes))]
        self._split = [shown(gaps) for gaps in self._gaps]
        self._goes_on = [parts.goes_on(scene) for scene in range(len(parts.scenes))]
        self.nodes = tuple(len(site) for site in beliefs)
        self.steps: Steps = {}
        known: dict[tuple[int, bytes], Tensor] = {}
        for move in self.moves:
            clock.check()
            key = (move.action, move.scene, move.after)
            self.steps[key] = [self._moved(move, k, known) for k in range(parts.n_sites)]
        self.first = [
            [self._first(scene, k) for k in range(parts.n_sites)] for scene in range(len(parts.scenes))
        ]
        ways = [self.steps]
        if like is not None:
            self.actions, self.steps = like.actions_at(beliefs), self._steps_of(like)
            ways.append(self.steps)
        self.pairs = [self._reached(k, ways) for k in range(parts.n_sites)]
        self.shape = tuple(len(pairs) for pairs in self.pairs)
        if self.entries > most:
            raise TooTiedError
        if fits is not None and not fits(self.shape, self.nodes):
            raise Stop("memory")
        self.rewards = [by_action(self._at_pairs(reward)) for reward in parts.reward]
        self.values = [np.zeros(self.shape) for _ in parts.scenes]
        self._operators: dict[int, Operator] = {}
        self._better: dict[str, Any] = {}

    @property
    def entries(self) -> float:
        """How many numbers there are."""
        return math.prod(map(float, self.shape)) * len(self.parts.scenes)

    # How nodes move at first: to where the belief would be if other sites were as usual.

    def _usual(self, part: Part, keep: Sequence[int] = ()) -> Tensor:
        """Return a table averaged over its sites but those to keep."""
        table = part.table
        for axis in reversed(range(len(part.sites))):
            if part.sites[axis] not in keep:
                table = np.tensordot(self.marginals[part.sites[axis]], table, axes=(0, axis))
        return table

    def _missing(self, scene: int, site: int) -> Tensor:
        """Return the usual probability that a site is missing, by its value."""
        gaps = next(gaps for gaps in self._gaps[scene] if site in gaps.of)
        chance = Part(gaps.given.sites, missing_chance(gaps, site))
        return np.broadcast_to(self._usual(chance, (site,)), (self.parts.sizes[site],))

    def _moved(self, move: Move, site: int, known: dict[tuple[int, bytes], Tensor]) -> Tensor:
        """Return where nodes go at first; `known` keeps the results of earlier moves, since most are the same."""
        kernel = self._usual(move.kernels[site]) * self._missing(move.after, site)
        key = (site, kernel.tobytes())
        if key not in known:
            later = one_step_later(self.beliefs[site], kernel)
            known[key] = np.eye(self.nodes[site])[[self._nearest(site, belief) for belief in later]]
        return known[key]

    def _nearest(self, site: int, belief: Tensor) -> int:
        """Return the node whose belief is nearest to one; nodes that exclude what is possible come last."""
        beliefs = self.beliefs[site]
        distance = np.abs(beliefs - belief).sum(axis=1)
        excluded = ((beliefs <= 0.0) & (belief > 0.0)).any(axis=1)
        return int(np.argmin(distance + 10.0 * excluded))

    def _first(self, scene: int, site: int) -> Tensor:
        """Return P(node | first value missing), shape (N,)."""
        belief = self.parts.initial[scene]
        marginal = belief.sum(axis=tuple(k for k in range(belief.ndim) if k != site))
        mass = marginal * self._missing(scene, site)
        total = mass.sum()
        if total <= 0.0:
            return np.eye(len(self.beliefs[site]))[0]
        return np.eye(len(self.beliefs[site]))[self._nearest(site, mass / total)]

    def _reached(self, site: int, steps: Sequence[Steps]) -> NDArray[np.int64]:
        """Return, in order, the pairs (node, value) that can occur at a site if nodes move by any of some steps."""
        size = self.parts.sizes[site]
        met = np.zeros((self.nodes[site], size), dtype=bool)
        met[np.arange(size), np.arange(size)] = True
        for scene, first in enumerate(self.first):
            belief = self.parts.initial[scene]
            some = belief.sum(axis=tuple(k for k in range(belief.ndim) if k != site)) > 0.0
            met |= (first[site] > 0.0)[:, None] & some
        ways = [
            (
                (move.kernels[site].table.reshape(-1, size, size) > 0.0).any(axis=0),
                some[move.action, move.scene, move.after][site] > 0.0,
            )
            for some in steps
            for move in self.moves
        ]
        while True:
            before = int(met.sum())
            for kernel, step in ways:
                # (node, value) → (next node, next value) while missing
                met |= (step.T.astype(float) @ (met.astype(float) @ kernel)) > 0.0
            if int(met.sum()) == before:
                return np.argwhere(met)

    def _at_pairs(self, table: Tensor) -> Tensor:
        for site, pairs in enumerate(self.pairs):
            table = table.take(pairs[:, 1], axis=site)
        return table

    # The operator of a move, on pairs.

    def operator(self, move: Move, labelled: int | None = None) -> Operator:
        """Return what happens to the pairs of all sites in a move.

        Parameters
        ----------
        move
            The move.
        labelled
            A site for which only the case that it is missing counts; its next pairs are all (node before, next value).
        """
        n_sites = self.parts.n_sites
        goes_on = self._goes_on[move.after]
        # Bonds: values now, next values, and those of gaps.
        cores = [Core(-1, sign.sites, sign.table) for sign in move.signs]
        cores += [Core(-1, tuple(n_sites + k for k in part.sites), part.table) for part in goes_on]
        chances, ties = self._chances(move.after)
        cores += ties
        for site in range(n_sites):
            cores.append(self._core(site, move, chances[site], labelled == site))
        now, after = list[Label](), list[Label]()
        for site, (pairs, size) in enumerate(zip(self.pairs, self.parts.sizes, strict=True)):
            nexts = np.tile(np.arange(size), self.nodes[site]) if labelled == site else pairs[:, 1]
            now.append(Label(site, pairs[:, 1], size))
            after.append(Label(n_sites + site, nexts, size))
        return Operator(cores, self.shape, now, after)

    def _chances(self, scene: int) -> tuple[dict[int, tuple[tuple[int, ...], Tensor]], list[Core]]:
        """Return P(missing, seen | next value) of each site, with bonds, and what these bonds are for."""
        n_sites = self.parts.n_sites
        found: dict[int, tuple[tuple[int, ...], Tensor]] = {}
        cores: list[Core] = []
        # Bonds: patterns, flags, and what links share.
        for number, one in enumerate(self._split[scene].gaps):
            pattern = 2 * n_sites + number
            if len(one.of) > 1:
                cores.append(Core(-1, (*(n_sites + k for k in one.given.sites), pattern), one.given.table))
            for j, site in enumerate(one.of):
                found[site] = self._shown(one, j, pattern)
        for link in self._split[scene].links:
            flags = tuple(3 * n_sites + site for site in link.sites)
            cores.append(Core(-1, (*flags, *(4 * n_sites + bond for bond in link.bonds)), link.table))
            for site, flag in zip(link.sites, flags, strict=True):
                found[site] = (flag,), np.broadcast_to(np.eye(2)[:, None], (2, self.parts.sizes[site], 2))
        return found, cores

    def _shown(self, gaps: Gaps, j: int, pattern: int) -> tuple[tuple[int, ...], Tensor]:
        """Return P(missing, seen | next value) of a site, with bonds, shape (*bonds, values, 2)."""
        site, n_sites, size = gaps.of[j], self.parts.n_sites, self.parts.sizes[gaps.of[j]]
        if len(gaps.of) > 1:
            flags = np.stack([~gaps.patterns[:, j], gaps.patterns[:, j]], axis=-1).astype(float)
            return (pattern,), np.broadcast_to(flags[:, None, :], (len(flags), size, 2))
        table = gaps.given.table
        both = np.stack(
            [
                table[..., ~gaps.patterns[:, 0]].sum(axis=-1),
                table[..., gaps.patterns[:, 0]].sum(axis=-1),
            ],
            axis=-1,
        )
        sites = gaps.given.sites
        if site in sites:
            both = np.moveaxis(both, sites.index(site), -2)
        else:
            both = np.broadcast_to(both[..., None, :], (*both.shape[:-1], size, 2))
        return tuple(n_sites + k for k in sites if k != site), both

    def _core(
        self,
        site: int,
        move: Move,
        chances: tuple[tuple[int, ...], Tensor],
        labelled: bool,
    ) -> Core:
        size, pairs, n_nodes = self.parts.sizes[site], self.pairs[site], self.nodes[site]
        kernel = move.kernels[site]
        bonds = (*kernel.sites, *chances[0])
        lengths = [self.parts.sizes[k] for k in kernel.sites], chances[1].shape[:-2]
        # p(bonds, pair, next value, missing or seen)
        moved = kernel.table[..., pairs[:, 1], :].reshape(
            *lengths[0], *(1 for _ in lengths[1]), len(pairs), size
        )
        gap = chances[1].reshape(*(1 for _ in lengths[0]), *lengths[1], 1, size, 2)
        chance = moved[..., None] * gap
        if labelled:
            values_of, nodes_of = np.tile(np.arange(size), n_nodes), np.repeat(np.arange(n_nodes), size)
            table = chance[..., values_of, 0] * (nodes_of == pairs[:, :1])
        else:
            step = self.steps[move.action, move.scene, move.after][site]
            table = chance[..., pairs[:, 1], 0] * step[np.ix_(pairs[:, 0], pairs[:, 0])]
            # A seen value sets the node of its corner.
            for column in np.flatnonzero(pairs[:, 0] == pairs[:, 1]):
                table[..., column] += chance[..., pairs[column, 1], 1]
        return Core(site, bonds, table if labelled else one_row(table))

    def _operator(self, k: int) -> Operator:
        if k not in self._operators:
            self._operators[k] = self.operator(self.moves[k])
        return self._operators[k]

    def _merged(self, moves: Sequence[int], clock: Stopwatch) -> list[tuple[Operator, list[Way]]]:
        """Return the operators of some moves, each once."""
        found: list[tuple[Way, Operator]] = []
        for k in moves:
            clock.check()
            found.append((Way(self.moves[k].weight, self.moves[k].after), self._operator(k)))
        return merged(found)

    @property
    def size(self) -> int:
        """The number of combinations of nodes."""
        return math.prod(self.nodes)

    def work(self) -> float:
        """Return about how many multiplications a sweep over all actions takes."""
        return sum(self._operator(k).work() for k in range(len(self.moves)))

    # Values.

    def _by_start(self) -> dict[tuple[int, int], list[int]]:
        grouped: dict[tuple[int, int], list[int]] = {start: [] for start in self.parts.starts}
        for k, move in enumerate(self.moves):
            grouped[move.action, move.scene].append(k)
        return grouped

    def _over_pairs(self, table: NDArray[np.int16]) -> NDArray[np.int16]:
        return table[np.ix_(*(pairs[:, 0] for pairs in self.pairs))]

    def _action_values(
        self, clock: Stopwatch, chosen: list[NDArray[np.int16]] | None = None
    ) -> Iterator[tuple[tuple[int, int], Tensor]]:
        """Yield (action, scene) and the value of the action there, at all pairs; of those chosen, if given."""
        by_start = self._by_start()
        starts = [
            (action, scene)
            for action, scene in by_start
            if chosen is None or bool((chosen[scene] == action).any())
        ]
        # Operators are made one after the other; then threads only read.
        operators = {start: self._merged(by_start[start], clock) for start in starts}

        def value_of(start: tuple[int, int]) -> Tensor:
            action, scene = start
            value = self.rewards[scene][action].copy()
            for part in pulled(operators[start], self.values):
                clock.check()
                value += self.parts.discount * part
            return value

        return zip(starts, self.team.results(value_of, starts), strict=True)

    def sweep(self, clock: Stopwatch) -> tuple[float, float]:
        """Improve all values once; return the least and the largest change."""
        parts = self.parts
        new = [np.zeros(self.shape) for _ in parts.scenes]
        chosen = [self._over_pairs(table) for table in self.actions]
        for (action, scene), value in self._action_values(clock, chosen):
            np.copyto(new[scene], value, where=chosen[scene] == action)
        return self._take(new)

    def bound(self) -> float:
        """Return the lower bound at the start, before the first observation."""
        total = self.rest * float(self.parts.beginning.sum())
        for scene, belief in enumerate(self.parts.beginning):
            if belief.any():
                total += float((belief * self._start(scene).pull(self.values[scene])).sum())
        return total

    def _start(self, scene: int) -> Operator:
        """Return what the first observation does: from values to pairs."""
        chances, cores = self._chances(scene)
        labels: list[Label] = []
        for site, (bonds, chance) in chances.items():
            size, pairs = self.parts.sizes[site], self.pairs[site]
            seen = np.zeros((size, len(pairs)))
            hidden = np.zeros((size, len(pairs)))
            for column, (node, value) in enumerate(pairs):
                hidden[value, column] = self.first[scene][site][node]
                seen[value, column] = float(node == value)
            table = chance[..., 0, None] * hidden + chance[..., 1, None] * seen
            cores.append(Core(site, bonds, table))
        for site, (pairs, size) in enumerate(zip(self.pairs, self.parts.sizes, strict=True)):
            labels.append(Label(self.parts.n_sites + site, pairs[:, 1], size))
        return Operator(cores, self.parts.sizes, column_labels=labels)

    # Better controllers.

    def occupancy(self, clock: Stopwatch, steps: int = 10) -> list[Tensor]:
        """Return how often (discounted) all pairs are met, by scenes."""
        parts = self.parts
        now = [np.zeros(self.shape) for _ in parts.scenes]
        for scene, belief in enumerate(parts.beginning):
            if belief.any():
                now[scene] += self._start(scene).push(belief)
        total = [part.copy() for part in now]
        chosen = [self._over_pairs(table) for table in self.actions]
        for step in range(steps):
            after = [np.zeros(self.shape) for _ in parts.scenes]
            for (action, scene), moves in self._by_start().items():
                part = np.where(chosen[scene] == action, now[scene], 0.0)
                if part.max() <= 1e-12:
                    continue
                push_all(self._merged(moves, clock), part, parts.discount, after, clock)
            now = after
            tail = 1.0 / (1.0 - parts.discount) if step == steps - 1 else 1.0
            for whole, part in zip(total, now, strict=True):
                whole += tail * part
        return total

    def better_actions(
        self, occupancy: list[Tensor], clock: Stopwatch
    ) -> tuple[list[NDArray[np.int16]], list[Tensor]]:
        """Return, at every combination of nodes, the best action on average, and what it gains over the present one."""
        parts = self.parts
        usual = self._usual_pairs()
        best = [np.full(self.nodes, -np.inf) for _ in parts.scenes]
        present = [np.zeros(self.nodes) for _ in parts.scenes]
        chosen = [table.copy() for table in self.actions]
        weights = [whole + 1e-9 * usual for whole in occupancy]
        for (action, scene), value in self._action_values(clock):
            value = self._by_nodes(weights[scene] * value)
            np.copyto(present[scene], value, where=self.actions[scene] == action)
            better = value > best[scene]
            best[scene][better] = value[better]
            chosen[scene][better] = action
        return chosen, [new - old for new, old in zip(best, present, strict=True)]

    def _usual_pairs(self) -> Tensor:
        """Return the product of the beliefs that nodes stand for, over pairs."""
        whole = np.ones(())
        for beliefs, pairs in zip(self.beliefs, self.pairs, strict=True):
            whole = np.multiply.outer(whole, beliefs[pairs[:, 0], pairs[:, 1]])
        return whole

    def _by_nodes(self, table: Tensor) -> Tensor:
        """Return sums over the values that each node stands for."""
        for site, pairs in enumerate(self.pairs):
            # Nodes that are never met have no pairs.
            met, begins = np.unique(pairs[:, 0], return_index=True)
            sums = np.zeros([self.nodes[site] if k == site else n for k, n in enumerate(table.shape)])
            there = (*(slice(None) for _ in range(site)), met)
            sums[there] = np.add.reduceat(table, begins, axis=site)
            table = sums
        return table

    def better_steps(
        self, occupancy: list[Tensor], clock: Stopwatch
    ) -> tuple[Steps, dict[tuple[int, int, int], list[Tensor]]]:
        """Return, for every node, where it is best to go while its site is missing, and what that gains."""
        chosen = [self._over_pairs(table) for table in self.actions]
        new = {key: list(steps) for key, steps in self.steps.items()}
        gains = {key: [np.zeros(n) for n in self.nodes] for key in new}
        least = _RARE * sum(float(part.sum()) for part in occupancy)
        for (action, scene), moves in self._by_start().items():
            part = np.where(chosen[scene] == action, occupancy[scene], 0.0)
            if part.sum() <= least:
                continue
            for site in range(self.parts.n_sites):
                alike: dict[bytes, tuple[Operator, list[Move]]] = {}
                for k in moves:
                    operator = self.operator(self.moves[k], labelled=site)
                    alike.setdefault(operator.key, (operator, []))[1].append(self.moves[k])
                for operator, same in alike.values():
                    clock.check()
                    flow = np.moveaxis(operator.push(part), site, 0)
                    for move in same:
                        key = (action, scene, move.after)
                        new[key][site], gains[key][site] = self._better_step(move, site, flow)
        return new, gains

    def _better_step(self, move: Move, site: int, flow: Tensor) -> tuple[Tensor, Tensor]:
        """Return where it is best to go from the nodes of a site in a move, and what that gains.

        `flow` says how often sites end up where while this one is missing; its first axis is (node before,
        next value) of the site.
        """
        size, pairs, n_nodes = self.parts.sizes[site], self.pairs[site], self.nodes[site]
        value = np.moveaxis(self.values[move.after], site, 0)
        # [node as it was, next value, next pair]
        scores = (flow.reshape(len(flow), -1) @ value.reshape(len(value), -1).T).reshape(n_nodes, size, -1)
        met = self._followed(move, site)
        total = np.zeros((n_nodes, n_nodes))
        for column, (node, after) in enumerate(pairs):
            total[:, node] += scores[:, after, column]
        possible = ~(met[:, None] & ~self._possible(site)).any(axis=2)
        old = self.steps[move.action, move.scene, move.after][site]
        present = (old * total).sum(axis=1)
        total[~possible] = -np.inf
        best = np.argmax(total, axis=1)
        gain = total[np.arange(n_nodes), best] - present
        gain = np.where(np.isfinite(gain), gain, 0.0) * move.weight * self.parts.discount
        return np.where(gain[:, None] > 0.0, np.eye(n_nodes)[best], old), gain

    def _followed(self, move: Move, site: int) -> NDArray[np.bool_]:
        """Return which values can follow at a node, shape (N, values)."""
        size = self.parts.sizes[site]
        kernel = (move.kernels[site].table.reshape(-1, size, size) > 0.0).any(axis=0)
        return (self._possible(site).astype(float) @ kernel) > 0.0

    def _possible(self, site: int) -> NDArray[np.bool_]:
        """Return which values are possible at the nodes of a site, shape (N, values)."""
        pairs = self.pairs[site]
        there = np.zeros((self.nodes[site], self.parts.sizes[site]), dtype=bool)
        there[pairs[:, 0], pairs[:, 1]] = True
        return there

    def proposed(self, clock: Stopwatch, share: float, what: str) -> Memory:
        """Return a controller with the most promising changes, which together make up a share of the possible gain."""
        if "occupancy" not in self._better:
            self._better["occupancy"] = self.occupancy(clock)
        if what not in self._better:
            better = self.better_actions if what == "actions" else self.better_steps
            self._better[what] = better(self._better["occupancy"], clock)
        actions, steps = self.actions, self.steps
        best, gains = self._better[what]
        if what == "actions":
            least = threshold([gain.ravel() for gain in gains], share)
            actions = [
                np.where(gain >= least, new, old)
                for new, old, gain in zip(best, self.actions, gains, strict=True)
            ]
        else:
            least = threshold([one for of_move in gains.values() for one in of_move], share)
            steps = {
                key: [
                    np.where((gain >= least)[:, None], new, old)
                    for new, old, gain in zip(best[key], self.steps[key], gains[key], strict=True)
                ]
                for key in best
            }
        return self.changed(actions, steps)

    def actions_at(self, beliefs: Sequence[Tensor]) -> list[NDArray[np.int16]]:
        """Return the actions at other nodes: those of the nearest ones."""
        nearest = [
            np.array([self._nearest(site, belief) for belief in rows]) for site, rows in enumerate(beliefs)
        ]
        return [table[np.ix_(*nearest)] for table in self.actions]

    def _steps_of(self, other: Memory) -> Steps:
        """Return the steps of another memory on these nodes: each node moves as the one nearest to it does there."""
        to = [[self._nearest(site, belief) for belief in rows] for site, rows in enumerate(other.beliefs)]
        of = [[other._nearest(site, belief) for belief in rows] for site, rows in enumerate(self.beliefs)]
        return {
            key: [old[of[k]] @ np.eye(self.nodes[k])[to[k]] for k, old in enumerate(other.steps[key])]
            for key in self.steps
        }

    def changed(self, actions: list[NDArray[np.int16]], steps: Steps) -> Memory:
        """Return a controller with the same nodes and pairs but other actions and steps; its values start from ours."""
        other = copy(self)
        other.actions, other.steps = actions, steps
        other.values = [values.copy() for values in self.values]
        other._operators = self._operators if steps is self.steps else {}
        other._better = {}
        other.rest = math.inf
        return other


def threshold(gains: list[Tensor], share: float) -> float:
    """Return the least gain of those that together make a share of all."""
    positive: Tensor = np.concatenate([gain[gain > 0.0] for gain in gains])
    positive[::-1].sort()
    if not len(positive):
        return math.inf
    sums: Tensor = positive.cumsum()
    return float(positive[min(int((sums < share * float(sums[-1])).sum()), len(positive) - 1)])

"""An upper bound on products of beliefs: value iteration on a grid with a few beliefs per site.

In the world of the bound, beliefs about sites stay independent: what ties them together is told (see `told`), and a
missing value's new belief is split into beliefs of the grid, of which one is told (see `mixtures`). Telling can only
help, so every value here is at least the true one. With corners only, it is the value of full observation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.cores import (
    Core,
    Operator,
    TooTiedError,
    Way,
    by_action,
    empty_core,
    merged,
    one_row,
    pulled,
    push_all,
)
from missmdp.plan.factored.links import Link, missing_chance, shown
from missmdp.plan.factored.mixtures import Mixer
from missmdp.plan.factored.parts import Gaps, Move, Parts
from missmdp.plan.factored.sweeps import Swept
from missmdp.plan.factored.team import Team
from missmdp.plan.factored.told import Local, Tie, told_after, told_before, told_by_gaps, told_by_kernel
from missmdp.plan.stopping import Stopwatch

Tensor = NDArray[np.float64]


MOST_TERMS = 50_000
"""Combinations of terms at all sites in all moves above which too much is tied together."""


class Ties:
    """What is told in every move of a model, worked out once.

    Parameters
    ----------
    parts
        The model.
    clock
        When to stop, here and while a grid is made; never if not given.
    told
        Whether anything is told at all; if not, there are moves only.

    Raises
    ------
    TooTiedError
        If there is too much of it.
    """

    def __init__(self, parts: Parts, clock: Stopwatch | None = None, *, told: bool = True) -> None:
        self.parts = parts
        self.clock = clock or Stopwatch(None)
        self.moves = list(parts.moves())
        if not told:
            return
        self._gaps = [parts.gaps(scene) for scene in range(len(parts.scenes))]
        split = [shown(gaps) for gaps in self._gaps]
        self.links = [one.links for one in split]
        """For each scene, what ties together which sites are seen, where values do not matter."""
        self._flagged = [one.flagged for one in split]
        self._check_patterns([one.gaps for one in split])
        self._after = [
            [*map(self._told_by_gaps, one.gaps), *map(told_after, parts.goes_on(scene))]
            for scene, one in enumerate(split)
        ]
        self._kernels: dict[tuple[int, int], list[Tie]] = {}
        self.bonds = [0.0] * parts.n_sites
        """For each site, how many matrices over beliefs the operators of all moves have."""
        n_terms = 0.0
        for move in self.moves:
            self.clock.check()
            terms = [2.0 if site in self._flagged[move.after] else 1.0 for site in range(parts.n_sites)]
            bonds = list(terms)
            for tie in self.of(move):
                touched = {site for term in tie for site in term}
                for site in touched:
                    terms[site] *= len(tie)
                    bonds[site] *= len(tie) if len(touched) > 1 else 1
            self.bonds = [old + new for old, new in zip(self.bonds, bonds, strict=True)]
            n_terms += sum(terms)
            if n_terms > MOST_TERMS:
                raise TooTiedError

    def _told_by_gaps(self, gaps: Gaps) -> Tie:
        self.clock.check()
        return told_by_gaps(gaps)

    def _check_patterns(self, of_scenes: Sequence[Sequence[Gaps]]) -> None:
        """Raise `TooTiedError` if sites have too many patterns together to make a term of each."""
        for gaps in chain.from_iterable(of_scenes):
            possible = gaps.given.table.reshape(-1, len(gaps.patterns)).any(axis=0)
            if float(np.count_nonzero(possible)) * len(gaps.of) > MOST_TERMS:
                raise TooTiedError

    def of(self, move: Move) -> list[Tie]:
        """Return what is told in a move."""
        key = (move.action, move.scene)
        if key not in self._kernels:
            self._kernels[key] = [told_by_kernel(k, kernel) for k, kernel in enumerate(move.kernels)]
        return [*map(told_before, move.signs), *self._kernels[key], *self._after[move.after]]

    def first(self, scene: int) -> list[Tie]:
        """Return what the first observation tells in a scene."""
        return self._after[scene]

    def missing(self, move: Move, site: int) -> list[Tie]:
        """Return what is told of a site in a move, where that it is missing is told with its probability."""
        ties = [tie for tie in self.of(move) if any(site in term for term in tie)]
        if site in self._flagged[move.after]:
            gaps = next(gaps for gaps in self._gaps[move.after] if site in gaps.of)
            # It does not depend on values, whatever axes its table has.
            chance = missing_chance(gaps, site).ravel()[0]
            ties.append([{site: Local(after=np.full(self.parts.sizes[site], chance))}])
        return ties


class Grid(Swept):
    """An upper bound on a grid.

    Parameters
    ----------
    ties
        The model.
    beliefs
        For each site, beliefs with the corners first, shape (G, values).
    prices
        For each site, what its beliefs are worth, about.
    values
        Where to begin, by scenes; anything will do.
    team
        Threads to use; one if not given.
    """

    values: list[Tensor]
    from_above = True

    def __init__(
        self,
        ties: Ties,
        beliefs: Sequence[Tensor],
        prices: Sequence[Tensor],
        values: list[Tensor] | None = None,
        team: Team | None = None,
    ) -> None:
        parts = ties.parts
        self.ties, self.parts = ties, parts
        self.team = team or Team()
        self.beliefs = list(beliefs)
        self.prices = list(prices)
        self.shape = tuple(len(site) for site in beliefs)
        mixers: dict[tuple[bytes, bytes], Mixer] = {}
        self._mixers = [
            mixers.setdefault((b.tobytes(), p.tobytes()), Mixer(b, p))
            for b, p in zip(beliefs, prices, strict=True)
        ]
        self._rows: dict[tuple[int, bytes, bytes], Tensor] = {}
        self.moves = [(move, self._of_move(move, self.beliefs)) for move in ties.moves]
        self._first = list(self._starts())
        self.rewards = [by_action(_over_beliefs(reward, self.beliefs)) for reward in parts.reward]
        self.values = (
            [np.zeros(self.shape) for _ in parts.scenes] if values is None else [v.copy() for v in values]
        )
        self.chosen = [np.zeros(self.shape, dtype=np.int16) for _ in parts.scenes]

    def _of_move(self, move: Move, rows: Sequence[Tensor]) -> Operator:
        return self.operator(self.ties.of(move), self.ties.links[move.after], rows)

    def operator(self, ties: list[Tie], links: list[Link], rows: Sequence[Tensor]) -> Operator:
        """Return what happens from beliefs about the sites (rows) to beliefs of the grid.

        The cores of the sites come first, then the links. Bonds: what is told, flags, and what links share.
        """
        flags = {site: len(ties) + site for link in links for site in link.sites}
        touched = [{site for term in tie for site in term} for tie in ties]
        bonds = [k for k, tie in enumerate(ties) if len(tie) > 1 and len(touched[k]) > 1]
        cores: list[Core] = []
        for site, given in enumerate(rows):
            self.ties.clock.check()
            mine = [k for k in range(len(ties)) if site in touched[k]]
            axes = [k for k in mine if k in bonds]
            flag = [flags[site]] if site in flags else []
            lengths = [*(len(ties[k]) for k in axes), *(2 for _ in flag)]
            table = empty_core(*lengths, len(given), len(self.beliefs[site]))
            for seen, *chosen in product(range(1 + len(flag)), *(range(len(ties[k])) for k in mine)):
                said = [ties[k][term].get(site) for k, term in zip(mine, chosen, strict=True)]
                place = [term for k, term in zip(mine, chosen, strict=True) if k in bonds]
                told = [local for local in (*said, Local(seen=bool(seen))) if local is not None]
                table[(*place, *(seen for _ in flag))] += self._after(site, given, told)
            cores.append(Core(site, (*axes, *flag), one_row(table)))
        more = len(ties) + len(rows)
        for link in links:
            names = (*(flags[site] for site in link.sites), *(more + bond for bond in link.bonds))
            cores.append(Core(-1, names, link.table))
        return Operator(cores, tuple(len(given) for given in rows))

    def _after(self, site: int, given: Tensor, said: list[Local]) -> Tensor:
        """Return P(next belief of the grid, what is said | belief), shape (rows, G)."""
        n_values = given.shape[1]
        seen = any(local.seen for local in said)
        matrix = _matrix(said, n_values)
        key = (id(self._mixers[site]), given.tobytes(), matrix.tobytes() + bytes([seen]))
        if key not in self._rows:
            mass = given @ matrix
            table = np.zeros((len(given), len(self.beliefs[site])))
            if seen:
                table[:, :n_values] = mass
            else:
                total = mass.sum(axis=1)
                some = total > 0.0
                if some.any():
                    mixed = self._mixers[site].weights(mass[some] / total[some, None])
                    table[some] = total[some, None] * mixed
            self._rows[key] = table
        return self._rows[key]

    def missing(self, move: Move, site: int) -> list[Tensor]:
        """Return P(next value, what is said | belief) for all that can be said while a site is missing."""
        found: list[Tensor] = []
        for terms in product(*self.ties.missing(move, site)):
            said = [term[site] for term in terms if site in term]
            if not any(local.seen for local in said):
                found.append(self.beliefs[site] @ _matrix(said, self.parts.sizes[site]))
        return found

    @property
    def size(self) -> int:
        """The number of products of beliefs."""
        return math.prod(self.shape)

    def work(self) -> float:
        """Return about how many multiplications a sweep takes."""
        return sum(operator.work() for _, operator in self.moves)

    def sweep(self, clock: Stopwatch) -> tuple[float, float]:
        """Improve all values once; return the least and the largest change."""
        parts = self.parts
        new = [np.full(self.shape, -np.inf) for _ in parts.scenes]
        chosen = [np.zeros(self.shape, dtype=np.int16) for _ in parts.scenes]
        merged_by_start = self._merged  # made once, before threads use it

        def value_of(start: tuple[int, int]) -> Tensor:
            action, scene = start
            value = self.rewards[scene][action].copy()
            for part in pulled(merged_by_start[start], self.values):
                clock.check()
                value += parts.discount * part
            return value

        starts = list(self._by_start())
        for (action, scene), value in zip(starts, self.team.results(value_of, starts), strict=True):
            better = value > new[scene]
            new[scene][better] = value[better]
            chosen[scene][better] = action
        self.chosen = chosen
        return self._take(new)

    def _by_start(self) -> dict[tuple[int, int], list[tuple[Move, Operator]]]:
        if not hasattr(self, "_grouped"):
            # Where all is over next, there is no move, and the reward is all.
            self._grouped: dict[tuple[int, int], list[tuple[Move, Operator]]] = {
                start: [] for start in self.parts.starts
            }
            for move, operator in self.moves:
                self._grouped[move.action, move.scene].append((move, operator))
        return self._grouped

    @cached_property
    def _merged(self) -> dict[tuple[int, int], list[tuple[Operator, list[Way]]]]:
        """The operators of each action in each scene, each once."""
        return {
            start: merged((Way(move.weight, move.after), operator) for move, operator in moves)
            for start, moves in self._by_start().items()
        }

    def blind(self, action: int, clock: Stopwatch, precision: float, max_sweeps: int = 2000) -> float:
        """Return a lower bound at the start for one action for ever, on a grid of corners.

        Parameters
        ----------
        action
            The action.
        clock
            When to stop.
        precision
            How far the bound may be below the value.
        max_sweeps
            After so many sweeps, the bound is further below it.
        """
        parts, discount = self.parts, self.parts.discount
        future = discount / (1.0 - discount)
        values, lack = [np.zeros(self.shape) for _ in parts.scenes], 0.0
        for _ in range(max_sweeps):
            new = [self.rewards[scene][action].copy() for scene in range(len(parts.scenes))]
            for scene, value in enumerate(new):
                for move, operator in self._by_start()[action, scene]:
                    clock.check()
                    value += discount * move.weight * operator.pull(values[move.after])
            low = min(float((a - b).min()) for a, b in zip(new, values, strict=True))
            high = max(float((a - b).max()) for a, b in zip(new, values, strict=True))
            if parts.ends:
                low, high = min(low, 0.0), max(high, 0.0)
            values, lack = new, future * low
            if future * (high - low) <= precision:
                break
            if not parts.ends:
                shift = future * (low + high) / 2.0
                values, lack = [value + shift for value in values], lack - shift
        return sum(
            float((belief * (value + lack)).sum())
            for belief, value in zip(parts.beginning, values, strict=True)
        )

    def bound(self) -> float:
        """Return the upper bound at the start, before the first observation."""
        total = self.rest * float(self.parts.beginning.sum())
        for scene, weights, operator in self._first:
            total += float((weights * operator.pull(self.values[scene])).sum())
        return total

    def _starts(self) -> Iterator[tuple[int, Tensor, Operator]]:
        """Yield scenes, weights of products of beliefs there, and what the first observation does to these."""
        for scene, belief in enumerate(self.parts.initial):
            weight = float(belief.sum())
            if not self.parts.beginning[scene].any():
                continue
            rows = _marginals(belief / weight)
            if np.abs(_outer(rows) - belief / weight).max() <= 1e-14:
                weights, beliefs = np.full((1,) * len(rows), weight), [row[None] for row in rows]
            else:  # no product: the state is told
                weights, beliefs = belief, [np.eye(size) for size in belief.shape]
            yield scene, weights, self.operator(self.ties.first(scene), self.ties.links[scene], beliefs)

    def occupancy(self, clock: Stopwatch, steps: int = 15) -> list[Tensor]:
        """Return how often (discounted) each belief of the grid is met under the greedy policy, by scenes."""
        parts = self.parts
        now = [np.zeros(self.shape) for _ in parts.scenes]
        for scene, weights, operator in self._first:
            now[scene] += operator.push(weights)
        total = [belief.copy() for belief in now]
        for step in range(steps):
            after = [np.zeros(self.shape) for _ in parts.scenes]
            for action, scene in self._by_start():
                part = np.where(self.chosen[scene] == action, now[scene], 0.0)
                if part.max() <= 1e-9:
                    continue
                push_all(self._merged[action, scene], part, parts.discount, after, clock)
            now = after
            # The last step stands for all that would follow.
            tail = 1.0 / (1.0 - parts.discount) if step == steps - 1 else 1.0
            for whole, belief in zip(total, now, strict=True):
                whole += tail * belief
        return total

    def prolonged(self, beliefs: Sequence[Tensor]) -> list[Tensor]:
        """Return the values at beliefs of a finer grid, mixed."""
        values = self.values
        for site, wanted in enumerate(beliefs):
            weights = self._mixers[site].weights(wanted)
            values = [np.moveaxis(np.tensordot(weights, v, axes=(1, site)), 0, site) for v in values]
        return [np.ascontiguousarray(v) for v in values]

    def action_values(self, rows: Sequence[Tensor], clock: Stopwatch) -> Iterator[tuple[int, int, Tensor]]:
        """Yield action, scene and the value of that action, one step ahead, at products of other beliefs."""
        rewards = [_over_beliefs(reward, rows) for reward in self.parts.reward]
        same = [row is belief for row, belief in zip(rows, self.beliefs, strict=True)]
        shape = tuple(len(row) for row in rows)
        for (action, scene), moves in self._by_start().items():
            value = rewards[scene][..., action].copy()
            for move, whole in moves:
                clock.check()
                fresh = self._of_move(move, rows)
                # Where rows are those of the grid, so are the cores, which are there already.
                cores = [
                    old if old.site < 0 or same[old.site] else new
                    for old, new in zip(whole.cores, fresh.cores, strict=True)
                ]
                value += (
                    self.parts.discount * move.weight * Operator(cores, shape).pull(self.values[move.after])
                )
            yield action, scene, value

    def backed_up(self, site: int, wanted: Tensor, clock: Stopwatch) -> tuple[list[Tensor], list[Tensor]]:
        """Return values at other beliefs of one site: mixed, and after one more step; by scenes."""
        rows = [wanted if k == site else b for k, b in enumerate(self.beliefs)]
        best = [np.full(tuple(len(row) for row in rows), -np.inf) for _ in self.parts.scenes]
        for _, scene, value in self.action_values(rows, clock):
            np.maximum(best[scene], value, out=best[scene])
        weights = self._mixers[site].weights(wanted)
        mixed = [np.moveaxis(np.tensordot(weights, v, axes=(1, site)), 0, site) for v in self.values]
        return mixed, best

    def greedy_at(self, rows: Sequence[Tensor], clock: Stopwatch) -> list[NDArray[np.int16]]:
        """Return the best action at products of other beliefs, one step ahead, by scenes."""
        shape = tuple(len(row) for row in rows)
        best = [np.full(shape, -np.inf) for _ in self.parts.scenes]
        chosen = [np.zeros(shape, dtype=np.int16) for _ in self.parts.scenes]
        for action, scene, value in self.action_values(rows, clock):
            better = value > best[scene]
            best[scene][better] = value[better]
            chosen[scene][better] = action
        return chosen


def _matrix(said: list[Local], n_values: int) -> Tensor:
    """Return P(next value, what is said | value), shape (values, values)."""
    before, after, kernel = np.ones(n_values), np.ones(n_values), np.eye(n_values)
    for local in said:
        before = before if local.before is None else before * local.before
        after = after if local.after is None else after * local.after
        kernel = kernel if local.kernel is None else local.kernel
    return before[:, None] * kernel * after


def _over_beliefs(table: Tensor, beliefs: Sequence[Tensor]) -> Tensor:
    """Return expectations under products of beliefs; axes after those of the sites stay."""
    for site, rows in enumerate(beliefs):
        table = np.moveaxis(np.tensordot(rows, table, axes=(1, site)), 0, site)
    return np.ascontiguousarray(table)


def _marginals(belief: Tensor) -> list[Tensor]:
    axes = range(belief.ndim)
    return [belief.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def _outer(rows: Sequence[Tensor]) -> Tensor:
    whole = np.ones(())
    for row in rows:
        whole = np.multiply.outer(whole, row)
    return whole

"""The structured search where all sites are alike: rounds of a finer grid from above and a larger memory from below."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.alike.grid import AlikeGrid
from missmdp.plan.factored.alike.memory import AlikeMemory
from missmdp.plan.factored.alike.model import Alike
from missmdp.plan.factored.alike.multisets import count, elements, forget_tables, joined, peak, without, work
from missmdp.plan.factored.alike.policy import memory_policy
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Ties
from missmdp.plan.factored.nodes import Nodes, Site, lost_by_confusion, with_drift
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.factored.search import StructuredSearch
from missmdp.plan.stopping import SearchLimits, Status, Stop, Stopwatch

Tensor = NDArray[np.float64]

_SPEED = 5e8
"""Multiplications per second, about."""
_FIRST_ROUND, _GROWTH = 0.5, 3.0
"""Seconds of a first round, and how much longer rounds get."""
_SHARE = 0.35
"""Of the time that is left, what a round may take."""
_OF_GRID = 0.35
"""Of a round, what the grid may take."""
_SWEEPS = 45.0, 130.0
"""Sweeps that there must be time for in a round of a grid, and of a memory, which is changed many times."""
_FIRST_SHARE = 1.0 / 3.0
"""Of what changes could gain, the share that is tried first."""
_PER_ROW = 6.0
"""Entries per row of a matrix, about."""
_MOST_TABLE = 1.2e7
"""Entries of a policy's table of actions, at most."""
_LARGER = 1.15
"""How many times more pairs a memory needs to have to begin anew with it."""
_JUMP = 30.0
"""How many times more work a sweep of the next memory may take, if there is one in between."""
_FINER = 1.3
"""How many times more beliefs a grid gets at once."""
_PATIENCE, _WORTH = 6, 0.02
"""Changes of a memory that together must gain such a share of what is left, or no more are tried in a round."""
_SHARE_IF_STUCK = 0.6
"""Of the time that is left, what a larger memory may take where the present one cannot be improved."""
_LEAST_SHARE = 0.01
"""Of what changes could gain, the least share that is tried."""
_EXACT = 0.3
"""How much more exactly bounds are worked out than in other searches, each time that nothing more is found."""
_STALLED = 0.01
"""Of the gap: a round that closes less, where more time would not help, is the last one."""
_WAIT = 0.7
"""Of a gap: where a grid gained nothing, how small the gap must be before it is tried again."""
_CANDIDATES = 48
"""Beliefs that could be nodes."""
_CONTEXTS = 400
"""Multisets of the other sites that are looked at, those that are met most."""


@dataclass
class AlikeSearch(StructuredSearch):
    """One search, where all sites are alike."""

    alike: Alike | None = None
    _grid_waits: tuple[float, int] = (math.inf, 0)
    """How small the gap must be before the grid is tried again, or how many beliefs there must be time for."""
    _stuck: int = 0
    """For how many rounds no change of the memory has gained anything to speak of."""
    _tried: set[bytes] = field(default_factory=set[bytes])
    """Nodes with which a memory began with what is best on the grid."""
    _done: float = 0.0
    """Multiplications of all sweeps so far."""
    _path: tuple[int, Site, list[Nodes]] | None = None

    def run(self) -> Status:
        """Search until a goal or a limit is reached, and return which."""
        alike = self.alike
        assert alike is not None
        try:
            with suppress(TooTiedError):
                self._begin(Ties(self.parts, self.limits))
            corners = np.eye(alike.n_values)
            self._grid = AlikeGrid(alike, corners, np.zeros(len(corners)), team=self.team)
            self._speed = _SPEED
            self._solve_grid(self._grid)
            seconds = _FIRST_ROUND
            while True:
                before = self.upper - self.lower
                now = min(seconds, _SHARE * self.limits.left)
                more = self._finer_grid(_OF_GRID * now)
                more |= self._larger_memory((1.0 - _OF_GRID) * now)
                self.rounds += 1
                self._check()
                if not more and before - (self.upper - self.lower) <= _STALLED * before:
                    return "exhausted"
                seconds *= _GROWTH
        except Stop as stop:
            self._harvest()
            return stop.status
        finally:
            forget_tables()

    def _count(self, work: float, sweeps: int, start: float) -> None:
        self.sweeps += sweeps
        self._done += work * sweeps
        seconds = self.limits.seconds - start
        if self.limits.timeout is not None and seconds > 0.05 and sweeps:
            self._speed = work * sweeps / seconds

    def _now(self) -> float:
        """Return the seconds so far; without a limit of time by the work done, so that results are always the same."""
        return self._done / _SPEED if self.limits.timeout is None else self.limits.seconds

    def _room(self, n: int) -> bool:
        """Return whether there is memory for multisets of so many things."""
        assert self.alike is not None
        sites = self.alike.n_sites
        return 8.0 * (4.0 * peak(n, n, sites) + 3.0 * n * count(n, sites)) <= self.limits.memory

    def _work(self, n: int) -> float:
        """Return about how many multiplications a sweep takes with so many things."""
        alike = self.alike
        assert alike is not None
        total = 0.0
        for kind in alike.kinds:
            moves = float((kind.weights > 0.0).sum())
            total += moves * work(n, n, alike.n_sites - kind.on_one, _PER_ROW)
        return total

    def _finer_grid(self, seconds: float) -> bool:
        """Make the grid finer, as far as there is time; return whether more time might help."""
        grid, most = self._grid, seconds * self._speed / _SWEEPS[0]
        assert isinstance(grid, AlikeGrid)
        end = self._now() + seconds
        while self._now() < end:
            wanted = self._affordable(len(grid.beliefs), most)
            if self.upper - self.lower >= self._grid_waits[0] and wanted <= self._grid_waits[1]:
                break
            before = self.upper
            beliefs, prices = grid.refined(wanted, self.limits)
            finer = AlikeGrid(grid.alike, beliefs, prices, grid.prolonged(beliefs), self.team)
            self._solve_grid(finer)
            same, self._grid, grid = len(beliefs) == len(grid.beliefs), finer, finer
            self._check()
            # Other prices may help, too; where they do not, memories come first.
            if same and before - self.upper <= _WORTH * (self.upper - self.lower):
                self._grid_waits = _WAIT * (self.upper - self.lower), wanted
        return self._room(len(grid.beliefs) + 1) and self._work(len(grid.beliefs) + 1) > most

    def _affordable(self, n: int, most: float) -> int:
        """Return how many beliefs a finer grid may have, with at most so much work per sweep."""
        wanted = int(_FINER * n) + 1
        while wanted > n and (self._work(wanted) > most or not self._room(wanted)):
            wanted -= 1
        return wanted

    def _larger_memory(self, seconds: float) -> bool:
        """Improve a memory, a larger one if there is time for it; return whether more time might help."""
        end = self._now() + seconds
        memory = self.memory if isinstance(self.memory, AlikeMemory) else None
        value = self.memory_value
        larger = self._enlarged(memory, self._most_work(seconds))
        if larger is not None:
            self._shares, self._stuck = {"choices": _FIRST_SHARE, "moves": _FIRST_SHARE}, 0
            memory, value = larger, self._solve_memory(larger)
        if memory is None:
            return False
        gains = [math.inf] * _PATIENCE
        while self._now() < end and sum(gains[-_PATIENCE:]) > _WORTH * (self.upper - value):
            what = "moves" if len(gains) % 2 else "choices"
            other = memory.proposed(self.limits, self._shares[what], what)
            better = self._solve_memory(other)
            gains.append(max(better - value, 0.0))
            share = self._shares[what]
            self._shares[what] = min(1.0, 2.0 * share) if better > value else max(share / 3.0, _LEAST_SHARE)
            if better > value:
                memory, value = other, better
        self._stuck = 0 if self._now() >= end else self._stuck + 1
        return self._stuck < 2 or memory.n_pairs < self._most_pairs()

    def _most_work(self, seconds: float) -> float:
        """Return how much a sweep of a larger memory may take: more where nothing was found with present nodes."""
        stuck = min(self._stuck, 2)
        if self.limits.timeout is None:
            return seconds * _GROWTH**stuck * self._speed / _SWEEPS[1]
        if stuck:
            seconds = max(seconds, _SHARE_IF_STUCK * self.limits.left)
        return seconds * self._speed * 2.0**stuck / _SWEEPS[1]

    def _exactness(self) -> float:
        return super()._exactness() * _EXACT ** (1 + min(self._stuck, 2))

    def _most_pairs(self) -> int:
        """Return how many pairs a memory can have, however long it takes."""
        return (
            max((found.n_pairs for found in self._path[2] if self._fit(found)), default=0)
            if self._path
            else 0
        )

    def _enlarged(self, memory: AlikeMemory | None, most: float) -> AlikeMemory | None:
        """Return a memory with more nodes, with at most so much work per sweep; None if there is none.

        It does what is best on the grid. Where that came to less than the present one, it begins as that one does.
        """
        grid = self._grid
        assert isinstance(grid, AlikeGrid)
        alike = grid.alike
        site, path = self._nodes(grid)
        fitting = [found for found in path if self._fit(found)]
        if not fitting:
            return None
        affordable = [found for found in fitting if self._work(found.n_pairs) <= most]
        if memory is None:
            wanted = (affordable or fitting[-1:])[0]
        else:
            larger = [found for found in affordable if found.n_pairs >= _LARGER * memory.n_pairs]
            if not larger:
                return None
            # Step by step: what is much larger can be improved less often.
            near = _JUMP * self._work(memory.n_pairs)
            wanted = next((found for found in larger if self._work(found.n_pairs) <= near), larger[-1])
        nodes = site.beliefs[wanted.nodes]
        like = memory if nodes.tobytes() in self._tried else None
        self._tried.add(nodes.tobytes())
        steps = grid.steps_from(site.averages(wanted.nodes))
        _, choices = steps.best(steps.action_values(grid.values, self.limits))
        return AlikeMemory(alike, nodes, choices, self.team, like=like)

    def _fit(self, found: Nodes) -> bool:
        """Return whether a memory with such nodes fits into memory, and its policy into a table."""
        alike = self.alike
        assert alike is not None
        table = float(len(found.nodes)) ** alike.n_sites * alike.n_scenes
        return table <= max(_MOST_TABLE, float(self.parts.model.n_states)) and self._room(found.n_pairs)

    def _nodes(self, grid: AlikeGrid) -> tuple[Site, list[Nodes]]:
        """Return sets of nodes, from all to few; worked out anew where the grid is much finer than it was then."""
        if self._path is None or len(grid.beliefs) > _LARGER * self._path[0]:
            site = _site(grid, grid.occupancy(self.limits), self.limits)
            self._path = len(grid.beliefs), site, site.path(self.limits)
        return self._path[1:]

    def policy(self) -> MemoryPolicy:
        """Return the policy that the lower bound belongs to."""
        if self.lower_source == "memory" and isinstance(self.memory, AlikeMemory):
            return memory_policy(self.memory)
        return super().policy()


def _site(grid: AlikeGrid, occupancy: Tensor, clock: SearchLimits) -> Site:
    """Return the beliefs that a site passes through under the policy of a grid."""
    alike = grid.alike
    usage = grid.usage(occupancy)
    shares = usage.sum(axis=1) / usage.sum()
    kernels: dict[bytes, tuple[Tensor, Tensor]] = {}
    for k, kind in enumerate(alike.kinds):
        chosen = float(occupancy[grid.choices // alike.n_sites == k].sum() / occupancy.sum())
        of_scenes = [
            kernel * (kind.weights[scene] @ alike.missing) for scene, kernel in enumerate(kind.kernels[0])
        ]
        usual = np.tensordot(shares, of_scenes, axes=1)
        for share, kernel in zip((1.0, *shares), (usual, *of_scenes), strict=True):
            often = share / 2.0 * chosen * usage[:, : alike.n_values].sum(axis=0)
            key = np.round(kernel, 9).tobytes()
            kernels[key] = kernel, often + (kernels[key][1] if key in kernels else 0.0)
    contexts = grid.contexts(occupancy)
    return Site(
        alike.n_values,
        list(kernels.values()),
        lambda beliefs: _losses(grid, contexts, beliefs, clock),
        clock,
        most=_CANDIDATES,
    )


def _losses(grid: AlikeGrid, contexts: Tensor, beliefs: Tensor, clock: Stopwatch) -> Tensor:
    """Return what is lost at each belief by the action that is best at each other one, in values of a grid, mixed."""
    alike, n, n_beliefs = grid.alike, grid.alike.n_sites, len(grid.beliefs)
    mixed = grid.mixer.weights(beliefs)
    things, rest = elements(n_beliefs, n - 1), without(n_beliefs, n - 1)
    found = grid.steps.action_values(grid.values, clock)
    values: list[Tensor] = []
    weights: list[Tensor] = []
    for scene in range(alike.n_scenes):
        top = np.argsort(-contexts[scene], kind="stable")[:_CONTEXTS]
        actions: list[Tensor] = []
        for k, kind in enumerate(alike.kinds):
            value = found[k, scene]
            if not kind.on_one:
                actions.append(value[joined(n_beliefs, n)[top].T])
                continue
            actions.append(value[:, top])
            others = [value[things[top, t], joined(n_beliefs, n - 1)[rest[top, t]].T] for t in range(n - 1)]
            actions.append(np.max(others, axis=0))
        values.append(np.array([mixed @ action for action in actions]))
        weights.append(contexts[scene, top])
    return with_drift(lost_by_confusion(values, weights), beliefs)

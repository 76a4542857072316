"""The structured search: a grid from above and a memory from below, both finer and finer while there is time.

It begins with what is known at once: full observation from above, the best action for ever from below. Then rounds: the
grid is made finer where its own policy goes, the memory takes the beliefs that matter most as nodes and is improved by
steps that were tried out. Every number is a bound whenever the search is stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from missmdp.model.missmdp import MissMDP
from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Grid, Ties
from missmdp.plan.factored.memory import Memory
from missmdp.plan.factored.nodes import chosen_nodes
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.factored.refine import first_beliefs, marginals_of, refined
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import ROUNDING, Goal, SearchLimits, Status, Stop
from missmdp.plan.trace import TraceBuilder

Tensor = NDArray[np.float64]

_FIRST_ENTRIES = 60_000.0
"""Entries of all tensors of a first grid."""
_FIRST_MEMORY = 3e5
"""Entries of a first memory."""
_GROWTH = 4.0
"""How much larger grids get from round to round."""
_LARGEST = 2e7
"""Entries of all tensors that no grid exceeds."""
_PER_ENTRY = 60.0
"""Bytes per entry that a grid or a memory needs, with all that is worked out on the way."""
_SHARE = 0.12
"""Of the time that is left, what the sweeps of one solution may take."""
_SWEEPS = 25.0
"""Sweeps that a solution takes, about."""
_CLIMB_SHARE = 0.6
"""Of the time that is left, what the improvement of one memory may take."""
_CLIMB_FIRST = 0.05
"""The same in the first round, where it is only to have a lower bound."""
_STALLED = 0.01
"""Of the gap: a round that closes less, and that could not have more entries, is the last one."""
_WORTH = 0.05
"""Of the gap: what a finer grid must gain so that the next one comes before memories."""
_REFINE_FIRST = 0.3
"""Of all the time, when memories come at the latest."""
_CLIMB_SWEEPS = 150.0, 35.0
"""Sweeps that there should be time for, and those that there must be time for."""
_LOSS = 0.4
"""Of the gap: what nodes may cost to have time for all these sweeps."""
_SPEED = 5e8
"""Multiplications per second, at least."""
_CLOSE = 0.02
"""Of the gap: how exactly bounds are worked out."""
_ROOM = 2.0
"""How many times more entries a memory may have than it should, where fewer nodes would not help."""
_LARGER = 1.5
"""How many times more entries a memory needs to have to begin anew with it."""
_PATIENCE = 6
"""Changes of a memory that together must gain something, or no more are tried."""
_FEW_OBSERVATIONS = 128
"""Below so many different observations, listing them is faster."""
_FEW_SITES = 3
_MOST_MOVES = 20_000
"""Moves (actions × scenes × next scenes) above which the structured search does not begin."""


@dataclass
class StructuredSearch:
    """One search; `run` fills in the bounds, the controller and the trace."""

    parts: Parts
    limits: SearchLimits
    goal: Goal
    say: Callable[[str], None]
    team: Team = field(default_factory=Team)
    lower: float = field(init=False)
    upper: float = field(init=False)
    memory: Memory | None = None
    """The controller that the lower bound belongs to; None if it is one action for ever."""
    blind_action: int = 0
    has_lower: bool = False
    has_upper: bool = False
    """Whether the bounds are better than those that the rewards imply."""
    rounds: int = 0
    sweeps: int = 0
    trace: TraceBuilder = field(default_factory=TraceBuilder)
    _scale: float = 0.0
    _short_of_memory: bool = False
    _grid: Grid | None = None
    _trying: Memory | None = None
    _shares: dict[str, float] = field(default_factory=dict)
    """Of what the memory that is improved could gain, the share that is tried next."""
    _speed: float = _SPEED
    _ties: float = 1.0
    """How much larger tensors get on the way, because sites are tied together."""

    def __post_init__(self) -> None:
        parts = self.parts
        least, most = float(parts.reward.min()), float(parts.reward.max())
        if parts.ends:
            least, most = min(least, 0.0), max(most, 0.0)
        self.lower, self.upper = least / (1.0 - parts.discount), most / (1.0 - parts.discount)
        self._scale = max(abs(self.lower), abs(self.upper))

    def run(self) -> Status:
        """Search until a goal or a limit is reached, and return which."""
        try:
            ties = Ties(self.parts, self.limits)
            self._begin(ties)
            entries, stuck = _FIRST_ENTRIES, False
            while True:
                before = (self.lower, self.upper)
                most = self._most_entries(entries, _SHARE, _SWEEPS)
                self._refine(ties, most)
                if self.rounds == 0 or not self._goes_on_refining(before[1]):
                    stuck = self._climb(self._wanted(entries))
                self.rounds += 1
                self._check()
                if stuck and (most < entries or entries == _LARGEST):
                    gap, gained = self.upper - self.lower, before[1] - before[0] - self.upper + self.lower
                    if gained <= _STALLED * gap:
                        return "memory" if self._short_of_memory else "converged"
                entries = min(entries * _GROWTH, _LARGEST)
        except Stop as stop:
            self._harvest()
            return stop.status
        except TooTiedError:
            if self._grid is None:
                raise
            # A finer grid would not fit.
            self._harvest()
            return "converged"

    def _begin(self, ties: Ties) -> None:
        """Work out full observation, and the best action for ever."""
        corners = [np.eye(size) for size in self.parts.sizes]
        self.limits.check_memory(int(_PER_ENTRY * self.parts.initial.size))
        grid = Grid(ties, corners, [np.zeros(len(rows)) for rows in corners], team=self.team)
        for action in range(self.parts.n_actions):
            value = grid.blind(action, self.limits)
            if value > self.lower:
                self.lower, self.blind_action, self.has_lower = value, action, True
        self._grid = grid
        entries = math.prod(map(float, grid.shape))
        self._ties = max([1.0, *(operator.peak() / entries for _, operator in grid.moves)])
        self._solve_grid(grid)
        self._check()

    def _wanted(self, entries: float) -> float:
        """Return how many entries the next memory should have if nothing is against it."""
        if self.rounds == 0:
            return _FIRST_MEMORY
        return 4.0 * entries if self.limits.timeout is None else _LARGEST

    def _most_entries(self, wanted: float, share: float, sweeps: float) -> float:
        """Return how many entries a grid or a memory may have, for the memory and a share of the time that are left."""
        grid = self._grid
        assert grid is not None
        by_memory = self.limits.memory / (_PER_ENTRY * self._ties)
        # Per entry, a sweep multiplies by the length of an axis so and so many times.
        length = float(np.mean(grid.shape))
        times = max(grid.work(), 1.0) / (math.prod(map(float, grid.shape)) * len(self.parts.scenes) * length)
        wanted_length = max((wanted / len(self.parts.scenes)) ** (1.0 / self.parts.n_sites), 2.0)
        by_time = share * self.limits.left * self._speed / (sweeps * times * wanted_length)
        self._short_of_memory = by_memory < min(wanted, by_time)
        return min(wanted, by_memory, by_time, _LARGEST)

    def _solve_grid(self, grid: Grid) -> None:
        start, before = self.limits.seconds, grid.sweeps
        try:
            self._lower_to(grid.solve(self.limits, self._exactness()))
        finally:
            self._count(grid.work(), grid.sweeps - before, start)
        self._record()

    def _lower_to(self, upper: float) -> None:
        if upper < self.upper:
            self.upper, self.has_upper = upper, True

    def _exactness(self) -> float:
        gap = self.upper - self.lower
        return max(_CLOSE * gap, ROUNDING * self._scale)

    def _count(self, work: float, sweeps: int, start: float) -> None:
        self.sweeps += sweeps
        seconds = self.limits.seconds - start
        if seconds > 0.1 and sweeps:
            # Small tensors are slow for what they do, so the fastest counts.
            self._speed = max(self._speed, work * sweeps / seconds)

    def _refine(self, ties: Ties, most: float) -> None:
        clock, grid = self.limits, self._grid
        assert grid is not None
        if self.rounds == 0:
            beliefs = first_beliefs(grid, grid.occupancy(clock), most)
            prices = [(rows**2).sum(axis=1) for rows in beliefs]
        else:
            beliefs, prices = refined(grid, clock, most)
        finer = Grid(ties, beliefs, prices, grid.prolonged(beliefs), self.team)
        self._grid = finer
        self._solve_grid(finer)
        self._check()
        for _ in range(2):
            before = self.upper
            beliefs, prices = refined(finer, clock, most)
            finer = Grid(ties, beliefs, prices, finer.prolonged(beliefs), self.team)
            self._solve_grid(finer)
            self._grid = finer
            self._check()
            if before - self.upper < 0.05 * (self.upper - self.lower):
                break

    def _climb(self, wanted: float) -> bool:
        """Improve a controller: the best one so far, or one with more nodes if there is time for it.

        Returned is whether nothing more was found.
        """
        clock = self.limits
        end = clock.seconds + self._time_to_climb()
        try:
            memory, value = self._begin_climb(wanted)
        except TooTiedError:  # not even with the fewest nodes
            return True
        gains = [math.inf] * _PATIENCE
        while clock.seconds < end and sum(gains[-_PATIENCE:]) > _CLOSE * (self.upper - value):
            what = "steps" if len(gains) % 2 else "actions"
            other = memory.proposed(clock, self._shares[what], what)
            better = self._solve_memory(other)
            gains.append(max(better - value, 0.0))
            if better > value:
                memory, value = other, better
            share = self._shares[what]
            self._shares[what] = min(1.0, 2.0 * share) if gains[-1] > 0.0 else share / 3.0
        return clock.seconds < end

    def _goes_on_refining(self, upper: float) -> bool:
        """Return whether the grid got so much better that it goes on first: memories begin with its policy."""
        worth = upper - self.upper > _WORTH * (self.upper - self.lower)
        timeout = self.limits.timeout
        return worth and (timeout is None or self.limits.seconds < _REFINE_FIRST * timeout)

    def _time_to_climb(self) -> float:
        """Return how long a controller may be improved before the grid is again."""
        if self.limits.timeout is None:
            return math.inf
        return (_CLIMB_SHARE if self.rounds else _CLIMB_FIRST) * self.limits.left

    def _begin_climb(self, wanted: float) -> tuple[Memory, float]:
        few, most = (self._most_entries(wanted, _CLIMB_SHARE, sweeps) for sweeps in _CLIMB_SWEEPS)
        clock, grid = self.limits, self._grid
        assert grid is not None
        if self.memory is not None and most < _LARGER * self.memory.entries:
            return self.memory, self.lower
        occupancy = grid.occupancy(clock)
        choices = chosen_nodes(grid, occupancy, (few, most), _LOSS * (self.upper - self.lower), clock)
        self._shares = {"actions": 1.0, "steps": 1.0}
        usual, found = marginals_of(grid, occupancy), list[tuple[float, int, Memory]]()
        for number, (nodes, averages) in enumerate(choices):
            actions = grid.greedy_at(averages, clock)
            memory = Memory(self.parts, nodes, usual, actions, self.team, clock, _ROOM * most)
            found.append((self._solve_memory(memory), -number, memory))
        value, _, best = max(found)
        starts = [grid.greedy_at(best.beliefs, clock)]
        if self.memory is not None and value < self.lower:
            starts.append(self.memory.actions_at(best.beliefs))
        for actions in starts:
            other = best.changed(actions, best.steps)
            better = self._solve_memory(other)
            best, value = (other, better) if better > value else (best, value)
        return best, value

    def _solve_memory(self, memory: Memory) -> float:
        start, before = self.limits.seconds, memory.sweeps
        self._trying = memory
        try:
            value = memory.solve(self.limits, self._exactness())
        except Stop:
            self.sweeps += memory.sweeps - before
            raise
        self._count(memory.work(), memory.sweeps - before, start)
        self._take(memory, value)
        self._check()
        return value

    def _take(self, memory: Memory, value: float) -> None:
        if value > self.lower:
            self.lower, self.memory, self.has_lower = value, memory, True
        self._record()

    def _harvest(self) -> None:
        """Take what an interrupted solution has found by then."""
        if self._grid is not None and math.isfinite(self._grid.excess):
            self._lower_to(self._grid.bound())
        trying = self._trying
        if trying is not None and math.isfinite(trying.lack):
            value = trying.bound()
            if value > self.lower:
                self.lower, self.memory, self.has_lower = value, trying, True
        self._record()

    def _check(self) -> None:
        limits = self.limits
        limits.check()
        if self.goal.is_reached(self.lower, self.upper, self._scale):
            raise Stop("precision")
        if self.goal.max_trials is not None and self.rounds >= self.goal.max_trials:
            raise Stop("trials")

    def _record(self) -> None:
        grid = self._grid
        seconds = self.limits.seconds
        upper = max(self.upper, self.lower)
        self.trace.append(
            seconds=seconds,
            trials=self.rounds,
            backups=self.sweeps,
            lower=self.lower,
            upper=upper,
            vectors=0 if self.memory is None else int(np.prod(self.memory.nodes)),
            points=0 if grid is None else int(np.prod(grid.shape)),
        )
        gap = upper - self.lower
        relative = f" ({100.0 * gap / abs(self.lower):.2g} %)" if self.lower != 0.0 else ""
        self.say(
            f"{seconds:.0f} s, round {self.rounds + 1}: value in [{self.lower:.5g}, {upper:.5g}], "
            f"gap {gap:.3g}{relative}"
        )

    def policy(self) -> MemoryPolicy:
        """Return the policy that the lower bound belongs to."""
        model = self.parts.model
        if self.memory is None:
            return MemoryPolicy.from_action(model, model.actions[self.blind_action])
        return MemoryPolicy.from_memory(model, self.memory)


def structured_parts(model: MissMDP) -> Parts | None:
    """Return a model in parts if it is one for the structured search; None if not.

    It is one if many features can go missing and factors of dynamics and missingness are known. Only sizes are looked
    at before the factors are; these are found once per model.
    """
    features = model.space.features
    hidden = [features.position(name) for name in model.missingness.can_go_missing]
    sizes = [int(size) for size in features.sizes]
    n_scenes = math.prod(sizes[i] for i in range(len(sizes)) if i not in hidden)
    seen = n_scenes * math.prod(sizes[i] + 1 for i in hidden)
    if len(hidden) < _FEW_SITES or seen < _FEW_OBSERVATIONS or not model.space.is_product:
        return None
    if model.mdp.n_actions * n_scenes**2 > _MOST_MOVES or model.n_states > _LARGEST:
        return None
    if model.mdp.factors is None or model.missingness.factors is None:
        return None
    return Parts(model)


def listed_entries(parts: Parts) -> float:
    """Return about how many probabilities of next states and observations there would be, were they listed."""
    model = parts.model
    assert model.mdp.factors is not None
    nexts = math.prod(float((scope.table > 0.0).sum(axis=-1).mean()) for scope in model.mdp.factors.scopes)
    return model.n_states * model.n_actions * nexts * 2.0**parts.n_sites

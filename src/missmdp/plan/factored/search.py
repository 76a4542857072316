"""The structured search: a grid from above and a memory from below, both finer and finer while there is time.

It begins with what is known at once: full observation from above; from below the best action for ever, and policies
that act on the last observation alone. Then rounds: the grid is made finer where its own policy goes, the memory takes
the beliefs that matter most as nodes and is improved by steps that were tried out. Every number is a bound whenever the
search is stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from missmdp.plan.factored.seen import Seen
from missmdp.plan.factored.sizes import Sizes
from missmdp.plan.factored.sweeps import Swept
from missmdp.plan.factored.team import Team
from missmdp.plan.reactive import Dynamics, Reactive, reactive_policies, seen_from
from missmdp.plan.stopping import ROUNDING, Goal, SearchLimits, Status, Stop
from missmdp.plan.trace import LowerSource, TraceBuilder, UpperSource
from missmdp.words import gap_text

Tensor = NDArray[np.float64]

_FIRST_ENTRIES = 60_000.0
"""Entries of all tensors of a first grid."""
_GROWTH = 4.0
"""How much larger grids get from round to round."""
_LARGEST = 2e7
"""Entries of all tensors that no grid exceeds."""
_PER_STATE = 60.0
"""Bytes per state without which nothing begins."""
_HALF = 0.5
"""Of the memory, what grids may take, and what memories may."""
_SHARE = 0.12
"""Of the time that is left, what the sweeps of one solution may take."""
_SWEEPS = 25.0
"""Sweeps that a solution takes, about."""
_CLIMB_SHARE = 0.6
"""Of the time that is left, what the improvement of one memory may take."""
_CLIMB_FIRST = 0.3
"""The same in the first round."""
_STALLED = 0.01
"""Of the gap: a round that closes less, and that could not have more entries, is the last one."""
_WORTH = 0.05
"""Of the gap: what a finer grid must gain so that the next one comes before memories."""
_REFINE_FIRST = 0.3
"""Of all the time, when memories come at the latest."""
_CLIMB_SWEEPS = 30.0, 300.0, 1500.0
"""Sweeps of a memory: those that there must be time for, those if fewer nodes would cost much, and those wanted."""
_EAGER = 3.0
"""How many times fewer sweeps there must be time for, after each time that the present nodes allow no gain."""
_FEWEST_SWEEPS = 12.0
"""There must be time for so many sweeps of the smallest memory."""
_FEWER = 4.0
"""If the chosen nodes lead to too many entries, they are chosen again for so many times fewer entries."""
_LOSS = 0.4
"""Of the gap: what nodes may cost to have time for all these sweeps."""
_SPEED = 5e8
"""Multiplications per second, at least."""
_MEASURABLE = 0.02
"""Seconds from which the speed of a solution can be told."""
_CLOSE = 0.02
"""Of the gap: how exactly bounds are worked out."""
_ROUGHLY = 1e-3
"""Of the first gap: how exactly one action for ever is worked out."""
_MOST_SEEN, _PER_SEEN, _SEEN_PER_SECOND = 2e7, 200.0, 5e6
"""Pairs of a state and a pattern up to which policies that act on the last observation alone are tried, bytes of each,
and how many there is time for."""
_REACTING = 0.3
"""Of all the time, what these policies may take if there is more to do."""
_LARGER = 1.5
"""How many times more entries a memory needs to have to begin anew with it."""
_MUCH = 0.1
"""Of the gap: what a change of actions must gain so that actions are changed again before steps are."""
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
    lower_source: LowerSource = "rewards"
    upper_source: UpperSource = "rewards"
    """Where the bounds came from."""
    memory: Swept | None = None
    """The best controller so far, if there is one."""
    memory_value: float = -math.inf
    """What it is worth, at least."""
    blind_action: int = 0
    reactive: Reactive | None = None
    """The best policy so far that acts on the last observation alone, if one was better than one action for ever."""
    too_tied: bool = False
    """Whether too much is tied together for a grid, so that the upper bound is that of full observation."""
    rounds: int = 0
    sweeps: int = 0
    trace: TraceBuilder = field(default_factory=TraceBuilder)
    _scale: float = 0.0
    _no_finer: str | None = None
    """Why no finer grid fits: "memory", or an empty string if too much is tied together; None if one may fit."""
    _pressed: float = 1.0
    """Factor on the share of the remaining time that a grid or a memory may take: it grows if nothing else helps."""
    _eager: float = 1.0
    """Divides the number of sweeps of a memory that there must be time for: it grows if nothing else helps."""
    _grid: Swept | None = None
    _trying: Swept | None = None
    _shares: dict[str, float] = field(default_factory=lambda: {"actions": 1.0, "steps": 1.0})
    """The share of the possible gain of the current memory that is tried next, for actions and for steps."""
    _speed: float = _SPEED
    _sizes: Sizes | None = None
    _short_of: str = ""
    """What kept the last grid or memory smaller than it was wanted: "time", "memory", or nothing."""

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
            self._react(_REACTING)
            entries, stuck = _FIRST_ENTRIES, False
            while True:
                before = (self.lower, self.upper)
                short_of = {self._finer(ties, entries)}
                if self.rounds == 0 or not self._goes_on_refining(before[1]):
                    stuck = self._climb(4.0 * entries if self.limits.timeout is None else _LARGEST)
                    short_of.add(self._short_of)
                self.rounds += 1
                self._check()
                gap, gained = self.upper - self.lower, before[1] - before[0] - self.upper + self.lower
                if stuck and gained <= _STALLED * gap:
                    if "time" in short_of:
                        self._pressed *= 2.0
                    elif short_of == {"memory"} or entries == _LARGEST:
                        return "memory" if "memory" in short_of else "exhausted"
                entries = min(entries * _GROWTH, _LARGEST)
        except Stop as stop:
            self._harvest()
            return stop.status
        except TooTiedError:
            return self._without_grid()

    def _begin(self, ties: Ties) -> None:
        """Work out full observation, and then the best action for ever."""
        corners = [np.eye(size) for size in self.parts.sizes]
        self.limits.check_memory(int(_PER_STATE * self.parts.initial.size))
        self._sizes = Sizes(ties)
        if self._sizes.grid([len(rows) for rows in corners]) > _HALF * self.limits.memory:
            self._short_of = "memory"
            raise TooTiedError
        grid = Grid(ties, corners, [np.zeros(len(rows)) for rows in corners], team=self.team)
        if 16.0 * max((operator.peak() for _, operator in grid.moves), default=0.0) > self.limits.memory:
            self._short_of = "memory"
            raise TooTiedError
        self._known_at_once(grid)

    def _without_grid(self) -> Status:
        """Work out what `_begin` does where too much is tied together for a grid."""
        self.too_tied = True
        try:
            self._known_at_once(Seen(self.parts, self.limits, self.team))
            if not self._react(1.0):
                return "timeout"
        except Stop as stop:
            self._harvest()
            return stop.status
        return "memory" if self._short_of == "memory" else "exhausted"

    def _known_at_once(self, grid: Grid) -> None:
        self._grid = grid
        entries = math.prod(map(float, grid.shape))
        if self._sizes is not None:
            self._sizes.peak = max([1.0, *(operator.peak() / entries for _, operator in grid.moves)])
        self._solve_grid(grid)
        # What is best to do for ever is only a beginning, so that it need not be known closely.
        precision = max(_ROUGHLY * (self.upper - self.lower), ROUNDING * self._scale)
        for action in range(self.parts.n_actions):
            value = grid.blind(action, self.limits, precision)
            if value > self.lower:
                self.lower, self.lower_source, self.blind_action = value, "action", action
        self._record()
        self._check()

    def _react(self, share: float) -> bool:
        """Take what some policies earn that act on the last observation alone, if all observations can be listed.

        They may take a share of the time. Returned is whether there was enough of it.
        """
        model, limits = self.parts.model, self.limits
        if self.goal.lower > self.lower or not model.missingness.is_small:
            return True
        pairs = float(model.n_states) * model.missingness.n_patterns
        if pairs > _MOST_SEEN or pairs * _PER_SEEN > _HALF * limits.memory:
            return True
        if pairs > _SEEN_PER_SECOND * share * limits.left:
            return False
        start, dynamics = limits.seconds, Dynamics(model.mdp, limits)
        known = dynamics.after_all(dynamics.fixed_point(dynamics.best, above=True))
        for found in reactive_policies(dynamics, seen_from(model), known, self.lower):
            value = float(model.mdp.initial @ found.values)
            if value > self.lower:
                self.lower, self.lower_source, self.reactive = value, "observation", found
                self._record()
            self._check()
            if limits.timeout is not None and limits.seconds - start > share * limits.timeout:
                break
        return True

    def _most_entries(self, like: Grid | Memory, wanted: float, share: float, sweeps: float) -> float:
        """Return how many entries a grid or a memory may have, for the memory and a share of the time that are left.

        Its sweeps are taken to be like those of a present one.
        """
        assert self._sizes is not None
        n_scenes, n_sites = len(self.parts.scenes), self.parts.n_sites
        by_memory = self._sizes.most_entries(_HALF * self.limits.memory)
        # Per entry, a sweep multiplies by the length of an axis so and so many times.
        length = float(np.mean(like.shape))
        times = max(like.work(), 1.0) / (math.prod(map(float, like.shape)) * n_scenes * length)
        share = min(share * self._pressed, 1.0)
        products = share * self.limits.left * self._speed / (sweeps * times)
        # The length of an axis grows with the entries: it is what they leave for each site.
        by_time = max((products * n_scenes ** (1.0 / n_sites)) ** (n_sites / (n_sites + 1.0)), 1.0)
        most = min(wanted, by_memory, by_time, _LARGEST)
        self._short_of = "" if most >= wanted else "memory" if most == by_memory else "time"
        return most

    def _check_grid(self, beliefs: list[Tensor]) -> None:
        """Stop if a grid of these beliefs would take too much memory."""
        assert self._sizes is not None
        self.limits.check_memory(int(self._sizes.grid([len(rows) for rows in beliefs]) / _HALF))

    def _fits(self, pairs: Sequence[float], nodes: Sequence[float]) -> bool:
        """Return whether there is memory for a controller with so many pairs and nodes per site."""
        assert self._sizes is not None
        return self._sizes.memory(pairs, nodes) <= _HALF * self.limits.memory

    def _solve_grid(self, grid: Swept) -> None:
        start, before = self.limits.seconds, grid.sweeps
        try:
            self._lower_to(grid.solve(self.limits, self._exactness()))
        finally:
            self._count(grid.work(), grid.sweeps - before, start)
        self._record()

    def _lower_to(self, upper: float) -> None:
        if upper < self.upper:
            self.upper, self.upper_source = upper, "sight" if self.too_tied else "grid"

    def _exactness(self) -> float:
        gap = self.upper - self.lower
        return max(_CLOSE * gap, ROUNDING * self._scale)

    def _count(self, work: float, sweeps: int, start: float) -> None:
        self.sweeps += sweeps
        seconds = self.limits.seconds - start
        if seconds > _MEASURABLE and sweeps:
            # Small tensors are slow for what they do, so the fastest counts.
            self._speed = max(self._speed, work * sweeps / seconds)

    def _finer(self, ties: Ties, entries: float) -> str:
        """Make the grid finer, as long as a finer one fits; return what it was short of."""
        if self._no_finer is not None:
            return self._no_finer
        assert isinstance(self._grid, Grid)
        most, short_of = self._most_entries(self._grid, entries, _SHARE, _SWEEPS), self._short_of
        try:
            self._refine(ties, most)
        except TooTiedError:
            self._no_finer = ""
        except Stop as stop:
            if stop.status != "memory":
                raise
            self._no_finer = "memory"
        return short_of if self._no_finer is None else self._no_finer

    def _refine(self, ties: Ties, most: float) -> None:
        clock, grid = self.limits, self._grid
        assert isinstance(grid, Grid)
        if self.rounds == 0:
            beliefs = first_beliefs(grid, grid.occupancy(clock), most, clock)
            prices = [(rows**2).sum(axis=1) for rows in beliefs]
        else:
            beliefs, prices = refined(grid, clock, most)
        self._check_grid(beliefs)
        finer = Grid(ties, beliefs, prices, grid.prolonged(beliefs), self.team)
        self._grid = finer
        self._solve_grid(finer)
        self._check()
        for _ in range(2):
            before = self.upper
            beliefs, prices = refined(finer, clock, most)
            self._check_grid(beliefs)
            finer = Grid(ties, beliefs, prices, finer.prolonged(beliefs), self.team)
            self._solve_grid(finer)
            self._grid = finer
            self._check()
            if before - self.upper < 0.05 * (self.upper - self.lower):
                break

    def _climb(self, wanted: float) -> bool:
        """Improve a controller: the best one so far, or one with more nodes if there is time for it.

        Returns whether the search is stuck: whether it ended because nothing better was found.
        """
        clock = self.limits
        end = clock.seconds + self._time_to_climb()
        try:
            memory, value = self._begin_climb(wanted)
        except (TooTiedError, Stop) as error:  # not even with the fewest nodes
            if isinstance(error, Stop):
                if error.status != "memory":
                    raise
                self._short_of = "memory"
            if not isinstance(self.memory, Memory):
                return True
            memory, value = self.memory, self.memory_value
        gains, what = [math.inf] * _PATIENCE, "actions"
        while clock.seconds < end and sum(gains[-_PATIENCE:]) > _CLOSE * (self.upper - value):
            other = memory.proposed(clock, self._shares[what], what)
            better = self._solve_memory(other)
            gains.append(max(better - value, 0.0))
            share = self._shares[what]
            self._shares[what] = min(1.0, 2.0 * share) if gains[-1] > 0.0 else share / 3.0
            # Actions are quicker to improve than steps, so they come again while that gains much.
            again = what == "steps" or gains[-1] > _MUCH * (self.upper - value)
            what = "actions" if again else "steps"
            if better > value:
                memory, value = other, better
        is_stuck = clock.seconds < end
        self._eager = self._eager * _EAGER if is_stuck else 1.0
        return is_stuck

    def _goes_on_refining(self, upper: float) -> bool:
        """Return whether the grid improved so much that it is refined again before memories, which start from it."""
        worth = upper - self.upper > _WORTH * (self.upper - self.lower)
        timeout = self.limits.timeout
        return worth and (timeout is None or self.limits.seconds < _REFINE_FIRST * timeout)

    def _time_to_climb(self) -> float:
        """Return how long a controller may be improved before the grid is refined again."""
        if self.limits.timeout is None:
            return math.inf
        return (_CLIMB_SHARE if self.rounds else _CLIMB_FIRST) * self.limits.left

    def _begin_climb(self, wanted: float) -> tuple[Memory, float]:
        """Return the best memory so far or, if there is time for it, one with more nodes that acts like it."""
        grid, present = self._grid, self.memory
        assert isinstance(grid, Grid)
        if not isinstance(present, Memory):
            first = self._smallest(grid)
            if first.entries > self._most_entries(first, _LARGEST, 1.0, _FEWEST_SWEEPS):
                raise TooTiedError
            return first, self._solve_memory(first)
        # The last call leaves the least room, so `_short_of` is what it ran short of.
        most, many, few = (
            self._most_entries(present, wanted, _CLIMB_SHARE, max(sweeps / self._eager, _CLIMB_SWEEPS[0]))
            for sweeps in _CLIMB_SWEEPS
        )
        occupancy: list[Tensor] = []
        while many >= _LARGER * present.entries:
            occupancy = occupancy or grid.occupancy(self.limits)
            loss = _LOSS * (self.upper - self.lower)
            nodes = chosen_nodes(grid, occupancy, (few, many), loss, self.limits, self._fits)
            try:
                larger = Memory(
                    self.parts,
                    nodes,
                    marginals_of(grid, occupancy),
                    [],
                    self.team,
                    self.limits,
                    most,
                    self._fits,
                    like=present,
                )
            except TooTiedError:
                # With the steps of the present one, more pairs can occur than were counted.
                few, many = few / _FEWER, many / _FEWER
                continue
            if larger.entries < _LARGER * present.entries:
                break
            self._shares = {"actions": 1.0, "steps": 1.0}
            return larger, self._solve_memory(larger)
        return present, self.memory_value

    def _smallest(self, grid: Grid) -> Memory:
        """Return the smallest memory: one node per value of each site, acting as the grid does there."""
        corners = [np.eye(size) for size in self.parts.sizes]
        usual = marginals_of(grid, grid.occupancy(self.limits))
        actions = grid.greedy_at(corners, self.limits)
        return Memory(self.parts, corners, usual, actions, self.team, self.limits, _LARGEST, self._fits)

    def _solve_memory(self, memory: Swept) -> float:
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

    def _take(self, memory: Swept, value: float) -> None:
        if value > self.memory_value:
            self.memory, self.memory_value = memory, value
        if value > self.lower:
            self.lower, self.lower_source = value, "memory"
        self._record()

    def _harvest(self) -> None:
        """Keep what an interrupted solution has found so far."""
        if self._grid is not None and math.isfinite(self._grid.rest):
            self._lower_to(self._grid.bound())
        trying = self._trying
        if trying is not None and math.isfinite(trying.rest):
            self._take(trying, trying.bound())
        else:
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
            vectors=0 if self.memory is None else self.memory.size,
            points=0 if grid is None else grid.size,
        )
        self.say(
            f"{seconds:.0f} s, round {self.rounds + 1}: value in [{self.lower:.5g}, {upper:.5g}], "
            f"{gap_text(self.lower, upper)}"
        )

    def policy(self) -> MemoryPolicy:
        """Return the policy that the lower bound belongs to."""
        model = self.parts.model
        if self.lower_source == "memory" and isinstance(self.memory, Memory):
            return MemoryPolicy.from_memory(model, self.memory)
        if self.lower_source == "observation" and self.reactive is not None:
            return MemoryPolicy.from_observations(model, self.reactive.chosen, self.reactive.visits)
        return MemoryPolicy.from_action(model, model.actions[self.blind_action])


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
    gaps = model.missingness.factors
    if model.mdp.factors is None or gaps is None:
        return None
    if {feature for factor in gaps for feature in factor.features} != set(hidden):
        return None
    return Parts(model)


def listed_entries(parts: Parts) -> float:
    """Return about how many probabilities of next states and observations there would be, were they listed."""
    model = parts.model
    assert model.mdp.factors is not None
    nexts = math.prod(float((scope.table > 0.0).sum(axis=-1).mean()) for scope in model.mdp.factors.scopes)
    return model.n_states * model.n_actions * nexts * 2.0**parts.n_sites

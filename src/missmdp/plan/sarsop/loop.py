"""The loop: follow the optimistic policy, explore where its bounds are loosest, back up what it visits."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.sarsop.arrays import ENTRIES, POINTS, WEIGHTS
from missmdp.plan.sarsop.lower import improve_lower, settle_lower, start_lower
from missmdp.plan.sarsop.sampling import Visited, refine, sample, visit, worth_backing_up
from missmdp.plan.sarsop.search import BUDGET, Search
from missmdp.plan.sarsop.start import begin_with, set_up
from missmdp.plan.sarsop.upper import expand, improve_upper, inform_upper, start_upper
from missmdp.plan.stopping import ROUNDING, Goal, Status, Stop
from missmdp.plan.trace import TraceBuilder
from missmdp.words import gap_text

ROUNDS, MOST_ROUNDS = 10, 100
"""How often per trial the upper bound is made better where it is loosest, before the lower bound has its turn."""
EXPANSIONS = 2
"""How often per round the optimistic policy is followed to where nothing is known yet."""
EXPANSIONS_IF_WIDE = 20
LEAST_WORK, SHARE_OF_WORK = 10 * BUDGET, 0.1
"""If backups are slow: what a trial may spend on each bound, in multiplications or as a share of all work so far."""
PATIENCE = 3
"""Trials without any change after which a search has converged."""


class Loop:
    """One run of a search, with its trace.

    Parameters
    ----------
    search
        What to run.
    goal
        When to stop, besides the limits of the search.
    say
        Is told about progress in words.
    threads
        How many threads to use; None for one per core.
    """

    def __init__(
        self, search: Search, goal: Goal, say: Callable[[str], None], *, threads: int | None = None
    ) -> None:
        self.search = search
        self.goal = goal
        self.trace = TraceBuilder()
        self.trials = 0
        self._work_on_lower = 0
        self._work_per_backup = 1.0
        self._say = say
        self._threads = threads or os.cpu_count() or 1

    def run(self, beliefs: sparse.csr_array | None = None) -> Status:
        """Search until the goal or a limit is reached, and return which; `beliefs` over states are explored first."""
        search = self.search
        set_up(search)
        try:
            self._start()
            inform_upper(search)
            self._record()
            if beliefs is not None:
                begin_with(search, beliefs)
            idle = 0
            while idle < PATIENCE:
                before = self._state()
                self._check_goal()
                self._trial()
                self._record()
                idle = idle + 1 if self._is_near(before) else 0
        except Stop as stop:
            if stop.status not in ("precision", "trials"):
                settle_lower(search, search.limits.left if stop.status == "timeout" else 0.0)
            self._record()
            return stop.status
        return "converged"

    def _start(self) -> None:
        """Set both bounds: in a wide model, where that takes time, side by side, for neither looks at the other."""
        search = self.search
        if search.compiled.is_wide and self._threads > 1:
            with ThreadPoolExecutor(1, thread_name_prefix="missmdp-sarsop") as executor:
                upper = executor.submit(start_upper, search)
                start_lower(search)
                upper.result()
        else:
            start_lower(search)
            if not search.compiled.is_wide:
                self._record()
            start_upper(search)
        if search.compiled.is_wide:
            self._record()

    def _trial(self) -> None:
        search = self.search
        search.limits.check_memory(search.pools.nbytes)
        n_points = search.pools.n_points
        if not search.compiled.is_wide:
            self._tighten()
        visited = self._follow()
        improve_upper(search, np.arange(search.pools.n_points)[::-1].copy(), sweeps=1)
        self._check_goal()
        refine(search, visited)
        sample(search)
        if search.compiled.backups_are_slow:
            self._record()
            self._back_up_worst()
        else:
            new = np.arange(n_points, search.pools.n_points)[::-1]
            begin = search.work
            improve_lower(search, np.concatenate([new, visited.points]))
            self._work_on_lower = search.work - begin
        self.trials += 1

    def _back_up_worst(self) -> None:
        """Improve the lower bound where that matters most, at as many points as the allowance permits."""
        search = self.search
        begin, before, allowance = search.work, search.backups, self._allowance
        order = worth_backing_up(search, visit(search), int(allowance / self._work_per_backup))
        improve_lower(search, order, most_work=allowance)
        self._work_per_backup = (search.work - begin) / max(search.backups - before, 1)

    @property
    def _allowance(self) -> int:
        """What a trial may spend on each bound if backups are slow, so that no trial takes most of the search."""
        return max(LEAST_WORK, int(SHARE_OF_WORK * self.search.work))

    def _tighten(self) -> None:
        """Make the upper bound better where it is loosest, again and again: as much work as the lower bound took."""
        search = self.search
        slow, begin = search.compiled.backups_are_slow, search.work
        least, most = (1, self._allowance) if slow else (ROUNDS, self._work_on_lower)
        for k in range(MOST_ROUNDS):
            if k >= least and search.work - begin >= most:
                break
            refine(search, self._follow())
            self._check_goal()

    def _follow(self) -> Visited:
        """Work out what follows the optimistic policy, which that changes; return where it goes in the end."""
        search = self.search
        for _ in range(EXPANSIONS_IF_WIDE if search.compiled.is_wide else EXPANSIONS):
            visited = visit(search)
            unexplored = visited.unexplored(search)
            expand(search, unexplored, visited.actions[unexplored].astype(np.int64))
            improve_upper(search, visited.points)
            if not len(unexplored):
                break
        return visit(search)

    def _check_goal(self) -> None:
        """Raise `Stop` where the bounds are close enough, or there have been enough trials."""
        search, goal = self.search, self.goal
        if goal.is_reached(search.lower, search.lower + search.gap, search.compiled.scale):
            raise Stop("precision")
        if goal.max_trials is not None and self.trials >= goal.max_trials:
            raise Stop("trials")
        if search.work >= goal.most_work:
            raise Stop("trials")

    def _state(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return how much is known, and the bounds at all points."""
        pools = self.search.pools
        n = pools.n_points
        bounds = np.stack([pools.points.upper[:n], pools.points.value[:n], pools.points.lower[:n]])
        return pools.counters[[POINTS, ENTRIES, WEIGHTS]], bounds

    def _is_near(self, before: tuple[NDArray[np.int64], NDArray[np.float64]]) -> bool:
        """Return whether nothing has changed since, but for rounding."""
        known, bounds = self._state()
        if (known != before[0]).any():
            return False
        return bool(np.abs(bounds - before[1]).max() <= ROUNDING * self.search.compiled.scale)

    def _record(self) -> None:
        search = self.search
        seconds = search.limits.seconds
        self.trace.append(
            seconds=seconds,
            trials=self.trials,
            backups=search.backups,
            lower=search.lower,
            upper=max(search.upper, search.lower),
            vectors=search.pools.n_vectors,
            points=search.pools.n_points,
        )
        self._say(
            f"{seconds:.0f} s, {self.trials} trials: value in [{search.lower:.5g}, {search.upper:.5g}], "
            f"{gap_text(search.lower, max(search.upper, search.lower))}"
        )

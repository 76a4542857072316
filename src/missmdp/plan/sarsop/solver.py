"""Solve a POMDP, or a miss-MDP, with bounds on both sides."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from missmdp.data.arguments import checked_seed, checked_whole
from missmdp.errors import ModelError
from missmdp.model.checks import number
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.base import SolveResult, Status, TraceBuilder
from missmdp.plan.sarsop.compile import compile_pomdp
from missmdp.plan.sarsop.limits import Limits, Stop
from missmdp.plan.sarsop.lower import improve_lower, start_lower
from missmdp.plan.sarsop.ready import make_ready
from missmdp.plan.sarsop.sampling import Visited, refine, visit
from missmdp.plan.sarsop.search import Search
from missmdp.plan.sarsop.start import set_up
from missmdp.plan.sarsop.upper import expand, improve_upper, start_upper
from missmdp.plan.sarsop.warm_start import add_beliefs, beliefs_over_states
from missmdp.progress import Say, show_status

__all__ = ["Sarsop"]

_log = logging.getLogger(__name__)

EXPANSIONS = 3
"""How often per trial the optimistic policy is followed to where nothing is known yet."""
NOTHING = 1e-15
"""A gap that is this share of the largest possible value is rounding."""
PATIENCE = 5
"""Trials without any change after which a search has converged."""


class Sarsop:
    """A point-based solver with an anytime lower and upper bound, for models with known probabilities.

    In the family of SARSOP and HSVI: beliefs that a near-optimal policy reaches are sampled; α-vectors at them make the
    lower bound and the policy, and an upper bound is kept at the same beliefs. Whatever can be seen for certain splits
    beliefs and vectors into blocks, states with the same future are merged, and both bounds are improved
    by sweeps over all sampled beliefs at once. The search is deterministic.

    Parameters
    ----------
    precision
        Stop when (upper − lower)/|lower| is at most this.
    absolute_precision
        Stop when upper − lower is at most this; None for never.
    timeout
        Stop after so many seconds, initialisation included; the compilation of kernels (once per machine) is not.
    memory
        Stop before using more than so many megabytes; None for three quarters of the machine's memory.
    max_trials
        Stop after so many rounds of sampling and backups.
    observe_initial
        Whether an observation comes before the first action; None for what the model says: True for miss-MDPs, False
        for models from files.
    seed
        Breaks ties between beliefs that seem equally worth exploring.
    progress
        Whether to show bounds and gap while solving; None for on a terminal only.

    Notes
    -----
    Ctrl-C and all limits end the search with the best policy so far, and its bounds hold.

    Deviation: the paper plans with the C++ SARSOP, which samples single trajectories and acts before the first
    observation.
    """

    def __init__(
        self,
        *,
        precision: float = 1e-3,
        absolute_precision: float | None = None,
        timeout: float | None = None,
        memory: float | None = None,
        max_trials: int | None = None,
        observe_initial: bool | None = None,
        seed: int = 0,
        progress: bool | None = None,
    ) -> None:
        self.precision = _limit(precision, "precision")
        self.absolute_precision = (
            None if absolute_precision is None else _limit(absolute_precision, "absolute_precision")
        )
        self.timeout = None if timeout is None else _limit(timeout, "timeout")
        self.memory = None if memory is None else _limit(memory, "memory")
        self.max_trials = None if max_trials is None else checked_whole(max_trials, "max_trials")
        if not (observe_initial is None or isinstance(observe_initial, bool)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"observe_initial must be True, False or None, got {observe_initial!r}")
        self.observe_initial = observe_initial
        self.seed = checked_seed(seed)
        self.progress = progress

    def __repr__(self) -> str:
        names = (
            "precision",
            "absolute_precision",
            "timeout",
            "memory",
            "max_trials",
            "observe_initial",
            "seed",
        )
        return f"Sarsop({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def solve(self, model: MissMDP | POMDP, *, warm_start: SolveResult | None = None) -> SolveResult:
        """Return a policy with bounds on the value of a model.

        Parameters
        ----------
        model
            What to solve; the policy's agents track the belief under it.
        warm_start
            The result for a similar model, with the same states: its beliefs are explored first. Values are
            never taken over, since they do not hold in another model.
        """
        if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"expected a MissMDP or a POMDP, got {type(model).__name__}")
        pomdp = model.to_pomdp() if isinstance(model, MissMDP) else model
        if warm_start is not None:
            _check_warm_start(warm_start, pomdp)
        observe_initial = pomdp.observe_initial if self.observe_initial is None else self.observe_initial
        make_ready(self.progress)
        limits = Limits(self.timeout, self.memory)
        compiled = compile_pomdp(pomdp, observe_initial=observe_initial)
        search = Search(compiled, limits, np.random.default_rng(self.seed))
        run = _Run(self, search)
        with limits.catch_interrupts(), show_status("solving", enabled=self.progress) as say:
            status = run.until_stopped(say, warm_start)
        assert search.controller is not None
        policy = AlphaVectorPolicy(
            model, search.controller.policy_vectors(compiled), observe_initial=observe_initial
        )
        result = SolveResult(
            policy=policy,
            lower=search.lower,
            upper=max(search.upper, search.lower),
            status=status,
            trace=run.trace.build(),
            beliefs=beliefs_over_states(search, pomdp.n_states),
            seconds=limits.seconds,
        )
        _log.info("%s", result)
        return result


class _Run:
    """The loop."""

    def __init__(self, solver: Sarsop, search: Search) -> None:
        self.solver = solver
        self.search = search
        self.trace = TraceBuilder()
        self.trials = 0

    def until_stopped(self, say: Say, warm_start: SolveResult | None) -> Status:
        """Search until a limit is reached, or the precision, and return which."""
        search = self.search
        set_up(search)
        try:
            start_lower(search)
            self._record(say)
            start_upper(search)
            self._record(say)
            if warm_start is not None:
                add_beliefs(search, warm_start.beliefs)
            idle = 0
            while True:
                before = (search.lower, search.upper, search.pools.n_points)
                self._check_goal()
                self._trial()
                self._record(say)
                idle = idle + 1 if before == (search.lower, search.upper, search.pools.n_points) else 0
                if idle >= PATIENCE:
                    return "converged"
        except Stop as stop:
            self._record(say)
            return stop.status

    def _trial(self) -> None:
        """Follow the optimistic policy, explore where its bounds are loosest, and back up what it visits."""
        search = self.search
        search.limits.check_memory(search.pools.nbytes)
        visited = self._follow()
        improve_upper(search, np.arange(search.pools.n_points)[::-1].copy(), sweeps=1)
        self._check_goal()
        n_points = search.pools.n_points
        refine(search, visited)
        self.trials += 1
        new = np.arange(n_points, search.pools.n_points)[::-1]
        improve_lower(search, np.concatenate([new, visited.points]))

    def _follow(self) -> Visited:
        """Work out what follows the optimistic policy, which that changes; return where it goes in the end."""
        search = self.search
        for _ in range(EXPANSIONS):
            visited = visit(search)
            unexplored = visited.unexplored(search)
            expand(search, unexplored, visited.actions[unexplored].astype(np.int64))
            improve_upper(search, visited.points)
            if not len(unexplored):
                break
        return visit(search)

    def _check_goal(self) -> None:
        """Raise `Stop` where the bounds are close enough, or there have been enough trials."""
        search, solver = self.search, self.solver
        scale = max(abs(search.compiled.lowest), abs(search.compiled.highest))
        absolute = -1.0 if solver.absolute_precision is None else solver.absolute_precision
        if search.gap <= max(solver.precision * abs(search.lower), absolute, NOTHING * scale):
            raise Stop("precision")
        if solver.max_trials is not None and self.trials >= solver.max_trials:
            raise Stop("trials")

    def _record(self, say: Say) -> None:
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
        relative = f" ({100.0 * search.gap / abs(search.lower):.2g} %)" if search.lower != 0.0 else ""
        say(
            f"{seconds:.0f} s, {self.trials} trials: value in [{search.lower:.5g}, {search.upper:.5g}], "
            f"gap {search.gap:.3g}{relative}"
        )


def _limit(value: Any, what: str) -> float:
    limit = number(value, what)
    if isinstance(value, bool) or not limit >= 0.0:
        raise ModelError(f"{what} must be a number of at least 0, got {value!r}")
    return limit


def _check_warm_start(warm_start: object, pomdp: POMDP) -> None:
    if not isinstance(warm_start, SolveResult):
        raise ModelError(f"warm_start must be the result of solving, got {type(warm_start).__name__}")
    if warm_start.beliefs.shape[1] != pomdp.n_states:
        raise ModelError(
            f"warm_start is for a model with {warm_start.beliefs.shape[1]} states, this one has {pomdp.n_states}"
        )

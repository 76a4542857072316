"""Solve a POMDP, or a miss-MDP, with bounds on both sides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from missmdp.checks import (
    checked_flag,
    checked_instance,
    checked_integer,
    checked_number,
    checked_seed,
    checked_threads,
)
from missmdp.errors import ModelError, ParameterError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.acting import checked_planning_model
from missmdp.plan.alpha import AlphaVectorPolicy
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.search import structured_parts
from missmdp.plan.finite.controller import FiniteController
from missmdp.plan.sarsop.compile import Compilation, compile_pomdp, extremes, joint_entries
from missmdp.plan.sarsop.controller import Controller
from missmdp.plan.sarsop.listing import check_entries, check_listable
from missmdp.plan.sarsop.loop import Loop
from missmdp.plan.sarsop.ready import make_ready
from missmdp.plan.sarsop.search import Search
from missmdp.plan.sarsop.start import beliefs_over_states
from missmdp.plan.sarsop.structured import (
    BRIEF_SHARE,
    after,
    brief,
    is_last,
    joined,
    lists_first,
    lists_last,
    solve_structured,
)
from missmdp.plan.solving import SolveResult
from missmdp.plan.stopping import Goal, SearchLimits, Status, Stop
from missmdp.plan.trace import TraceBuilder
from missmdp.plan.value_function import ComponentVectors, state_components
from missmdp.progress import show_status

LARGE = 2_000_000
"""Joint probabilities above which limits are looked at while a model is compiled."""
BYTES_PER_POINT, BYTES_PER_ACTION = 128, 48
"""What a state takes in a search, which has room for twice as many beliefs at first."""

_log = logging.getLogger(__name__)


class Sarsop:
    """A point-based solver with an anytime lower and upper bound, for models with known probabilities.

    In the family of SARSOP and HSVI: beliefs that a near-optimal policy reaches are sampled; α-vectors at them make the
    lower bound and the policy, and an upper bound is kept at the same beliefs. Whatever can be seen for certain splits
    beliefs and vectors into components, states with the same future are merged, and both bounds are improved
    by sweeps over all sampled beliefs at once. With the same seed the result is the same, unless time runs out.

    Where three or more features can go missing and the model has factors, observations are too many to be listed. Then
    a structured search comes first: from above a grid of beliefs with one axis per feature, from below a memory with
    one node per feature, which is the policy (`MemoryPolicy`). `result.sources` says where the bounds came from.

    Parameters
    ----------
    precision
        Stop when (upper − lower)/|lower| is at most this.
    absolute_precision
        Stop when upper − lower is at most this; None for never.
    timeout
        Stop after so many seconds, initialisation included; the compilation of kernels (once per machine) is not.
    memory
        Stop before the arrays of the search take more than so many megabytes; None for three quarters of the machine's
        memory. The model itself is not counted.
    max_trials
        Stop after so many rounds of sampling and backups.
    observe_initial
        Whether an observation comes before the first action; None for what the model says: True for miss-MDPs, False
        for models from files.
    seed
        For the episodes in which beliefs are sampled, and for ties between beliefs that seem equally worth exploring;
        None for a fresh one.
    warm_start
        The result for a similar model, with the same states: the lower bound begins at its beliefs. Values are never
        taken over, since they do not hold in another model.
    threads
        How many threads to use where steps do not depend on each other: in a structured search, and at the start of a
        search in a large model; by default one per core. The result does not depend on it.
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
        seed: int | None = 0,
        warm_start: SolveResult | None = None,
        threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.precision = _limit("precision", precision)
        self.absolute_precision = _optional_limit("absolute_precision", absolute_precision)
        self.timeout = _optional_limit("timeout", timeout)
        self.memory = _optional_limit("memory", memory)
        self.max_trials = None if max_trials is None else checked_integer("max_trials", max_trials, least=0)
        self.observe_initial = (
            None if observe_initial is None else checked_flag("observe_initial", observe_initial)
        )
        self.seed = None if seed is None else checked_seed(seed)
        self.warm_start = _checked_result(warm_start)
        self.threads = checked_threads(threads)
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
            As for the solver, for this model only.
        """
        model = checked_planning_model(model)
        warm_start = self.warm_start if warm_start is None else _checked_result(warm_start)
        if warm_start is not None and warm_start.beliefs.shape[1] != model.n_states:
            raise ParameterError(
                "warm_start",
                warm_start,
                "the result for a model with the same states",
                f"it is for a model with {warm_start.beliefs.shape[1]} states, this one has {model.n_states}",
            )
        make_ready(self.progress)
        limits = SearchLimits(self.timeout, self.memory)
        goal = Goal(self.precision, self.absolute_precision, self.max_trials)
        with limits.catch_interrupts(), show_status("solving", enabled=self.progress) as say:
            parts = None
            if isinstance(model, MissMDP) and self.observe_initial is not False:
                parts = structured_parts(model)
            if parts is None:
                result = self._listed(model, warm_start, limits, goal, say)
            else:
                result = self._by_features(model, parts, warm_start, limits, goal, say)
        if limits.interrupted:
            result = replace(result, status="interrupted")
        _log.info("%s", result)
        return result

    def _by_features(
        self,
        model: MissMDP | POMDP,
        parts: Parts,
        warm_start: SolveResult | None,
        limits: SearchLimits,
        goal: Goal,
        say: Callable[[str], None],
    ) -> SolveResult:
        """Return what is found where many features go missing: by features, and by lists where these are short."""
        result = None
        if lists_first(parts):
            with limits.shortened(BRIEF_SHARE):
                result = warm_start = self._listed(model, warm_start, limits, brief(goal), say)
            if is_last(goal, limits, result):
                return result
        structured = solve_structured(parts, limits, after(goal, result), say, self.threads)
        if structured is not None:
            result = joined(parts, result, structured, goal)
        if result is None or (result.status != "precision" and lists_last(parts, structured)):
            try:
                listed = self._listed(model, warm_start, limits, after(goal, result), say)
            except ModelError as error:  # lists do not fit
                if result is None:
                    raise
                _log.info("%s", error)
            else:
                result = joined(parts, result, listed, goal)
        return result

    def _listed(
        self,
        model: MissMDP | POMDP,
        warm_start: SolveResult | None,
        limits: SearchLimits,
        goal: Goal,
        say: Callable[[str], None],
    ) -> SolveResult:
        """Return what a search finds in which states and observations are listed, with α-vectors."""
        if isinstance(model, MissMDP):
            check_listable(model, observe_initial=self.observe_initial is not False)
        pomdp = model.to_pomdp() if isinstance(model, MissMDP) else model
        observe_initial = pomdp.observe_initial if self.observe_initial is None else self.observe_initial
        try:
            compiled = _compiled(model, pomdp, observe_initial, limits)
        except Stop as stop:
            return _nothing_yet(model, pomdp, observe_initial, limits, stop.status)
        search = Search(compiled, limits, np.random.default_rng(self.seed))
        loop = Loop(search, goal, say, threads=self.threads)
        status = loop.run(None if warm_start is None else warm_start.beliefs)
        assert search.controller is not None
        if search.upper < search.lower - 1e-9 * compiled.scale:
            _log.error("the bounds cross: lower %r, upper %r; please report this", search.lower, search.upper)
        policy = AlphaVectorPolicy(
            model, search.controller.policy_vectors(compiled), observe_initial=observe_initial
        )
        return SolveResult(
            policy=policy,
            lower=search.lower,
            upper=max(search.upper, search.lower),
            status=status,
            trace=loop.trace.build(),
            beliefs=beliefs_over_states(search, pomdp.n_states),
            seconds=limits.seconds,
            make_controller=partial(_controller, policy, search.controller, compiled, observe_initial),
        )


def _controller(
    policy: AlphaVectorPolicy, controller: Controller, compiled: Compilation, observe_initial: bool
) -> FiniteController:
    return FiniteController(policy, controller.plan(compiled, observe_initial=observe_initial))


def _compiled(
    model: MissMDP | POMDP, pomdp: POMDP, observe_initial: bool, limits: SearchLimits
) -> Compilation:
    """Return the compiled model, which `pomdp` is too; where it is large, limits hold on the way.

    Raises
    ------
    Stop
        If a limit was reached.
    ModelError
        If the model does not fit into the memory that is free.
    """
    entries = joint_entries(pomdp)
    if entries < LARGE:
        return compile_pomdp(pomdp, observe_initial=observe_initial)
    points = 2 * pomdp.n_states * (BYTES_PER_POINT + BYTES_PER_ACTION * pomdp.n_actions)
    limits.check_memory(points)
    check_entries(model, entries, points, observe_initial=observe_initial)
    return compile_pomdp(pomdp, observe_initial=observe_initial, check=limits.check)


def _nothing_yet(
    model: MissMDP | POMDP, pomdp: POMDP, observe_initial: bool, limits: SearchLimits, status: Status
) -> SolveResult:
    """Return what is known before a search begins: bounds from the rewards, and a policy worth the lower one."""
    lowest, highest = extremes(pomdp)
    components = [
        ComponentVectors(states, np.full((1, len(states)), lowest), np.zeros(1, dtype=np.int64))
        for states in state_components(pomdp)
    ]
    trace = TraceBuilder()
    trace.append(
        seconds=limits.seconds,
        trials=0,
        backups=0,
        lower=lowest,
        upper=highest,
        vectors=len(components),
        points=0,
    )
    result = SolveResult(
        policy=AlphaVectorPolicy(model, components, observe_initial=observe_initial),
        lower=lowest,
        upper=highest,
        status=status,
        trace=trace.build(),
        beliefs=sparse.csr_array((0, pomdp.n_states)),
        seconds=limits.seconds,
        lower_source="rewards",
        upper_source="rewards",
    )
    _log.info("%s", result)
    return result


def _limit(name: str, value: Any) -> float:
    return checked_number(name, value, least=0.0, finite=False)


def _optional_limit(name: str, value: Any) -> float | None:
    return None if value is None else _limit(name, value)


def _checked_result(warm_start: Any) -> SolveResult | None:
    if warm_start is None:
        return None
    return checked_instance("warm_start", warm_start, SolveResult, "the result of Sarsop")

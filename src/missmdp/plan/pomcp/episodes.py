"""Bulk simulation of POMCP policies: the same decisions as their agents', in kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import EXPECTED, FALLBACKS, NOT_SEEN, Tracker
from missmdp._kernels.pomcp.deciding import run_pomcp_episodes
from missmdp._kernels.random import episode_key
from missmdp._kernels.simulator import Simulation, first_state, next_state, seen_as
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, seen_codes, write_outcome
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.acting import EVENTS, compile_tracker
from missmdp.plan.pomcp.agent import Decision, decide, make_ready, own_numbers, warn_of_impossible

if TYPE_CHECKING:
    from missmdp.plan.pomcp.solver import POMCPPolicy

POMCP_EVENTS = (*EVENTS, "collapsed")
"""What is counted: what was done on observations of probability zero, and how often no particle survived."""

Decides = Callable[..., Decision]
"""(tracker, own_number, key, step, last, seen, stop) → what a decision came to; see `decide`."""


class SearchingPolicy(Protocol):
    """What is asked of a policy whose decisions are simulated one by one."""

    @property
    def model(self) -> MissMDP | POMDP: ...

    @property
    def actions(self) -> tuple[Any, ...]: ...

    @property
    def observe_initial(self) -> bool: ...


_TASK = 1
"""Episodes at once: they take long, and between them progress is shown and time limits are looked at."""


def pomcp_runner(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    """Return what simulates a POMCP policy in a model; see `BulkPolicy`."""
    if policy.options.is_short(horizon) and _ranks(model) is None:
        run = _in_one_call(policy, model, simulation, words, horizon)
        return EpisodeRunner(run, POMCP_EVENTS, task=_TASK)

    def decides() -> Decides:
        return partial(decide, policy, policy.new_mind())

    def ready(tracker: Tracker, numbers: NDArray[np.int64]) -> None:
        make_ready(policy, policy.new_mind(), tracker, numbers)

    return runner_by_decisions(policy, model, simulation, words, horizon, decides, ready)


def _ranks(model: MissMDP | POMDP) -> NDArray[np.int64] | None:
    """Return the ranks of observations, ascending, if the simulator numbers them so."""
    if isinstance(model, MissMDP) and not model.missingness.is_small:
        return np.asarray(model.space.features.rank(seen_codes(model)), dtype=np.int64)
    return None


def _in_one_call(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> Callable[[int, int], Episodes]:
    generative, rules = policy.generative, policy.rules
    tracker, numbers = compile_tracker(policy.model, model), own_numbers(policy.model, model)

    def run(first: int, count: int) -> Episodes:
        mind = policy.new_mind()
        episodes = empty_episodes(count, len(POMCP_EVENTS))
        count = run_pomcp_episodes(
            simulation,
            generative,
            rules,
            tracker,
            numbers,
            mind,
            words,
            first,
            horizon,
            model.discount,
            policy.observe_initial,
            episodes.outcomes,
            episodes.events,
        )
        return episodes.first(count)

    return run


def runner_by_decisions(
    policy: SearchingPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
    decides: Callable[[], Decides],
    ready: Callable[[Tracker, NDArray[np.int64]], None],
) -> EpisodeRunner:
    """Return what simulates a policy in calls of kernels that are short, for searches that take long or may end early.

    Parameters
    ----------
    policy, model, simulation, words, horizon
        As in `BulkPolicy`.
    decides
        Returns what decides in some episodes: `agent.decide` but for the policy and its mind.
    ready
        Compiles or loads the kernels, before any clock starts.
    """
    tracker, numbers = compile_tracker(policy.model, model), own_numbers(policy.model, model)
    ranks = _ranks(model)
    first_warning = threading.Lock()  # taken by whoever warns first, and kept
    shown = model.missingness.occurring().observations if isinstance(model, MissMDP) else model.observations

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(POMCP_EVENTS))
        episodes.events[:] = 0
        if count == 0:
            ready(tracker, numbers)
            return episodes
        decide_now = decides()
        for e in range(count):
            key = np.uint64(episode_key(words, first + e))
            state, action, step = first_state(simulation, key), 0, 0
            states, actions = [state], list[int]()
            while step < horizon and not simulation.terminal[state]:
                seen = NOT_SEEN
                if step > 0 or policy.observe_initial:
                    seen = int(seen_as(simulation, key, step, state, action))
                    seen = seen if ranks is None else int(np.searchsorted(ranks, seen))
                last = action
                action, done, collapsed, _ = decide_now(
                    tracker, numbers, key, step, last, seen, simulation.stop
                )
                if simulation.stop[0]:
                    return episodes.first(e)
                episodes.events[e, FALLBACKS] += collapsed
                if done != EXPECTED:
                    episodes.events[e, done] += 1
                    if first_warning.acquire(blocking=False):
                        when = (
                            f"after the action {policy.actions[last]!r}"
                            if step
                            else "as the first observation"
                        )
                        warn_of_impossible(shown[seen], when, EVENTS[done])
                step += 1
                state = next_state(simulation, key, step, state, action)
                states.append(state)
                actions.append(action)
            write_outcome(simulation, model.discount, states, actions, e, episodes)
        return episodes

    return EpisodeRunner(run, POMCP_EVENTS, task=_TASK)

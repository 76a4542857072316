"""Bulk simulation of POMCP policies: the same decisions as their agents', in kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import EXPECTED, FALLBACKS
from missmdp._kernels.pomcp.deciding import NOT_SEEN, run_pomcp_episodes
from missmdp._kernels.random import episode_key
from missmdp._kernels.simulator import Simulation, first_state, next_state, seen_as
from missmdp.data.simulation import EpisodeRunner, Episodes, empty_episodes, write_outcome
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.acting import EVENTS, compile_tracker
from missmdp.plan.pomcp.agent import decide, make_ready, own_numbers, warn_of_impossible

if TYPE_CHECKING:
    from missmdp.plan.pomcp.solver import POMCPPolicy

POMCP_EVENTS = (*EVENTS, "collapsed")
"""What is counted: what was done on observations of probability zero, and how often no particle survived."""

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
    run = _in_one_call if policy.options.is_short(horizon) else _by_decisions
    return EpisodeRunner(run(policy, model, simulation, words, horizon), POMCP_EVENTS, task=_TASK)


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


def _by_decisions(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> Callable[[int, int], Episodes]:
    """The same episodes in calls of kernels that are short, for searches that take long or may end early."""
    tracker, numbers = compile_tracker(policy.model, model), own_numbers(policy.model, model)
    first_warning = threading.Lock()  # taken by whoever warns first, and kept
    shown = model.missingness.occurring().observations if isinstance(model, MissMDP) else model.observations

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(POMCP_EVENTS))
        mind = policy.new_mind()
        episodes.events[:] = 0
        if count == 0:
            make_ready(policy, mind, tracker, numbers)
        for e in range(count):
            key = np.uint64(episode_key(words, first + e))
            state, action, step = first_state(simulation, key), 0, 0
            states, actions = [state], list[int]()
            while step < horizon and not simulation.terminal[state]:
                seen = NOT_SEEN
                if step > 0 or policy.observe_initial:
                    seen = int(seen_as(simulation, key, step, state, action))
                last = action
                action, done, collapsed, _ = decide(
                    policy, mind, tracker, numbers, key, step, last, seen, simulation.stop
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

    return run

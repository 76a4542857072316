"""Bulk simulation of POMCP policies: the same decisions as their agents', in kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.pomcp.episodes import run_pomcp_episodes
from missmdp._kernels.random import episode_key
from missmdp._kernels.rollout import Simulation, first_state, next_state, seen_as
from missmdp.data.episodes import EpisodeRunner, Episodes, empty_episodes
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.agent import NOTHING
from missmdp.plan.pomcp.agent import POMCPAgent
from missmdp.plan.pomcp.memory import new_mind
from missmdp.plan.pomcp.observations import own_numbers
from missmdp.plan.tracking import EVENTS, compile_tracker

if TYPE_CHECKING:
    from missmdp.plan.pomcp.policy import POMCPPolicy

__all__ = ["POMCP_EVENTS", "pomcp_runner"]

POMCP_EVENTS = (*EVENTS, "collapsed")
"""What is counted: what was done on observations of probability zero, and how often no particle survived."""

_TASK = 2
"""Episodes at once: they take long, and progress is shown between them."""


def pomcp_runner(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    """Return what simulates a POMCP policy in a model; see `BulkPolicy`."""
    watched = policy.options.max_time is not None
    run = _against_the_clock if watched else _in_kernels
    return EpisodeRunner(run(policy, model, simulation, words, horizon), POMCP_EVENTS, task=_TASK)


def _in_kernels(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> Callable[[int, int], Episodes]:
    generative, rules, chosen = policy.generative, policy.rules, policy.options
    tracker, numbers = compile_tracker(policy.model, model), own_numbers(policy.model, model)

    def run(first: int, count: int) -> Episodes:
        mind = new_mind(
            len(generative.terminal),
            generative.n_actions,
            max_depth=chosen.max_depth,
            tree_queries=chosen.tree_queries,
            particles=chosen.particles,
            at_once=chosen.at_once,
        )
        episodes = empty_episodes(count, len(POMCP_EVENTS))
        run_pomcp_episodes(
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
            *episodes,
        )
        return episodes

    return run


def _against_the_clock(
    policy: POMCPPolicy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    words: NDArray[np.uint64],
    horizon: int,
) -> Callable[[int, int], Episodes]:
    """Searches that may end early go through agents, which look at the clock between batches of simulations."""
    shown = model.missingness.occurring().observations if isinstance(model, MissMDP) else model.observations

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count, len(POMCP_EVENTS))
        for e in range(count):
            agent = POMCPAgent(policy, words, first_episode=first + e)
            key = np.uint64(episode_key(words, first + e))
            state, action, step, worth, total, extra = first_state(simulation, key), 0, 0, 1.0, 0.0, 0.0
            while step < horizon and not simulation.terminal[state]:
                seen = shown[seen_as(simulation, key, step, state, action)]
                if step == 0:
                    agent.reset(seen if policy.observe_initial else NOTHING)
                else:
                    agent.step(seen)
                action = agent.last_index
                total += worth * float(simulation.reward[state, action])
                extra += worth * float(simulation.advantage[state, action])
                worth *= model.discount
                step += 1
                state = next_state(simulation, key, step, state, action)
            episodes.returns[e] = total
            episodes.advantages[e] = extra - worth * float(simulation.potential[state])
            episodes.decisions[e], episodes.terminated[e] = step, simulation.terminal[state]
            episodes.events[e] = (*agent.fallbacks.values(), agent.collapses)
        return episodes

    return run

"""Whole episodes of a policy that searches, of which only the outcomes are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel
from missmdp._kernels.pomcp.deciding import NOT_SEEN, Mind, perceive, think
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules, decided, plant
from missmdp._kernels.random import episode_key
from missmdp._kernels.rollout import Simulation, first_state, next_state, seen_as
from missmdp._kernels.scoring import Outcomes, begin_score, earn, new_score, settle
from missmdp._kernels.tracking import EXPECTED, FALLBACKS, Tracker

__all__ = ["run_pomcp_episodes"]


@kernel
def run_pomcp_episodes(
    acted_in: Simulation,
    model: GenerativeModel,
    rules: SearchRules,
    tracker: Tracker,
    own_number: NDArray[np.int64],
    mind: Mind,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    observe_initial: bool,
    out: Outcomes,
    out_events: NDArray[np.int64],
) -> None:
    """Run len(out_events) episodes from first_episode on, of at most `horizon` decisions each.

    `discount` is that of the model acted in. `out_events` (E, FALLBACKS + 1) counts fallbacks by kind, then collapses.
    """
    zero: Any = np.int64(0)  # numba would compile what it calls with a literal 0 once more
    score = new_score()
    for e in range(len(out_events)):
        key = episode_key(seed, first_episode + e)
        state = first_state(acted_in, key)
        action = zero
        step = zero
        begin_score(score)
        for event in range(out_events.shape[1]):
            out_events[e, event] = 0
        while step < horizon and not acted_in.terminal[state]:
            seen = NOT_SEEN
            if step > 0 or observe_initial:
                seen = seen_as(acted_in, key, step, state, action)
            done, collapsed = perceive(model, tracker, own_number, mind, key, step, action, seen)
            if done != EXPECTED:
                out_events[e, done] += 1
            if collapsed:
                out_events[e, FALLBACKS] += 1
            plant(model, mind.tree)
            think(model, rules, mind, key, step, zero, len(mind.roots))
            action = decided(model, mind.tree)
            earn(acted_in, score, state, action, discount)
            step += 1
            state = next_state(acted_in, key, step, state, action)
        settle(acted_in, score, state, step, e, out)

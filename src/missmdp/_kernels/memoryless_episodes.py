"""Whole episodes of a memoryless policy, of which only the outcomes are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel
from missmdp._kernels.random import DRAW_ACTION, episode_key, uniform
from missmdp._kernels.rollout import Simulation, first_state, next_state, seen_as
from missmdp._kernels.sampling import RowSampler, draw

__all__ = ["run_memoryless_episodes"]


@kernel
def run_memoryless_episodes(
    model: Simulation,
    action_row: NDArray[np.int32],
    actions: RowSampler,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    out_returns: NDArray[np.float64],
    out_advantages: NDArray[np.float64],
    out_decisions: NDArray[np.int64],
    out_terminated: NDArray[np.bool_],
) -> None:
    """Run len(out_returns) episodes from first_episode on, of at most `horizon` decisions each.

    The policy draws from row action_row[z] of `actions` when it sees z.
    """
    for e in range(len(out_returns)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        worth = 1.0
        total = extra = 0.0
        while step < horizon and not model.terminal[state]:
            seen = seen_as(model, key, step, state, action)
            action = draw(actions, action_row[seen], uniform(key, step, DRAW_ACTION))
            total += worth * model.reward[state, action]
            extra += worth * model.advantage[state, action]
            worth *= discount
            step += 1
            state = next_state(model, key, step, state, action)
        out_returns[e] = total
        out_advantages[e] = extra - worth * model.potential[state]
        out_decisions[e] = step
        out_terminated[e] = model.terminal[state]

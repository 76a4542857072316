"""Whole episodes of a memoryless policy, of which only the outcomes are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel
from missmdp._kernels.random import DRAW_ACTION, episode_key, uniform
from missmdp._kernels.rollout import Simulation, first_state, next_state, seen_as
from missmdp._kernels.sampling import RowSampler, draw
from missmdp._kernels.scoring import Outcomes, begin_score, earn, new_score, settle

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
    out: Outcomes,
) -> None:
    """Run len(out.returns) episodes from first_episode on, of at most `horizon` decisions each.

    The policy draws from row action_row[z] of `actions` when it sees z.
    """
    score = new_score()
    for e in range(len(out.returns)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        begin_score(score)
        while step < horizon and not model.terminal[state]:
            seen = seen_as(model, key, step, state, action)
            action = draw(actions, action_row[seen], uniform(key, step, DRAW_ACTION))
            earn(model, score, state, action, discount)
            step += 1
            state = next_state(model, key, step, state, action)
        settle(model, score, state, step, e, out)

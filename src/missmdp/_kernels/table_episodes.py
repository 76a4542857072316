"""Whole episodes of policies that are tables, memoryless or finite controllers, of which only the outcomes are kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import DRAW_ACTION, RowSampler, draw, episode_key, uniform
from missmdp._kernels.simulator import (
    Outcomes,
    Simulation,
    begin_score,
    earn,
    first_state,
    new_score,
    next_state,
    seen_as,
    settle,
)


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
) -> int:
    """Run len(out.returns) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    The policy draws from row action_row[z] of `actions` when it sees z, or action_row[0] if that is all.
    """
    score = new_score()
    for e in range(len(out.returns)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        begin_score(score)
        while step < horizon and not model.terminal[state]:
            if model.stop[0]:
                return e
            seen = seen_as(model, key, step, state, action)
            action = draw(
                actions, action_row[seen if len(action_row) > 1 else 0], uniform(key, step, DRAW_ACTION)
            )
            earn(model, score, state, action, discount)
            step += 1
            state = next_state(model, key, step, state, action)
        settle(model, score, state, step, e, out)
    return len(out.returns)


class Nodes(NamedTuple):
    """A controller as it sees the model that it acts in; see `ControllerPlan`."""

    action: NDArray[np.int64]
    start: NDArray[np.int64]
    sight: NDArray[np.int64]
    successor: NDArray[np.int64]
    root: int
    sight_of: NDArray[np.int64]
    """The sight of observation z of the model after each action (or in one row), −1 for none, shape (…, Z)."""
    default: NDArray[np.int64]
    """Where to go on z if the plan does not say, shape (Z,)."""


@inner
def _after(nodes: Nodes, node: int, seen: int) -> tuple[int, bool]:
    """Return the node that follows, and whether the plan says so."""
    watched = nodes.action[node] if len(nodes.sight_of) > 1 and nodes.action[node] >= 0 else 0
    sight = nodes.sight_of[watched, seen]
    low, high = nodes.start[node], nodes.start[node + 1]
    while low < high:
        middle = (low + high) // 2
        if nodes.sight[middle] < sight:
            low = middle + 1
        else:
            high = middle
    if sight >= 0 and low < nodes.start[node + 1] and nodes.sight[low] == sight:
        return int(nodes.successor[low]), True
    return int(nodes.default[seen]), False


@kernel
def run_controller_episodes(
    model: Simulation,
    nodes: Nodes,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    observe_initial: bool,
    out: Outcomes,
    out_impossible: NDArray[np.int64],
) -> int:
    """Run len(out_impossible) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    `out_impossible` (E, 1) counts the observations for which the plan has no node.
    """
    score = new_score()
    for e in range(len(out_impossible)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        node = nodes.root
        action = 0
        step = 0
        begin_score(score)
        out_impossible[e, 0] = 0
        while step < horizon and not model.terminal[state]:
            if model.stop[0]:
                return e
            if step > 0 or observe_initial:
                node, planned = _after(nodes, node, seen_as(model, key, step, state, action))
                if not planned:
                    out_impossible[e, 0] += 1
            action = max(nodes.action[node], 0)
            earn(model, score, state, action, discount)
            step += 1
            state = next_state(model, key, step, state, action)
        settle(model, score, state, step, e, out)
    return len(out_impossible)

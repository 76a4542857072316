"""Whole episodes of policies that are tables: memoryless, finite controllers, or with memory by features or values.

Only their outcomes are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import DRAW_ACTION, RowSampler, bits, draw, episode_key, nth_uniform, uniform
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


@kernel
def run_carrying_episodes(
    model: Simulation,
    codes: NDArray[np.int64],
    begins_with: NDArray[np.int64],
    weights: NDArray[np.int64],
    action_of: NDArray[np.int64],
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    out: Outcomes,
) -> int:
    """Run len(out.returns) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    A feature that is missing keeps the value that it was last seen with, at first that of `begins_with` (n,). The
    action is action_of[Σ weights · values]. Row z of `codes` (Z, n) is what observation z shows, −1 for missing.
    """
    score = new_score()
    values = np.empty(len(begins_with), dtype=np.int64)
    for e in range(len(out.returns)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        values[:] = begins_with
        begin_score(score)
        while step < horizon and not model.terminal[state]:
            if model.stop[0]:
                return e
            seen = seen_as(model, key, step, state, action)
            place = 0
            for i in range(len(values)):
                if codes[seen, i] >= 0:
                    values[i] = codes[seen, i]
                place += weights[i] * values[i]
            action = int(action_of[place])
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


class NodeTables(NamedTuple):
    """A policy with one node per feature that can go missing, as it sees the model that it acts in."""

    site: NDArray[np.int64]
    """The positions of these features, shape (k,)."""
    n_nodes: NDArray[np.int64]
    """The number of nodes of each, shape (k,)."""
    stride: NDArray[np.int64]
    """What one node more adds to the place in `action`, shape (k,)."""
    scene_weight: NDArray[np.int64]
    """What one step of a feature's code adds to the scene, 0 for the features of sites, shape (n,)."""
    begins_with: NDArray[np.int64]
    """The codes that stand for what is missing in a first observation though it never should, shape (n,)."""
    first_row: NDArray[np.int64]
    """Row first_row[i] + scene of `rows`: the node of site i if it is missing at first, shape (k,)."""
    step_row: NDArray[np.int64]
    """Row step_row[i] + ((a · scenes + scene) · scenes + next scene) · n_nodes[i] + node: the next one, shape (k,)."""
    rows: RowSampler
    action: NDArray[np.int32]
    """The action at scene · n_nodes[0] ⋯ + Σ stride[i] · node."""
    alike: NDArray[np.int32]
    """The actions that do to each site what an action does to one, −1 for none, shape (A, k) or nothing."""
    n_scenes: int
    codes: NDArray[np.int32]
    """The observations of the model as codes, shape (Z, n), or nothing where they are numbered by rank."""
    sizes: NDArray[np.int64]
    """The number of values of each feature, shape (n,)."""
    weights: NDArray[np.int64]
    """What one step of each feature's code adds to a rank, shape (n,)."""


@inner
def _code(tables: NodeTables, seen: int, feature: int) -> int:
    """Return the code of a feature in an observation, −1 for missing."""
    if len(tables.codes) > 0:
        return int(tables.codes[seen, feature])
    return int(seen // tables.weights[feature] % (tables.sizes[feature] + 1) - 1)


@inner
def _remember(
    tables: NodeTables,
    random: Any,
    seen: int,
    step: int,
    scene: int,
    action: int,
    values: NDArray[np.int64],
    nodes: NDArray[np.int64],
) -> tuple[int, bool]:
    """Take in an observation; return the scene, and whether all is there that always should be."""
    after = 0
    complete = True
    for i in range(len(values)):
        if tables.scene_weight[i] > 0:
            code = _code(tables, seen, i)
            if code >= 0:
                values[i] = code
            else:
                complete = False
            after += tables.scene_weight[i] * values[i]
    for j in range(len(nodes)):
        code = _code(tables, seen, tables.site[j])
        if code >= 0:
            nodes[j] = code
        elif step == 0:
            nodes[j] = draw(tables.rows, tables.first_row[j] + after, nth_uniform(random, j))
        else:
            move = (action * tables.n_scenes + scene) * tables.n_scenes + after
            row = tables.step_row[j] + move * tables.n_nodes[j] + nodes[j]
            nodes[j] = draw(tables.rows, row, nth_uniform(random, j))
    return after, complete


@inner
def _one_of_alike(alike: NDArray[np.int32], action: int, nodes: NDArray[np.int64], number: float) -> int:
    """Return an action on a site, drawn from those on sites at the same node; other actions as they are."""
    own = -1
    for j in range(alike.shape[1]):
        if alike[action, j] == action:
            own = j
    if own < 0:
        return action
    tied = 0
    for j in range(len(nodes)):
        tied += alike[action, j] >= 0 and nodes[j] == nodes[own]
    chosen = min(int(number * tied), tied - 1)
    for j in range(len(nodes)):
        if alike[action, j] >= 0 and nodes[j] == nodes[own]:
            if chosen == 0:
                return int(alike[action, j])
            chosen -= 1
    return action


@kernel
def run_memory_episodes(
    model: Simulation,
    tables: NodeTables,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    out: Outcomes,
    out_impossible: NDArray[np.int64],
) -> int:
    """Run len(out_impossible) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    `out_impossible` (E, 1) counts the observations that lack a feature which should always be seen.
    """
    score = new_score()
    values = np.empty(len(tables.begins_with), dtype=np.int64)
    nodes = np.empty(len(tables.site), dtype=np.int64)
    n_combinations = len(tables.action) // tables.n_scenes
    for e in range(len(out_impossible)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        scene = 0
        action = 0
        step = 0
        values[:] = tables.begins_with
        nodes[:] = 0
        begin_score(score)
        out_impossible[e, 0] = 0
        while step < horizon and not model.terminal[state]:
            if model.stop[0]:
                return e
            seen = seen_as(model, key, step, state, action)
            random = bits(key, step, DRAW_ACTION)
            scene, complete = _remember(tables, random, seen, step, scene, action, values, nodes)
            if not complete:
                out_impossible[e, 0] += 1
            place = scene * n_combinations
            for j in range(len(nodes)):
                place += tables.stride[j] * nodes[j]
            action = int(tables.action[place])
            if len(tables.alike) > 0:
                action = _one_of_alike(tables.alike, action, nodes, nth_uniform(random, len(nodes)))
            earn(model, score, state, action, discount)
            step += 1
            state = next_state(model, key, step, state, action)
        settle(model, score, state, step, e, out)
    return len(out_impossible)

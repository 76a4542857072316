"""Whole episodes of an α-vector policy, of which only the outcomes are kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.alpha import NOWHERE, SEVERAL, VectorTable, look_ahead
from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import episode_key
from missmdp._kernels.rollout import Simulation, first_state, next_state, seen_as
from missmdp._kernels.scoring import Outcomes, begin_score, earn, new_score, settle
from missmdp._kernels.tracking import (
    EXPECTED,
    Belief,
    Tracker,
    accept_predicted,
    condition_belief,
    new_belief,
    predict_belief,
    start_belief,
)

__all__ = ["ActingVectors", "OwnObservations", "run_alpha_episodes"]


class ActingVectors(NamedTuple):
    """α-vectors, laid out so that all vectors of a block are scored at once."""

    table: VectorTable
    by_state: NDArray[np.float64]
    """The values of `table`, but block by block, state by state, vector by vector."""
    action: NDArray[np.int64]
    """Shape (vectors,)."""


class OwnObservations(NamedTuple):
    """What the policy's own model shows and pays: for the lookahead where a belief spans blocks."""

    start: NDArray[np.int64]
    """The states that can give z after the action of matrix w are at start[w · (Z + 1) + z] …"""
    state: NDArray[np.int64]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    """ρ(s, a), 0 in terminal states, shape (S, A)."""
    n_observations: int
    n_watched: int
    discount: float


@inner
def _block(vectors: ActingVectors, belief: Belief) -> int:
    found = NOWHERE
    for i in range(belief.size[0]):
        label = int(vectors.table.label[belief.state[i]])
        if label >= 0:
            if found == NOWHERE:
                found = label
            elif label != found:
                return SEVERAL
    return int(found)


@inner
def _decide(
    tracker: Tracker,
    vectors: ActingVectors,
    own: OwnObservations,
    belief: Belief,
    scores: NDArray[np.float64],
    looking: Belief,
) -> int:
    k = _block(vectors, belief)
    if k == NOWHERE:
        return 0
    if k == SEVERAL:
        return _look_further(tracker, vectors, own, belief, looking)
    table = vectors.table
    first = table.first[k]
    count = table.first[k + 1] - first
    scores[:count] = 0.0
    for i in range(belief.size[0]):
        s = belief.state[i]
        if table.label[s] >= 0:
            start = table.offset[k] + table.place[s] * count
            weight = belief.weight[i]
            for v in range(count):
                scores[v] += weight * vectors.by_state[start + v]
    best = 0
    for v in range(1, count):
        if scores[v] > scores[best]:
            best = v
    return int(vectors.action[first + best])


@inner
def _look_further(
    tracker: Tracker, vectors: ActingVectors, own: OwnObservations, belief: Belief, looking: Belief
) -> int:
    looking.size[0] = belief.size[0]
    looking.state[: belief.size[0]] = belief.state[: belief.size[0]]
    looking.weight[: belief.size[0]] = belief.weight[: belief.size[0]]
    n = own.n_observations
    probability, value = np.empty(n), np.empty(n)
    vector = np.empty(n, dtype=np.int64)
    best, best_value = 0, -np.inf
    for a in range(tracker.n_actions):
        predict_belief(tracker, looking, a)
        watched = a if own.n_watched > 1 else 0
        start = own.start[watched * (n + 1) : (watched + 1) * (n + 1)]
        total = own.discount * look_ahead(
            looking.predicted, start, own.state, own.probability, vectors.table, probability, value, vector
        )
        for i in range(belief.size[0]):
            total += belief.weight[i] * own.reward[belief.state[i], a]
        if total > best_value:
            best, best_value = a, total
    return best


@kernel
def run_alpha_episodes(
    model: Simulation,
    tracker: Tracker,
    vectors: ActingVectors,
    own: OwnObservations,
    seed: NDArray[np.uint64],
    first_episode: int,
    horizon: int,
    discount: float,
    observe_initial: bool,
    out: Outcomes,
    out_fallbacks: NDArray[np.int64],
) -> None:
    """Run len(out_fallbacks) episodes from first_episode on, of at most `horizon` decisions each.

    `discount` is that of the model acted in. `out_fallbacks` (E, FALLBACKS) counts by kind.
    """
    belief, looking = new_belief(len(tracker.terminal)), new_belief(len(tracker.terminal))
    scores = np.empty(
        max(1, int(np.max(np.diff(vectors.table.first)))) if len(vectors.table.first) > 1 else 1
    )
    score = new_score()
    for e in range(len(out_fallbacks)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        begin_score(score)
        out_fallbacks[e] = 0
        while step < horizon and not model.terminal[state]:
            if step == 0:
                start_belief(tracker, belief)
            else:
                predict_belief(tracker, belief, action)
            if step > 0 or observe_initial:
                done = condition_belief(tracker, belief, seen_as(model, key, step, state, action), action)
                if done != EXPECTED:
                    out_fallbacks[e, done] += 1
            else:
                accept_predicted(belief)
            action = _decide(tracker, vectors, own, belief, scores, looking)
            earn(model, score, state, action, discount)
            step += 1
            state = next_state(model, key, step, state, action)
        settle(model, score, state, step, e, out)

"""α-vector policies: their decisions at a belief, and whole episodes of which only the outcomes are kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.beliefs import (
    EXPECTED,
    Belief,
    Tracker,
    accept_predicted,
    condition_belief,
    new_belief,
    predict_belief,
    start_belief,
)
from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import episode_key
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

NOWHERE = -1
"""The component of terminal states, and of beliefs that hold nothing else possible."""
SEVERAL = -2
"""The component of beliefs that span more than one."""


class VectorTable(NamedTuple):
    """The α-vectors of all components in one row. Those of component k have numbers first[k] … first[k + 1] − 1."""

    label: NDArray[np.int64]
    """Component of each state, shape (S,); `NOWHERE` for terminal states."""
    place: NDArray[np.int64]
    """Position of each state in its component, shape (S,)."""
    first: NDArray[np.int64]
    """Shape (components + 1,)."""
    width: NDArray[np.int64]
    """States per component, shape (components,)."""
    offset: NDArray[np.int64]
    """Where the values of a component start, shape (components,)."""
    values: NDArray[np.float64]
    """Component by component, vector by vector, state by state."""


@kernel
def component_of(belief: NDArray[np.float64], label: NDArray[np.int64]) -> int:
    """Return the component that holds the possible states of a belief, terminal ones aside."""
    found = NOWHERE
    for s in range(len(belief)):
        if belief[s] > 0.0 and label[s] >= 0:
            if found == NOWHERE:
                found = label[s]
            elif label[s] != found:
                return SEVERAL
    return found


@kernel
def look_ahead(
    predicted: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float64],
    table: VectorTable,
    out_probability: NDArray[np.float64],
    out_value: NDArray[np.float64],
    out_vector: NDArray[np.int64],
) -> float:
    """Fill in, for every observation, P(z), P(z) · V(b_z) and the best vector at b_z; return Σ_z P(z) · V(b_z).

    The observation function comes by columns. The best vector is −1 where b_z is terminal or impossible.
    Values are linear in the belief's scale, so that no posterior is normalised.
    """
    total = 0.0
    for z in range(len(indptr) - 1):
        probability = 0.0
        component = NOWHERE
        for j in range(indptr[z], indptr[z + 1]):
            weight = predicted[indices[j]] * data[j]
            probability += weight
            if weight > 0.0 and table.label[indices[j]] >= 0:
                component = table.label[indices[j]]
        out_probability[z] = probability
        out_value[z] = 0.0
        out_vector[z] = -1
        if component < 0:
            continue
        best = -np.inf
        for v in range(table.first[component], table.first[component + 1]):
            start = table.offset[component] + (v - table.first[component]) * table.width[component]
            score = 0.0
            for j in range(indptr[z], indptr[z + 1]):
                s = indices[j]
                if table.label[s] >= 0:
                    score += predicted[s] * data[j] * table.values[start + table.place[s]]
            if score > best:
                best = score
                out_vector[z] = v
        out_value[z] = best
        total += best
    return total


class ActingVectors(NamedTuple):
    """α-vectors, laid out so that all vectors of a component are scored at once."""

    table: VectorTable
    by_state: NDArray[np.float64]
    """The values of `table`, but component by component, state by state, vector by vector."""
    action: NDArray[np.int64]
    """Shape (vectors,)."""


class OwnObservations(NamedTuple):
    """What the policy's own model shows and pays: for the lookahead where a belief spans components."""

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
def _component(vectors: ActingVectors, belief: Belief) -> int:
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
    k = _component(vectors, belief)
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
    for i in range(belief.size[0]):
        looking.state[i] = belief.state[i]
        looking.weight[i] = belief.weight[i]
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
) -> int:
    """Run len(out_fallbacks) episodes from first_episode on, of at most `horizon` decisions each; return how many.

    `discount` is that of the model acted in. `out_fallbacks` (E, FALLBACKS) counts by kind.
    """
    belief, looking = new_belief(len(tracker.terminal)), new_belief(len(tracker.terminal))
    most = 1
    for k in range(len(vectors.table.first) - 1):
        most = max(most, vectors.table.first[k + 1] - vectors.table.first[k])
    scores = np.empty(most)
    score = new_score()
    for e in range(len(out_fallbacks)):
        key = episode_key(seed, first_episode + e)
        state = first_state(model, key)
        action = 0
        step = 0
        begin_score(score)
        out_fallbacks[e] = 0
        while step < horizon and not model.terminal[state]:
            if model.stop[0]:
                return e
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
    return len(out_fallbacks)

"""Belief updates: one step on dense arrays, and sparse tracking inside simulated episodes.

A belief is a list of its possible states, in ascending order, with their probabilities. What happens on an
observation of probability zero is what `plan.agent.AlphaVectorAgent` does, and in the same order of operations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel


@kernel
def predict(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float64],
    belief: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill out[S] with Σ_s T(· | s, a) b(s), from the sparse rows of the states that b holds possible."""
    out[:] = 0.0
    for s in range(len(belief)):
        if belief[s] > 0.0:
            for j in range(indptr[s], indptr[s + 1]):
                out[indices[j]] += belief[s] * data[j]


@kernel
def condition(
    predicted: NDArray[np.float64], likelihood: NDArray[np.float64], out: NDArray[np.float64]
) -> float:
    """Fill out[S] with the posterior and return the probability of what was seen; 0 leaves out all zero."""
    total = 0.0
    for s in range(len(predicted)):
        out[s] = predicted[s] * likelihood[s]
        total += out[s]
    if total > 0.0:
        for s in range(len(out)):
            out[s] /= total
    return total


EXPECTED, ADMITTED, RESTARTED, IGNORED = -1, 0, 1, 2
"""What was done on an observation: Bayes' rule, or one of the fallbacks for those of probability zero."""
FALLBACKS = 3
"""How many kinds of fallback there are."""


class Tracker(NamedTuple):
    """The model under which a belief is tracked; observations are those of the model acted in."""

    initial: NDArray[np.float64]
    """b₀, shape (S,)."""
    start: NDArray[np.int64]
    """T(· | s, a) has its targets at start[s · n_actions + a] …"""
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    seen_start: NDArray[np.int64]
    """The states that can give z after an action are at seen_start[z · n_watched + w] …; w as in `Simulation`."""
    seen_state: NDArray[np.int32]
    seen_probability: NDArray[np.float64]
    state_codes: NDArray[np.int64]
    """Shape (S, n); n is 0 for POMDPs, of whose observations nothing can be believed in part."""
    observation_codes: NDArray[np.int64]
    """Shape (Z, n), −1 where missing."""
    terminal: NDArray[np.bool_]
    n_actions: int
    n_watched: int


class Belief(NamedTuple):
    """Working space for one belief. The first `size` entries of `state` and `weight` are the belief."""

    state: NDArray[np.int32]
    weight: NDArray[np.float64]
    predicted: NDArray[np.float64]
    """The belief before an observation, dense; `touched` lists what may be positive."""
    touched: NDArray[np.int32]
    size: NDArray[np.int64]
    """(size of the belief, number of touched)."""


@inner
def new_belief(n_states: int) -> Belief:
    """Return working space, with nothing in it."""
    return Belief(
        np.empty(n_states, dtype=np.int32),
        np.empty(n_states),
        np.zeros(n_states),
        np.empty(n_states, dtype=np.int32),
        np.zeros(2, dtype=np.int64),
    )


@inner
def _forget_predicted(belief: Belief) -> None:
    for i in range(belief.size[1]):
        belief.predicted[belief.touched[i]] = 0.0
    belief.size[1] = 0


@inner
def start_belief(tracker: Tracker, belief: Belief) -> None:
    """Predict b₀."""
    _forget_predicted(belief)
    for s in range(len(tracker.initial)):
        if tracker.initial[s] > 0.0:
            belief.predicted[s] = tracker.initial[s]
            belief.touched[belief.size[1]] = s
            belief.size[1] += 1


@inner
def predict_belief(tracker: Tracker, belief: Belief, action: int) -> None:
    """Predict Σ_s T(· | s, a) b(s)."""
    _forget_predicted(belief)
    for i in range(belief.size[0]):
        row = belief.state[i] * tracker.n_actions + action
        weight = belief.weight[i]
        for j in range(tracker.start[row], tracker.start[row + 1]):
            mass = weight * tracker.probability[j]
            if mass > 0.0:
                s = tracker.target[j]
                if belief.predicted[s] == 0.0:
                    belief.touched[belief.size[1]] = s
                    belief.size[1] += 1
                belief.predicted[s] += mass


@inner
def accept_predicted(belief: Belief) -> None:
    """Make what was predicted the belief, without an observation."""
    n = 0
    for s in range(len(belief.predicted)):
        if belief.predicted[s] > 0.0:
            belief.state[n] = s
            belief.weight[n] = belief.predicted[s]
            n += 1
    belief.size[0] = n


@inner
def condition_belief(tracker: Tracker, belief: Belief, seen: int, action: int) -> int:
    """Condition what was predicted on an observation after an action; return what was done."""
    column = seen * tracker.n_watched + (action if tracker.n_watched > 1 else 0)
    n = 0
    total = 0.0
    for j in range(tracker.seen_start[column], tracker.seen_start[column + 1]):
        s = tracker.seen_state[j]
        mass = belief.predicted[s] * tracker.seen_probability[j]
        if mass > 0.0:
            belief.state[n] = s
            belief.weight[n] = mass
            total += mass
            n += 1
    if total > 0.0:
        _normalise(belief, n, total)
        return EXPECTED
    return _fall_back(tracker, belief, seen)


@inner
def _normalise(belief: Belief, n: int, total: float) -> None:
    for i in range(n):
        belief.weight[i] /= total
    belief.size[0] = n


@inner
def _admits(tracker: Tracker, state: int, seen: int) -> bool:
    for i in range(tracker.state_codes.shape[1]):
        code = tracker.observation_codes[seen, i]
        if code >= 0 and code != tracker.state_codes[state, i]:
            return False
    return True


@inner
def _fall_back(tracker: Tracker, belief: Belief, seen: int) -> int:
    if tracker.state_codes.shape[1] == 0:
        accept_predicted(belief)
        return IGNORED
    n_states = len(tracker.terminal)
    n = 0
    total = 0.0
    for s in range(n_states):
        if belief.predicted[s] > 0.0 and _admits(tracker, s, seen):
            belief.state[n] = s
            belief.weight[n] = belief.predicted[s]
            total += belief.predicted[s]
            n += 1
    if total > 0.0:
        _normalise(belief, n, total)
        return ADMITTED
    for terminal_too in (False, True):
        n = 0
        for s in range(n_states):
            if (terminal_too or not tracker.terminal[s]) and _admits(tracker, s, seen):
                belief.state[n] = s
                belief.weight[n] = 1.0
                n += 1
        if n > 0:
            _normalise(belief, n, float(n))
            return RESTARTED
    accept_predicted(belief)
    return IGNORED


NOT_SEEN = -1
"""Instead of an observation: there was none."""


@kernel
def track(tracker: Tracker, belief: Belief, step: int, action: int, seen: int) -> int:
    """Update a belief by an action and what was seen after it; return what was done.

    At step 0 there was no action, and there may be nothing seen.
    """
    if step == 0:
        start_belief(tracker, belief)
    else:
        predict_belief(tracker, belief, action)
    if seen == NOT_SEEN:
        accept_predicted(belief)
        return EXPECTED
    return condition_belief(tracker, belief, seen, action)

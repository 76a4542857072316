"""The forward filter over logged episodes: the probability of every observation after those before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import kernel

__all__ = ["FilterModel", "filter_episodes"]


class FilterModel(NamedTuple):
    """The model under which histories are judged."""

    initial: NDArray[np.float64]
    """b₀, shape (S,)."""
    start: NDArray[np.int64]
    """T(· | s, a) has its targets at start[a · S + s] …"""
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    codes: NDArray[np.int64]
    """The values of each state, shape (S, n)."""
    missingness: NDArray[np.float64]
    """P(pattern | s), shape (S, K)."""


@kernel
def filter_episodes(
    model: FilterModel,
    observations: NDArray[np.int64],
    patterns: NDArray[np.int64],
    actions: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Fill out[N] with log P(z_t | z_0, a_0, …, a_{t−1}), −∞ from an impossible observation to its episode's end.

    `patterns` has the column of `missingness` that belongs to each observation, −1 if there is none.
    """
    n_states = len(model.initial)
    n_features = model.codes.shape[1]
    # The belief is weight[:size] on the states state[:size]; predicted is dense, touched lists where it is not 0.
    state = np.empty(n_states, dtype=np.int32)
    weight = np.empty(n_states)
    predicted = np.zeros(n_states)
    touched = np.empty(n_states, dtype=np.int32)
    size = 0
    for e in range(len(offsets) - 1):
        first, end = offsets[e], offsets[e + 1]
        for row in range(first, end):
            count = 0
            if row == first:
                for s in range(n_states):
                    if model.initial[s] > 0.0:
                        predicted[s] = model.initial[s]
                        touched[count] = s
                        count += 1
            else:
                base = actions[row - 1] * n_states
                for i in range(size):
                    for j in range(model.start[base + state[i]], model.start[base + state[i] + 1]):
                        mass = weight[i] * model.probability[j]
                        if mass > 0.0:
                            s = model.target[j]
                            if predicted[s] == 0.0:
                                touched[count] = s
                                count += 1
                            predicted[s] += mass
            total = 0.0
            size = 0
            for i in range(count):
                s = touched[i]
                mass = predicted[s]
                predicted[s] = 0.0
                fits = patterns[row] >= 0
                for f in range(n_features):
                    z = observations[row, f]
                    fits &= z < 0 or z == model.codes[s, f]
                if fits:
                    mass *= model.missingness[s, patterns[row]]
                    if mass > 0.0:
                        state[size] = s
                        weight[size] = mass
                        size += 1
                        total += mass
            if total == 0.0:
                out[row:end] = -np.inf
                break
            out[row] = np.log(total)
            for i in range(size):
                weight[i] /= total

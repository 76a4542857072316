"""Small networks with tanh units, and many episodes at once, one decision at a time.

Sums are taken in one order for each row, so that an output does not depend on the rows beside it.

A frame is what one step adds to the input: the observation's numbers, then those of the action that led to it.
The input is the last frames side by side, the newest last, and then the current observation once more, in numbers of
another kind, if there are such. Frames before the start of the episode are blank.
States and observations are drawn as everywhere else, addressed by (seed, episode, step, purpose).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.random import DRAW_ACTION, episode_key, uniform
from missmdp._kernels.simulator import (
    RETURN,
    SCORE,
    Outcomes,
    Simulation,
    begin_score,
    earn,
    first_state,
    next_state,
    seen_as,
    settle,
)


class Network(NamedTuple):
    """Dense layers, tanh between them, nothing after the last."""

    sizes: NDArray[np.int64]
    """Inputs, units of each hidden layer, outputs."""
    weights: NDArray[np.float32]
    """For each layer: its matrix, a row per input, then its bias."""


@kernel
def infer(
    network: Network, inputs: NDArray[np.float32], rows: int, scratch: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the outputs for inputs[:rows], in the first columns of a view of scratch[2, rows, widest layer]."""
    source = inputs
    target = scratch[0]
    offset = 0
    n_layers = len(network.sizes) - 1
    for layer in range(n_layers):
        n_in, n_out = network.sizes[layer], network.sizes[layer + 1]
        target = scratch[layer % 2]
        bias = network.weights[offset + n_in * n_out : offset + n_in * n_out + n_out]
        for i in range(rows):
            for j in range(n_out):
                target[i, j] = bias[j]
        for k in range(n_in):
            row = network.weights[offset + k * n_out : offset + (k + 1) * n_out]
            for i in range(rows):
                x = source[i, k]
                # Most inputs of a one-hot encoding are 0.
                if x != 0.0:
                    for j in range(n_out):
                        target[i, j] += x * row[j]
        if layer < n_layers - 1:
            for i in range(rows):
                for j in range(n_out):
                    target[i, j] = np.tanh(target[i, j])
        offset += (n_in + 1) * n_out
        source = target
    return target


@kernel
def softmax(logits: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    """Fill out[A] with the probabilities of actions."""
    largest = np.float64(logits.max())
    total = 0.0
    for a in range(len(logits)):
        out[a] = math.exp(np.float64(logits[a]) - largest)
        total += out[a]
    for a in range(len(logits)):
        out[a] /= total


@kernel
def choose(logits: NDArray[np.float32], u: float, likeliest: bool) -> int:
    """Return the action for u in [0, 1) by inverting the CDF, or the first of the likeliest ones."""
    if likeliest:
        return int(logits.argmax())
    largest = np.float64(logits.max())
    total = 0.0
    for a in range(len(logits)):
        total += math.exp(np.float64(logits[a]) - largest)
    reached = 0.0
    for a in range(len(logits) - 1):
        reached += math.exp(np.float64(logits[a]) - largest)
        if reached > u * total:
            return a
    return len(logits) - 1


GOING_ON, TERMINATED, TRUNCATED = 0, 1, 2
"""What a decision led to."""


class Frames(NamedTuple):
    """How observations and actions become numbers."""

    seen: NDArray[np.float32]
    """Row z: the numbers of an observation, shape (Z, W)."""
    action: NDArray[np.float32]
    """Row a: the numbers of an action, the last row those of none, shape (A + 1, V)."""
    blank: NDArray[np.float32]
    """A frame before the start, shape (W + V,)."""
    now: NDArray[np.float32]
    """Row z: the numbers of the current observation after all frames, shape (Z, N)."""


class Running(NamedTuple):
    """Where some episodes are, each of shape (E,) but for the score."""

    key: NDArray[np.uint64]
    step: NDArray[np.int64]
    """How many decisions were made."""
    state: NDArray[np.int64]
    score: NDArray[np.float64]
    """Shape (E, SCORE)."""


def running_places(n: int) -> Running:
    """Return room for n episodes."""
    return Running(
        key=np.zeros(n, dtype=np.uint64),
        step=np.zeros(n, dtype=np.int64),
        state=np.zeros(n, dtype=np.int64),
        score=np.zeros((n, SCORE)),
    )


@kernel
def push_frame(frames: Frames, seen: int, action: int, out: NDArray[np.float32]) -> None:
    """Move the frames in out[D] one to the left, write another at their end, and what is seen now behind them."""
    width, n_seen, n_now = len(frames.blank), frames.seen.shape[1], frames.now.shape[1]
    last = len(out) - n_now - width
    for j in range(last):
        out[j] = out[j + width]
    for j in range(n_now):
        out[last + width + j] = frames.now[seen, j]
    for j in range(n_seen):
        out[last + j] = frames.seen[seen, j]
    for j in range(width - n_seen):
        out[last + n_seen + j] = frames.action[action, j]


@inner
def _begin(
    model: Simulation, frames: Frames, key: Any, i: int, running: Running, out: NDArray[np.float32]
) -> None:
    state = first_state(model, key)
    running.key[i], running.step[i], running.state[i] = key, 0, state
    begin_score(running.score[i])
    width = len(frames.blank)
    for j in range(out.shape[1]):
        out[i, j] = frames.blank[j % width]
    push_frame(frames, seen_as(model, key, 0, state, 0), model.n_actions, out[i])


@inner
def _step(
    model: Simulation,
    frames: Frames,
    i: int,
    action: int,
    horizon: int,
    discount: float,
    running: Running,
    out: NDArray[np.float32],
) -> int:
    """Make a decision in episode i, push what is seen then, and return what it led to."""
    key, state = running.key[i], running.state[i]
    earn(model, running.score[i], state, action, discount)
    running.step[i] += 1
    step = running.step[i]
    state = next_state(model, key, step, state, action)
    running.state[i] = state
    push_frame(frames, seen_as(model, key, step, state, action), action, out[i])
    if model.terminal[state]:
        return TERMINATED
    return TRUNCATED if step >= horizon else GOING_ON


@kernel
def begin_episodes(
    model: Simulation,
    frames: Frames,
    seed: NDArray[np.uint64],
    first: int,
    running: Running,
    out_inputs: NDArray[np.float32],
) -> None:
    """Begin the episodes first, first + 1, … in all places; out_inputs[E, D] is what is seen."""
    for i in range(len(running.step)):
        _begin(model, frames, episode_key(seed, first + i), i, running, out_inputs)


@kernel
def step_episodes(
    model: Simulation,
    frames: Frames,
    seed: NDArray[np.uint64],
    next_episode: int,
    horizon: int,
    discount: float,
    actions: NDArray[np.int64],
    running: Running,
    out_inputs: NDArray[np.float32],
    out_rewards: NDArray[np.float64],
    out_ends: NDArray[np.int8],
    out_last: NDArray[np.float32],
    out_totals: NDArray[np.float64],
    out_lengths: NDArray[np.int64],
) -> int:
    """Make one decision in all episodes, and begin another where one ended; return the next episode's number.

    Where an episode ended, out_last[E, D] has its last input, and out_totals[E] and out_lengths[E] its
    discounted return and its number of decisions.
    """
    for i in range(len(actions)):
        action = actions[i]
        out_rewards[i] = model.reward[running.state[i], action]
        out_ends[i] = _step(model, frames, i, action, horizon, discount, running, out_inputs)
        if out_ends[i] != GOING_ON:
            out_last[i] = out_inputs[i]
            out_totals[i], out_lengths[i] = running.score[i, RETURN], running.step[i]
            _begin(model, frames, episode_key(seed, next_episode), i, running, out_inputs)
            next_episode += 1
    return next_episode


@inner
def _move(source: int, target: int, running: Running, episode: NDArray[np.int64], inputs: Any) -> None:
    running.key[target], running.step[target] = running.key[source], running.step[source]
    running.state[target] = running.state[source]
    running.score[target] = running.score[source]
    episode[target] = episode[source]
    inputs[target] = inputs[source]


@kernel
def run_network(
    model: Simulation,
    frames: Frames,
    network: Network,
    seed: NDArray[np.uint64],
    first: int,
    horizon: int,
    discount: float,
    likeliest: bool,
    running: Running,
    episode: NDArray[np.int64],
    inputs: NDArray[np.float32],
    hidden: NDArray[np.float32],
    out: Outcomes,
) -> int:
    """Run the episodes first, first + 1, … to their ends; what is left of each is in `out`. Return how many.

    Some episodes run side by side, as many as `running` has places, so that weights are read once for all; that
    does not change any number. The others are scratch: episode[P], inputs[P, D], hidden[2, P, widest layer].
    """
    count = len(out.returns)
    places = 0
    begun = 0
    while True:
        while places < len(running.step) and begun < count:
            _begin(model, frames, episode_key(seed, first + begun), places, running, inputs)
            if model.terminal[running.state[places]]:
                settle(model, running.score[places], running.state[places], 0, begun, out)
            else:
                episode[places] = begun
                places += 1
            begun += 1
        if places == 0:
            return count
        if model.stop[0]:
            return episode[:places].min()
        logits = infer(network, inputs, places, hidden)
        for i in range(places - 1, -1, -1):
            u = uniform(running.key[i], running.step[i], DRAW_ACTION)
            action = choose(logits[i, : model.n_actions], u, likeliest)
            end = _step(model, frames, i, action, horizon, discount, running, inputs)
            if end != GOING_ON:
                settle(model, running.score[i], running.state[i], running.step[i], episode[i], out)
                # Places behind this one have been stepped already, so that the last may take its place.
                places -= 1
                _move(places, i, running, episode, inputs)

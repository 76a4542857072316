"""Simulate histories of a miss-MDP under a policy.

Episodes are numbered, and what happens in an episode depends on the seed and its number only. They are
simulated in chunks, by any number of threads, and joined in order until there are enough observations.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.random import episode_key
from missmdp._kernels.rollout import first_state, next_state, run_episodes, seen_as
from missmdp.data.arguments import checked_count
from missmdp.data.dataset import NO_ACTION, Dataset
from missmdp.data.rollout import compile_policy, compile_simulation, seed_words, seen_codes
from missmdp.errors import DataError
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy, Policy, UniformPolicy
from missmdp.progress import show_progress

__all__ = ["collect"]

_log = logging.getLogger(__name__)

_CHUNK_ROWS = 200_000
"""Rows that one task of a thread simulates."""


class _Chunk(NamedTuple):
    """Episodes side by side, each with room for a whole horizon."""

    observations: NDArray[Any]
    """Shape (episodes, horizon, n)."""
    actions: NDArray[Any]
    states: NDArray[np.int32] | None
    length: NDArray[np.int64]
    terminated: NDArray[np.bool_]


def collect(
    model: MissMDP,
    steps: int,
    policy: Policy | None = None,
    *,
    seed: int | None = None,
    horizon: int | None = None,
    keep_states: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> Dataset:
    """Return a dataset of `steps` observations, simulated as in the paper's appendix.

    A trajectory ends at a terminal state or after `horizon` observations; the last one is cut so that the
    lengths sum to `steps`. The same seed gives the same data for any number of threads.

    Parameters
    ----------
    model
        The miss-MDP to simulate.
    steps
        The number of observations.
    policy
        The behaviour policy; uniformly random by default. Policies with memory run in Python, one agent per
        episode, and are much slower.
    seed
        A non-negative integer; by default a fresh one, which the dataset records.
    horizon
        The most observations per episode; by default L, after which less than 10⁻³ of discounted reward is left.
    keep_states
        Whether to keep the true states, which a real log would not have.
    threads
        The number of threads; by default one per core.
    progress
        Whether to show progress; by default on a terminal.
    """
    steps = checked_count(steps, "steps")
    horizon = model.mdp.horizon() if horizon is None else checked_count(horizon, "horizon")
    horizon = min(horizon, steps)
    threads = os.cpu_count() or 1 if threads is None else checked_count(threads, "threads")
    policy = UniformPolicy() if policy is None else policy
    seed, words = seed_words(seed)
    if isinstance(policy, MemorylessPolicy):
        run = _kernel_runner(model, policy, words, horizon, keep_states=keep_states)
        per_chunk = max(1, min(_CHUNK_ROWS, steps) // horizon)
    else:
        run = _agent_runner(model, policy, seed, words, horizon, keep_states=keep_states)
        per_chunk, threads = 1, 1

    _refuse_what_does_not_fit(model, steps, keep_states=keep_states)
    observations = np.empty((steps, len(model.space.features)), dtype=model.space.features.code_dtype)
    actions = np.empty(steps, dtype=_action_dtype(model))
    states = np.empty(steps, dtype=np.int32) if keep_states else None
    lengths: list[NDArray[np.int64]] = []
    terminated: list[NDArray[np.bool_]] = []
    done = 0
    with (
        show_progress("Simulating", steps, enabled=progress) as advance,
        closing(_in_order(run, per_chunk, threads)) as chunks,
    ):
        for chunk in chunks:
            length, ended = _cut(chunk, steps - done)
            rows = int(length.sum())
            kept = np.arange(horizon)[None, :] < length[:, None]
            into = slice(done, done + rows)
            observations[into] = chunk.observations[: len(length)][kept]
            actions[into] = chunk.actions[: len(length)][kept]
            if states is not None and chunk.states is not None:
                states[into] = chunk.states[: len(length)][kept]
            lengths.append(length)
            terminated.append(ended)
            done += rows
            advance(rows)
            if done == steps:
                break
    actions[-1] = NO_ACTION
    _log.info("collected %d observations of %s with seed %d", steps, model.name or "a model", seed)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Dataset(model.mdp, observations, actions, offsets, np.concatenate(terminated), states, seed)


def _refuse_what_does_not_fit(model: MissMDP, steps: int, *, keep_states: bool) -> None:
    """Raise `DataError` with an estimate if the result would be larger than the machine's memory."""
    row = len(model.space.features) * model.space.features.code_dtype.itemsize + _action_dtype(model).itemsize
    needed = steps * (row + (4 if keep_states else 0))
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if needed > memory:
        raise DataError(
            f"{steps:,} steps need about {needed / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f} GB; "
            "collect in parts with different seeds"
        )


def _cut(chunk: _Chunk, room: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return lengths and ends of the episodes that fit, the last of them cut if need be."""
    total = np.cumsum(chunk.length)
    if total[-1] <= room:
        return chunk.length, chunk.terminated
    last = int(np.searchsorted(total, room))
    length, terminated = chunk.length[: last + 1].copy(), chunk.terminated[: last + 1].copy()
    excess = int(total[last]) - room
    length[last] -= excess
    terminated[last] &= excess == 0
    return length, terminated


def _in_order(run: Callable[[int, int], _Chunk], per_chunk: int, threads: int) -> Generator[_Chunk]:
    """Yield the chunks of episodes 0, 1, 2, … in order, a few of them being simulated ahead."""
    if threads == 1:
        for number in count():
            yield run(number * per_chunk, per_chunk)
    executor = ThreadPoolExecutor(threads, thread_name_prefix="missmdp-collect")
    pending: deque[Future[_Chunk]] = deque()
    try:
        for number in count():
            pending.append(executor.submit(run, number * per_chunk, per_chunk))
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


def _kernel_runner(
    model: MissMDP, policy: MemorylessPolicy, words: NDArray[np.uint64], horizon: int, *, keep_states: bool
) -> Callable[[int, int], _Chunk]:
    simulation, sampler, codes = compile_simulation(model), compile_policy(policy, model), seen_codes(model)
    action_dtype = _action_dtype(model)

    def run(first: int, episodes: int) -> _Chunk:
        rows = episodes * horizon
        observations = np.empty((rows, codes.shape[1]), dtype=codes.dtype)
        actions = np.empty(rows, dtype=action_dtype)
        states = np.empty(rows if keep_states else 0, dtype=np.int32)
        length = np.empty(episodes, dtype=np.int64)
        terminated = np.empty(episodes, dtype=np.bool_)
        place = np.arange(episodes, dtype=np.int64) * horizon
        limit = np.full(episodes, horizon, dtype=np.int64)
        run_episodes(
            simulation,
            sampler.action_row,
            sampler.actions,
            words,
            first,
            place,
            limit,
            codes,
            observations,
            actions,
            states,
            length,
            terminated,
        )
        return _Chunk(
            observations.reshape(episodes, horizon, -1),
            actions.reshape(episodes, horizon),
            states.reshape(episodes, horizon) if keep_states else None,
            length,
            terminated,
        )

    return run


def _agent_runner(
    model: MissMDP, policy: Policy, seed: int, words: NDArray[np.uint64], horizon: int, *, keep_states: bool
) -> Callable[[int, int], _Chunk]:
    simulation, codes = compile_simulation(model), seen_codes(model)
    decode = model.space.features.decode_observation

    def run(first: int, episodes: int) -> _Chunk:
        assert episodes == 1
        key = np.uint64(episode_key(words, first))
        agent = policy.agent(model, seed=int(np.random.SeedSequence([seed, first]).generate_state(1)[0]))
        observations = np.empty((1, horizon, codes.shape[1]), dtype=codes.dtype)
        actions = np.full((1, horizon), NO_ACTION, dtype=_action_dtype(model))
        states = np.empty((1, horizon), dtype=np.int32)
        state = first_state(simulation, key)
        step = 0
        while True:
            seen = codes[seen_as(simulation, key, step, state)]
            observations[0, step], states[0, step] = seen, state
            if step == horizon - 1 or model.mdp.terminal[state]:
                break
            chosen = (agent.step if step else agent.reset)(decode(seen))
            action = model.mdp.action_index(chosen)
            actions[0, step] = action
            step += 1
            state = next_state(simulation, key, step, state, action)
        return _Chunk(
            observations,
            actions,
            states if keep_states else None,
            np.array([step + 1]),
            np.array([bool(model.mdp.terminal[state])]),
        )

    return run


def _action_dtype(model: MissMDP) -> np.dtype[np.signedinteger[Any]]:
    return np.dtype(np.int8 if model.n_actions <= 127 else np.int16 if model.n_actions <= 32767 else np.int32)

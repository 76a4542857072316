"""Simulate histories of a miss-MDP under a policy.

Episodes are numbered, and what happens in an episode depends on the seed and its number only. They are
simulated in chunks, by any number of threads, and joined in order until there are enough observations.
"""

from __future__ import annotations

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.simulator import run_episodes
from missmdp.checks import checked_flag, checked_integer, checked_threads
from missmdp.data.dataset import Dataset, action_dtype
from missmdp.data.simulation import (
    AgentSimulator,
    codes_of,
    compile_policy,
    compile_simulation,
    runs_as_table,
    seed_words,
    seen_codes,
)
from missmdp.errors import ParameterError
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.policy import BlindPolicy, MemorylessPolicy, Policy, as_policy
from missmdp.model.space import NO_ACTION
from missmdp.progress import show_progress

_log = logging.getLogger(__name__)

_CHUNK_ROWS = 200_000
"""Rows that one task of a thread simulates, as far as it can be foreseen."""


class _Chunk(NamedTuple):
    """Some episodes, one after the other."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    states: NDArray[np.int32]
    """Empty where states are not kept."""
    length: NDArray[np.int64]
    terminated: NDArray[np.bool_]


class _Runner(NamedTuple):
    """Simulates a number of episodes from a first one on."""

    run: Callable[[int, int], list[_Chunk]]
    task_rows: int
    """How many rows to ask for at once."""
    stop: NDArray[np.uint8]
    """One number; where it is set to 1, `run` returns soon, with less or nothing."""
    parallel: bool = True
    """Whether threads help."""


def collect(
    model: MissMDP,
    steps: int,
    policy: Policy | Callable[[Any], Any] | None = None,
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
        The behaviour policy; uniformly random by default. A function from observation to action (or to
        {action: probability}) will do. Policies with memory run in Python, one agent per episode, and are much
        slower.
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
    model, policy = checked_model(model), as_policy(policy)
    steps = checked_integer("steps", steps, least=1)
    horizon = model.mdp.horizon() if horizon is None else checked_integer("horizon", horizon, least=1)
    horizon = min(horizon, steps)
    threads = checked_threads(threads) or os.cpu_count() or 1
    seed, words = seed_words(seed)
    _refuse_what_does_not_fit(model, steps, keep_states=keep_states)
    if runs_as_table(policy, model):
        runner = _kernel_runner(model, policy, words, horizon, keep_states=keep_states)
    else:
        runner = _agent_runner(model, policy, seed, horizon, keep_states=keep_states)
    with closing(_in_order(runner, steps, horizon, threads)) as chunks:
        found = _joined(chunks, model, steps, keep_states=keep_states, progress=progress)
    _log.info("collected %d observations of %s with seed %d", steps, model.name or "a model", seed)
    return Dataset(
        model.mdp,
        found.observations,
        found.actions,
        np.concatenate([[0], np.cumsum(found.length)]),
        found.terminated,
        found.states if keep_states else None,
        seed,
        "blind" if isinstance(policy, BlindPolicy) else "adaptive",
    )


def _joined(
    chunks: Iterable[_Chunk], model: MissMDP, steps: int, *, keep_states: bool, progress: bool | None
) -> _Chunk:
    """Return the first `steps` rows of chunks as one; the last row has no action."""
    observations = np.empty((steps, len(model.space.features)), dtype=model.space.features.code_dtype)
    actions = np.empty(steps, dtype=action_dtype(model.n_actions))
    states = np.empty(steps if keep_states else 0, dtype=np.int32)
    lengths: list[NDArray[np.int64]] = []
    terminated: list[NDArray[np.bool_]] = []
    done = 0
    with show_progress("Simulating", steps, enabled=progress) as advance:
        for chunk in chunks:
            length, ended = _cut(chunk, steps - done)
            rows = int(length.sum())
            observations[done : done + rows] = chunk.observations[:rows]
            actions[done : done + rows] = chunk.actions[:rows]
            if keep_states:
                states[done : done + rows] = chunk.states[:rows]
            lengths.append(length)
            terminated.append(ended)
            done += rows
            advance(rows)
            if done == steps:
                break
    actions[-1] = NO_ACTION
    return _Chunk(observations, actions, states, np.concatenate(lengths), np.concatenate(terminated))


def _refuse_what_does_not_fit(model: MissMDP, steps: int, *, keep_states: bool) -> None:
    """Raise `ParameterError` with an estimate if the result would be larger than the machine's memory."""
    row = (
        len(model.space.features) * model.space.features.code_dtype.itemsize
        + action_dtype(model.n_actions).itemsize
    )
    needed = steps * (row + (4 if checked_flag("keep_states", keep_states) else 0))
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if needed > memory:
        problem = (
            f"{steps:,} steps need about {needed / 1e9:,.0f} GB, and this machine has {memory / 1e9:,.0f} GB; "
            "collect in parts with different seeds"
        )
        raise ParameterError("steps", steps, "so many that they fit in memory", problem)


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


def _in_order(runner: _Runner, steps: int, horizon: int, threads: int) -> Generator[_Chunk]:
    """Yield the episodes 0, 1, 2, … in order, a few tasks being simulated ahead.

    How many episodes make a task of about `task_rows`, and how far ahead to go, follows the mean length so far;
    it does not change the result.
    """
    pending: deque[tuple[int, Future[list[_Chunk]]]] = deque()
    submitted = finished = rows = 0
    threads = threads if runner.parallel else 1
    with ThreadPoolExecutor(threads, thread_name_prefix="missmdp-collect") as executor:
        try:
            while True:
                mean = rows / finished if finished else horizon
                wanted = math.ceil((steps - rows) / mean)
                episodes = max(1, int(min(runner.task_rows / mean, wanted)))
                while not pending or (len(pending) < 2 * threads and submitted - finished < wanted):
                    pending.append((episodes, executor.submit(runner.run, submitted, episodes)))
                    submitted += episodes
                episodes, task = pending.popleft()
                for chunk in task.result():
                    rows += int(chunk.length.sum())
                    yield chunk
                finished += episodes
        finally:
            runner.stop[0] = 1
            for _, task in pending:
                task.cancel()


def _kernel_runner(
    model: MissMDP, policy: MemorylessPolicy, words: NDArray[np.uint64], horizon: int, *, keep_states: bool
) -> _Runner:
    simulation, sampler = compile_simulation(model), compile_policy(policy, model)
    features = model.space.features
    codes = (
        seen_codes(model)
        if model.missingness.is_small
        else np.empty((0, len(features)), dtype=features.code_dtype)
    )
    action_type = action_dtype(model.n_actions)

    def run(first: int, episodes: int) -> list[_Chunk]:
        chunks: list[_Chunk] = []
        while episodes > 0 and not simulation.stop[0]:
            rows = min(episodes * horizon, max(horizon, 2 * _CHUNK_ROWS))
            chunk = _Chunk(
                np.empty((rows, codes.shape[1]), dtype=codes.dtype),
                np.empty(rows, dtype=action_type),
                np.empty(rows if keep_states else 0, dtype=np.int32),
                np.empty(episodes, dtype=np.int64),
                np.empty(episodes, dtype=np.bool_),
            )
            count = run_episodes(simulation, *sampler, words, first, horizon, codes, *chunk)
            chunks.append(chunk._replace(length=chunk.length[:count], terminated=chunk.terminated[:count]))
            first, episodes = first + count, episodes - count
        return chunks

    return _Runner(run, _CHUNK_ROWS, simulation.stop)


def _agent_runner(model: MissMDP, policy: Policy, seed: int, horizon: int, *, keep_states: bool) -> _Runner:
    simulation = compile_simulation(model)
    codes = seen_codes(model) if model.missingness.is_small else None
    simulator = AgentSimulator(policy, model, simulation, seed)

    def episode(number: int) -> _Chunk:
        seen, states, actions = simulator.episode(number, horizon - 1)
        return _Chunk(
            codes_of(model, seen) if codes is None else codes[seen],
            np.array([*actions, NO_ACTION], dtype=action_dtype(model.n_actions)),
            np.array(states if keep_states else [], dtype=np.int32),
            np.array([len(seen)]),
            np.array([bool(model.mdp.terminal[states[-1]])]),
        )

    def run(first: int, episodes: int) -> list[_Chunk]:
        return [episode(number) for number in range(first, first + episodes)]

    return _Runner(run, 1, simulation.stop, parallel=False)

"""Policies acting in a model: compiled once for all of them, and simulated in order by any number of threads."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.simulator import Simulation
from missmdp._kernels.table_episodes import run_memoryless_episodes
from missmdp.checks import checked_integer
from missmdp.data.simulation import (
    AgentSimulator,
    EpisodeRunner,
    Episodes,
    PolicySampler,
    Stopped,
    compile_policy,
    compile_simulation,
    empty_episodes,
    row_sampler,
    runs_as_table,
    runs_in_bulk,
    seed_words,
    write_outcome,
)
from missmdp.errors import ModelError, ParameterError
from missmdp.model.mdp import FactoredMDP, reward_horizon
from missmdp.model.missmdp import MissMDP
from missmdp.model.policy import MemorylessPolicy, Policy, UniformPolicy
from missmdp.model.pomdp import POMDP, optimal_values, optimal_values_seconds

_LONGEST = 10**12
"""Decisions per episode; more than anybody waits for."""
_CONTROL_SECONDS = 5.0
"""What a control variate may take in one model; above that, more episodes are the better use of time."""


def why_no_control(mdp: FactoredMDP) -> str | None:
    """Return why policies are evaluated without a control variate; None if they are with one."""
    seconds = optimal_values_seconds(mdp)
    if seconds <= _CONTROL_SECONDS:
        return None
    takes = f"about {seconds:,.0f} s" if math.isfinite(seconds) else "too long"
    return f"working out the values of {mdp.n_states:,} states would take {takes}"


class Arena:
    """Where policies are evaluated: a model, a seed and a horizon.

    Parameters
    ----------
    model
        The model to act in.
    seed
        The seed; None for a fresh one.
    horizon
        The most decisions per episode; None for L.
    control_variate
        Whether `estimates` are controlled.
    """

    def __init__(
        self, model: MissMDP | POMDP, seed: int | None, horizon: int | None, *, control_variate: bool
    ) -> None:
        if not isinstance(model, MissMDP | POMDP):  # pyright: ignore[reportUnnecessaryIsInstance]
            what = "a MissMDP or a POMDP to act in"
            raise ParameterError("model", model, what, f"expected {what}, got {type(model).__name__}")
        mdp = model.mdp if isinstance(model, MissMDP) else model
        self.model = model
        self.seed, self._words = seed_words(seed)
        self.horizon = (
            reward_horizon(mdp.reward, mdp.discount) if horizon is None else _checked_horizon(horizon)
        )
        self.controls = control_variate
        potential = optimal_values(mdp) if control_variate else None
        self._start = 0.0 if potential is None else float(mdp.initial @ potential)
        self._simulation = compile_simulation(model, potential)
        largest = float(np.abs(mdp.reward).max(initial=0.0))
        self.truncation = float(mdp.discount**self.horizon / (1.0 - mdp.discount) * largest)
        """What the decisions after the horizon can add to the estimate at most, in either direction."""

    def store(self, policy: Policy) -> EpisodeStore:
        """Return room for a policy's episodes."""
        return EpisodeStore(policy, self.model, self._simulation, self.seed, self._words, self.horizon)

    def estimates(self, episodes: Episodes) -> NDArray[np.float64]:
        """Return an estimate of the value per episode: the return, or V*(b₀) plus advantages minus what is cut off."""
        return self._start + episodes.advantages if self.controls else episodes.returns


def _checked_horizon(horizon: int) -> int:
    checked = checked_integer("horizon", horizon, least=1)
    if checked > _LONGEST:
        raise ParameterError("horizon", horizon, f"at most {_LONGEST:,}")
    return checked


class EpisodeStore:
    """The first episodes of a policy; more of them on demand.

    Parameters
    ----------
    policy, model
        The policy and the model that it acts in.
    simulation
        The model as the kernels see it.
    seed, words
        The seed, and the same as the kernels take it.
    horizon
        The most decisions per episode.
    """

    def __init__(
        self,
        policy: Policy,
        model: MissMDP | POMDP,
        simulation: Simulation,
        seed: int,
        words: NDArray[np.uint64],
        horizon: int,
    ) -> None:
        self._runner = _runner(policy, model, simulation, seed, words, horizon)
        self._stop = simulation.stop
        self._parts: list[Episodes] = [empty_episodes(0, len(self._runner.events))]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def events(self) -> tuple[str, ...]:
        """The names of what is counted."""
        return self._runner.events

    def episodes(self) -> Episodes:
        """Return all episodes so far."""
        if len(self._parts) > 1:
            columns = zip(*self._parts, strict=True)
            self._parts = [Episodes(*(np.concatenate(column) for column in columns))]
        return self._parts[0]

    def make_ready(self) -> None:
        """Compile or load the kernels, which no time limit counts."""
        self._runner.run(0, 0)

    def extend_to(
        self, count: int, threads: int, advance: Callable[[int], None], deadline: float = float("inf")
    ) -> None:
        """Simulate until there are `count` episodes; raise `Stopped` where time is up before.

        Whatever stops it, the episodes that were finished in order are kept, and it stops soon, however long an
        episode takes.
        """
        tasks = _tasks(len(self), count, self._runner.task)
        with _stopped_at(deadline, self._stop):
            if not self._runner.parallel:
                for start, number in tasks:
                    self._take(self._runner.run(start, number), start + number, advance)
                    self._check(count)
                return
            pending: deque[tuple[int, Future[Episodes]]] = deque()
            # Also for one thread: nothing could interrupt a kernel in this one.
            with ThreadPoolExecutor(threads, thread_name_prefix="missmdp-evaluate") as executor:
                try:
                    for start, number in tasks:
                        task = executor.submit(self._runner.run, start, number)
                        pending.append((start + number, task))
                        if len(pending) >= 2 * threads:
                            self._take_first(pending, count, advance)
                    while pending:
                        self._take_first(pending, count, advance)
                finally:
                    self._stop[0] = 1
                    for _, task in pending:
                        task.cancel()

    def _take_first(
        self, pending: deque[tuple[int, Future[Episodes]]], count: int, advance: Callable[[int], None]
    ) -> None:
        end, task = pending.popleft()
        self._take(task.result(), end, advance)
        self._check(count)

    def _take(self, part: Episodes, end: int, advance: Callable[[int], None]) -> None:
        """Keep some episodes; raise `Stopped` if they do not go up to `end`."""
        self._parts.append(part)
        self._count += len(part.returns)
        advance(len(part.returns))
        if self._count < end:
            raise Stopped

    def _check(self, count: int) -> None:
        """Raise `Stopped` if time is up and there are fewer episodes than that; a runner may not have looked."""
        if self._stop[0] and self._count < count:
            raise Stopped


@contextmanager
def _stopped_at(deadline: float, stop: NDArray[np.uint8]) -> Generator[None]:
    """Tell kernels to stop when the time has come."""

    def end() -> None:
        stop[0] = 1

    stop[0] = 0
    seconds = deadline - time.monotonic()
    timer = threading.Timer(max(seconds, 0.0), end)
    timer.daemon = True
    if seconds < threading.TIMEOUT_MAX:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tasks(first: int, end: int, size: int) -> Generator[tuple[int, int]]:
    """Yield (first episode, number of episodes); tasks begin at multiples of `size`, whatever was asked before."""
    while first < end:
        number = min(size - first % size, end - first)
        yield first, number
        first += number


def _runner(
    policy: Policy,
    model: MissMDP | POMDP,
    simulation: Simulation,
    seed: int,
    words: NDArray[np.uint64],
    horizon: int,
) -> EpisodeRunner:
    if runs_in_bulk(policy, model):
        return policy.runner(model, simulation, words, horizon)
    if runs_as_table(policy, model):
        sampler = _memoryless_sampler(policy, model)

        def run(first: int, count: int) -> Episodes:
            episodes = empty_episodes(count)
            count = run_memoryless_episodes(
                simulation, *sampler, words, first, horizon, model.discount, episodes.outcomes
            )
            return episodes.first(count)

        return EpisodeRunner(run, task=256)
    return _agent_runner(policy, model, simulation, seed, horizon)


def _memoryless_sampler(policy: MemorylessPolicy, model: MissMDP | POMDP) -> PolicySampler:
    if isinstance(model, MissMDP):
        return compile_policy(policy, model)
    if isinstance(policy, UniformPolicy):
        rows = np.zeros(model.n_observations, dtype=np.int32)
        return PolicySampler(rows, row_sampler(np.full((1, model.n_actions), 1.0 / model.n_actions)))
    raise ModelError(f"{policy!r} is for miss-MDPs; in a POMDP only UniformPolicy acts without a belief")


def _agent_runner(
    policy: Policy, model: MissMDP | POMDP, simulation: Simulation, seed: int, horizon: int
) -> EpisodeRunner:
    simulator = AgentSimulator(policy, model, simulation, seed)

    def run(first: int, count: int) -> Episodes:
        episodes = empty_episodes(count)
        for e in range(count):
            try:
                _, states, actions = simulator.episode(first + e, horizon)
            except Stopped:
                return episodes.first(e)
            write_outcome(simulation, model.discount, states, actions, e, episodes)
        return episodes

    return EpisodeRunner(run, task=1, parallel=False)

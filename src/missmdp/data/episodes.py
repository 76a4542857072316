"""Simulated episodes of which only the outcome is kept: the contract between policies and their evaluation.

A policy that can simulate itself in bulk offers `runner`; policies without it are asked for an agent, step by
step. In either case an episode's draws are addressed by (seed, episode, step, purpose), so that policies which
are simulated with the same seed meet the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.simulator import Outcomes, Simulation, score_episode
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["BulkPolicy", "EpisodeRunner", "Episodes", "empty_episodes", "write_outcome"]


class Episodes(NamedTuple):
    """The outcomes of some episodes, in order."""

    returns: NDArray[np.float64]
    """Σ_t γᵗ ρ(s_t, a_t) over at most `horizon` decisions, shape (E,)."""
    advantages: NDArray[np.float64]
    """Σ_t γᵗ advantage(s_t, a_t) over the same T decisions, minus γᵀ h(s_T), shape (E,); see `Simulation`. It
    is the return minus h(s_0) and the luck of the draws of states, as h sees it, which has mean 0."""
    decisions: NDArray[np.int64]
    """How many decisions were made, shape (E,)."""
    terminated: NDArray[np.bool_]
    """Whether a terminal state was reached, shape (E,)."""
    events: NDArray[np.int64]
    """How often each of the runner's `events` happened, shape (E, len(events))."""

    @property
    def outcomes(self) -> Outcomes:
        """All but the events, as kernels fill it."""
        return Outcomes(self.returns, self.advantages, self.decisions, self.terminated)


def empty_episodes(count: int, events: int = 0) -> Episodes:
    """Return room for outcomes, for kernels to fill."""
    return Episodes(
        np.empty(count),
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.bool_),
        np.empty((count, events), dtype=np.int64),
    )


def write_outcome(
    simulation: Simulation,
    discount: float,
    states: Sequence[int],
    actions: Sequence[int],
    episode: int,
    out: Episodes,
) -> None:
    """Write down what an episode came to that was simulated step by step; there is one state more than actions."""
    visited, taken = np.array(states, dtype=np.int64), np.array(actions, dtype=np.int64)
    score_episode(simulation, visited, taken, discount, episode, out.outcomes)


@dataclass(frozen=True)
class EpisodeRunner:
    """Simulates episodes of one policy in one model, with one seed."""

    run: Callable[[int, int], Episodes]
    """(first, count) → the episodes first, …, first + count − 1. Called from several threads at once."""
    events: tuple[str, ...] = ()
    """What is counted besides, in words, such as "impossible observations"."""
    task: int = 32
    """How many episodes to ask for at once; results of a policy may depend on it by rounding, and on nothing else."""
    parallel: bool = True
    """Whether `run` leaves the interpreter, so that threads help."""


@runtime_checkable
class BulkPolicy(Protocol):
    """A policy that can simulate many episodes of itself."""

    def runner(
        self, model: MissMDP | POMDP, simulation: Simulation, words: NDArray[np.uint64], horizon: int
    ) -> EpisodeRunner:
        """Return what simulates the policy in a model.

        Parameters
        ----------
        model
            The model to act in, which may differ from the one that the policy was made for.
        simulation
            The same model as the kernels see it.
        words
            The seed as `seed_words` gives it; episode e draws with `episode_key(words, e)`.
        horizon
            The most decisions per episode.
        """
        ...

"""Whether a behaviour policy visits what there is to learn about.

The paper assumes that data come from a *fair* policy, one that visits every reachable state with positive
probability. Here that assumption can be looked at: whether it holds within the horizon of an episode, and
which states are so rare that data about them will be thin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.checks import checked_integer, checked_number
from missmdp.data.collect import collect
from missmdp.model.missmdp import MissMDP, checked_model
from missmdp.model.policy import MemorylessPolicy, Policy, as_policy

_SETTLED, _STILL = 10_000, 1e-16
"""After so many steps probabilities that change by no more than this per step are taken to stay as they are."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """Which states a behaviour policy visits, and how often."""

    model: MissMDP
    visited: NDArray[np.bool_]
    """Which states have positive probability of a visit within the horizon (or were seen, if simulated), (S,)."""
    share: NDArray[np.float64]
    """Expected share of all observations made in each state, shape (S,)."""
    episode_length: float
    """Expected observations per episode."""
    horizon: int
    exact: bool
    """Whether the numbers are computed, or estimated from a simulation."""
    simulated_steps: int = 0

    @property
    def fair(self) -> bool:
        """Whether every reachable state is visited with positive probability (or was seen, if simulated)."""
        return bool(self.visited[self.model.mdp.reachable].all())

    @property
    def never(self) -> list[Any]:
        """The reachable states that are never visited."""
        return [self.model.space.state(int(s)) for s in self._never()]

    def _never(self) -> NDArray[np.int64]:
        """Return the numbers of the reachable states that are never visited."""
        return np.flatnonzero(self.model.mdp.reachable & ~self.visited)

    def count_rare(self, steps: int = 100_000, visits: float = 10.0) -> int:
        """Return how many reachable states `steps` observations visit fewer than `visits` times on average."""
        return len(self._rare(steps, visits)[0])

    def rare(
        self, steps: int = 100_000, visits: float = 10.0, most: int | None = None
    ) -> list[tuple[Any, float]]:
        """Return the reachable states that `steps` observations visit fewer than `visits` times on average.

        Each comes with its expected number of visits, the rarest first; at most `most` of them, or all.
        """
        most = None if most is None else checked_integer("most", most, least=0)
        few, expected = self._rare(steps, visits)
        order = np.argsort(expected, kind="stable")[:most]
        return [(self.model.space.state(int(few[i])), float(expected[i])) for i in order]

    def _rare(self, steps: float, visits: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the numbers of the states that are seldom visited, and their expected visits."""
        visits = checked_number("visits", visits, least=0.0)
        expected = self.share * checked_number("steps", steps, least=0.0)
        few = np.flatnonzero(self.model.mdp.reachable & (expected < visits))
        return few, expected[few]

    def steps_for(self, visits: float = 10.0) -> float:
        """Return how many observations it takes until every reachable state is expected to have `visits`."""
        visits = checked_number("visits", visits, least=0.0)
        rarest = float(self.share[self.model.mdp.reachable].min())
        return math.inf if rarest == 0.0 else visits / rarest

    def describe(self, steps: int = 100_000, visits: float = 10.0) -> str:
        """Return a description in sentences for a dataset of `steps`; fewer than `visits` count as few."""
        reachable = self.model.mdp.reachable
        how = "computed" if self.exact else f"estimated from {self.simulated_steps:,} simulated observations"
        lines = [f"{(self.visited & reachable).sum()} of {reachable.sum()} reachable states visited ({how})"]
        if self.fair:
            lines.append("The policy is fair: every reachable state has a positive probability of a visit.")
        elif self.exact:
            lines.append(
                f"The policy is NOT fair within {self.horizon} steps; never visited, for example: {self._example()!r}"
            )
        else:
            lines.append(f"Not seen in the simulation, for example: {self._example()!r}")
        few, expected = self._rare(steps, visits)
        rarest = ""
        if len(few):
            place = int(expected.argmin())
            state = self.model.space.state(int(few[place]))
            if self.exact or expected[place]:
                rarest = f"; the rarest, {state!r}, {expected[place]:.2g} times"
            else:
                rarest = f"; {state!r} was not seen in the simulation"
        lines.append(
            f"{len(few)} states are expected fewer than {visits:g} times in {steps:,} observations{rarest}."
        )
        needed = self.steps_for(visits)
        if math.isfinite(needed):
            lines.append(f"About {needed:,.0f} observations give every state {visits:g} expected visits.")
        return "\n".join(lines)

    def _example(self) -> Any:
        """Return the first state that is never visited."""
        return self.model.space.state(int(self._never()[0]))

    def __str__(self) -> str:
        return self.describe()


def behaviour_coverage(
    model: MissMDP,
    policy: Policy | Callable[[Any], Any] | None = None,
    *,
    horizon: int | None = None,
    steps: int = 1_000_000,
    seed: int = 0,
    progress: bool | None = None,
) -> Coverage:
    """Return how a behaviour policy covers the states of a model.

    Policies without memory are computed exactly, from the Markov chain that they make of the model. Policies
    with memory are simulated, and so are all in models whose matrices would be too large.

    Parameters
    ----------
    model
        The miss-MDP.
    policy
        The behaviour policy; uniformly random by default.
    horizon
        The most observations per episode; by default as in `collect`.
    steps, seed
        Where it is simulated: how many observations, and the seed.
    progress
        Whether to show progress; by default on a terminal.
    """
    model, policy = checked_model(model), as_policy(policy)
    horizon = model.mdp.horizon() if horizon is None else checked_integer("horizon", horizon, least=1)
    small = model.mdp.is_small and model.missingness.is_small
    if isinstance(policy, MemorylessPolicy) and small:
        return _computed(model, policy, horizon)
    dataset = collect(model, steps, policy, seed=seed, horizon=horizon, keep_states=True, progress=progress)
    assert dataset.states is not None
    visits = np.bincount(dataset.states, minlength=model.n_states)
    return Coverage(
        model,
        visited=visits > 0,
        share=visits / dataset.n_steps,
        episode_length=dataset.n_steps / dataset.n_episodes,
        horizon=horizon,
        exact=False,
        simulated_steps=dataset.n_steps,
    )


def _computed(model: MissMDP, policy: MemorylessPolicy, horizon: int) -> Coverage:
    chain = _chain(model, policy)
    flow = sparse.csr_array(chain.T)
    leads_to = flow.astype(np.bool_)
    now = model.mdp.initial.copy()
    possible = now > 0.0
    visits = np.zeros(model.n_states)
    visited = possible.copy()
    for step in range(horizon):
        visits += now
        visited |= possible
        if step == horizon - 1 or not possible.any():
            break
        next_, reached = flow @ now, (leads_to @ possible).astype(np.bool_)
        still = step >= _SETTLED and np.abs(next_ - now).max() <= _STILL
        if still and np.array_equal(reached, possible):
            # Where the chain has settled, which can take far fewer steps than there are.
            visits += (horizon - 1 - step) * next_
            break
        # Kept apart from the numbers, so a tiny probability is not taken for none.
        now, possible = next_, reached
    return Coverage(
        model,
        visited=visited,
        share=visits / visits.sum(),
        episode_length=float(visits.sum()),
        horizon=horizon,
        exact=True,
    )


def _chain(model: MissMDP, policy: MemorylessPolicy) -> sparse.csr_array:
    """Return P(s′ | s) under the policy, with nothing after a terminal state, shape (S, S)."""
    table = policy.table(model)
    n = model.n_states
    chain = sparse.csr_array((n, n))
    for a, matrix in enumerate(model.mdp.transition):
        taken = (model.missingness.probabilities * table.probabilities[:, a][table.row]).sum(axis=1)
        chain = chain + sparse.diags_array(np.where(model.mdp.terminal, 0.0, taken)) @ matrix
    chain = sparse.csr_array(chain)
    chain.eliminate_zeros()
    return chain

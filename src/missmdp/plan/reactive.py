"""What simple policies earn, for models of any number of features: values by sweeps over states.

A policy that acts on the last observation alone needs no memory, so its value is a sweep over states away. It is found
by improving it a few times, with each observation's states weighted by how often they are visited.

Values come from sweeps. After any number of them V + γ/(1 − γ) max Δ is an upper bound, and with min Δ a lower one,
where Δ is the last change; where episodes can end, Δ counts as at least, or at most, 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP
from missmdp.plan.stopping import Stopwatch

_CLOSE = 1e-4
"""Of the largest value: how far bounds may be from the values that sweeps converge to."""
_MOST_SWEEPS = 2000
_ROUNDS, _PATIENCE = 10, 2
"""Improvements of a policy, and how many in vain."""
_VISITS = 60
"""Steps over which visits are counted."""


class Dynamics:
    """Expectations and visits, by factors where the model has them; a clock says when to stop."""

    def __init__(self, mdp: FactoredMDP | POMDP, clock: Stopwatch | None = None) -> None:
        self.mdp = mdp
        self._clock = clock or Stopwatch(None)
        self.live = ~np.asarray(mdp.terminal)
        self.ends = bool(mdp.terminal.any())
        self._factors = mdp.factors if isinstance(mdp, FactoredMDP) else None
        self._reward = np.ascontiguousarray(np.where(self.live[:, None], mdp.reward, 0.0).T)
        self._over = np.flatnonzero(~self.live)

    def after(self, values: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return ρ(s, a) + γ E[values(s′)] for one action, 0 in terminal states, shape (S,)."""
        self._clock.check()
        factors = self._factors
        future = self.mdp.transition[action] @ values if factors is None else factors.expect(values, action)
        out = self.mdp.discount * future
        out += self._reward[action]
        out[self._over] = 0.0
        return out

    def after_all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for all actions, shape (S, A)."""
        return np.stack([self.after(values, a) for a in range(self.mdp.n_actions)], axis=1)

    def best(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for the best action of each state, shape (S,)."""
        out = self.after(values, 0)
        for a in range(1, self.mdp.n_actions):
            np.maximum(out, self.after(values, a), out=out)
        return out

    def mixed(self, values: NDArray[np.float64], does: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for actions drawn with probabilities `does`, shape (A, S); shape (S,)."""
        return sum(
            (does[a] * self.after(values, a) for a in range(self.mdp.n_actions)), np.zeros_like(values)
        )

    def spread(self, weights: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return Σ_s weights(s) T(s′ | s, a), shape (S,)."""
        if self._factors is None:
            return np.asarray(self.mdp.transition[action].T @ weights)
        return self._factors.spread(weights, action)

    def fixed_point(
        self,
        sweep: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        *,
        above: bool,
    ) -> NDArray[np.float64]:
        """Return a bound on what sweeps converge to, from above or below, shape (S,)."""
        discount, values = self.mdp.discount, np.zeros(self.mdp.n_states)
        if discount == 0.0:
            return sweep(values)
        scale = float(np.abs(self.mdp.reward).max(initial=0.0)) / (1.0 - discount)
        low = high = 0.0
        for k in range(_MOST_SWEEPS):
            if k and not self.ends:
                # Where nothing ends, a constant can be added for free: sweeps only have to agree on differences.
                values = values + discount / (1.0 - discount) * 0.5 * (low + high)
            new = sweep(values)
            change = (new - values)[self.live]
            low, high = float(change.min(initial=np.inf)), float(change.max(initial=-np.inf))
            if self.ends or not len(change):
                low, high = min(low, 0.0), max(high, 0.0)
            values = new
            if discount / (1.0 - discount) * (high - low) <= _CLOSE * scale:
                break
        return np.where(self.live, values + discount / (1.0 - discount) * (high if above else low), 0.0)

    def visits(self, does: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how often states are visited if actions are drawn so, discounted, shape (S,)."""
        now = np.array(self.mdp.initial, dtype=np.float64)
        total = now.copy()
        for _ in range(_VISITS):
            self._clock.check()
            now = sum(
                (self.spread(now * does[a], a) for a in range(self.mdp.n_actions)),
                np.zeros_like(now),
            )
            now *= self.mdp.discount
            total += now
        return total


def seen_from(model: MissMDP) -> sparse.csr_array:
    """Return P(observation | state), shape (S, Z); observations are numbered as in `occurring`."""
    seen = model.missingness.occurring()
    probability = model.missingness.probabilities[seen.state, seen.pattern]
    shape = (model.n_states, len(seen.observations))
    return sparse.csr_array(sparse.coo_array((probability, (seen.state, seen.place)), shape=shape))


class Reactive(NamedTuple):
    """A policy that acts on the last observation alone."""

    chosen: NDArray[np.int32]
    """What it does on each observation, shape (Z,)."""
    values: NDArray[np.float64]
    """At most what it earns from each state on, before that is seen, shape (S,)."""
    visits: NDArray[np.float64]
    """How often states are visited, discounted, shape (S,)."""


def reactive_policies(
    dynamics: Dynamics, seen: sparse.csr_array, action_values: NDArray[np.float64], best: float
) -> Iterator[Reactive]:
    """Yield policies, each an improvement of the one before, until several in a row are not better than the best.

    Parameters
    ----------
    dynamics
        The model, in which what is seen does not depend on the action before.
    seen
        P(observation | state), shape (S, Z).
    action_values
        What actions are worth in states that are known, with which the first policy is made, shape (S, A).
    best
        What another policy is worth at the start.
    """
    mdp, by_observation = dynamics.mdp, sparse.csr_array(seen.T)
    state = np.repeat(np.arange(seen.shape[0]), np.diff(seen.indptr))

    def actions_by_state(chosen: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the probability of each action in each state, shape (A, S)."""
        cell = chosen[seen.indices] * np.int64(mdp.n_states) + state
        counts = np.bincount(cell, weights=seen.data, minlength=mdp.n_states * mdp.n_actions)
        return counts.astype(np.float64).reshape(mdp.n_actions, mdp.n_states)

    weights, in_vain = np.ones(mdp.n_states), 0
    for _ in range(_ROUNDS):
        chosen = np.asarray(by_observation @ (weights[:, None] * action_values)).argmax(axis=1)
        chosen = chosen.astype(np.int32)
        does = actions_by_state(chosen)
        values = dynamics.fixed_point(lambda v, does=does: dynamics.mixed(v, does), above=False)
        worth = float(mdp.initial @ values)
        in_vain = 0 if worth > best + _CLOSE * abs(best) else in_vain + 1
        best = max(best, worth)
        weights = dynamics.visits(does)
        yield Reactive(chosen, values, weights)
        if in_vain > _PATIENCE:
            return
        action_values = dynamics.after_all(values)

"""What is known before the first decision: the value of the fully observed MDP, and that of a simple policy.

The simple policy acts on the last observation alone. It is found by improving it a few times, with each observation's
states weighted by how often they are visited; blind policies, which always do the same, compete with it. Its value is
linear in the belief, so it bounds the best value from below everywhere.

Values come from sweeps. After any number of them V + γ/(1 − γ) max Δ is an upper bound, and with min Δ a lower one,
where Δ is the last change; where episodes can end, Δ counts as at least, or at most, 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.mdp import FactoredMDP
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

_SMALL = 1e-4
"""Of the largest value: how far bounds may be from the values that sweeps converge to."""
_MOST_SWEEPS = 2000
_ROUNDS, _PATIENCE = 10, 2
"""Improvements of the simple policy, and how many in vain."""
_VISITS = 60
"""Steps over which visits are counted."""
_MOST_ENTRIES = 60_000_000
"""Pairs of state and observation beyond which only blind policies are tried."""


class StateBounds(NamedTuple):
    """Bounds for every state."""

    upper: NDArray[np.float64]
    """U(s), at least what a known state is worth, shape (S,)."""
    upper_actions: NDArray[np.float64]
    """ρ(s, a) + γ E[U(s′)], shape (S, A)."""
    lower: NDArray[np.float64]
    """W(s), at most what the simple policy earns from s on, before it sees anything, shape (S,)."""
    lower_actions: NDArray[np.float64]
    """ρ(s, a) + γ E[W(s′)], shape (S, A)."""
    simple: NDArray[np.int32]
    """What the simple policy does on each observation, shape (Z,)."""


class Dynamics:
    """Expectations and visits, by factors where the model has them."""

    def __init__(self, mdp: FactoredMDP | POMDP) -> None:
        self.mdp = mdp
        self.live = ~np.asarray(mdp.terminal)
        self.ends = bool(mdp.terminal.any())
        self._factors = mdp.factors if isinstance(mdp, FactoredMDP) else None
        self._reward = np.ascontiguousarray(np.where(self.live[:, None], mdp.reward, 0.0).T)
        self._over = np.flatnonzero(~self.live)

    def after(self, values: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return ρ(s, a) + γ E[values(s′)] for one action, 0 in terminal states, shape (S,)."""
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
            if discount / (1.0 - discount) * (high - low) <= _SMALL * scale:
                break
        return np.where(self.live, values + discount / (1.0 - discount) * (high if above else low), 0.0)


def state_bounds(
    model: MissMDP | POMDP, observation: sparse.csr_array, given: NDArray[np.float64] | None
) -> StateBounds:
    """Return the bounds.

    Parameters
    ----------
    model
        The model.
    observation
        O(z | s′) with row s′ · n_watched + w, as searches take it.
    given
        An upper bound of the user, on what a known state is worth, shape (S,); None for none.
    """
    mdp = model.mdp if isinstance(model, MissMDP) else model
    dynamics = Dynamics(mdp)
    upper = dynamics.fixed_point(dynamics.best, above=True)
    if given is not None:
        upper = np.where(dynamics.live, np.minimum(upper, given), 0.0)
    upper_actions = dynamics.after_all(upper)
    n_observations = int(observation.shape[1])
    best, lower, simple = -np.inf, np.zeros(0), np.zeros(0, dtype=np.int32)
    for a in range(mdp.n_actions):
        values = dynamics.fixed_point(lambda v, a=a: dynamics.after(v, a), above=False)
        if float(mdp.initial @ values) > best:
            best, lower = float(mdp.initial @ values), values
            simple = np.full(n_observations, a, dtype=np.int32)
    if observation.shape[0] == mdp.n_states and observation.nnz <= _MOST_ENTRIES:
        found = _Reactive(dynamics, observation).improve(upper_actions, best)
        if found is not None:
            lower, simple = found
    return StateBounds(upper, upper_actions, lower, dynamics.after_all(lower), simple)


class _Reactive:
    """Policies that act on the last observation alone, where that does not depend on the action before it."""

    def __init__(self, dynamics: Dynamics, observation: sparse.csr_array) -> None:
        self._dynamics = dynamics
        self._seen = observation
        self._by_observation = sparse.csr_array(observation.T)
        self._state = np.repeat(np.arange(observation.shape[0]), np.diff(observation.indptr))

    def improve(
        self, action_values: NDArray[np.float64], best: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]] | None:
        """Return the value of the best policy that was found, and what it does; None for none better than `best`."""
        mdp = self._dynamics.mdp
        weights, found, in_vain = np.ones(mdp.n_states), None, 0
        for _ in range(_ROUNDS):
            chosen = np.asarray(self._by_observation @ (weights[:, None] * action_values)).argmax(axis=1)
            does = self._actions_by_state(chosen)
            values = self._dynamics.fixed_point(
                lambda v, does=does: self._dynamics.mixed(v, does), above=False
            )
            worth = float(mdp.initial @ values)
            in_vain = 0 if worth > best + _SMALL * abs(best) else in_vain + 1
            if worth > best:
                best, found = worth, (values, chosen.astype(np.int32))
            if in_vain > _PATIENCE:
                break
            action_values, weights = self._dynamics.after_all(values), self._visits(does)
        return found

    def _actions_by_state(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of each action in each state, shape (A, S)."""
        n_states, n_actions = self._seen.shape[0], self._dynamics.mdp.n_actions
        cell = chosen[self._seen.indices] * n_states + self._state
        counts = np.bincount(cell, weights=self._seen.data, minlength=n_states * n_actions)
        return counts.astype(np.float64).reshape(n_actions, n_states)

    def _visits(self, does: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how often states are visited, discounted, shape (S,)."""
        mdp = self._dynamics.mdp
        now = np.array(mdp.initial, dtype=np.float64)
        total = now.copy()
        for _ in range(_VISITS):
            now = sum(
                (self._dynamics.spread(now * does[a], a) for a in range(mdp.n_actions)),
                np.zeros_like(now),
            )
            now *= mdp.discount
            total += now
        return total

"""Optimal values of tiny POMDPs between two sure bounds, by exact backups at the corners of a value function.

Let V be any convex, piecewise linear function of the belief, and H the Bellman operator. Where
d⁻ ≤ HV − V ≤ d⁺ for all beliefs, V* lies in HV + γ/(1 − γ) · [d⁻, d⁺]. Both differences are found exactly: HV is
convex, so HV − V is largest at a corner of a linear piece of V; and a convex W ≤ HV that is linear on its own
pieces is closest to V from above at a corner of these. So all that has to be right is the backup at single beliefs
and the list of corners, which qhull gives; nothing is pruned, sampled or assumed about how V came about.

Vectors are over all states and dense. Rewards are scaled such that all values lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import HalfspaceIntersection

import missmdp as mm

__all__ = ["Optimum", "Tables", "Value", "improved", "optimum"]

ROUNDING = 1e-10
"""What rounding may have moved a bound by, relative to the largest value."""

Array = np.ndarray


class Tables:
    """A POMDP as dense arrays: b₀[s], T[a, s, s′], O[a, s′, z], ρ[s, a], and O[s, z] for the first observation."""

    def __init__(self, pomdp: mm.POMDP) -> None:
        self.initial = np.array(pomdp.initial)
        self.transition = np.stack([matrix.toarray() for matrix in pomdp.transition])
        self.transition[:, pomdp.terminal] = np.eye(pomdp.n_states)[pomdp.terminal]
        self.observation = np.stack([pomdp.observation_of(a).toarray() for a in range(pomdp.n_actions)])
        self.first = pomdp.observation[0].toarray()
        self.reward = np.where(pomdp.terminal[:, None], 0.0, pomdp.reward)
        self.discount = pomdp.discount
        self.observe_initial = pomdp.observe_initial

    @property
    def least(self) -> float:
        """Below every value: min ρ / (1 − γ)."""
        return float(self.reward.min()) / (1.0 - self.discount)

    @property
    def most(self) -> float:
        """Above every value: max ρ / (1 − γ)."""
        return float(self.reward.max()) / (1.0 - self.discount)

    @cached_property
    def joint(self) -> Array:
        """P(s′, z | s, a), shape (A, Z, S, S′)."""
        return np.einsum("ast,atz->azst", self.transition, self.observation)

    def first_beliefs(self) -> Iterator[tuple[float, Array]]:
        """Yield P(z) and the belief for every first observation z that is possible."""
        for weights in (self.initial[:, None] * self.first).T:
            if weights.sum() > 0.0:
                yield float(weights.sum()), weights / weights.sum()

    def next_beliefs(self, belief: Array, action: int) -> Iterator[tuple[float, Array]]:
        """Yield P(z | b, a) and τ(b, a, z) for every observation z that is possible."""
        for weights in belief @ self.joint[action]:
            if weights.sum() > 0.0:
                yield float(weights.sum()), weights / weights.sum()


class Value(NamedTuple):
    """The convex function max over `vectors` of α·b, with the corners of its linear pieces."""

    vectors: Array
    """Shape (N, S)."""
    corners: Array
    """Beliefs, shape (C, S); the corners of the simplex are among them."""

    @classmethod
    def of(cls, vectors: Array) -> Value:
        """Return the maximum of some vectors with entries in [0, 1]."""
        vectors = np.unique(np.round(vectors, 14), axis=0)
        corners = _corners(vectors)
        winning = (corners @ vectors.T >= (corners @ vectors.T).max(axis=1, keepdims=True) - 1e-13).any(
            axis=0
        )
        return cls(vectors[winning], corners)

    def at(self, beliefs: Array) -> Array:
        """Return the value of each belief, shape (N,)."""
        return (beliefs @ self.vectors.T).max(axis=1)

    def middles(self) -> Array:
        """Return a belief inside the linear piece of every vector."""
        scores = self.corners @ self.vectors.T
        touching = scores >= scores.max(axis=1, keepdims=True) - 1e-13
        return np.stack([self.corners[own].mean(axis=0) for own in touching.T])


def _corners(vectors: Array) -> Array:
    """Return the beliefs at the corners of {(b, v) | b a belief, v ≥ α·b for all α}."""
    n = vectors.shape[1]
    if n == 1:
        return np.ones((1, 1))
    # Coordinates are b(1) … b(n − 1) and v; b(0) is one minus the rest. Rows are (a, c) with a·x + c ≤ 0.
    above = np.column_stack((vectors[:, 1:] - vectors[:, :1], -np.ones(len(vectors)), vectors[:, 0]))
    positive = np.column_stack((-np.eye(n - 1), np.zeros((n - 1, 2))))
    sums_to_one = np.array([[1.0] * (n - 1) + [0.0, -1.0]])
    lid = np.array([[0.0] * (n - 1) + [1.0, -3.0]])
    inside = np.array([1.0 / n] * (n - 1) + [2.0])
    found = HalfspaceIntersection(np.concatenate((above, positive, sums_to_one, lid)), inside).intersections
    rest = found[found[:, -1] < 2.5, :-1]
    beliefs = np.column_stack((1.0 - rest.sum(axis=1), rest)).clip(0.0)
    beliefs = beliefs / beliefs.sum(axis=1, keepdims=True)
    return np.concatenate((np.eye(n), np.unique(np.round(beliefs, 14), axis=0)))


def backups(tables: Tables, value: Value, beliefs: Array) -> tuple[Array, Array]:
    """Return HV and a vector that attains it, for each belief: shapes (N,) and (N, S)."""
    after = np.einsum("ns,azst->nazt", beliefs, tables.joint)
    best = (after @ value.vectors.T).argmax(axis=3)
    pieces = np.einsum("azst,kt->azks", tables.joint, value.vectors)
    _, n_actions, n_observations = best.shape
    chosen = pieces[np.arange(n_actions)[:, None], np.arange(n_observations), best].sum(axis=2)
    vectors = tables.reward.T + tables.discount * chosen
    per_action = np.einsum("nas,ns->na", vectors, beliefs)
    rows = np.arange(len(beliefs))
    return per_action.max(axis=1), vectors[rows, per_action.argmax(axis=1)]


def improved(tables: Tables, value: Value, tolerance: float, most: int = 60) -> tuple[Value, float]:
    """Return W ≤ HV by vectors of single beliefs, and the largest difference HV − W.

    Vectors are added at corners of W until the difference is at most `tolerance` or there are `most` of them.
    """
    n = value.vectors.shape[1]
    vectors = backups(tables, value, np.concatenate((np.eye(n), value.middles())))[1]
    while True:
        found = Value.of(vectors)
        exact, candidates = backups(tables, value, found.corners)
        short = exact - found.at(found.corners)
        if short.max() <= tolerance or len(found.vectors) >= most:
            return found, float(short.max())
        worst = np.argsort(-short)[:8]
        vectors = np.concatenate((found.vectors, candidates[worst[short[worst] > tolerance]]))


@dataclass(frozen=True)
class Optimum:
    """V* as far as it is known: in HV + [below, above] for the model `unit`, whose values are in [0, 1]."""

    tables: Tables
    unit: Tables
    value: Value
    below: float
    above: float

    def at(self, belief: Array) -> tuple[float, float]:
        """Return V*(b) as (low, high)."""
        return self._in_rewards(float(backups(self.unit, self.value, belief[None, :])[0][0]))

    @property
    def acting(self) -> tuple[float, float]:
        """V*(b₀): the first action comes before any observation."""
        return self.at(self.tables.initial)

    @property
    def observing(self) -> tuple[float, float]:
        """Σ_z P(z) V*(b_z): the first action comes after an observation."""
        weights, beliefs = zip(*self.tables.first_beliefs(), strict=True)
        return self._in_rewards(float(weights @ backups(self.unit, self.value, np.stack(beliefs))[0]))

    @property
    def start(self) -> tuple[float, float]:
        """The one of both that `observe_initial` asks for."""
        return self.observing if self.tables.observe_initial else self.acting

    @property
    def width(self) -> float:
        """How far apart the bounds are, relative to the range of values."""
        return self.above - self.below

    @property
    def scale(self) -> float:
        """The largest absolute value that any policy could have."""
        return max(abs(self.tables.least), abs(self.tables.most))

    def _in_rewards(self, value: float) -> tuple[float, float]:
        span, slack = self.tables.most - self.tables.least, ROUNDING * self.scale
        low, high = max(value + self.below, 0.0), min(value + self.above, 1.0)
        return self.tables.least + span * low - slack, self.tables.least + span * high + slack


def unit_tables(pomdp: mm.POMDP) -> Tables:
    """Return a POMDP with rewards mapped to [0, 1 − γ], so that values are in [0, 1]."""
    tables = Tables(pomdp)
    low, high = tables.reward.min(), tables.reward.max()
    span = high - low if high > low else 1.0
    tables.reward = (tables.reward - low) / span * (1.0 - pomdp.discount)
    return tables


def optimum(pomdp: mm.POMDP, *, width: float = 1e-6, most: int = 60) -> Optimum:
    """Return V* between bounds that differ by `width` relative to the range of values.

    Where `most` vectors do not suffice for that, the bounds are as sure but wider.
    """
    unit, discount = unit_tables(pomdp), pomdp.discount
    value, best, age, k = Value.of(np.zeros((1, pomdp.n_states))), None, 0, 0
    while True:
        # Coarse at first: what is lost early is discounted away.
        tolerance = (1.0 - discount) * max(0.1 * width, 0.02 * discount**k)
        better, _ = improved(unit, value, tolerance, most)
        found = Optimum(Tables(pomdp), unit, value, *_distances(unit, value, better))
        age += 1
        if best is None or found.width < best.width:
            best, age = found, 0
        if best.width <= width or age > 20:
            return best
        value, k = better, k + 1


def _distances(unit: Tables, value: Value, better: Value) -> tuple[float, float]:
    """Return γ/(1 − γ) times d⁻ and d⁺ with d⁻ ≤ W − V ≤ HV − V ≤ d⁺, from corners of W and of V."""
    growth = unit.discount / (1.0 - unit.discount)
    below = better.at(better.corners) - value.at(better.corners)
    above = backups(unit, value, value.corners)[0] - value.at(value.corners)
    return growth * float(below.min()), growth * float(above.max())

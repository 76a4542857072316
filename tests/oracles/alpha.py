"""α-vector policies by loops over dense tables: values, decisions and lookaheads, one state at a time."""

from __future__ import annotations

import math

import numpy as np

import missmdp as mm
from missmdp.plan.value_function import ComponentVectors

__all__ = ["Dense", "backed_up", "tiger"]


class Dense:
    """A policy as lists over all states, with the model's T[a][s][s′], O[a][s′][z] and ρ[s][a]."""

    def __init__(self, policy: mm.AlphaVectorPolicy) -> None:
        pomdp = policy.pomdp
        self.n = pomdp.n_states
        self.T = [matrix.toarray().tolist() for matrix in pomdp.transition]
        self.O = [pomdp.observation_of(a).toarray().tolist() for a in range(pomdp.n_actions)]
        self.reward = pomdp.reward.tolist()
        self.discount = pomdp.discount
        self.terminal = pomdp.terminal.tolist()
        self.component_of = {
            int(s): k for k, component in enumerate(policy.components) for s in component.states
        }
        self.vectors = [
            [
                (int(action), dict(zip(map(int, component.states), map(float, row), strict=True)))
                for row, action in zip(component.values, component.actions, strict=True)
            ]
            for component in policy.components
        ]

    def components(self, belief: list[float]) -> set[int]:
        """Return the components in which a belief holds states possible."""
        return {self.component_of[s] for s, p in enumerate(belief) if p > 0 and not self.terminal[s]}

    def value(self, belief: list[float]) -> float:
        """Return V(b) by the definition."""
        found = self.components(belief)
        if not found:
            return 0.0
        if len(found) > 1:
            return max(self.lookahead(belief, a) for a in range(len(self.T)))
        return max(self.dot(values, belief) for _, values in self.vectors[found.pop()])

    def dot(self, values: dict[int, float], belief: list[float]) -> float:
        return math.fsum(value * belief[s] for s, value in values.items())

    def actions(self, belief: list[float], slack: float = 1e-9) -> set[int]:
        """Return the actions that are as good as the best, up to rounding."""
        found = self.components(belief)
        if not found:
            return {0}
        best = self.value(belief) - slack
        if len(found) > 1:
            return {a for a in range(len(self.T)) if self.lookahead(belief, a) >= best}
        return {a for a, values in self.vectors[found.pop()] if self.dot(values, belief) >= best}

    def lookahead(self, belief: list[float], a: int) -> float:
        """Return ρ(b, a) + γ Σ_z P(z | b, a) V(τ(b, a, z))."""
        now = math.fsum(p * self.reward[s][a] for s, p in enumerate(belief) if not self.terminal[s])
        predicted = [math.fsum(belief[s] * self.T[a][s][t] for s in range(self.n)) for t in range(self.n)]
        return now + self.discount * self.expected(predicted, a)

    def expected(self, predicted: list[float], a: int) -> float:
        """Return Σ_z P(z) V(b_z) over the observations after an action."""
        total = 0.0
        for z in range(len(self.O[a][0])):
            weights = [p * self.O[a][s][z] for s, p in enumerate(predicted)]
            probability = math.fsum(weights)
            if probability > 0:
                total += probability * self.value([w / probability for w in weights])
        return total


def tiger(*, observe_initial: bool = False) -> mm.POMDP:
    """Return the Tiger problem of Kaelbling, Littman and Cassandra, with γ = 0.95."""
    from scipy import sparse

    stay, shuffle = np.eye(2), np.full((2, 2), 0.5)
    hear = np.array([[0.85, 0.15], [0.15, 0.85]])
    return mm.POMDP(
        states=["tiger left", "tiger right"],
        actions=["listen", "open left", "open right"],
        observations=["hear left", "hear right"],
        transition=tuple(map(sparse.csr_array, (stay, shuffle, shuffle))),
        reward=np.array([[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]]),
        observation=tuple(map(sparse.csr_array, (hear, shuffle, shuffle))),
        initial=np.array([0.5, 0.5]),
        terminal=np.zeros(2, dtype=bool),
        discount=0.95,
        observe_initial=observe_initial,
    )


def backed_up(pomdp: mm.POMDP, times: int) -> ComponentVectors:
    """Return the vectors of a POMDP with two states after exact backups of V = 0, those that are best somewhere.

    With two states a vector is a line over b ∈ [0, 1]. A backup gives the best line at every b of a fine grid: the best
    action, and for every observation after it the best line so far.
    """
    grid = np.linspace(0.0, 1.0, 1001)
    beliefs = np.stack([1 - grid, grid], axis=1)
    values, actions = np.zeros((1, 2)), np.zeros(1, dtype=np.int64)
    for _ in range(times):
        lines, scores = [], []
        for a in range(pomdp.n_actions):
            T, seen = pomdp.transition[a].toarray(), pomdp.observation_of(a).toarray()
            line = np.tile(pomdp.reward[:, a], (len(beliefs), 1))
            for z in range(pomdp.n_observations):
                ahead = pomdp.discount * (values * seen[:, z]) @ T.T
                line += ahead[(beliefs @ ahead.T).argmax(axis=1)]
            lines.append(line)
            scores.append((line * beliefs).sum(axis=1))
        best = np.argmax(scores, axis=0)
        rows = np.column_stack([best, np.array(lines)[best, np.arange(len(beliefs))]])
        kept = rows[np.sort(np.unique(rows.round(9), axis=0, return_index=True)[1])]
        actions, values = kept[:, 0].astype(np.int64), kept[:, 1:]
    return ComponentVectors(np.arange(2), values, actions)

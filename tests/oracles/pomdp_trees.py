"""Values of tiny POMDPs by growing trees: all policy trees, all beliefs, or the beliefs that one policy meets."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
from scipy import sparse

import missmdp as mm
from oracles.pomdp import ROUNDING, Array, Tables

__all__ = ["best_tree", "constant_value", "graph_value", "horizon_value", "mdp_value", "policy_value"]

Policy = Callable[[Array], int]
"""Belief → index of an action."""


def best_tree(pomdp: mm.POMDP, horizon: int) -> float:
    """Return the best expected return of `horizon` actions, trying every map from past observations to actions.

    The value of a map is a sum over hidden trajectories. There are no beliefs here and no vectors.
    """
    tables = Tables(pomdp)
    n_states, n_actions = tables.reward.shape
    n_observations = tables.first.shape[1]
    shortest = 1 if tables.observe_initial else 0
    pasts = [
        past
        for length in range(shortest, shortest + horizon)
        for past in product(range(n_observations), repeat=length)
    ]

    def expected(tree: dict[tuple[int, ...], int], state: int, past: tuple[int, ...], left: int) -> float:
        if left == 0:
            return 0.0
        action = tree[past]
        total = float(tables.reward[state, action])
        for after in range(n_states):
            for seen in range(n_observations):
                p = tables.transition[action, state, after] * tables.observation[action, after, seen]
                if p > 0.0:
                    total += tables.discount * p * expected(tree, after, (*past, seen), left - 1)
        return total

    def from_start(tree: dict[tuple[int, ...], int]) -> float:
        if not tables.observe_initial:
            return sum(b * expected(tree, s, (), horizon) for s, b in enumerate(tables.initial) if b > 0.0)
        return sum(
            b * tables.first[s, seen] * expected(tree, s, (seen,), horizon)
            for s, b in enumerate(tables.initial)
            for seen in range(n_observations)
            if b * tables.first[s, seen] > 0.0
        )

    return max(
        from_start(dict(zip(pasts, chosen, strict=True)))
        for chosen in product(range(n_actions), repeat=len(pasts))
    )


def horizon_value(pomdp: mm.POMDP, horizon: int) -> float:
    """Return the best expected return of `horizon` actions, by expectimax over beliefs."""
    tables = Tables(pomdp)

    def best(belief: Array, left: int) -> float:
        if left == 0:
            return 0.0
        return max(
            float(belief @ tables.reward[:, a])
            + tables.discount * sum(p * best(after, left - 1) for p, after in tables.next_beliefs(belief, a))
            for a in range(tables.reward.shape[1])
        )

    return sum(p * best(belief, horizon) for p, belief in _starts(tables))


def mdp_value(pomdp: mm.POMDP) -> Array:
    """Return an upper bound on the value of each state if states were seen, exact up to rounding, shape (S,)."""
    tables = Tables(pomdp)
    value = np.full(pomdp.n_states, tables.most)
    while True:
        ahead = tables.reward + tables.discount * np.einsum("ast,t->sa", tables.transition, value)
        before, value = value, np.minimum(value, ahead.max(axis=1))
        if (before - value).max() <= 1e-13 * max(abs(tables.least), abs(tables.most)):
            return value


def policy_value(
    pomdp: mm.POMDP, policy: Policy, *, nodes: int = 300, ceiling: Callable[[Array], float] | None = None
) -> tuple[float, float]:
    """Return (low, high) around the value of a policy, from the `nodes` beliefs that weigh most.

    Past them the value is anything from min ρ / (1 − γ) to max ρ / (1 − γ), or to `ceiling` of the belief: an
    upper bound on the optimal value is also one on this policy's.
    """
    graph = _BeliefGraph(Tables(pomdp), lambda belief: [int(policy(belief))], nodes)
    return graph.bounds(ceiling)


def graph_value(
    pomdp: mm.POMDP, *, nodes: int = 1000, observe_initial: bool | None = None
) -> tuple[float, float]:
    """Return (low, high) around the optimal value, from the first `nodes` beliefs that can be reached.

    Past them the value is between min ρ / (1 − γ) and the value if states were seen. This is for more states than
    `oracles.pomdp.optimum` can take; the bounds are wide unless few beliefs can be reached or the discount is small.
    """
    tables = Tables(pomdp)
    if observe_initial is not None:
        tables.observe_initial = observe_initial
    graph = _BeliefGraph(tables, lambda _: range(pomdp.n_actions), nodes)
    seen = mdp_value(pomdp)
    return graph.bounds(lambda belief: float(belief @ seen))


def _starts(tables: Tables) -> list[tuple[float, Array]]:
    return list(tables.first_beliefs()) if tables.observe_initial else [(1.0, tables.initial)]


class _BeliefGraph:
    """The heaviest beliefs under some actions each; equal ones (to 12 digits) are one node.

    Weights are γᵗ times the probability of the history by which a belief was first met.
    """

    def __init__(self, tables: Tables, actions: Callable[[Array], Iterable[int]], nodes: int) -> None:
        self.tables = tables
        self.beliefs: list[Array] = []
        self.choices: dict[int, list[tuple[float, list[tuple[float, int]]]]] = {}
        """Expanded node → for each action its reward and the probabilities and nodes that follow."""
        self._places: dict[bytes, int] = {}
        self._queue: list[tuple[float, int]] = []
        self.starts = [(p, self._place(belief, p)) for p, belief in _starts(tables)]
        while self._queue and len(self.choices) < nodes:
            weight, node = heapq.heappop(self._queue)
            belief = self.beliefs[node]
            self.choices[node] = [
                (
                    float(belief @ tables.reward[:, a]),
                    [
                        (p, self._place(after, -weight * tables.discount * p))
                        for p, after in tables.next_beliefs(belief, a)
                    ],
                )
                for a in actions(belief)
            ]

    def _place(self, belief: Array, weight: float) -> int:
        key = (np.round(belief, 12) + 0.0).tobytes()
        if key not in self._places:
            self._places[key] = len(self.beliefs)
            heapq.heappush(self._queue, (-weight, len(self.beliefs)))
            self.beliefs.append(belief)
        return self._places[key]

    def bounds(self, ceiling: Callable[[Array], float] | None) -> tuple[float, float]:
        """Return the value at the start as (low, high), the best action at every node."""
        tables = self.tables
        low = np.full(len(self.beliefs), tables.least)
        high = np.full(len(self.beliefs), tables.most)
        if ceiling is not None:
            high = np.minimum(high, [ceiling(belief) for belief in self.beliefs])
        steps = 1 if tables.discount == 0.0 else int(np.ceil(np.log(1e-9) / np.log(tables.discount)))
        slack = ROUNDING * max(abs(tables.least), abs(tables.most))
        return (
            self._at_start(self._iterated(low, steps)) - slack,
            self._at_start(self._iterated(high, steps)) + slack,
        )

    def _iterated(self, value: Array, steps: int) -> Array:
        """Return the value after sweeps over all nodes; a bound stays one at every step."""
        nodes = list(self.choices)
        shape = (len(nodes), len(value))
        layers: list[tuple[Array, sparse.csr_array]] = []
        for a in range(max(map(len, self.choices.values()))):
            rewards = np.array([self.choices[node][a][0] for node in nodes])
            entries = [(p, row, to) for row, node in enumerate(nodes) for p, to in self.choices[node][a][1]]
            weights, rows, columns = map(np.array, zip(*entries, strict=True))
            layers.append((rewards, sparse.csr_array((weights, (rows, columns)), shape=shape)))
        for _ in range(steps):
            value[nodes] = np.max([r + self.tables.discount * (m @ value) for r, m in layers], axis=0)
        return value

    def _at_start(self, value: Array) -> float:
        return float(sum(p * value[node] for p, node in self.starts))


def constant_value(pomdp: mm.POMDP, action: int) -> Array:
    """Return the value of each state when one action is repeated for ever, shape (S,)."""
    tables = Tables(pomdp)
    matrix = np.eye(pomdp.n_states) - tables.discount * tables.transition[action]
    return np.linalg.solve(matrix, tables.reward[:, action])

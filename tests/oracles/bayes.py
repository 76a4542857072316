"""Beliefs by enumeration of whole hidden trajectories: no recursion over beliefs, no sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import missmdp as mm

__all__ = ["Tables", "belief_after", "random_history"]


class Tables:
    """A miss-MDP as plain lists and dicts: b₀[s], T[a][s][s′] and M[s][z]."""

    def __init__(self, model: mm.MissMDP) -> None:
        self.states = list(model.states)
        self.actions = list(model.actions)
        self.initial: list[float] = model.mdp.initial.tolist()
        self.transition: list[list[list[float]]] = [m.toarray().tolist() for m in model.mdp.transition]
        self.missingness: list[dict[Any, float]] = [model.missingness.distribution(s) for s in self.states]

    def trajectories(
        self, observations: Sequence[Any], actions: Sequence[int]
    ) -> Iterator[tuple[list[int], float]]:
        """Yield every hidden trajectory s⁽⁰⁾ … s⁽ᵗ⁾ and the probability of it together with what was seen.

        P = b₀(s⁽⁰⁾) M(z⁽⁰⁾ | s⁽⁰⁾) Π_k T(s⁽ᵏ⁾ | s⁽ᵏ⁻¹⁾, a⁽ᵏ⁻¹⁾) M(z⁽ᵏ⁾ | s⁽ᵏ⁾); those with P = 0 are left out.
        """

        def extend(path: list[int], probability: float) -> Iterator[tuple[list[int], float]]:
            k = len(path)
            if k == len(observations):
                yield path, probability
                return
            step = self.initial if k == 0 else self.transition[actions[k - 1]][path[-1]]
            for s, p in enumerate(step):
                weight = probability * p * self.missingness[s].get(observations[k], 0.0)
                if weight > 0.0:
                    yield from extend([*path, s], weight)

        return extend([], 1.0)


def belief_after(tables: Tables, observations: Sequence[Any], actions: Sequence[int]) -> list[float] | None:
    """Return P(s⁽ᵗ⁾ | z⁽⁰⁾, a⁽⁰⁾, …, z⁽ᵗ⁾) for every state, or None for a history of probability zero."""
    weights = [0.0] * len(tables.states)
    for path, probability in tables.trajectories(observations, actions):
        weights[path[-1]] += probability
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0.0 else None


def random_history(tables: Tables, length: int, rng: np.random.Generator) -> tuple[list[Any], list[int]]:
    """Return observations z⁽⁰⁾ … z⁽ˡ⁾ and the indices of uniformly random actions between them."""
    state = int(rng.choice(len(tables.states), p=tables.initial))
    observations, actions = [_draw(tables.missingness[state], rng)], []
    for _ in range(length):
        actions.append(int(rng.integers(len(tables.actions))))
        state = int(rng.choice(len(tables.states), p=tables.transition[actions[-1]][state]))
        observations.append(_draw(tables.missingness[state], rng))
    return observations, actions


def _draw(distribution: dict[Any, float], rng: np.random.Generator) -> Any:
    listed = list(distribution)
    return listed[rng.choice(len(listed), p=list(distribution.values()))]

"""The law of z₀ … z_h given the actions, over all histories, and its rank by differences in M's parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import Any

import numpy as np

import missmdp as mm
from missmdp.learn.em.structures import Factors

__all__ = ["free_parameters", "law", "numeric_jacobian", "numeric_rank", "random_point"]


def sights(mdp: mm.FactoredMDP, patterns: np.ndarray) -> list[tuple[list[tuple[Any, ...]], np.ndarray]]:
    """Return for each pattern its sights, and which states show them as 0/1 matrices; terminal states are apart."""
    shown = []
    for pattern in patterns:
        looks = [
            (*(value if seen else None for value, seen in zip(state, pattern, strict=True)), bool(over))
            for state, over in zip(mdp.states, mdp.terminal, strict=True)
        ]
        distinct = sorted(set(looks), key=repr)
        matrix = np.array([[look == other for look in looks] for other in distinct], dtype=float)
        shown.append((distinct, matrix))
    return shown


def law(
    mdp: mm.FactoredMDP,
    table: np.ndarray,
    patterns: np.ndarray,
    horizon: int,
    *,
    initial: np.ndarray | None = None,
    policy: Callable[[tuple[Any, ...]], Collection[int]] | None = None,
) -> np.ndarray:
    """Return P(z₀ … z_h | actions) of every history under every sequence of actions; episodes may be over earlier.

    A policy, observation → numbers of the actions that may follow, leaves out histories that it does not make.
    """
    found = sights(mdp, patterns)
    seen = np.concatenate([shown * row for (_, shown), row in zip(found, table, strict=True)])
    looks = [look for names, _ in found for look in names]
    going = ~mdp.terminal
    probabilities = []
    for actions in product(range(mdp.n_actions), repeat=horizon):
        histories = (mdp.initial if initial is None else initial)[None, :] * seen
        probabilities.append(histories.sum(axis=1))
        for a in actions:
            if policy is not None:
                taken = np.array([a in policy(look[:-1]) for look in looks])
                histories = histories * np.tile(taken, len(histories) // len(looks))[:, None]
            moved = (histories * going) @ mdp.transition[a].toarray()
            histories = (moved[:, None, :] * seen[None]).reshape(-1, mdp.n_states)
            probabilities.append(histories.sum(axis=1))
    return np.concatenate(probabilities)


def random_point(factors: Factors, seed: int) -> list[np.ndarray]:
    """Return random probabilities for every group, away from 0 and 1."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(part.n_outcomes, 3.0), size=part.n_groups) for part in factors.parts]


def free_parameters(
    factors: Factors, reachable: np.ndarray, point: Sequence[np.ndarray]
) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """Return how many probabilities are free, and M's table as a function of how much each is raised."""
    places = [
        (f, g, o)
        for f, part in enumerate(factors.parts)
        for g in sorted(set(part.label[:, reachable].flat))
        for o in range(1, part.n_outcomes)
    ]

    def table(raised: np.ndarray) -> np.ndarray:
        moved = [theta.copy() for theta in point]
        for (f, g, o), by in zip(places, raised, strict=True):
            moved[f][g, o] += by
            moved[f][g, 0] -= by
        return factors.table(moved)

    return len(places), table


def numeric_jacobian(
    function: Callable[[np.ndarray], np.ndarray], count: int, step: float = 1e-5
) -> np.ndarray:
    """Return the derivatives at 0 by central differences, shape (values, count)."""
    return np.stack(
        [(function(step * e) - function(-step * e)) / (2.0 * step) for e in np.eye(count)], axis=1
    )


def numeric_rank(matrix: np.ndarray, tolerance: float = 1e-6) -> int:
    """Return the rank, where singular values below a share of the largest are zero."""
    size = np.linalg.svd(matrix, compute_uv=False)
    return int((size > tolerance * size[0]).sum())

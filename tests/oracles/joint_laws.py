"""The law of histories as a function of T, b₀ and M together, and its exact derivatives, over all histories."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import missmdp as mm
from missmdp.learn.em.structures import Factors
from oracles.observation_laws import free_parameters, law

__all__ = ["any_dynamics", "jacobian_of_polynomials", "joint_law", "joint_rank"]

Dynamics = Callable[[np.ndarray], tuple[list[np.ndarray], np.ndarray]]
"""How much each free probability is raised → T as one matrix per action, and b₀."""


def any_dynamics(mdp: mm.FactoredMDP) -> tuple[int, Dynamics]:
    """Return how many probabilities of T and b₀ are free, and T and b₀ as functions of them: zeros stay zero."""
    matrices = [matrix.toarray() for matrix in mdp.transition]
    rows = [
        (a, s)
        for a in range(mdp.n_actions)
        for s in range(mdp.n_states)
        if mdp.reachable[s] and not mdp.terminal[s]
    ]
    places = [(a, s, t) for a, s in rows for t in np.flatnonzero(matrices[a][s])[1:]]
    starts = np.flatnonzero(mdp.initial)

    def raised(by: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        moved, first = [m.copy() for m in matrices], mdp.initial.copy()
        for (a, s, t), own in zip(places, by[: len(places)], strict=True):
            moved[a][s, t] += own
            moved[a][s, np.flatnonzero(matrices[a][s])[0]] -= own
        for s, own in zip(starts[1:], by[len(places) :], strict=True):
            first[s] += own
            first[starts[0]] -= own
        return moved, first

    return len(places) + len(starts) - 1, raised


def joint_law(
    mdp: mm.FactoredMDP,
    matrices: list[np.ndarray],
    first: np.ndarray,
    table: np.ndarray,
    patterns: np.ndarray,
    horizon: int,
) -> np.ndarray:
    """Return the law of z₀ … z_h, and that of h observations after every known state and action."""
    model: Any = SimpleNamespace(
        states=mdp.states,
        terminal=mdp.terminal,
        n_actions=mdp.n_actions,
        n_states=mdp.n_states,
        initial=first,
        transition=[SimpleNamespace(toarray=lambda m=m: m) for m in matrices],
    )
    laws = [law(model, table, patterns, horizon)]
    for s in np.flatnonzero(mdp.reachable & ~mdp.terminal):
        laws += [law(model, table, patterns, horizon - 1, initial=m[s]) for m in matrices]
    return np.concatenate(laws)


def jacobian_of_polynomials(function: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """Return the derivatives at 0; differences of five points are exact for polynomials up to degree four."""
    step = 0.02
    return np.stack(
        [
            (
                8.0 * (function(step * e) - function(-step * e))
                - function(2.0 * step * e)
                + function(-2.0 * step * e)
            )
            / (12.0 * step)
            for e in np.eye(count)
        ],
        axis=1,
    )


def joint_jacobian(
    mdp: mm.FactoredMDP,
    factors: Factors,
    point: list[np.ndarray],
    horizon: int,
    dynamics: tuple[int, Dynamics] | None = None,
) -> np.ndarray:
    """Return the derivatives of the law of histories by all parameters, those of M first, shape (laws, P)."""
    n_dynamics, moved = any_dynamics(mdp) if dynamics is None else dynamics
    n_gaps, table = free_parameters(factors, mdp.reachable, point)

    def of(by: np.ndarray) -> np.ndarray:
        return joint_law(mdp, *moved(by[n_gaps:]), table(by[:n_gaps]), factors.blocks.patterns, horizon)

    return jacobian_of_polynomials(of, n_gaps + n_dynamics)


def joint_rank(
    mdp: mm.FactoredMDP,
    factors: Factors,
    point: list[np.ndarray],
    horizon: int,
    dynamics: tuple[int, Dynamics] | None = None,
) -> tuple[int, int]:
    """Return the rank of the law of histories by all parameters, and how many there are."""
    jacobian = joint_jacobian(mdp, factors, point, horizon, dynamics)
    size = np.linalg.svd(jacobian, compute_uv=False)
    return int((size > 1e-9 * size[0]).sum()), jacobian.shape[1]

"""Expected counts of patterns and states by enumeration of all hidden paths, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import missmdp as mm

__all__ = ["expected_by_paths", "log_likelihood_by_paths"]


def expected_by_paths(
    log: mm.Dataset, patterns: np.ndarray, table: np.ndarray, ends_seen: bool = True
) -> tuple[np.ndarray, float]:
    """Return the expected counts, shape (K, S), and the log-likelihood under P(pattern | state), shape (K, S).

    With `ends_seen`, an episode goes on from states that are not terminal only, and one that has terminated ended in a
    terminal one.
    """
    counts = np.zeros(table.shape)
    total_log = 0.0
    for e in range(log.n_episodes):
        rows = range(int(log.offsets[e]), int(log.offsets[e + 1]))
        seen = [log.observations[row] for row in rows]
        which = [int(np.flatnonzero((patterns == (z != -1)).all(axis=1))[0]) for z in seen]
        acts = [int(log.actions[row]) for row in rows]
        ended = bool(log.terminated[e])
        paths = list(_paths(log.mdp, seen, which, acts, table, ended, ends_seen))
        total = math.fsum(weight for _, weight in paths)
        total_log += math.log(total) if total > 0.0 else -math.inf
        for path, weight in paths:
            for state, pattern in zip(path, which, strict=True):
                counts[pattern, state] += weight / total
    return counts, total_log


def log_likelihood_by_paths(log: mm.Dataset, patterns: np.ndarray, table: np.ndarray) -> float:
    """Return the log-likelihood alone."""
    return expected_by_paths(log, patterns, table)[1]


def _paths(
    mdp: mm.FactoredMDP,
    seen: list[np.ndarray],
    which: list[int],
    acts: list[int],
    table: np.ndarray,
    ended: bool,
    ends_seen: bool,
) -> Iterator[tuple[list[int], float]]:
    matrices = [matrix.toarray() for matrix in mdp.transition]

    def fits(state: int, step: int) -> bool:
        z = seen[step]
        if not all(code in (-1, own) for code, own in zip(z, mdp.space.codes[state], strict=True)):
            return False
        if not ends_seen:
            return True
        last = step == len(seen) - 1
        if not last:
            return not mdp.terminal[state]
        return bool(mdp.terminal[state]) if ended else True

    def extend(path: list[int], weight: float) -> Iterator[tuple[list[int], float]]:
        step = len(path)
        if step == len(seen):
            yield path, weight
            return
        ahead = mdp.initial if step == 0 else matrices[acts[step - 1]][path[-1]]
        for state in np.flatnonzero(ahead):
            own = weight * ahead[state] * table[which[step], state]
            if own > 0.0 and fits(int(state), step):
                yield from extend([*path, int(state)], own)

    return extend([], 1.0)


def moves_by_paths(log: mm.Dataset, patterns: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return how often each action led from each state to each, shape (A, S, S), and first states in row [A, 0]."""
    mdp = log.mdp
    moves = np.zeros((mdp.n_actions + 1, mdp.n_states, mdp.n_states))
    for e in range(log.n_episodes):
        rows = range(int(log.offsets[e]), int(log.offsets[e + 1]))
        seen = [log.observations[row] for row in rows]
        which = [int(np.flatnonzero((patterns == (z != -1)).all(axis=1))[0]) for z in seen]
        acts = [int(log.actions[row]) for row in rows]
        paths = list(_paths(mdp, seen, which, acts, table, bool(log.terminated[e]), True))
        total = math.fsum(weight for _, weight in paths)
        for path, weight in paths:
            moves[mdp.n_actions, 0, path[0]] += weight / total
            for action, here, there in zip(acts, path, path[1:], strict=False):
                moves[action, here, there] += weight / total
    return moves

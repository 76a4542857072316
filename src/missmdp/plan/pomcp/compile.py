"""A model as a tree search draws from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp._kernels.pomcp.alias import AliasRows, fill_alias
from missmdp._kernels.pomcp.search import GenerativeModel, SearchRules
from missmdp.data.simulation import interleaved
from missmdp.errors import ModelError
from missmdp.model.missmdp import MissMDP
from missmdp.model.pomdp import POMDP

__all__ = ["alias_rows", "compile_generative", "search_rules"]

_OUTCOMES, _NARROW = 2**32, 2**16
"""Outcomes are numbered below this; below that the tables take half the memory."""


def compile_generative(model: MissMDP | POMDP) -> GenerativeModel:
    """Return what a search draws from; observations are numbered as in `compile_simulation`."""
    mdp = model.mdp if isinstance(model, MissMDP) else model
    action_bits = (mdp.n_actions - 1).bit_length()
    if mdp.n_states << action_bits > _OUTCOMES:
        raise ModelError(f"a search can tell 2³² pairs of state and action apart, fewer than {model!r} has")
    if isinstance(model, MissMDP):
        seen = [_by_observation(model)]
        n_observations = len(model.missingness.occurring().observations)
    else:
        seen, n_observations = list(model.observation), model.n_observations
    # One width for all tables, so that there are no more than two versions of each kernel.
    wide = max(mdp.n_states << action_bits, n_observations) > _NARROW
    return GenerativeModel(
        initial=alias_rows(sparse.csr_array(mdp.initial[None, :]), wide=wide),
        step=alias_rows(interleaved(mdp.transition), wide=wide),
        seen=alias_rows(interleaved(seen), wide=wide),
        wander=alias_rows(_wandering(mdp.transition, mdp.reward, action_bits), wide=wide),
        reward=np.array(mdp.reward, dtype=np.float64),
        terminal=np.array(mdp.terminal),
        n_actions=mdp.n_actions,
        n_watched=len(seen),
        n_observations=n_observations,
        action_bits=action_bits,
        discount=float(mdp.discount),
    )


def search_rules(max_depth: int, exploration: float, tree_queries: int) -> SearchRules:
    """Return how to search, with UCB1's square roots and logarithms in tables."""
    visits = np.arange(1, tree_queries + 1, dtype=np.float64)
    reach, shrink = exploration * np.sqrt(np.log(visits)), 1.0 / np.sqrt(visits)
    return SearchRules(max_depth, np.append(0.0, reach), np.append(0.0, shrink))


def alias_rows(rows: sparse.csr_array, *, wide: bool) -> AliasRows:
    """Return distributions, given as the rows of a matrix, ready to be drawn from; `wide` for outcomes above 2¹⁶."""
    start = np.asarray(rows.indptr, dtype=np.int64)
    bits = np.array([(n - 1).bit_length() for n in np.diff(start).tolist()], dtype=np.int64)
    first = np.cumsum(np.append(0, 1 << bits))
    row = ((first[:-1] << 6) | bits).astype(np.uint64)
    column = np.empty((int(first[-1]), 2), dtype=np.uint64 if wide else np.uint32)
    fill_alias(start, np.asarray(rows.indices, np.int64), np.asarray(rows.data, np.float64), row, column)
    return AliasRows(row, column)


def _by_observation(model: MissMDP) -> sparse.csr_array:
    """Return M(z | s), shape (S, Z), over the observations that occur."""
    seen = model.missingness.occurring()
    return sparse.csr_array(
        (model.missingness.probabilities[seen.state, seen.pattern], (seen.state, seen.place)),
        shape=(model.n_states, len(seen.observations)),
    )


def _wandering(
    transition: tuple[sparse.csr_array, ...], reward: NDArray[np.float64], action_bits: int
) -> sparse.csr_array:
    """Return P(s′, a | s) for a uniformly random a as a matrix with column s′ · 2^action_bits + a.

    Actions that earn the same in s are one: the first of them stands for all, which leaves fewer outcomes.
    """
    n_states, n_actions = reward.shape
    stands_for = _first_with_equal_reward(reward)
    states: NDArray[np.int64] = np.arange(n_states, dtype=np.int64)
    state = [np.repeat(states, np.diff(matrix.indptr)) for matrix in transition]
    code = [
        (np.asarray(matrix.indices, dtype=np.int64) << action_bits) | stands_for[origin, a]
        for a, (matrix, origin) in enumerate(zip(transition, state, strict=True))
    ]
    probability = np.concatenate([np.asarray(matrix.data, dtype=np.float64) for matrix in transition])
    joint = sparse.coo_array(
        (probability / n_actions, (np.concatenate(state), np.concatenate(code))),
        shape=(n_states, n_states << action_bits),
    )
    return sparse.csr_array(joint)


def _first_with_equal_reward(reward: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.argsort(reward, axis=1, kind="stable")
    in_order = np.take_along_axis(reward, order, axis=1)
    # Within a row: where the group of equal rewards begins to which each place belongs.
    group = np.zeros(reward.shape, dtype=np.int64)
    places: NDArray[np.int64] = np.arange(1, reward.shape[1], dtype=np.int64)
    group[:, 1:] = np.where(in_order[:, 1:] != in_order[:, :-1], places, 0)
    begins = np.maximum.accumulate(group, axis=1)
    first = np.empty(reward.shape, dtype=np.int64)
    np.put_along_axis(first, order, np.take_along_axis(order, begins, axis=1), axis=1)
    return first

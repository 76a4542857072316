"""Rewards of a `.pomdpx` file as ρ(s, a): several are added, and each is averaged over what it depends on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.interop.expectation import row_means
from missmdp.interop.pomdpx_tables import Table
from missmdp.interop.pomdpx_variables import Codes, Variables

__all__ = ["expected_rewards"]

_CHUNK = 500_000
"""Triples of state, next state and observation that are looked up at once, roughly."""


def expected_rewards(
    tables: Sequence[Table],
    variables: Variables,
    ranks: NDArray[np.int64],
    seen: NDArray[np.int64],
    transition: Sequence[sparse.csr_array],
    observation: Sequence[sparse.csr_array],
) -> NDArray[np.float64]:
    """Return ρ(s, a), the sum of the expected rewards, shape (S, A).

    Parameters
    ----------
    tables
        The rewards as functions of their parents.
    variables
        What the parents are.
    ranks, seen
        The states and the observations by their numbers among all combinations.
    transition, observation
        T(s′ | s, a) and O(z | s′, a), one matrix per action each.
    """
    reward = np.zeros((len(ranks), len(transition)))
    now = {v.current for v in variables.states}
    signals = {v.current for v in variables.observations}
    for a, (moves, shows) in enumerate(zip(transition, observation, strict=True)):
        origin = np.repeat(np.arange(len(ranks)), np.diff(moves.indptr))
        for table in tables:
            parents = set(table.parents)
            if not parents & (now | signals):
                reward[:, a] += table.look_up(variables.codes(ranks, a, "previous"), len(ranks))
                continue
            codes = variables.codes(ranks[origin], a, "previous")
            codes |= variables.codes(ranks[moves.indices], a, "current")
            if parents & signals:
                values = _over_observations(table, codes, moves, shows, variables, seen)
            else:
                values = table.look_up(codes, len(origin))
            reward[:, a] += row_means(values, moves.data, moves.indptr[:-1])
    return reward


def _over_observations(
    table: Table,
    codes: Codes,
    moves: sparse.csr_array,
    shows: sparse.csr_array,
    variables: Variables,
    seen: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the expectation over observations for every move, shape (moves,)."""
    counts = np.diff(shows.indptr)[moves.indices]
    values = np.empty(len(counts))
    chunk = np.cumsum(counts, dtype=np.int64) // _CHUNK
    for part in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(chunk)) + 1):
        own = counts[part]
        first = np.cumsum(own) - own
        entries = np.repeat(shows.indptr[moves.indices[part]] - first, own) + np.arange(int(own.sum()))
        owner = np.repeat(part, own)
        extended = {name: code[owner] for name, code in codes.items()}
        for variable, code in zip(variables.seen.variables, variables.seen.codes(seen), strict=True):
            extended[variable.current] = code[shows.indices[entries]]
        values[part] = row_means(table.look_up(extended, len(owner)), shows.data[entries], first)
    return values

"""Where EM starts, and what its prior leans towards: AsMAR over blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts
from missmdp.learn.blocks import Blocks
from missmdp.learn.groups import group_states
from missmdp.model.space import MISSING

__all__ = ["asmar_table", "pattern_numbers", "perturbed"]

_TRACE = 1e-3
"""Added to the count of every pattern over all groups: EM cannot leave a probability of zero."""


def pattern_numbers(blocks: Blocks, observed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the pattern of each row of indicators, −1 where a block is seen in part, shape (rows,)."""
    places = {tuple(row): k for k, row in enumerate(blocks.patterns.tolist())}
    distinct, which = np.unique(observed, axis=0, return_inverse=True)
    numbers = np.array([places.get(tuple(row), -1) for row in distinct.tolist()], dtype=np.int64)
    return numbers[which.reshape(-1)]


def asmar_table(counts: ObservationCounts, blocks: Blocks) -> NDArray[np.float64]:
    """Return P(pattern | values of what is always observed) as a table over states, shape (K, S).

    One observation that is distributed like all of them is added to every group, so that groups with few
    observations have no probabilities of zero.
    """
    space = counts.mdp.space
    features = space.features
    given = ~features.mask(blocks.features)
    values, label = group_states(space, given)
    ranks = features.rank(values)
    rows = features.rank(np.where(given, counts.codes, MISSING))
    place = np.minimum(np.searchsorted(ranks, rows), len(ranks) - 1)
    pattern = pattern_numbers(blocks, counts.observed)
    inside = (ranks[place] == rows) & (pattern >= 0)
    table = np.zeros((len(ranks), len(blocks.patterns)))
    np.add.at(table, (place[inside], pattern[inside]), counts.counts[inside])
    pooled = table.sum(axis=0) + _TRACE
    table += pooled / pooled.sum()
    table /= table.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(table[label].T)


def perturbed(table: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Return another M to start from: every state's distribution mixed half and half with a random one."""
    random = generator.dirichlet(np.ones(len(table)), size=table.shape[1]).T
    return 0.5 * table + 0.5 * random

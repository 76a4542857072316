"""Structures of M in which effects add up on the log-odds of each block being missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks
from missmdp.learn.em.iterate import Maximised
from missmdp.learn.em.logistic import log_expit, newton_effects
from missmdp.learn.em.search import Allowed
from missmdp.learn.em.structures import Factors
from missmdp.learn.em.trees import Cells

_MOST_TOGETHER = 100
"""Joint values up to which each has an effect of its own; with more, the leaves of a tree have."""

_MOST_PATTERNS = 8
"""Patterns of earlier blocks up to which each has an effect of its own; with more, each earlier block has."""


@dataclass(frozen=True, eq=False)
class EffectTerms:
    """What the log-odds of a block's indicator are made of."""

    together: Allowed
    """The features and earlier blocks whose joint values have an effect each."""
    leaf: NDArray[np.int64]
    """Groups of patterns and states that have an effect each where there are too many joint values, shape (K, S)."""
    single: tuple[str, ...]
    """The features whose values have an effect each, on their own."""


@dataclass(frozen=True, eq=False)
class Effects:
    """The structure in which effects add up: G cells, p effects of each block."""

    factors: Factors
    """The cells of each block."""
    designs: tuple[NDArray[np.float64], ...]
    """Shape (G, p) each."""
    first: tuple[NDArray[np.float64], ...]
    """Effects to begin with, shape (p,) each."""
    name: str = "effects"

    @property
    def blocks(self) -> Blocks:
        """The blocks whose patterns M ranges over."""
        return self.factors.blocks

    def n_parameters(self, reachable: NDArray[np.bool_]) -> int:
        """Return how many effects can be told apart among reachable states."""
        return sum(
            int(np.linalg.matrix_rank(design[np.unique(part.label[:, reachable])]))
            for design, part in zip(self.designs, self.factors.parts, strict=True)
        )

    def maximise(self, expected: NDArray[np.float64], before: Maximised | None = None) -> Maximised:
        """Return an M that explains expected counts at least as well as the one before."""
        start = self.first if before is None else before.parameters
        effects = tuple(
            newton_effects(design, counts, own)
            for design, counts, own in zip(self.designs, self.factors.counts(expected), start, strict=True)
        )
        return Maximised(self.table(effects), 0.0, effects)

    def table(self, effects: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return M as P(pattern | state), shape (K, S)."""
        odds = [design @ effect for design, effect in zip(self.designs, effects, strict=True)]
        return self.factors.table([np.exp(np.stack([log_expit(-o), log_expit(o)], axis=1)) for o in odds])


def design_of(cells: Cells, reasons: EffectTerms) -> NDArray[np.float64]:
    """Return the effects of some reasons, none of them twice, shape (cells, p)."""
    place = {variable: v for v, variable in enumerate(cells.variables)}
    columns = [np.ones((len(cells.values), 1))]
    earlier = [v for variable, v in place.items() if not isinstance(variable, str)]
    patterns = _joint(cells, earlier)
    few = len(np.unique(patterns[cells.live])) <= _MOST_PATTERNS
    columns += [_one_hot(cells, patterns)] if few else [_one_hot(cells, cells.values[:, v]) for v in earlier]
    features, after = reasons.together
    joint = _joint(cells, [place[variable] for variable in (*features, *after)])
    single = [name for name in reasons.single if name not in features]
    if len(np.unique(joint[cells.live])) > _MOST_TOGETHER:
        first = np.unique(cells.factor.label.reshape(-1), return_index=True)[1]
        joint, single = reasons.leaf.reshape(-1)[first], list(reasons.single)
    columns.append(_one_hot(cells, joint))
    columns += columns_of_values(cells, single)
    return np.concatenate(columns, axis=1)


def columns_of_values(cells: Cells, features: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the effects of single values, one array for each feature."""
    return [_one_hot(cells, cells.values[:, cells.variables.index(name)]) for name in features]


def _joint(cells: Cells, variables: Sequence[int]) -> NDArray[np.int64]:
    key = np.zeros(len(cells.values), dtype=np.int64)
    for v in variables:
        key = key * cells.sizes[v] + cells.values[:, v]
    return key


def _one_hot(cells: Cells, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return one column for each label but the first that a reachable cell has, shape (cells, labels − 1)."""
    return (label[:, None] == np.unique(label[cells.live])[None, 1:]).astype(np.float64)

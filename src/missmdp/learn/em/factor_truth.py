"""What the groups of a learned structure would have shown with endless data: the true M, averaged over each group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks
from missmdp.learn.em.iterate import PenalisedFactors, StructureModel
from missmdp.learn.em.structures import Factor
from missmdp.learn.group_truth import GroupTruth
from missmdp.model.missmdp import MissMDP

__all__ = ["factor_truths"]


def factor_truths(model: StructureModel, truth: MissMDP, weights: NDArray[np.float64]) -> list[GroupTruth]:
    """Return what is true of each group of a learned structure, in the order of the bound.

    A group may be one of states in which earlier indicators came out in a certain way; then it is the true
    probability given that they did.

    Parameters
    ----------
    model
        The structure; one without groups has none here.
    truth
        The model with the true M.
    weights
        How often each state is visited, shape (S,).
    """
    if not isinstance(model, PenalisedFactors):
        return []
    table = _over_blocks(truth, model.blocks)
    return [
        found for part in model.factors.parts for found in _truths(part, table, weights, truth.mdp.reachable)
    ]


def _over_blocks(truth: MissMDP, blocks: Blocks) -> NDArray[np.float64]:
    """Return the true P(pattern of the blocks | state), shape (K, S); patterns that split a block are left out."""
    places = truth.space.features.mask(blocks.features)
    own = truth.missingness
    match = (blocks.patterns[:, None, places] == own.patterns[None, :, places]).all(axis=2)
    return match.astype(np.float64) @ own.probabilities.T


def _truths(
    part: Factor, table: NDArray[np.float64], weights: NDArray[np.float64], reachable: NDArray[np.bool_]
) -> Iterator[GroupTruth]:
    outcomes = np.arange(part.n_outcomes)[:, None] == part.outcome[None, :]
    for group in np.unique(part.label[:, reachable]):
        inside = (part.label == group) & reachable[None, :]
        joint = outcomes.astype(np.float64) @ np.where(inside, table, 0.0)
        occurs = joint.sum(axis=0)
        states = np.flatnonzero(occurs > 0.0)
        if not len(states):
            # In truth the earlier indicators never come out like this.
            unknown = np.full(part.n_outcomes, np.nan)
            yield GroupTruth(unknown, unknown, unknown)
            continue
        given = (joint[:, states] / occurs[states]).T
        weight = weights[states] * occurs[states]
        if not weight.sum() > 0.0:
            weight = occurs[states]
        yield GroupTruth(weight @ given / weight.sum(), given.min(axis=0), given.max(axis=0))

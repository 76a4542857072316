"""What is said of a fit: its m-graph, reasons for doubt, and what is true of its groups where that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.assumptions import AssumptionFinding
from missmdp.learn.blocks import Blocks, States
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit, PenalisedFactors, StructureModel
from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factor
from missmdp.learn.table import GroupTruth
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import Edge, MissingnessGraph
from missmdp.model.missingness import same_patterns
from missmdp.model.missmdp import MissMDP

_SAME, _SAME_EACH = 0.5, 1e-3
"""Nats within which two starts have found the same likelihood: these, and so many more for each parameter."""

_APART = 0.02
"""Total variation, over visits, above which two M are not the same."""


def fit_warnings(
    mdp: FactoredMDP, best: EMFit, fits: Sequence[EMFit], histories: Histories
) -> Iterator[AssumptionFinding]:
    """Yield what a user should know of a fit: data that do not fit, no convergence, starts that disagree."""
    if histories.impossible:
        yield AssumptionFinding(
            f"{histories.impossible:,} of {histories.n_steps:,} observations cannot happen after what came "
            "before them, whatever is missing, and are left out (missmdp.validate says which)",
            (),
        )
    if not best.converged:
        yield AssumptionFinding(
            f"the likelihood still rises after {len(best.trace):,} iterations (max_iterations)", ()
        )
    visits = best.expected.sum(axis=0) / max(float(best.expected.sum()), 1e-300)
    apart = [float(0.5 * np.abs(fit.table - best.table).sum(axis=0) @ visits) for fit in fits]
    lower = [best.objective - fit.objective for fit in fits]
    same = _SAME + _SAME_EACH * best.model.n_parameters(mdp.reachable)
    equal = [distance for gap, distance in zip(lower, apart, strict=True) if gap <= same]
    if max(equal) > _APART:
        yield AssumptionFinding(
            f"different M explain the data equally well (total variation {max(equal):.2f} over visits): M "
            "is not identified with this structure; see missmdp.identifiability",
            (),
        )
    elif max(lower) > same:
        yield AssumptionFinding(
            f"starts disagree: some end at a log-likelihood that is {max(lower):,.1f} lower; the best is "
            "kept, and more starts may find a better one",
            (),
        )


def factors_graph(mdp: States, model: StructureModel) -> MissingnessGraph:
    """Return what the indicators of a structure depend on.

    Features of one block, blocks of one factor, and blocks of which one looks at the other are joined as dependent.
    """
    blocks = model.blocks
    edges: list[Edge] = []
    joined: list[Edge] = [pair for block in blocks.names for pair in combinations(block, 2)]
    if isinstance(model, PenalisedFactors):
        for part in model.factors.parts:
            names = [name for i in part.blocks for name in blocks.names[i]]
            edges += [(parent, name) for parent in part.given for name in names]
            together = [*combinations(part.blocks, 2), *((i, j) for i in part.after for j in part.blocks)]
            joined += [(a, b) for i, j in together for a in blocks.names[i] for b in blocks.names[j]]
    elif isinstance(model, Logistic):
        for block, given in zip(blocks.names, model.given, strict=True):
            edges += [(parent, name) for parent in given for name in block]
    return MissingnessGraph(
        edges, features=mdp.space.features.names, can_go_missing=blocks.features, dependent=joined
    )


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
        found
        for part in model.factors.parts
        for found in truths_of_part(part, table, weights, truth.mdp.reachable)
    ]


def _over_blocks(truth: MissMDP, blocks: Blocks) -> NDArray[np.float64]:
    """Return the true P(pattern of the blocks | state), shape (K, S); patterns that split a block are left out."""
    places = truth.space.features.mask(blocks.features)
    own = truth.missingness
    return same_patterns(blocks.patterns[:, places], own.patterns[:, places]) @ own.probabilities.T


def truths_of_part(
    part: Factor, table: NDArray[np.float64], weights: NDArray[np.float64], reachable: NDArray[np.bool_]
) -> Iterator[GroupTruth]:
    """Yield what is true of each group of a part, where P(pattern of the blocks | state) is known, shape (K, S)."""
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

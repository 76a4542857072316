"""The m-graph of a structure."""

from __future__ import annotations

from itertools import combinations

from missmdp.learn.em.iterate import PenalisedFactors, StructureModel
from missmdp.learn.em.logistic import Logistic
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import Edge, MissingnessGraph

__all__ = ["factors_graph"]


def factors_graph(mdp: FactoredMDP, model: StructureModel) -> MissingnessGraph:
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

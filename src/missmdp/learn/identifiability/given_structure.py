"""The structure of M that a user gives, as factors or as logistic effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from missmdp.checks import checked_names
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, checked_feature_blocks
from missmdp.learn.em.logistic import Logistic, logistic_model
from missmdp.learn.em.structures import Factors, graph_factors, named_factors
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph

__all__ = ["StructureChoice", "as_structure"]

StructureChoice = Literal["mcar", "smar", "logistic", "saturated"] | MissingnessGraph | Factors | Logistic

_NAMES = ("mcar", "smar", "logistic", "saturated")


def as_structure(
    mdp: FactoredMDP, structure: StructureChoice, blocks: Sequence[Sequence[str]] | None
) -> Factors | Logistic:
    """Return the structure over blocks of features that can go missing.

    Raises
    ------
    DataError
        If it is none.
    """
    if isinstance(structure, Factors | Logistic):
        if blocks is not None:
            raise DataError("these factors have their blocks already: leave out blocks=")
        return structure
    features = mdp.space.features
    if isinstance(structure, MissingnessGraph):
        checked_names("structure", structure.features, features.names)
        own = _covering(
            structure.can_go_missing, [] if blocks is None else checked_feature_blocks(features, blocks)
        )
        return graph_factors(mdp, Blocks.of(features, own, mdp.n_states), structure)
    if structure not in _NAMES:
        raise DataError(
            f"there is no structure {structure!r}; give a MissingnessGraph, or one of {', '.join(map(repr, _NAMES))}"
        )
    own = [(name,) for name in features.names] if blocks is None else checked_feature_blocks(features, blocks)
    made = Blocks.of(features, own, mdp.n_states)
    if structure == "logistic":
        even = np.full((len(made.missing), mdp.n_states), 1.0 / len(made.missing))
        return logistic_model(mdp, made, [features.names] * len(made.names), even, 0.0)
    return named_factors(mdp, made, structure)


def _covering(names: Sequence[str], blocks: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the blocks, and one for every other name."""
    inside = {name for block in blocks for name in block}
    return [*blocks, *((name,) for name in names if name not in inside)]

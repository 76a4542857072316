"""Directions in the space of parameters as what people know: groups of states, patterns, states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.identifiability.result import Unidentified
from missmdp.learn.identifiability.tangent import Tangent
from missmdp.model.mdp import FactoredMDP

__all__ = ["open_entries", "open_states"]

_MOVES = 1e-7
"""An entry is open if some direction moves it more than this."""


def open_entries(
    mdp: FactoredMDP, structure: Factors | Logistic, tangent: Tangent, directions: NDArray[np.float64]
) -> tuple[Unidentified, ...]:
    """Return the probabilities, or effects, that some direction changes, by factor and group of states.

    Parameters
    ----------
    directions
        Orthonormal directions in the space of parameters, shape (P, directions).
    """
    moved = _moves(tangent.entries @ directions)
    found: list[Unidentified] = []
    owners = np.stack([tangent.owner[moved], tangent.group[moved]], axis=1)
    for row in np.unique(owners, axis=0):
        f, g = int(row[0]), int(row[1])
        mine = moved & (tangent.owner == f) & (tangent.group == g)
        if isinstance(structure, Logistic):
            names = structure.blocks.names[f]
            effect = structure.labels[f][g]
            found.append(
                Unidentified(names, {}, (names,), np.flatnonzero(mdp.reachable), f"the effect {effect}")
            )
        else:
            found.append(_group(mdp, structure, structure.parts[f], g, tangent.outcome[mine]))
    return tuple(found)


def open_states(mdp: FactoredMDP, tangent: Tangent, directions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the reachable states whose M(· | s) some direction changes, shape (S,)."""
    return _moves(tangent.jacobian @ directions).reshape(tangent.table.shape).any(axis=0) & mdp.reachable


def _moves(change: Any) -> NDArray[np.bool_]:
    return np.sqrt((np.asarray(change) ** 2).sum(axis=1)) > _MOVES


def _group(
    mdp: FactoredMDP, factors: Factors, factor: Factor, group: int, outcomes: NDArray[np.int64]
) -> Unidentified:
    names = factors.blocks.names
    states = np.flatnonzero((factor.label == group).any(axis=0) & mdp.reachable)
    codes = mdp.space.codes[states]
    given: dict[str, Any] = {}
    for name in factor.given:
        place = mdp.space.features.position(name)
        if len(np.unique(codes[:, place])) == 1:
            given[name] = mdp.space.features.values[place][codes[0, place]]
    patterns = tuple(
        tuple(name for i, block in enumerate(factor.blocks) if outcome >> i & 1 for name in names[block])
        for outcome in sorted(outcomes.tolist())
    )
    features = tuple(name for block in factor.blocks for name in names[block])
    return Unidentified(features, given, patterns, states, _after(factors, factor, group))


def _after(factors: Factors, factor: Factor, group: int) -> str:
    """Return what the group says of earlier indicators, in words."""
    missing = factors.blocks.missing[(factor.label == group).any(axis=1)]
    words = [
        f"{' and '.join(factors.blocks.names[block])} {'missing' if missing[0, block] else 'seen'}"
        for block in factor.after
        if (missing[:, block] == missing[0, block]).all()
    ]
    return "with " + ", ".join(words) if words else ""

"""Known theorems that say what is identified, where their conditions hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from missmdp.learn.em.logistic import Logistic
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.identifiability.dynamics_result import Evidence
from missmdp.learn.identifiability.moving import DynamicsStructure
from missmdp.model.mdp import FactoredMDP
from missmdp.words import listed


def hiding(structure: Factors | Logistic, open_: set[str]) -> list[str]:
    """Return the features that may drive their own gaps, among those whose gaps are open."""
    names = structure.blocks.names
    if isinstance(structure, Logistic):
        pairs = list(zip(names, structure.given, strict=True))
    else:
        pairs = [
            (tuple(name for block in part.blocks for name in names[block]), part.given)
            for part in structure.parts
        ]
    return [name for own, given in pairs for name in own if name in given and name in open_]


def theorems(
    mdp: FactoredMDP,
    structure: Factors | Logistic,
    dynamics: DynamicsStructure,
    evidence: Evidence,
    *,
    whole: bool,
) -> list[str]:
    """Return what is known in the literature where its conditions hold, in sentences."""
    hidden = structure.blocks.features
    found: list[str] = []
    seen = _always_seen(dynamics, mdp.space.features.names, hidden) if evidence.every_row else []
    if seen:
        verb = (
            "is always seen, and so is all that its next value depends"
            if len(seen) == 1
            else ("are always seen, and so is all that their next values depend")
        )
        found.append(f"{listed(seen)} {verb} on: frequencies show that part of T, whatever M is.")
    if not evidence.every_row:
        found.append("Some states are never seen in full before some action: no theorem was applied.")
    elif evidence.by_odds and isinstance(structure, Factors):
        if not any(set(part.given) & set(hidden) or part.after for part in structure.parts):
            found.append(
                "Gaps depend on nothing but what is always seen (simple MAR), so M can be ignored in learning T "
                "(Rubin 1976), and every step between fully seen states has a positive probability."
            )
        elif all(not set(part.given) & _with(structure, part) for part in structure.parts):
            found.append(
                "There is no self-censoring and no colluder, so M is identified from each next state after a fully "
                "seen state and action (Nabi, Bhattacharya and Shpitser 2020), and T with it."
            )
        else:
            found.append(
                "What comes before a gap tells apart the values that it may hide, as far as M's structure needs it "
                "(completeness, with the step before as a shadow variable: d’Haultfœuille 2010, Miao and Tchetgen "
                "Tchetgen 2016)."
            )
    elif whole:
        found.append(
            "Compare hidden Markov models, which are identified at almost every point up to the names of states "
            "(Allman, Matias and Rhodes 2009); here values that are seen at times say which state is which."
        )
    return found


def _with(structure: Factors, part: Factor) -> set[str]:
    """Return the features of the indicators that a factor is about or looks at."""
    return {name for block in (*part.blocks, *part.after) for name in structure.blocks.names[block]}


def _always_seen(dynamics: DynamicsStructure, names: Sequence[str], hidden: Collection[str]) -> list[str]:
    """Return the features whose T is a matter of what is always seen."""
    if dynamics.parents is None:
        return [] if hidden else list(names)
    parents = dynamics.parents
    return [
        name for name in names if name not in hidden and not set(_plain(parents[name], names)) & set(hidden)
    ]


def _plain(parents: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the features that parents are about."""
    return [p if p in names else p.removeprefix("next_") for p in parents]

"""Which missingness is fitted along with T: a test is valid for every M of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks, States
from missmdp.learn.em.effects import Effects, EffectTerms, design_of
from missmdp.learn.em.histories import Histories
from missmdp.learn.em.search import Found, Searcher
from missmdp.learn.em.structures import Factor, Factors, by_values, graph_factors
from missmdp.learn.em.trees import block_cells
from missmdp.model.mgraph import MissingnessGraph

_SINGLE = (
    "they may depend on every value, including the missing one, and on whether others are missing; effects add up on "
    "the log-odds"
)

_TOGETHER = f"{_SINGLE}, and reasons that a search found act together"


class Missingness(NamedTuple):
    """A kind of M."""

    model: Effects
    table: NDArray[np.float64]
    """P(pattern | state) to begin with, shape (K, S)."""
    words: str


def given_missingness(searcher: Searcher[Histories], structure: str | MissingnessGraph) -> Missingness:
    """Return the kind of M that somebody says: "mcar", "smar", "saturated" or an m-graph."""
    mdp, blocks = searcher.mdp, searcher.blocks
    given, words = _given(mdp, blocks, structure)
    terms = [_terms(mdp, blocks, i, names) for i, names in enumerate(given)]
    return Missingness(effects_model(mdp, blocks, terms), searcher.prior, words)


def nothing_missing(searcher: Searcher[Histories]) -> Missingness:
    """Return the only kind of M where there are no gaps."""
    return Missingness(effects_model(searcher.mdp, searcher.blocks, []), searcher.prior, "there are none")


def single_effects(searcher: Searcher[Histories]) -> Missingness:
    """Return the kind of M in which every single value has an effect."""
    mdp, blocks = searcher.mdp, searcher.blocks
    leaf = np.zeros((len(blocks.missing), mdp.n_states), dtype=np.int64)
    terms = [EffectTerms(((), ()), leaf, mdp.space.features.names) for _ in blocks.names]
    return Missingness(effects_model(mdp, blocks, terms), searcher.prior, _SINGLE)


def searched(searcher: Searcher[Histories]) -> Found:
    """Return the best structure of all."""
    everything = searcher.mdp.space.features.names
    return searcher.search([(everything, tuple(range(i))) for i in range(len(searcher.blocks.names))])


def acts_together(found: Found) -> bool:
    """Return whether some block has several reasons."""
    return any(len(features) + len(after) > 1 for features, after in found.asked)


def with_found(searcher: Searcher[Histories], found: Found) -> Missingness:
    """Return the kind of M in which reasons that were found act together, and every single value has an effect."""
    if not acts_together(found):
        return single_effects(searcher)._replace(table=found.fit.table)
    names = searcher.mdp.space.features.names
    terms = [EffectTerms((part.given, part.after), part.label, names) for part in found.factors.parts]
    return Missingness(effects_model(searcher.mdp, searcher.blocks, terms), found.fit.table, _TOGETHER)


def effects_model(mdp: States, blocks: Blocks, terms: Sequence[EffectTerms]) -> Effects:
    """Return effects by the terms of each block; whether earlier blocks are missing always has an effect."""
    parts: list[Factor] = []
    designs: list[NDArray[np.float64]] = []
    for i, own in enumerate(terms):
        used = {*own.together[0], *own.single}
        cells = block_cells(
            mdp, blocks, i, [n for n in mdp.space.features.names if n in used], tuple(range(i))
        )
        parts.append(cells.factor)
        designs.append(_independent(design_of(cells, own), cells.live))
    first = tuple(np.zeros(design.shape[1]) for design in designs)
    return Effects(Factors("effects", blocks, tuple(parts)), tuple(designs), first)


def _independent(design: NDArray[np.float64], live: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the columns that are no combination of those before them."""
    kept: list[int] = []
    basis = np.zeros((int(live.sum()), 0))
    for j, column in enumerate(design[live].T):
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > 1e-8 * max(float(np.linalg.norm(column)), 1.0):
            basis = np.concatenate([basis, rest[:, None] / size], axis=1)
            kept.append(j)
    return np.ascontiguousarray(design[:, kept])


def _terms(mdp: States, blocks: Blocks, block: int, names: Sequence[str]) -> EffectTerms:
    label = by_values(mdp, names)[0]
    return EffectTerms((tuple(names), ()), np.broadcast_to(label, (len(blocks.missing), len(label))), ())


def _given(
    mdp: States, blocks: Blocks, structure: str | MissingnessGraph
) -> tuple[list[tuple[str, ...]], str]:
    """Return by which features' joint values each block goes missing, and that in words."""
    names = mdp.space.features.names
    if isinstance(structure, MissingnessGraph):
        # Raises an error if the graph has other features, or no indicator for one that goes missing.
        graph_factors(mdp, blocks, structure)
        given = [
            tuple(n for n in names if n in {p for own in block for p in structure.parents(own)})
            for block in blocks.names
        ]
        return given, "each depends on its parents in the m-graph, and on whether others are missing"
    kinds = {
        "mcar": ((), "they depend on nothing but whether others are missing (MCAR)"),
        "smar": (
            tuple(n for n in names if n not in blocks.features),
            "they depend on features that are never missing, and on whether others are (simple MAR)",
        ),
        "saturated": (names, "they may depend on anything"),
    }
    own, words = kinds[structure]
    return [own] * len(blocks.names), words

"""Structures of M: which states share which probabilities.

A structure is a list of *factors*. A factor has the indicators of some blocks, a table of probabilities with one
row per group, and a label that says which group a state belongs to. M is the product of its factors: M(r | s) = Π_f
θ_f[label_f(r, s), outcome_f(r)], where the label may look at indicators of earlier factors, but at no others, so M
sums to one. From one table of expected counts (pattern × state) every structure is learned by adding up and
dividing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_names
from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, States, joined_blocks
from missmdp.model.mgraph import MissingnessGraph


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of M: G groups, O outcomes, K patterns, S states."""

    blocks: tuple[int, ...]
    """The blocks whose indicators it has."""
    given: tuple[str, ...]
    """The features by whose values states are grouped."""
    after: tuple[int, ...]
    """The earlier blocks whose indicators the label looks at."""
    outcome: NDArray[np.int64]
    """Of each pattern, shape (K,)."""
    n_outcomes: int
    label: NDArray[np.int64]
    """The group, shape (K, S); rows are equal unless `after` names blocks in which patterns differ."""
    n_groups: int
    lumped: bool = False
    """Whether groups are unions of values that act alike, rather than single values."""

    def counts(self, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the counts (pattern × state) added up, shape (G, O)."""
        place = self.label * self.n_outcomes + self.outcome[:, None]
        flat = np.bincount(place.reshape(-1), expected.reshape(-1), minlength=self.n_groups * self.n_outcomes)
        return flat.astype(np.float64).reshape(self.n_groups, self.n_outcomes)

    def spread(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a table (G, O) as one over patterns and states, shape (K, S)."""
        return theta[self.label, self.outcome[:, None]]


@dataclass(frozen=True, eq=False)
class Factors:
    """A structure of M: factors that are independent given the state and the indicators before them."""

    name: str
    """For people."""
    blocks: Blocks
    parts: tuple[Factor, ...]

    def table(self, thetas: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return M as P(pattern | state) for all patterns of the blocks, shape (K, S)."""
        n_states = self.parts[0].label.shape[1]
        product = np.ones((len(self.blocks.patterns), n_states))
        for part, theta in zip(self.parts, thetas, strict=True):
            product *= part.spread(theta)
        return product

    def counts(self, expected: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the counts of each factor."""
        return [part.counts(expected) for part in self.parts]

    def n_parameters(self, reachable: NDArray[np.bool_]) -> int:
        """Return how many free probabilities there are for states that can be reached."""
        return sum(len(np.unique(part.label[:, reachable])) * (part.n_outcomes - 1) for part in self.parts)


def by_values(mdp: States, given: Iterable[str]) -> tuple[NDArray[np.int64], int]:
    """Return the group of each state by the values of some features, shape (S,), and how many groups there are."""
    groups = mdp.space.groups(mdp.space.features.mask(given))
    return groups.label, groups.count


def joint_factors(mdp: States, blocks: Blocks, given: Iterable[str], name: str) -> Factors:
    """Return the structure with one distribution over all patterns for each value of the given features."""
    listed = tuple(given)
    return Factors(name, blocks, (_joint(mdp, blocks, tuple(range(len(blocks.names))), listed),))


def named_factors(mdp: States, blocks: Blocks, name: str) -> Factors:
    """Return the structure "mcar", "smar" (simple MAR) or "saturated"."""
    features = mdp.space.features
    match name:
        case "mcar":
            return joint_factors(mdp, blocks, (), "MCAR")
        case "smar":
            return joint_factors(
                mdp, blocks, (f for f in features.names if f not in blocks.features), "simple MAR"
            )
        case "saturated":
            return joint_factors(mdp, blocks, features.names, "saturated")
        case _:
            raise DataError(f"there is no structure {name!r}")


def graph_factors(mdp: States, blocks: Blocks, graph: MissingnessGraph) -> Factors:
    """Return the structure of an m-graph: indicators depend on their parents.

    The indicators of a block are one. Blocks that the graph joins by dependences have one joint factor, grouped by
    all their parents; all others are independent given the state.

    Raises
    ------
    DataError
        If a feature goes missing that has no indicator in the graph.
    """
    features = mdp.space.features
    checked_names("structure", graph.features, features.names)
    for name in blocks.features:
        if name not in graph.can_go_missing:
            raise DataError(
                f"{name!r} goes missing, but the m-graph has no indicator for it; name it in can_go_missing=[…] of the "
                "MissingnessGraph if nothing drives its missingness"
            )
    parts: list[Factor] = []
    for group in joined_blocks(blocks, graph):
        names = [name for i in group for name in blocks.names[i]]
        parents = {parent for name in names for parent in graph.parents(name)}
        parts.append(_joint(mdp, blocks, group, tuple(f for f in features.names if f in parents)))
    return Factors("m-graph", blocks, tuple(parts))


def block_factor(
    mdp: States, blocks: Blocks, block: int, given: Sequence[str], after: Sequence[int] = ()
) -> Factor:
    """Return the factor of one block's indicator by the values of features and the indicators of earlier blocks."""
    label, count = by_values(mdp, given)
    seen = _numbers(blocks.missing[:, list(after)])
    joint = seen[:, None] * count + label[None, :]
    distinct, place = np.unique(joint, return_inverse=True)
    return Factor(
        (block,),
        tuple(given),
        tuple(after),
        blocks.missing[:, block].astype(np.int64),
        2,
        place.reshape(joint.shape).astype(np.int64),
        len(distinct),
    )


def _joint(mdp: States, blocks: Blocks, group: tuple[int, ...], given: tuple[str, ...]) -> Factor:
    label, count = by_values(mdp, given)
    return Factor(
        group,
        given,
        (),
        _numbers(blocks.missing[:, list(group)]),
        2 ** len(group),
        np.broadcast_to(label, (len(blocks.missing), len(label))).copy(),
        count,
    )


def _numbers(bits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return rows of bits as numbers, shape (rows,)."""
    return bits.astype(np.int64) @ np.left_shift(1, np.arange(bits.shape[1], dtype=np.int64))

"""Structures of M: which states share which probabilities.

A structure is a list of *factors*. A factor has the indicators of some blocks, a table of probabilities with one
row per group, and a label that says which group a state belongs to. M is the product of its factors:
M(r | s) = Π_f θ_f[label_f(r, s), outcome_f(r)], where the label may look at indicators of earlier factors, but at
no others, so that M sums to one. From one table of expected counts (pattern × state) every structure is learned by
adding up and dividing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import DataError
from missmdp.learn.base import checked_blocks, checked_names
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.space import FeatureSpace

__all__ = [
    "Blocks",
    "Factor",
    "Factors",
    "block_factor",
    "by_values",
    "graph_factors",
    "joined_blocks",
    "joint_factors",
    "named_factors",
]

_MAX_ENTRIES = 20_000_000
"""Entries of P(pattern | state) above which a structure is refused (160 MB)."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The features that can go missing, as blocks that are seen or missing as a whole, and all their patterns."""

    names: tuple[tuple[str, ...], ...]
    """The features of each block, in the order of the MDP's features."""
    missing: NDArray[np.bool_]
    """Which blocks each pattern lacks, nothing missing first, shape (K, blocks)."""
    patterns: NDArray[np.bool_]
    """The paper's r over all features (True = observed), shape (K, n)."""

    @classmethod
    def of(cls, features: FeatureSpace, names: Iterable[Sequence[str]], n_states: int = 1) -> Blocks:
        """Return the blocks with all 2ᵐ patterns; raise `DataError` if these are too many to list."""
        order = {name: place for place, name in enumerate(features.names)}
        blocks = tuple(
            sorted(
                (tuple(sorted(block, key=order.__getitem__)) for block in names), key=lambda b: order[b[0]]
            )
        )
        count = len(blocks)
        if 2.0**count * n_states > _MAX_ENTRIES:
            raise DataError(
                f"{count} features or blocks go missing on their own, which makes 2^{count} patterns; with "
                f"{n_states:,} states that is {2.0**count * n_states:.2g} probabilities, too many"
            )
        missing = _bits(count)
        patterns = np.ones((len(missing), len(features)), dtype=np.bool_)
        for i, block in enumerate(blocks):
            patterns[:, features.mask(block)] = ~missing[:, i : i + 1]
        return cls(blocks, missing, patterns)

    @classmethod
    def seen_in(
        cls,
        mdp: FactoredMDP,
        observed: NDArray[np.bool_],
        given: Sequence[Sequence[str]] | None = None,
    ) -> Blocks:
        """Return the blocks of some data: features that are missing in the same rows are one block.

        Parameters
        ----------
        mdp
            The MDP.
        observed
            Which features each (distinct) observation shows, shape (rows, n).
        given
            Blocks that are known; features in none of them are blocks of their own then.
        """
        features = mdp.space.features
        absent: NDArray[np.bool_] = np.asarray(~observed.all(axis=0), dtype=np.bool_)
        if given is None:
            columns: dict[bytes, list[str]] = {}
            for place in np.flatnonzero(absent):
                columns.setdefault(
                    np.packbits(observed[:, place]).tobytes(), []
                ).append(features.names[place])  # fmt: skip
            names: list[Sequence[str]] = list(columns.values())
        else:
            owned = checked_blocks(features, given)
            for block in owned:
                shown = observed[:, features.mask(block)]
                if (shown.any(axis=1) & ~shown.all(axis=1)).any():
                    raise DataError(
                        f"{', '.join(block)}: given as a block, but some observations show it in part"
                    )
            inside = {name for block in owned for name in block}
            names = [
                *(block for block in owned if absent[features.mask(block)].any()),
                *((name,) for name in features.chosen(absent) if name not in inside),
            ]
        return cls.of(features, names, mdp.n_states)

    @property
    def features(self) -> tuple[str, ...]:
        """All features that can go missing."""
        return tuple(name for block in self.names for name in block)

    def home(self, feature: str) -> int:
        """Return the number of the block that a feature is in."""
        return next(i for i, block in enumerate(self.names) if feature in block)


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


def by_values(mdp: FactoredMDP, given: Iterable[str]) -> tuple[NDArray[np.int64], int]:
    """Return the group of each state by the values of some features, shape (S,), and how many groups there are."""
    groups = mdp.space.groups(mdp.space.features.mask(given))
    return groups.label, groups.count


def joint_factors(mdp: FactoredMDP, blocks: Blocks, given: Iterable[str], name: str) -> Factors:
    """Return the structure with one distribution over all patterns for each value of the given features."""
    listed = tuple(given)
    return Factors(name, blocks, (_joint(mdp, blocks, tuple(range(len(blocks.names))), listed),))


def named_factors(mdp: FactoredMDP, blocks: Blocks, name: str) -> Factors:
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


def graph_factors(mdp: FactoredMDP, blocks: Blocks, graph: MissingnessGraph) -> Factors:
    """Return the structure of an m-graph: indicators depend on their parents.

    The indicators of a block are one. Blocks that the graph joins by dependences have one joint factor, grouped by
    all their parents; all others are independent given the state.

    Raises
    ------
    DataError
        If a feature goes missing that has no indicator in the graph.
    """
    features = mdp.space.features
    checked_names(features, graph.features, "structure")
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
    mdp: FactoredMDP, blocks: Blocks, block: int, given: Sequence[str], after: Sequence[int] = ()
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


def _joint(mdp: FactoredMDP, blocks: Blocks, group: tuple[int, ...], given: tuple[str, ...]) -> Factor:
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


def _bits(count: int) -> NDArray[np.bool_]:
    """Return all rows of so many bits, the first one changing fastest, shape (2ᵐ, m)."""
    rows = np.zeros((1, 0), dtype=np.bool_)
    for _ in range(count):
        rows = np.concatenate(
            [np.pad(rows, ((0, 0), (0, 1))), np.pad(rows, ((0, 0), (0, 1)), constant_values=True)]
        )
    return rows


def joined_blocks(blocks: Blocks, graph: MissingnessGraph) -> list[tuple[int, ...]]:
    """Return the blocks in groups that the graph's dependences connect."""
    home = {name: i for i, block in enumerate(blocks.names) for name in block}
    label = list(range(len(blocks.names)))
    for a, b in graph.dependent:
        if a in home and b in home:
            one, other = label[home[a]], label[home[b]]
            label = [one if mark == other else mark for mark in label]
    return [tuple(i for i, mark in enumerate(label) if mark == group) for group in dict.fromkeys(label)]

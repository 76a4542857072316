"""Blocks: features that go missing together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_names
from missmdp.errors import DataError, ParameterError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.mgraph import MissingnessGraph
from missmdp.model.space import FeatureSpace, StateSpace

_MAX_ENTRIES = 20_000_000
"""Entries of P(pattern | state) above which a structure is refused (160 MB)."""


class States(Protocol):
    """What structures of M need to know of a model: its states, and which of them count."""

    @property
    def space(self) -> StateSpace:
        """The states."""
        ...

    @property
    def n_states(self) -> int:
        """How many there are."""
        ...

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Which can occur, shape (S,)."""
        ...


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
    def of(
        cls,
        features: FeatureSpace,
        names: Iterable[Sequence[str]],
        n_states: int = 1,
        instead: str = "learn with AIMI(assume='simple MAR') or AIMI(graph=…)",
    ) -> Blocks:
        """Return the blocks with all 2ᵐ patterns; raise `DataError`, with what to do instead, if these are too many."""
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
                f"{n_states:,} states that is {2.0**count * n_states:.2g} probabilities, too many; give features "
                f"that go missing together as one block, or {instead}"
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
        return cls.of(mdp.space.features, block_names(mdp.space.features, observed, given), mdp.n_states)

    @property
    def features(self) -> tuple[str, ...]:
        """All features that can go missing."""
        return tuple(name for block in self.names for name in block)

    def home(self, feature: str) -> int:
        """Return the number of the block that a feature is in."""
        return next(i for i, block in enumerate(self.names) if feature in block)


def block_names(
    features: FeatureSpace, observed: NDArray[np.bool_], given: Sequence[Sequence[str]] | None = None
) -> list[Sequence[str]]:
    """Return the features of each block of some data; see `Blocks.seen_in`."""
    absent: NDArray[np.bool_] = np.asarray(~observed.all(axis=0), dtype=np.bool_)
    if given is None:
        columns: dict[bytes, list[str]] = {}
        for place in np.flatnonzero(absent):
            columns.setdefault(
                np.packbits(observed[:, place]).tobytes(), []
            ).append(features.names[place])  # fmt: skip
        names: list[Sequence[str]] = list(columns.values())
    else:
        owned = checked_feature_blocks(features, given)
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
    return names


def checked_feature_blocks(
    features: FeatureSpace, blocks: Any, name: str = "blocks"
) -> list[tuple[str, ...]]:
    """Return blocks of features that do not overlap; raise `ParameterError` for anything else."""
    expected = "a list of lists of features, such as [('x', 'y')]"
    if isinstance(blocks, str) or not isinstance(blocks, Iterable):
        raise ParameterError(name, blocks, expected)
    listed = list(cast("Iterable[Any]", blocks))
    given: list[tuple[str, ...]] = []
    for block in listed:
        if isinstance(block, str):
            raise ParameterError(name, listed, expected, f"expected {expected}; {block!r} is no list")
        names = checked_names(name, block, features.names)
        if not names:
            raise ParameterError(name, listed, expected, "a block of features is empty")
        given.append(names)
    owned = [one for block in given for one in block]
    for one in owned:
        if owned.count(one) > 1:
            problem = f"the feature {one!r} is in two blocks, or in one twice"
            raise ParameterError(name, listed, expected, problem)
    return given


def pattern_numbers(blocks: Blocks, observed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the pattern of each row of indicators, −1 where a block is seen in part, shape (rows,)."""
    places = {tuple(row): k for k, row in enumerate(blocks.patterns.tolist())}
    distinct, which = np.unique(observed, axis=0, return_inverse=True)
    numbers = np.array([places.get(tuple(row), -1) for row in distinct.tolist()], dtype=np.int64)
    return numbers[which.reshape(-1)]


def joined_blocks(blocks: Blocks, graph: MissingnessGraph) -> list[tuple[int, ...]]:
    """Return the blocks in groups that the graph's dependences connect."""
    home = {name: i for i, block in enumerate(blocks.names) for name in block}
    label = list(range(len(blocks.names)))
    for a, b in graph.dependent:
        if a in home and b in home:
            one, other = label[home[a]], label[home[b]]
            label = [one if mark == other else mark for mark in label]
    return [tuple(i for i, mark in enumerate(label) if mark == group) for group in dict.fromkeys(label)]


def _bits(count: int) -> NDArray[np.bool_]:
    """Return all rows of so many bits, the first one changing fastest, shape (2ᵐ, m)."""
    rows = np.zeros((1, 0), dtype=np.bool_)
    for _ in range(count):
        rows = np.concatenate(
            [np.pad(rows, ((0, 0), (0, 1))), np.pad(rows, ((0, 0), (0, 1)), constant_values=True)]
        )
    return rows

"""Counters: how often the indicators of some features took each pattern, by the values of other features.

All three learners count, smooth and normalise. They differ in what is counted: AMCAR and AsMAR count the
joint pattern of everything that goes missing (`features`), AsMAR separately for every value of the
always-observed features (`given`); AIMI has one counter of two patterns for every feature or block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.counts import ObservationCounts
from missmdp.errors import Argument, DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missing_factors import Part
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import MISSING, StateSpace
from missmdp.words import count

_MAX_ENTRIES = 50_000_000
"""Entries of P(pattern | group) above which a learner refuses to list every pattern (400 MB)."""

_FEW_GROUPS = 10_000
"""Groups without data that are listed at once."""


class Counter(NamedTuple):
    """What to count: masks over the features, shape (n,) each."""

    features: NDArray[np.bool_]
    """The features whose indicators are counted."""
    given: NDArray[np.bool_]
    """The features by whose values they are counted; only rows that show all of them count."""
    together: bool
    """Whether the features are one block, observed or missing as a whole; otherwise any pattern counts."""


@dataclass(frozen=True, eq=False)
class Unseen:
    """A group of states without any data, and what it got."""

    features: tuple[str, ...]
    given: dict[str, Any]
    """The values that the states of the group share."""
    states: NDArray[np.int64]
    """Indices of the reachable states in the group."""
    gets: str
    """"uniform" or "pooled"."""


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """Counts of patterns by group, where a group is the states that share the values of `given`.

    Shapes: G groups, K patterns, S states.
    """

    mdp: FactoredMDP
    counter: Counter
    patterns: NDArray[np.bool_]
    """Indicators over all features, True for those that are not counted, shape (K, n)."""
    n_possible: int
    """How many patterns are possible; more than K where only those in the data are listed."""
    counts: NDArray[np.int64]
    """Shape (G, K)."""
    label: NDArray[np.int64]
    """Group of each state, shape (S,)."""
    values: NDArray[np.signedinteger[Any]]
    """Codes that the states of a group share, `MISSING` for features that are not given, shape (G, n)."""
    left_out: int
    """Rows that no group could count: a given feature is missing, or a block is seen in part."""
    outside: int
    """Rows whose values no state of the model has."""

    @property
    def features(self) -> tuple[str, ...]:
        """The features whose indicators are counted."""
        return self.mdp.space.features.chosen(self.counter.features)

    @property
    def given(self) -> tuple[str, ...]:
        """The features by whose values they are counted."""
        return self.mdp.space.features.chosen(self.counter.given)

    @property
    def samples(self) -> NDArray[np.int64]:
        """Rows counted in each group, shape (G,)."""
        return self.counts.sum(axis=1)

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """Which groups hold a reachable state, shape (G,)."""
        found = np.zeros(len(self.counts), dtype=np.bool_)
        found[self.label[self.mdp.reachable]] = True
        return found

    def group(self, index: int) -> dict[str, Any]:
        """Return the values that the states of a group share, by feature."""
        features = self.mdp.space.features
        codes = self.values[index]
        return {
            name: values[codes[i]]
            for i, (name, values) in enumerate(features.as_dict().items())
            if self.counter.given[i]
        }

    def probabilities(self, smoothing: float, unseen: str) -> NDArray[np.float64]:
        """Return (count + κ) / Σ (count + κ) of each group, shape (G, K); groups without data as `unseen` says."""
        n_groups, n_patterns = self.counts.shape
        smoothed = self.counts + smoothing
        if unseen == "pooled":
            smoothed[self.samples == 0] = self.counts.sum(axis=0) + smoothing
        total = smoothed.sum(axis=1, keepdims=True)
        uniform = np.full((n_groups, n_patterns), 1.0 / n_patterns)
        return np.divide(smoothed, total, out=uniform, where=total > 0.0)


def unseen_groups(parts: Sequence[GroupCounts], gets: str) -> Sequence[Unseen]:
    """Return the groups with reachable states but without data; as a tuple where they are few."""
    found = UnseenGroups(parts, gets)
    return found if len(found) > _FEW_GROUPS else tuple(found)


class UnseenGroups(Sequence[Unseen]):
    """Groups without data, each made when asked for, since there may be millions."""

    def __init__(self, parts: Sequence[GroupCounts], gets: str) -> None:
        self._parts = parts
        self._empty = [np.flatnonzero(part.reachable & (part.samples == 0)) for part in parts]
        self._begins = np.cumsum([0, *map(len, self._empty)])
        self._gets = gets

    def __len__(self) -> int:
        return int(self._begins[-1])

    @cached_property
    def _members(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each part the reachable states by group, and where each group begins."""
        members: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for part in self._parts:
            states = np.flatnonzero(part.mdp.reachable)
            label = part.label[states]
            order = np.argsort(label, kind="stable")
            begins = np.searchsorted(label[order], np.arange(len(part.counts) + 1))
            members.append((states[order], begins.astype(np.int64)))
        return members

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[int(index)]
        k = int(np.searchsorted(self._begins, place, side="right")) - 1
        part, group = self._parts[k], int(self._empty[k][place - self._begins[k]])
        states, begins = self._members[k]
        own = states[begins[group] : begins[group + 1]]
        return Unseen(part.features, part.group(group), own, self._gets)


def all_patterns(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return every way in which the masked features can be missing, fully observed first, shape (2ᵐ, n)."""
    places = np.flatnonzero(mask)
    patterns = np.ones((2 ** len(places), len(mask)), dtype=np.bool_)
    bits = np.arange(len(patterns))[:, None] >> np.arange(len(places)) & 1
    patterns[:, places] = bits == 0
    return patterns


def count_groups(counts: ObservationCounts, counter: Counter, *, only_seen: bool = False) -> GroupCounts:
    """Return what a counter counts, over the groups that the MDP's states form.

    Parameters
    ----------
    counts
        The observations.
    counter
        What to count.
    only_seen
        Whether to list only the patterns that occur in the data, rather than all 2ᵐ.
    """
    space = counts.mdp.space
    usable = _usable(counts, counter)
    values, label = group_states(space, counter.given)
    row_group = _group_of_rows(space, counter.given, values, counts.codes)
    inside = usable & (row_group >= 0)

    observed = counts.observed[inside]
    patterns, n_possible = _patterns(counter, observed, len(values), only_seen=only_seen)
    table = np.zeros((len(values), len(patterns)), dtype=np.int64)
    column = _pattern_index(patterns, observed, counter.features)
    np.add.at(table, (row_group[inside], column), counts.counts[inside])
    return GroupCounts(
        counts.mdp,
        counter,
        patterns,
        n_possible,
        table,
        label,
        values,
        left_out=int(counts.counts[~usable].sum()),
        outside=int(counts.counts[usable & (row_group < 0)].sum()),
    )


def assigned(
    counts: ObservationCounts, part: GroupCounts
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the observations (positions in `counts`) that a part counts, with the group and pattern of each."""
    row_group = _group_of_rows(counts.mdp.space, part.counter.given, part.values, counts.codes)
    rows = np.flatnonzero(_usable(counts, part.counter) & (row_group >= 0))
    column = _pattern_index(part.patterns, counts.observed[rows], part.counter.features)
    return rows, row_group[rows], column


def _usable(counts: ObservationCounts, counter: Counter) -> NDArray[np.bool_]:
    """Return which observations show all that is given, and a block as a whole or not at all."""
    observed = counts.observed
    usable = np.asarray(observed[:, counter.given].all(axis=1))
    if counter.together:
        seen = observed[:, counter.features].sum(axis=1)
        usable = usable & ((seen == 0) | (seen == counter.features.sum()))
    return usable


def group_states(
    space: StateSpace, given: NDArray[np.bool_]
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.int64]]:
    """Return the values that each group of states shares, shape (G, n), and the group of each state, shape (S,)."""
    groups, label = np.unique(space.features.rank(np.where(given, space.codes, MISSING)), return_inverse=True)
    return space.features.unrank(groups), label.reshape(-1).astype(np.int64)


def _group_of_rows(
    space: StateSpace,
    given: NDArray[np.bool_],
    values: NDArray[np.signedinteger[Any]],
    codes: NDArray[np.signedinteger[Any]],
) -> NDArray[np.int64]:
    """Return the group that each row of codes belongs to, or −1, shape (rows,)."""
    groups = space.features.rank(values)
    rows = space.features.rank(np.where(given, codes, MISSING))
    place = np.minimum(np.searchsorted(groups, rows), len(groups) - 1)
    return np.where(groups[place] == rows, place, -1).astype(np.int64)


def _patterns(
    counter: Counter, observed: NDArray[np.bool_], n_groups: int, *, only_seen: bool
) -> tuple[NDArray[np.bool_], int]:
    """Return the patterns to list, and how many are possible."""
    missing = int(counter.features.sum())
    if counter.together:
        whole = np.ones((2 if missing else 1, len(counter.features)), dtype=np.bool_)
        whole[1:] = ~counter.features
        return whole, len(whole)
    if only_seen:
        shown = np.unique(observed | ~counter.features, axis=0)[::-1]
        everything = np.ones((1, len(counter.features)), dtype=np.bool_)
        return (shown if len(shown) else everything), 2**missing
    if 2.0**missing * n_groups > _MAX_ENTRIES:
        raise DataError(
            f"{missing} features go missing, which makes 2^{missing} patterns; with {count(n_groups, 'group')} of "
            f"states that is {2.0**missing * n_groups:.2g} probabilities, too many (pass ",
            Argument("patterns", "seen"),
            " to keep only those that occur in the data)",
        )
    return all_patterns(counter.features), 2**missing


def _pattern_index(
    patterns: NDArray[np.bool_], observed: NDArray[np.bool_], features: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return which pattern each row shows, shape (rows,)."""
    places = np.flatnonzero(features)
    if len(places) > 62:
        raise DataError("at most 62 features can go missing")
    weights = np.left_shift(np.int64(1), np.arange(len(places), dtype=np.int64))
    keys = patterns[:, places] @ weights
    order = np.argsort(keys)
    return order[np.searchsorted(keys[order], observed[:, places] @ weights)]


def as_missingness(
    mdp: FactoredMDP, parts: list[tuple[GroupCounts, NDArray[np.float64]]]
) -> MissingnessFunction:
    """Return the M under which the parts' indicators are independent given the state."""
    return MissingnessFunction.from_parts(mdp.space, [_as_part(part, table) for part, table in parts])


def _as_part(part: GroupCounts, table: NDArray[np.float64]) -> Part:
    places, space = np.flatnonzero(part.counter.features), part.mdp.space
    # Where states are all combinations of values, so are groups, in the same order.
    given = tuple(np.flatnonzero(part.counter.given).tolist())
    return Part(
        tuple(places.tolist()), part.patterns[:, places], table, given if space.is_product else part.label
    )

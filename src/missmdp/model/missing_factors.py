"""Missingness by factors: indicators of a few features, given a few features, independent of all others.

A missingness function is a product of parts. A part says how often each pattern of its features comes, by groups of
states. `found_factors` takes parts apart as far as they go: into the smallest sets of indicators that are independent
given the state, each with the features that it depends on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.memory import check_fits
from missmdp.model.factors import parents_of
from missmdp.model.probabilities import as_floats, call, checked_table, number
from missmdp.model.space import FeatureSpace, StateSpace

ROUNDING = 1e-12
"""Probabilities this close differ by rounding only."""

_BITS = 62
"""Indicators up to which a pattern is a number."""


class MissingFactor(NamedTuple):
    """Indicators that depend on some features, and are independent of all other indicators given the state."""

    features: tuple[int, ...]
    """Positions of the features that go missing."""
    parents: tuple[int, ...]
    """Positions of the features that their indicators depend on, in the order of the axes of `table`."""
    patterns: NDArray[np.bool_]
    """The patterns that occur (True = observed), fully observed first, shape (K, len(features))."""
    table: NDArray[np.float64]
    """P(pattern | values of the parents), shape (*sizes of the parents, K)."""

    def as_part(self) -> Part:
        """Return the factor as a part, by the values of its parents."""
        return Part(self.features, self.patterns, self.table.reshape(-1, len(self.patterns)), self.parents)


class Part(NamedTuple):
    """How often patterns of some features come, by groups of states."""

    features: tuple[int, ...]
    """Positions of the features that go missing."""
    patterns: NDArray[np.bool_]
    """True = observed, shape (K, len(features))."""
    table: NDArray[np.float64]
    """P(pattern | group), shape (G, K)."""
    groups: tuple[int, ...] | NDArray[np.int64] | None
    """Positions of features: a group for each combination of their values, the last changing fastest. Or the group of
    each state, shape (S,). Or None: every state is a group."""

    def rows(self, space: StateSpace, states: Any = slice(None)) -> NDArray[np.int64]:
        """Return the group of some states, or of all."""
        if self.groups is None:
            return np.arange(len(space))[states]
        if isinstance(self.groups, tuple):
            codes = space.codes[states]
            row = np.zeros(codes.shape[:-1], dtype=np.int64)
            for parent in self.groups:
                row = row * int(space.features.sizes[parent]) + codes[..., parent]
            return row
        return self.groups[states]

    def over_states(self, space: StateSpace, states: Any = slice(None)) -> NDArray[np.float64]:
        """Return P(pattern | state) of some states, or of all, shape (…, K)."""
        return self.table[self.rows(space, states)]

    def observed(self, n_features: int) -> NDArray[np.bool_]:
        """Return the patterns over all features, True for those that are not among its own, shape (K, n)."""
        whole = np.ones((len(self.patterns), n_features), dtype=np.bool_)
        whole[:, list(self.features)] = self.patterns
        return whole


def given_rate(given: Any, block: Sequence[str], space: StateSpace) -> Part:
    """Return the part in which a block of features is missing as a whole or not at all.

    Parameters
    ----------
    given
        P(missing): a number, a function of the state, or a pair of names of features and a table, which is a function
        of their values or an array with one axis for each.
    block
        The names of the features.
    space
        The states.
    """
    what = f"P({', '.join(block)} missing)"
    features = space.features
    groups: tuple[int, ...] | None
    if isinstance(given, tuple):
        groups, table = parents_of(given, what, features)
        rate = _evaluated(table, groups, features, what).reshape(-1)
    elif callable(given):
        groups, rate = None, space.evaluate(given, what)
    else:
        groups, rate = (), np.array([number(given, what)])
    bad = np.flatnonzero(~((rate >= 0.0) & (rate <= 1.0)))
    if bad.size:
        where = _where(int(bad[0]), groups, space)
        raise ModelError(f"{what} is {rate[bad[0]]:g}{where}; it must be in [0, 1]")
    places = tuple(sorted({features.position(name) for name in block}))
    patterns = np.array([[True] * len(places), [False] * len(places)])
    return Part(places, patterns, np.column_stack([1.0 - rate, rate]), groups)


def _where(group: int, groups: tuple[int, ...] | None, space: StateSpace) -> str:
    if not groups:
        return f" in state {space.state(group)!r}"
    codes = np.unravel_index(group, [int(space.features.sizes[p]) for p in groups])
    named = [
        f"{space.features.names[p]} = {space.features.values[p][int(code)]!r}"
        for p, code in zip(groups, codes, strict=True)
    ]
    return f" where {', '.join(named)}"


def _evaluated(
    table: Any, parents: tuple[int, ...], features: FeatureSpace, what: str
) -> NDArray[np.float64]:
    shape = tuple(int(features.sizes[p]) for p in parents)
    if callable(table):
        cells = [
            number(call(table, what, *arguments), "{}{}", what, arguments)
            for arguments in product(*(features.values[p] for p in parents))
        ]
        return np.array(cells, dtype=np.float64).reshape(shape)
    array = as_floats(table, what)
    if array.shape != shape:
        raise ModelError(
            f"{what}: its array has shape {array.shape}, expected {shape}: one axis per feature that it depends on"
        )
    return array


def checked_parts(space: StateSpace, parts: Sequence[Part]) -> list[Part]:
    """Return parts from a file: distributions over distinct patterns, of features that are in one part only."""
    owners = [feature for part in parts for feature in part.features]
    if len(set(owners)) < len(owners):
        raise ModelError("a feature is in two parts of the missingness function")
    checked: list[Part] = []
    for i, part in enumerate(parts):
        if len(part.patterns) == 0 or len(distinct_patterns(part.patterns)[0]) < len(part.patterns):
            raise ModelError(f"the patterns of part {i} of the missingness function are not distinct")
        if isinstance(part.groups, tuple):
            expected = math.prod(int(space.features.sizes[p]) for p in part.groups)
            if len(part.table) != expected:
                raise ModelError(
                    f"part {i} of the missingness function has {len(part.table)} rows, not {expected}"
                )
        table = checked_table(part.table, lambda row, i=i: f"part {i} of the missingness function, row {row}")
        checked.append(part._replace(table=table))
    return checked


def distinct_patterns(patterns: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return the distinct patterns, and the place of each pattern among them."""
    if patterns.shape[1] <= _BITS:
        # As numbers, of which millions are sorted in the time that thousands of rows take.
        bits = np.left_shift(np.int64(1), np.arange(patterns.shape[1], dtype=np.int64)[::-1])
        number = patterns.astype(np.int64) @ bits
        _, first, place = np.unique(number, return_index=True, return_inverse=True)
    else:
        _, first, place = np.unique(patterns, axis=0, return_index=True, return_inverse=True)
    return patterns[first], place.reshape(-1).astype(np.int64)


def pattern_order(observed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the order of patterns: fully observed first, then by how many are missing, whatever they came from."""
    return np.lexsort([*(~observed).T[::-1], (~observed).sum(axis=1)])


def found_factors(space: StateSpace, parts: Sequence[Part]) -> tuple[MissingFactor, ...]:
    """Return the factors of parts, by the first feature of each; the states must be all combinations of values.

    Indicators belong to one factor if they are dependent in some state, by more than rounding. A feature is a parent
    if the table varies with it, the other parents being fixed.
    """
    factors = [factor for part in parts for factor in _split(_compact(part, space))]
    return tuple(sorted(factors, key=lambda factor: factor.features))


def _compact(part: Part, space: StateSpace) -> MissingFactor:
    """Return a part with as few parents as possible and the patterns that occur."""
    sizes = tuple(map(int, space.features.sizes))
    if isinstance(part.groups, tuple):
        parents, table = part.groups, part.table
    else:
        entries = float(len(space)) * len(part.patterns)
        what = f"taking apart a table of {len(part.patterns):,} patterns by {len(space):,} states"
        # Twice: as it is, and without what does not matter.
        check_fits(what, 16.0 * entries, "give M by features that it depends on, as (features, table)")
        parents, table = tuple(range(len(sizes))), part.over_states(space, space.in_order)
    return _without_idle(
        part.features, parents, part.patterns, table.reshape([*(sizes[p] for p in parents), -1])
    )


def _without_idle(
    features: tuple[int, ...],
    parents: tuple[int, ...],
    patterns: NDArray[np.bool_],
    table: NDArray[np.float64],
) -> MissingFactor:
    """Return a factor without parents that do not matter, patterns that never occur, and features always seen."""
    for axis in reversed(range(len(parents))):
        if _is_idle(table, axis):
            table = np.asarray(table.take(0, axis=axis))
            parents = parents[:axis] + parents[axis + 1 :]
    occurs = np.flatnonzero(table.reshape(-1, len(patterns)).max(axis=0) > 0.0)
    order = occurs[pattern_order(patterns[occurs])]
    goes = np.flatnonzero(~patterns[order].all(axis=0))
    return MissingFactor(
        tuple(features[i] for i in goes),
        parents,
        np.ascontiguousarray(patterns[np.ix_(order, goes)]),
        np.ascontiguousarray(table[..., order]),
    )


def _is_idle(table: NDArray[np.float64], axis: int) -> bool:
    """Return whether a table is the same along an axis but for rounding; what is possible must be exactly the same."""
    occurs = table > 0.0
    # However rare it is: a feature that goes missing somewhere must not become one that is always seen.
    same_support = bool((occurs == occurs.take([0], axis=axis)).all())
    return same_support and float(np.ptp(table, axis=axis).max(initial=0.0)) <= ROUNDING


def _split(factor: MissingFactor) -> list[MissingFactor]:
    """Return a factor as the smallest ones that are independent given their parents."""
    if not factor.features:
        return []
    patterns = factor.patterns
    rows = factor.table.reshape(-1, len(patterns))
    blocks = _dependent(rows, patterns)
    # Indicators that are dependent, though no two of them are, stay together.
    alone = [block for block in blocks if _independent_of_the_rest(rows, patterns, block)]
    rest = sorted(i for block in blocks if block not in alone for i in block)
    found: list[MissingFactor] = []
    for block in [*alone, rest] if rest else alone:
        sub, marginal = _marginal(rows, patterns, block)
        table = marginal.reshape([*factor.table.shape[:-1], len(sub)])
        found.append(_without_idle(tuple(factor.features[i] for i in block), factor.parents, sub, table))
    return found


def _dependent(rows: NDArray[np.float64], patterns: NDArray[np.bool_]) -> list[list[int]]:
    """Return indicators as groups that are connected by pairs that are dependent in some row."""
    seen = patterns.astype(np.float64)
    rates = rows @ seen
    block_of = list(range(patterns.shape[1]))
    for i, j in combinations(range(patterns.shape[1]), 2):
        both = rows @ (seen[:, i] * seen[:, j])
        if block_of[i] != block_of[j] and np.abs(both - rates[:, i] * rates[:, j]).max() > ROUNDING:
            block_of = [block_of[i] if block == block_of[j] else block for block in block_of]
    return [[i for i, block in enumerate(block_of) if block == one] for one in dict.fromkeys(block_of)]


def _marginal(
    rows: NDArray[np.float64], patterns: NDArray[np.bool_], block: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the distinct patterns of some indicators and their probabilities, shape (rows, patterns)."""
    sub, place = distinct_patterns(patterns[:, list(block)])
    return sub, _summed(rows, place, len(sub))


def _summed(rows: NDArray[np.float64], place: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Return rows whose columns are added up by their place, shape (rows, count)."""
    table = np.empty((len(rows), count))
    for own, row in zip(table, rows, strict=True):
        own[:] = np.bincount(place, row, minlength=count)
    return table


def _independent_of_the_rest(
    rows: NDArray[np.float64], patterns: NDArray[np.bool_], block: Sequence[int]
) -> bool:
    others = [i for i in range(patterns.shape[1]) if i not in block]
    if not others:
        return True
    mine, own = distinct_patterns(patterns[:, list(block)])
    theirs, other = distinct_patterns(patterns[:, others])
    here, there = _summed(rows, own, len(mine)), _summed(rows, other, len(theirs))
    for a in range(len(mine)):
        listed = np.flatnonzero(own == a)
        joint = np.zeros_like(there)
        joint[:, other[listed]] = rows[:, listed]
        if np.abs(joint - here[:, a, None] * there).max() > ROUNDING:
            return False
    return True


def count_patterns(parts: Sequence[Part]) -> int:
    """Return how many patterns parts make together, at most."""
    return math.prod(len(part.patterns) for part in parts)


def can_go_missing(space: StateSpace, parts: Sequence[Part]) -> NDArray[np.bool_]:
    """Return which features are missing in some pattern that some state has, shape (n,)."""
    missing = np.zeros(len(space.features), dtype=np.bool_)
    for part in parts:
        used = np.bincount(part.rows(space), minlength=len(part.table)) > 0
        occurs = (part.table[used] > 0.0).any(axis=0)
        missing[list(part.features)] = ~part.patterns[occurs].all(axis=0)
    return missing


def listed_patterns(space: StateSpace, parts: Sequence[Part]) -> NDArray[np.bool_]:
    """Return the patterns that some state has, in order, without multiplying parts out, shape (K, n)."""
    n_features = len(space.features)
    kind = np.zeros(len(space), dtype=np.int64)
    supports: list[NDArray[np.bool_]] = []
    for part in parts:
        support = part.table > 0.0
        distinct, of_group = _distinct_rows(np.packbits(support, axis=1))
        kind = kind * distinct + of_group[part.rows(space)]
        # As few numbers as there are kinds of states, so that they never grow large.
        _, kind = np.unique(kind, return_inverse=True)
        supports.append(support)
    found: list[NDArray[np.bool_]] = []
    for state in np.unique(kind, return_index=True)[1].tolist():
        patterns = np.ones((1, n_features), dtype=np.bool_)
        for part, support in zip(parts, supports, strict=True):
            own = part.observed(n_features)[support[part.rows(space, [state])[0]]]
            patterns = (patterns[:, None, :] & own).reshape(-1, n_features)
        found.append(patterns)
    patterns, _ = distinct_patterns(np.concatenate(found))
    return patterns[pattern_order(patterns)]


def _distinct_rows(rows: NDArray[np.uint8]) -> tuple[int, NDArray[np.int64]]:
    """Return how many rows of bytes are distinct, and a number for each that equal rows share."""
    numbers: dict[bytes, int] = {}
    of_row = [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows]
    return len(numbers), np.array(of_row, dtype=np.int64)


def marginal(
    space: StateSpace, parts: Sequence[Part], features: Sequence[int], patterns: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return P(pattern of some features | state) for some patterns, shape (len(patterns), S).

    Parameters
    ----------
    features
        Positions of the features.
    patterns
        True = observed, shape (K, len(features)).
    """
    table = np.ones((len(patterns), len(space)))
    # In no part: always observed.
    alone = [k for k, feature in enumerate(features) if all(feature not in part.features for part in parts)]
    table[~patterns[:, alone].all(axis=1)] = 0.0
    for part in parts:
        own = [
            (part.features.index(feature), k)
            for k, feature in enumerate(features)
            if feature in part.features
        ]
        if own:
            mine, theirs = (list(places) for places in zip(*own, strict=True))
            same = (part.patterns[:, None, mine] == patterns[None, :, theirs]).all(axis=2)
            table *= (part.table @ same.astype(np.float64)).T[:, part.rows(space)]
    return table


def joint_groups(
    space: StateSpace, groups: Sequence[tuple[int, ...] | NDArray[np.int64] | None]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one state for each combination of groups that occurs, and the combination of each state, shape (S,).

    Groups are given as in `Part`.
    """
    if any(group is None for group in groups):
        return np.arange(len(space)), np.arange(len(space))
    parents = sorted({p for group in groups if isinstance(group, tuple) for p in group})
    label = np.zeros(len(space), dtype=np.int64)
    for parent in parents:
        label = label * int(space.features.sizes[parent]) + space.codes[:, parent]
    for group in groups:
        if isinstance(group, np.ndarray):
            _, label = np.unique(label, return_inverse=True)
            label = label.reshape(-1) * (int(group.max()) + 1) + group
    _, first, label = np.unique(label, return_index=True, return_inverse=True)
    return first, label.reshape(-1).astype(np.int64)

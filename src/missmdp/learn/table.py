"""What was learned as a table: one row for every group and pattern."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import MissMDPError
from missmdp.files import write_atomically
from missmdp.learn.bounds import Bound, GroupBound
from missmdp.learn.groups import group_states
from missmdp.memory import check_fits
from missmdp.model.missingness import MissingnessFunction, same_patterns
from missmdp.model.missmdp import MissMDP


def missing_in(features: tuple[str, ...], pattern: Any) -> str:
    """Return which features a pattern lacks, in words."""
    return " + ".join(name for name, seen in zip(features, pattern, strict=True) if not seen) or "nothing"


def learned_rows(bound: Bound, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return one row for every group and pattern: its values, how many samples, M̂ and its interval.

    Columns are `indicators` (the features whose indicators these are), a column `given_<feature>` for each of the
    features (None where missingness is not counted by it), and one `given_R_<feature>` for each other indicator that
    groups go by, if any do; then `samples`, `missing` (what the pattern lacks), `estimate`, `lower`, `upper`.
    """
    known = dict.fromkeys([*features, *(name for group in bound.per_group for name in group.given)])
    return [
        {
            "indicators": " + ".join(group.features),
            **{f"given_{name}": group.given.get(name) for name in known},
            "samples": group.samples,
            "missing": missing_in(group.features, pattern),
            "estimate": float(estimate),
            "lower": float(lower),
            "upper": float(upper),
        }
        for group in bound.per_group
        for pattern, estimate, lower, upper in zip(
            group.patterns, group.estimate, group.lower, group.upper, strict=True
        )
    ]


def write_learned(bound: Bound, features: tuple[str, ...], path: str | Path) -> None:
    """Write `learned_rows` to a .csv or .parquet file."""
    from missmdp.data.tables.cells import arrow_csv, pa, parquet

    path = Path(path)
    rows = learned_rows(bound, features)
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    try:
        table = pa.table(columns)
    except pa.ArrowException:
        # Values of mixed types have no column type of their own; words will do.
        words = {name: [None if v is None else str(v) for v in c] for name, c in columns.items()}
        numbers = ("samples", "estimate", "lower", "upper")
        table = pa.table({name: columns[name] if name in numbers else c for name, c in words.items()})
    buffer = pa.BufferOutputStream()
    match path.suffix.lower():
        case ".csv":
            arrow_csv.write_csv(table, buffer)
        case ".parquet" | ".pq":
            parquet.write_table(table, buffer)
        case suffix:
            raise MissMDPError(f"{path}: what was learned is written as .csv or .parquet, not {suffix!r}")
    write_atomically(path, buffer.getvalue().to_pybytes())


class GroupTruth(NamedTuple):
    """The true probabilities of a group's patterns, shape (K,) each; equal if the learner's assumption holds."""

    mean: NDArray[np.float64]
    """Over the reachable states of the group, weighted by visits."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def group_truths(
    groups: Sequence[GroupBound], truth: MissMDP, weights: NDArray[np.float64]
) -> list[GroupTruth]:
    """Return what is true of each group.

    Parameters
    ----------
    groups
        Groups with reachable states.
    truth
        The model with the true M.
    weights
        How often each state is visited, shape (S,).
    """
    parts: dict[tuple[Any, ...], _SamePatterns] = {}
    found: list[GroupTruth] = []
    for group in groups:
        key = (group.features, tuple(group.given), group.patterns.tobytes())
        if key not in parts:
            parts[key] = _SamePatterns(group, truth)
        found.append(parts[key].of(group, weights))
    return found


class _SamePatterns:
    """All groups that count the same patterns by the values of the same features."""

    def __init__(self, group: GroupBound, truth: MissMDP) -> None:
        features = truth.space.features
        given = features.mask(group.given)
        values, label = group_states(truth.space, given)
        self._kind: NDArray[np.int64] | None = None
        if truth.missingness.is_small:
            shown = truth.missingness.patterns[:, features.mask(group.features)]
            self._table = truth.missingness.probabilities @ same_patterns(shown, group.patterns)
        else:
            self._kind, self._table = _by_kind(group, truth.missingness)
        self._members: dict[tuple[Any, ...], NDArray[np.int64]] = {}
        reachable = np.flatnonzero(truth.mdp.reachable)
        order = reachable[np.argsort(label[reachable], kind="stable")]
        numbers, starts = np.unique(label[order], return_index=True)
        for number, states in zip(numbers, np.split(order, starts[1:]), strict=True):
            codes = values[number]
            named = tuple(features.values[i][codes[i]] for i in map(features.position, group.given))
            self._members[named] = states

    def of(self, group: GroupBound, weights: NDArray[np.float64]) -> GroupTruth:
        states = self._members[tuple(group.given.values())]
        weight = weights[states]
        if not weight.sum() > 0.0:
            weight = np.ones(len(states))
        if self._kind is None:
            table = self._table[states]
        else:
            kinds, place = np.unique(self._kind[states], return_inverse=True)
            table, weight = self._table[kinds], np.bincount(place.reshape(-1), weight)
        return GroupTruth(weight @ table / weight.sum(), table.min(axis=0), table.max(axis=0))


def _by_kind(
    group: GroupBound, missingness: MissingnessFunction
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the kind of each state, shape (S,), and P(pattern of the group | kind); M is the same within a kind."""
    space, columns = missingness.space, [*map(missingness.space.features.position, group.features)]
    rows = [part.rows(space) for part in missingness.parts]
    kind = np.zeros(len(space), dtype=np.int64)
    for part, row in zip(missingness.parts, rows, strict=True):
        kind = np.unique(kind * len(part.table) + row, return_inverse=True)[1].reshape(-1)
    _, first = np.unique(kind, return_index=True)
    what = f"comparing {len(group.patterns):,} patterns with M, which has {len(first):,} rows,"
    check_fits(what, 32.0 * len(first) * len(group.patterns), "`run --unknown-truth` does without")
    always = [
        i
        for i, feature in enumerate(columns)
        if not any(feature in part.features for part in missingness.parts)
    ]
    table = np.tile(group.patterns[:, always].all(axis=1).astype(np.float64), (len(first), 1))
    for part, row in zip(missingness.parts, rows, strict=True):
        shared = [feature for feature in part.features if feature in columns]
        own = part.patterns[:, [part.features.index(feature) for feature in shared]]
        asked = group.patterns[:, [columns.index(feature) for feature in shared]]
        table *= part.table[row[first]] @ same_patterns(own, asked)
    return kind, table

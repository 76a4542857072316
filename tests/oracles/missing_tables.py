"""Counting what is missing in a table, with loops and dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Table = Mapping[str, Sequence[Any]]


def n_rows(table: Table) -> int:
    return len(table["episode"])


def feature_names(table: Table) -> list[str]:
    return [name for name in table if name not in ("episode", "step", "action")]


def patterns(table: Table) -> Counter[frozenset[str]]:
    """Return the number of rows in which exactly these features are missing."""
    names = feature_names(table)
    return Counter(
        frozenset(name for name in names if table[name][row] is None) for row in range(n_rows(table))
    )


def missing_by(
    table: Table, column: str, group: Callable[[Any], Any]
) -> tuple[dict[Any, int], dict[tuple[Any, str], int]]:
    """Return rows per group of a column's values, and (group, feature) → rows in which that is missing."""
    rows: Counter[Any] = Counter()
    missing: Counter[tuple[Any, str]] = Counter()
    for row in range(n_rows(table)):
        value = table[column][row]
        if value is None:
            continue
        rows[group(value)] += 1
        for name in feature_names(table):
            missing[group(value), name] += table[name][row] is None
    return dict(rows), dict(missing)


def episode_lengths(table: Table) -> list[int]:
    return sorted(Counter(table["episode"]).values())

"""Trajectory tables read with the standard library only, row by row, and a small one in all its forms."""

from __future__ import annotations

import csv
import gzip
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "nat", "<na>", "#n/a", "#na"}


def read_words(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def read_histories(
    rows: Iterable[Mapping[str, Any]], mdp: Any
) -> dict[str, list[tuple[tuple[Any, ...], Any]]]:
    """Return episode → [(observation, action), …] in order, for a table in which nothing is wrong."""
    found: dict[str, dict[int, tuple[tuple[Any, ...], Any]]] = {}
    for row in rows:
        observation = tuple(meaning(row[name], values) for name, values in mdp.features.items())
        step = int(float(row["step"]))
        found.setdefault(str(row["episode"]), {})[step] = (observation, meaning(row["action"], mdp.actions))
    return {episode: [steps[i] for i in sorted(steps)] for episode, steps in found.items()}


def counts(rows: Iterable[Mapping[str, Any]], mdp: Any) -> Counter[tuple[Any, ...]]:
    """Return how often each observation occurs."""
    return Counter(tuple(meaning(row[name], values) for name, values in mdp.features.items()) for row in rows)


def meaning(cell: Any, values: Iterable[Any]) -> Any:
    """Return the value that a cell means, None for missing."""
    values = list(values)
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, str):
        word = cell.strip()
        written = [value for value in values if str(value) == word]
        if written:
            return written[0]
        if word.lower() in MISSING_WORDS:
            return None
        if word.lower() in ("true", "false"):
            return next(value for value in values if value == (word.lower() == "true"))
        return next(value for value in values if value == float(word))
    return next(value for value in values if value == cell or str(value) == str(cell))


def small_mdp(mm: Any) -> Any:
    """Return an MDP with features of several types, two actions and a terminal state; anything can follow."""
    n = 18
    terminal = np.zeros(n, dtype=bool)
    terminal[[0, 1]] = True
    return mm.FactoredMDP(
        FEATURES,
        ["wait", "treat"],
        [np.full((n, n), 1 / n)] * 2,
        0.0,
        np.full(n, 1 / n),
        terminal,
    )


FEATURES = {"ward": ["icu", "NA", "south wing"], "level": [1, 2, 3], "on_drip": [False, True]}
TABLE = {
    "episode": ["a", "a", "a", "b", "b", "c"],
    "step": [0, 1, 2, 0, 1, 0],
    "ward": ["icu", None, "NA", "south wing", None, "icu"],
    "level": [1, 3, None, 2, None, 1],
    "on_drip": [True, None, False, None, None, False],
    "action": ["wait", "treat", None, "treat", None, None],
}
HISTORIES = [
    [(("icu", 1, True), "wait"), ((None, 3, None), "treat"), (("NA", None, False), None)],
    [(("south wing", 2, None), "treat"), ((None, None, None), None)],
    [(("icu", 1, False), None)],
]


def histories(dataset):
    """Return the episodes of a dataset as plain tuples."""
    return [
        [(tuple(observation), action) for observation, action in episode] for episode in dataset.episodes()
    ]


def with_cell(table, name, row, value):
    """Return a table with another value at one place; rows count from 1."""
    values = list(table[name])
    values[row - 1] = value
    return {**table, name: values}


def without(table, name):
    return {column: values for column, values in table.items() if column != name}


def words(table, delimiter=","):
    """Return a table as the text of a CSV file."""
    rows = [list(table), *zip(*table.values(), strict=True)]
    return "\n".join(delimiter.join("" if cell is None else str(cell) for cell in row) for row in rows) + "\n"


def csv_file(table, path: Path, suffix=".csv", delimiter=",") -> Path:
    path = path.with_name(path.name + suffix)
    content = words(table, delimiter).encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    return path


def parquet_file(table, path: Path, suffix=".parquet") -> Path:
    path = path.with_name(path.name + suffix)
    parquet.write_table(pa.table(table), path)
    return path


def split(table, rows, write, folder):
    """Write some rows of a table to a first file and the others to a second one."""
    folder.mkdir(exist_ok=True)
    first = {name: [v for i, v in enumerate(values) if i in rows] for name, values in table.items()}
    rest = {name: [v for i, v in enumerate(values) if i not in rows] for name, values in table.items()}
    return [write(first, folder / "1-first"), write(rest, folder / "2-rest")]


def chain_mdp(mm, features):
    """Return an MDP whose features have these values and whose states all stay as they are."""
    size = int(np.prod([len(v) for v in features.values()]))
    return mm.FactoredMDP(features, ["go"], [np.eye(size)], 0.0, np.full(size, 1 / size))

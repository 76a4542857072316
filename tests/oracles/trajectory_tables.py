"""Trajectory tables read with the standard library only, row by row, and tables that are made to be read."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

MISSING_WORDS = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"}


def read_words(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def histories(rows: Iterable[Mapping[str, Any]], mdp: Any) -> dict[str, list[tuple[tuple[Any, ...], Any]]]:
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
        if word in MISSING_WORDS:
            return None
        if word.lower() in ("true", "false"):
            return next(value for value in values if value == (word.lower() == "true"))
        return next(value for value in values if value == float(word))
    return next(value for value in values if value == cell or str(value) == str(cell))


def small_mdp(mm: Any) -> Any:
    """Return an MDP with features of several types, two actions and a terminal state; anything can follow."""
    features = {"ward": ["icu", "NA", "south wing"], "level": [1, 2, 3], "on_drip": [False, True]}
    n = 18
    terminal = np.zeros(n, dtype=bool)
    terminal[[0, 1]] = True
    return mm.FactoredMDP(
        features,
        ["wait", "treat"],
        [np.full((n, n), 1 / n)] * 2,
        0.0,
        np.full(n, 1 / n),
        terminal,
    )

"""Small tables of logs, random or by columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WORDS = [f"ward {letter}" for letter in "abcdefghijklmnopqrst"]


def random_table(
    seed: int, sizes: Sequence[int], words: Sequence[bool], n_rows: int, longest: int
) -> dict[str, list[Any]]:
    """Return a table with one feature per size, whose missingness depends on the features before it."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {"episode": [], "step": [], "action": []}
    while len(table["step"]) < n_rows:
        length = int(rng.integers(1, longest + 1))
        table["episode"] += [len(table["episode"])] * length
        table["step"] += range(length)
        table["action"] += ["go"] * length
    n = len(table["step"])
    missing = np.zeros(n, dtype=bool)
    for number, (size, is_word) in enumerate(zip(sizes, words, strict=True)):
        # Squared, so that some values are much more frequent than others.
        codes = (rng.random(n) ** 2 * size).astype(int)
        missing = rng.random(n) < rng.choice([0.0, 0.3, 0.7, 1.0], size=size)[codes] * (1 - 0.4 * missing)
        values = [WORDS[code] if is_word else 10 * code - 35 for code in codes.tolist()]
        table[f"f{number}"] = [None if gap else value for gap, value in zip(missing, values, strict=True)]
    return table


def table_of(**columns: list[Any]) -> dict[str, list[Any]]:
    """Return columns as the log of one episode."""
    n = len(next(iter(columns.values())))
    return {"episode": [0] * n, "step": list(range(n)), "action": ["a"] * n, **columns}

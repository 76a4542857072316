"""The queries behind counting: one over the features, one that sees whether rows make histories.

A table of a query has the columns `e` (episode), `s` (step) and `idle` (whether there is no action).
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Health", "engine", "episode_summary", "health", "ibis", "quiet"]

ibis: Any = import_module("ibis")

_MEMORY = "800MB"
_WINDOW = 32
"""Steps of which one integer says which are there."""


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Keep to ourselves that the library of queries calls its engine in ways that will change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


@contextmanager
def engine() -> Generator[tuple[Any, Path], None, None]:
    """Give an embedded query engine of bounded memory, and a folder for what does not fit; both go away."""
    with quiet(), tempfile.TemporaryDirectory(prefix="missmdp-", ignore_cleanup_errors=True) as folder:
        connection = ibis.duckdb.connect(
            memory_limit=_MEMORY, temp_directory=str(Path(folder) / "spill"), preserve_insertion_order=False
        )
        try:
            yield connection, Path(folder)
        finally:
            connection.disconnect()


def episode_summary(table: Any) -> Any:
    """Return a query with one row per episode: `e`, `n` rows, the first step `low`, and whether it is `broken`.

    An episode is broken if it has no name, if a step is missing, or occurs twice or not at all, or if an action is
    missing before the last step.
    """
    # Within a window each step is one bit. The bits sum to what they or to exactly if no step occurs twice,
    # which takes an integer per window rather than a set of all steps.
    bit = ibis.literal(1, type="int64") << (table.s % _WINDOW)
    # The largest of these tells the last step and whether that one is idle.
    step_and_idle = 2 * table.s + table.idle.cast("int64")
    rows = table.mutate(window=table.s // _WINDOW, bit=bit, step_and_idle=step_and_idle)
    windows = rows.group_by(["e", "window"]).agg(
        n=rows.count(),
        low=rows.s.min(),
        last=rows.step_and_idle.max(),
        total=rows.bit.sum(),
        any=rows.bit.bit_or(),
        idle=rows.idle.cast("int64").sum(),
    )
    episodes = windows.group_by("e").agg(
        n=windows.n.sum(),
        low=windows.low.min(),
        last=windows["last"].max(),
        nameless_steps=windows.window.isnull().any(),
        twice=(windows.total != windows["any"]).any(),
        idle=windows.idle.sum(),
    )
    gaps = episodes["last"] // 2 - episodes.low + 1 != episodes.n
    early = episodes.idle != episodes["last"] % 2
    faulty = episodes.e.isnull() | episodes.nameless_steps
    return episodes.select("e", "n", "low", broken=faulty | episodes.twice | gaps | early)


class Health(NamedTuple):
    """What can be wrong with the rows of a table, in numbers."""

    rows: int
    broken: int
    """Episodes with something wrong but where they start."""
    low: int
    """The smallest first step of an episode."""
    high: int
    """The largest first step of an episode."""

    @property
    def first(self) -> int:
        """From where steps count."""
        return 1 if self.low == self.high == 1 else 0

    @property
    def good(self) -> bool:
        """Whether all episodes are histories."""
        return self.rows > 0 and self.broken == 0 and self.low == self.high == self.first


def health(summary: Any) -> Health:
    """Return what a summary of episodes says altogether."""
    result = summary.agg(
        rows=summary.n.sum(),
        broken=summary.broken.cast("int64").sum(),
        low=summary.low.min(),
        high=summary.low.max(),
    ).to_pyarrow()
    row = result.to_pylist()[0]
    return Health(*(int(-1 if row[name] is None else row[name]) for name in Health._fields))

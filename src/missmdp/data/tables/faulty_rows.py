"""Reading a table for a report: what is wrong is collected, and the rest is read as far as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from missmdp.data.binning import as_number
from missmdp.data.dataset import NO_ACTION
from missmdp.data.tables.factors import factorise
from missmdp.data.tables.matching import UNKNOWN, parse_number
from missmdp.data.tables.ordered_rows import open_table, read_rows
from missmdp.data.tables.read import endings
from missmdp.data.tables.rows import Fault
from missmdp.data.tables.structure import broken_episodes, first_step
from missmdp.data.validation.report import UnknownValue
from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import is_missing

__all__ = ["checked_rows"]

_MOST_DISTINCT = 100_000
_MOST_VALUES = 20
"""Unknown values of a column that are told one by one."""


@dataclass
class _Unknowns:
    """Cells that make no sense, counted by column and value."""

    found: dict[str, dict[str, UnknownValue]] = field(default_factory=dict[str, dict[str, UnknownValue]])
    others: dict[str, int] = field(default_factory=dict[str, int])
    """Rows with yet other values, once a column has too many."""
    distinct: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Up to a limit, all values of a column."""

    def collect(self, faults: list[Fault]) -> None:
        """Count the faults of a batch."""
        for fault in faults:
            known = self.found.setdefault(fault.column, {})
            values, places = factorise(fault.cells)
            places = places[fault.rows]
            used, first, counts = np.unique(places, return_index=True, return_counts=True)
            for i in np.argsort(first).tolist():
                value = None if used[i] < 0 or is_missing(values[used[i]]) else values[used[i]]
                key = repr(value)
                seen = self.distinct.setdefault(fault.column, set())
                if len(seen) < _MOST_DISTINCT:
                    seen.add(key)
                if key in known:
                    known[key] = replace(known[key], count=known[key].count + int(counts[i]))
                elif len(known) < _MOST_VALUES:
                    message = fault.message(int(fault.rows[first[i]]))
                    known[key] = UnknownValue(fault.column, value, int(counts[i]), message)
                else:
                    self.others[fault.column] = self.others.get(fault.column, 0) + int(counts[i])

    def sum_up_measurements(self, edges: dict[str, int]) -> None:
        """Put numbers of which a column has too many into one sentence; `edges` says how many its bins need."""
        for column in [column for column in self.others if column in edges]:
            known = list(self.found[column].values())
            if not all(_is_number(unknown.value) for unknown in known):
                continue
            count = sum(unknown.count for unknown in known) + self.others.pop(column)
            n = len(self.distinct[column])
            often = f"{n:,}" if n < _MOST_DISTINCT else f"at least {n:,}"
            some = ", ".join(str(unknown.value) for unknown in known[:3])
            sentence = (
                f"{column!r}: {often} distinct numbers such as {some}, which are no values of it; measurements need "
                f"bins: bins={{{column!r}: Binning.from_edges([…])}} with {edges[column]} edges "
                f"(--bins {column}=… for commands)"
            )
            self.found[column] = {"": UnknownValue(column, known[0].value, count, sentence)}

    def values(self) -> tuple[UnknownValue, ...]:
        """Return the unknown values, those of a column together."""
        return tuple(value for known in self.found.values() for value in known.values())

    def remarks(self) -> list[str]:
        """Return what is to be said of columns with too many unknown values to tell."""
        return [
            f"{column!r} has yet other unknown values, in {count:,} more rows"
            for column, count in self.others.items()
        ]


def _is_number(value: Any) -> bool:
    number = parse_number(value) if isinstance(value, str) else as_number(value)
    return number is not None and not is_missing(number)


def checked_rows(source: Any, mdp: FactoredMDP, *, progress: bool | None, **options: Any) -> dict[str, Any]:
    """Return the rows of a table that make sense, and what does not."""
    table = open_table(source, mdp, **options)
    unknowns = _Unknowns()
    rows = read_rows(table, progress=progress, on_faults=unknowns.collect)
    sizes = {name: len(values) for name, values in mdp.features.items()}
    unknowns.sum_up_measurements(
        {n: size - 1 for n, size in sizes.items() if size > 1 and n not in table.bins}
    )
    if not len(rows.step):
        places = (options.get("episode", "episode"), options.get("step", "step"))
        faults = [unknown.first for unknown in unknowns.values() if unknown.column in places]
        raise DataError(faults[0] if faults else "no row of the table has both an episode and a step")
    broken = broken_episodes(rows.step, rows.actions, rows.offsets)
    sentences: list[str] = []
    if broken.size:
        more = f" (and {broken.size - 1:,} more episodes are no histories)" if broken.size > 1 else ""
        sentences.append(rows.explain(int(broken[0])) + more)
    terminated, notes = endings(rows, mdp)
    actions = np.array(rows.actions)
    # Known to be there, so that it was not missing, but not which.
    actions[actions == UNKNOWN] = NO_ACTION
    actions[rows.offsets[1:] - 1] = NO_ACTION
    return {
        "observations": rows.observations.astype(mdp.space.features.code_dtype, copy=False),
        "actions": actions,
        "step": rows.step - first_step(rows.step, rows.offsets),
        "offsets": rows.offsets,
        "terminated": terminated,
        "ids": rows.episodes.names(table.parts),
        "unknown_values": unknowns.values(),
        "broken": tuple(sentences),
        "remarks": (*table.notes, *notes, *unknowns.remarks()),
    }

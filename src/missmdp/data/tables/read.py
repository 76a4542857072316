"""Reading trajectory tables in terms of an MDP: as the parts of a dataset, or with their faults collected."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from missmdp.data.binning import as_number, bins_argument
from missmdp.data.tables.cells import factorise
from missmdp.data.tables.content import CheckedRows, DatasetParts, TableOptions, UnknownValue
from missmdp.data.tables.endings import inferred_ends
from missmdp.data.tables.matching import UNKNOWN, parse_number
from missmdp.data.tables.ordered_rows import (
    open_table,
    raise_if_broken,
    read_rows,
)
from missmdp.data.tables.reward_check import check_rewards
from missmdp.data.tables.rewards import kept_rewards
from missmdp.data.tables.rows import Fault
from missmdp.data.tables.structure import broken_episodes, first_step
from missmdp.data.tables.write import read_metadata
from missmdp.errors import DataError, Message
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import NO_ACTION, is_missing

_log = logging.getLogger(__name__)

_MOST_DISTINCT = 100_000
_MOST_VALUES = 20
"""Unknown values of a column that are told one by one."""


def dataset_from_table(
    source: Any, mdp: FactoredMDP, options: TableOptions, *, progress: bool | None = None
) -> DatasetParts:
    """Return a trajectory table as the parts of a dataset; see `Dataset.from_table`."""
    table = open_table(source, mdp, options)
    rows = read_rows(table, progress=progress)
    raise_if_broken(rows)
    terminated, notes = inferred_ends(rows, mdp)
    actions = np.array(rows.actions)
    actions[rows.offsets[1:] - 1] = NO_ACTION
    rewards, about_rewards = kept_rewards(rows)
    if rewards is not None:
        check_rewards(rows, mdp, rewards)
    metadata = read_metadata(table.parts)
    ids = rows.episodes.names(table.parts)
    return DatasetParts(
        rows.observations.astype(mdp.space.features.code_dtype, copy=False),
        actions,
        rows.offsets,
        terminated,
        seed=metadata.seed,
        behaviour=metadata.behaviour,
        episode_ids=None if ids == tuple(range(len(ids))) else ids,
        bins=table.bins or metadata.bins,
        notes=(*table.notes, *notes, *about_rewards),
        logged_rewards=rewards,
    )


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
            sentence = Message(
                f"{column!r}: {often} distinct numbers such as {some}, which are not values of it; measurements need "
                "bins: ",
                bins_argument(column),
                f" with {edges[column]} edges",
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


def checked_rows(
    source: Any, mdp: FactoredMDP, options: TableOptions, *, progress: bool | None
) -> CheckedRows:
    """Return the rows of a table that make sense, and what does not."""
    table = open_table(source, mdp, options)
    unknowns = _Unknowns()
    rows = read_rows(table, progress=progress, on_faults=unknowns.collect)
    sizes = {name: len(values) for name, values in mdp.features.items()}
    unknowns.sum_up_measurements(
        {n: size - 1 for n, size in sizes.items() if size > 1 and n not in table.bins}
    )
    if not len(rows.step):
        places = (table.encoders.names.episode, table.encoders.names.step)
        faults = [unknown.first for unknown in unknowns.values() if unknown.column in places]
        raise DataError(faults[0] if faults else "no row of the table has both an episode and a step")
    broken = broken_episodes(rows.step, rows.actions, rows.offsets)
    sentences: list[str] = []
    if broken.size:
        more = f" (and {broken.size - 1:,} more episodes are not valid histories)" if broken.size > 1 else ""
        sentences.append(Message(rows.explain(int(broken[0])), more))
    terminated, notes = inferred_ends(rows, mdp)
    actions = np.array(rows.actions)
    # Known to be there, so it was not missing, but not which.
    actions[actions == UNKNOWN] = NO_ACTION
    actions[rows.offsets[1:] - 1] = NO_ACTION
    return CheckedRows(
        rows.observations.astype(mdp.space.features.code_dtype, copy=False),
        actions,
        rows.step - first_step(rows.step, rows.offsets),
        rows.offsets,
        terminated,
        rows.episodes.names(table.parts),
        unknowns.values(),
        tuple(sentences),
        (*table.notes, *notes, *unknowns.remarks()),
    )

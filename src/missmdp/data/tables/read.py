"""Reading trajectory tables: as the parts of a dataset, as a log without a model, or with their faults collected."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from missmdp.data.binning import Binning, as_number, bins_argument, checked_bins
from missmdp.data.tables.cells import factorise
from missmdp.data.tables.content import CheckedRows, DatasetParts, LogRows, TableOptions, UnknownValue
from missmdp.data.tables.encoding import NEVER_SEEN, BinnedColumn, ColumnEncoder, DiscoveredColumn
from missmdp.data.tables.matching import UNKNOWN, MissingWords, parse_number
from missmdp.data.tables.ordered_rows import (
    OpenTable,
    TableRows,
    column_names,
    open_features,
    open_table,
    raise_if_broken,
    read_rows,
    understood,
)
from missmdp.data.tables.rows import Encoders, Fault
from missmdp.data.tables.sources import open_source
from missmdp.data.tables.structure import broken_episodes, extra_columns, first_step
from missmdp.data.tables.write import read_metadata
from missmdp.errors import DataError, Message, ModelError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING, NO_ACTION, FeatureSpace, StateSpace, is_missing

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
    terminated, notes = _endings(rows, mdp)
    actions = np.array(rows.actions)
    actions[rows.offsets[1:] - 1] = NO_ACTION
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
        notes=(*table.notes, *notes),
    )


def _endings(rows: TableRows, mdp: FactoredMDP) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which episodes ended in a terminal state, and notes on how episodes end.

    Where a table does not say, an episode did if only terminal states admit its last observation.
    """
    last = rows.offsets[1:] - 1
    notes: list[str] = []
    acted = int(np.count_nonzero(rows.actions[last] != MISSING))
    if acted:
        notes.append(
            f"episodes that end with an action whose result was not logged: {acted:,} of {len(last):,}; "
            "these last actions are left out"
        )
    said = rows.terminated[last]
    ended, open_ = said == 1, said == MISSING
    if open_.any():
        ended[open_] = _only_admitted_by(mdp.space, mdp.terminal, rows.observations[last[open_]])
    if rows.terminated.max() == 1:
        often = np.add.reduceat(rows.terminated == 1, rows.offsets[:-1], dtype=np.int64)
        early = int(np.count_nonzero(often > (said == 1)))
        if early:
            notes.append(
                f"episodes in which {rows.table.encoders.names.terminated!r} is true before the last row: {early:,}; "
                "only the last row of an episode counts"
            )
    for note in notes:
        _log.info(note)
    return ended, notes


def _admitted_by(
    space: StateSpace, some: NDArray[np.bool_], observations: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """Return which observations are admitted by at least one of some states, shape (rows,)."""
    found = np.zeros(len(observations), dtype=np.bool_)
    for shown, rows in _by_pattern(observations):
        states = np.where(shown, space.codes[some], MISSING)
        found[rows] = np.isin(space.features.rank(observations[rows]), space.features.rank(states))
    return found


def _only_admitted_by(
    space: StateSpace, some: NDArray[np.bool_], observations: NDArray[np.integer[Any]]
) -> NDArray[np.bool_]:
    """Return which observations are admitted by some of the given states and by no other, shape (rows,)."""
    if not some.any():
        return np.zeros(len(observations), dtype=np.bool_)
    return _admitted_by(space, some, observations) & ~_admitted_by(space, ~some, observations)


def _by_pattern(
    observations: NDArray[np.integer[Any]],
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Yield each pattern that occurs and its rows; within one pattern, admitting is being equal."""
    patterns, label = np.unique(observations != MISSING, axis=0, return_inverse=True)
    for number, shown in enumerate(patterns):
        yield shown, np.flatnonzero(label.reshape(-1) == number)


def log_from_table(
    source: Any,
    features: FeatureSpace | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[TableOptions],
) -> LogRows:
    """Return a trajectory table as codes, without a model; actions are not looked at.

    Parameters
    ----------
    source
        As for `Dataset.from_table`.
    features
        The features and their values. By default every column but those of episodes, steps, actions, rewards
        and ends is a feature, and its values are those that occur, in order; words in CSV files are numbers
        where all words of a column are.
    progress
        Whether to show progress; by default on a terminal.
    options
        As for `Dataset.from_table`.
    """
    table = _open_unknown(source, options) if features is None else open_features(source, features, options)
    rows = read_rows(table, progress=progress)
    raise_if_broken(rows)
    notes = list(table.notes)
    observations = rows.observations
    if features is None:
        columns = table.encoders.features
        features, observations, never = _settled(columns, table.bins, observations, table.parts[0].shown)
        notes += [f"{name!r} is always missing" for name in never]
        notes += [
            f"{name!r}: {', '.join(map(repr, sorted(column.left_out)))} counts as missing"
            for name, column in columns.items()
            if isinstance(column, DiscoveredColumn) and column.left_out
        ]
    first = first_step(rows.step, rows.offsets)
    numbers = np.repeat(np.arange(len(rows.offsets) - 1), np.diff(rows.offsets))
    return LogRows(
        features,
        observations.astype(features.code_dtype, copy=False),
        numbers,
        rows.step - first,
        rows.episodes.names(table.parts),
        tuple(notes),
    )


def _open_unknown(source: Any, options: TableOptions) -> OpenTable:
    """Return a source whose columns are features, apart from those that have a role."""
    names, words = column_names(options).checked([]), MissingWords(options.get("missing", ()))
    roles = [names.episode, names.step, names.action, names.terminated]
    parts = open_source(source, roles)
    found = extra_columns(parts, [*roles, names.reward])
    if not found:
        listing = ", ".join(parts[0].columns)
        raise DataError(f"{parts[0].shown}: there are no feature columns; the columns are {listing}")
    binned = checked_bins(options.get("bins"), dict.fromkeys(found))
    columns: dict[str, ColumnEncoder] = {
        name: BinnedColumn(binned[name], words) if name in binned else DiscoveredColumn(words)
        for name in found
    }
    return understood(
        parts, Encoders(names, columns, None, None), binned, per_file=options.get("per_file", False)
    )


def _settled(
    columns: Mapping[str, ColumnEncoder], binned: Mapping[str, Binning], provisional: NDArray[Any], where: str
) -> tuple[FeatureSpace, NDArray[Any], list[str]]:
    """Return the features that were discovered, the final codes, and the features of which nothing was seen."""
    values: dict[str, Sequence[Any]] = {}
    codes = np.empty_like(provisional)
    for position, (name, column) in enumerate(columns.items()):
        if isinstance(column, DiscoveredColumn):
            values[name], final = column.settle()
            codes[:, position] = final[provisional[:, position]]
        else:
            values[name] = binned[name].labels()
            codes[:, position] = provisional[:, position]
    try:
        features = FeatureSpace(values)
    except ModelError as error:
        raise DataError(
            f"{where}: the columns cannot be features as they are: {error}; put measurements into bins"
        ) from error
    return features, codes, [name for name, found in values.items() if tuple(found) == (NEVER_SEEN,)]


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
    terminated, notes = _endings(rows, mdp)
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

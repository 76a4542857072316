"""Reading trajectory tables: long tables with an episode, a step, one column per feature, and an action.

Sources become parts (`sources`), cells become codes (`encoding`, `rows`), rows are sorted and checked
(`structure`). Here this is put together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.admission import only_admitted_by
from missmdp.data.binning import Binning, checked_bins
from missmdp.data.dataset import NO_ACTION, Dataset
from missmdp.data.discovery import NEVER_SEEN, DiscoveredColumn
from missmdp.data.encoding import BinnedColumn, ColumnEncoder, ValueColumn
from missmdp.data.layout import Names, check_columns, extra_columns
from missmdp.data.log import Log
from missmdp.data.rows import FAULTY, Batch, Encoders, Episodes, Fault, encoded_batches
from missmdp.data.sources import Part, open_source
from missmdp.data.structure import Place, Sorting, broken_episodes, explain_episode, first_step, sort_rows
from missmdp.data.table_metadata import read_metadata
from missmdp.errors import DataError, ModelError
from missmdp.model.mdp import FactoredMDP, checked_mdp
from missmdp.model.space import MISSING, FeatureSpace
from missmdp.progress import show_progress

__all__ = [
    "OpenTable",
    "TableRows",
    "all_parts",
    "dataset_from_table",
    "endings",
    "open_table",
    "read_log",
    "read_rows",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenTable:
    """A source with its columns understood, not read yet."""

    parts: list[Part]
    encoders: Encoders
    bins: dict[str, Binning]
    per_file: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TableRows:
    """All rows of a table as numbers, in order of episode and step."""

    table: OpenTable
    episodes: Episodes
    sorting: Sorting
    starts: NDArray[np.int64]
    """Where batches start among the rows as they were read."""
    origins: list[tuple[int, int]]
    """Part and row of the first row of each batch."""
    step: NDArray[np.int64]
    observations: NDArray[np.signedinteger[Any]]
    actions: NDArray[np.signedinteger[Any]]
    terminated: NDArray[np.int8]
    kept: NDArray[np.int64] | None = None
    """The rows as they were read that are among these, where some were left out."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where episodes start, shape (E + 1,)."""
        return self.sorting.offsets

    def place(self, row: int) -> Place:
        """Return where a row is from."""
        source = self.sorting.source(row)
        if self.kept is not None:
            source = int(self.kept[source])
        batch = int(np.searchsorted(self.starts, source, side="right")) - 1
        part, first = self.origins[batch]
        return Place(self.table.parts[part].name, first + source - int(self.starts[batch]) + 1)

    def explain(self, episode: int) -> str:
        """Return what is wrong with a broken episode."""
        start, stop = int(self.offsets[episode]), int(self.offsets[episode + 1])
        names = self.table.encoders.names
        return explain_episode(
            self.step[start:stop],
            self.actions[start:stop],
            self.episodes.ids[episode],
            first_step(self.step, self.offsets),
            lambda row: self.place(start + row),
            (names.step, names.action),
        )


def open_table(
    source: Any,
    mdp: FactoredMDP,
    *,
    episode: str = "episode",
    step: str = "step",
    action: str = "action",
    terminated: str = "terminated",
    bins: Any = None,
    per_file: bool = False,
) -> OpenTable:
    """Return a source whose columns fit an MDP."""
    features = checked_mdp(mdp).space.features
    names = Names(episode, step, action, terminated=terminated).checked(features.names)
    binned = checked_bins(bins, {name: len(v) for name, v in features.as_dict().items()})
    columns = _feature_columns(features, binned)
    parts = open_source(source, [episode, step, action, terminated, *features.names])
    has_end = terminated not in features.names
    encoders = Encoders(
        names, columns, ValueColumn(mdp.actions), ValueColumn((False, True)) if has_end else None
    )
    return _understood(parts, encoders, binned, per_file=per_file)


def read_rows(
    table: OpenTable,
    *,
    progress: bool | None = None,
    on_faults: Callable[[list[Fault]], None] | None = None,
) -> TableRows:
    """Return all rows of a table as numbers, in order; whether they make histories is not checked yet."""
    episodes = Episodes(table.per_file)
    known = [part.n_rows for part in table.parts]
    total = sum(n for n in known if n is not None) if None not in known else None
    batches: list[Batch] = []
    with show_progress("Reading", total, enabled=progress) as advance:
        for batch in encoded_batches(table.parts, table.encoders, episodes, on_faults):
            batches.append(batch)
            advance(len(batch.step))
    if not batches:
        raise DataError(f"{all_parts(table.parts)}: the table has no rows")
    lengths = [len(batch.step) for batch in batches]
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
    origins = [(batch.part, batch.row) for batch in batches]
    episode, step, observations, actions, terminated = (
        np.concatenate([batch[column] for batch in batches]) for column in range(2, 7)
    )
    del batches
    kept = None
    if on_faults is not None and (episode == FAULTY).any():
        kept = np.flatnonzero(episode != FAULTY)
        episode, step, observations, terminated = (
            column[kept] for column in (episode, step, observations, terminated)
        )
        actions = actions[kept] if len(actions) else actions
        # Episodes of which no row is left are none.
        episode = episodes.keep(episode)
    sorting = sort_rows(episode, step, len(episodes.ids))
    return TableRows(
        table,
        episodes,
        sorting,
        starts,
        origins,
        sorting.apply(step),
        sorting.apply(observations),
        sorting.apply(actions) if len(actions) else actions,
        sorting.apply(terminated),
        kept,
    )


def dataset_from_table(
    source: Any, mdp: FactoredMDP, *, progress: bool | None = None, **options: Any
) -> Dataset:
    """Return a trajectory table as a dataset; see `Dataset.from_table`."""
    table = open_table(source, mdp, **options)
    rows = read_rows(table, progress=progress)
    _raise_if_broken(rows)
    terminated, notes = endings(rows, mdp)
    actions = np.array(rows.actions)
    actions[rows.offsets[1:] - 1] = NO_ACTION
    metadata = read_metadata(table.parts)
    ids = rows.episodes.names(table.parts)
    return Dataset(
        mdp,
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


def endings(rows: TableRows, mdp: FactoredMDP) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which episodes ended in a terminal state, and notes on how episodes end.

    Where a table does not say, an episode did if only terminal states admit its last observation.
    """
    last = rows.offsets[1:] - 1
    notes: list[str] = []
    acted = int(np.count_nonzero(rows.actions[last] != MISSING))
    if acted:
        notes.append(
            f"{acted:,} of {len(last):,} episodes end with an action whose result was not logged; "
            "these last actions are left out"
        )
    said = rows.terminated[last]
    ended, open_ = said == 1, said == MISSING
    if open_.any():
        ended[open_] = only_admitted_by(mdp.space, mdp.terminal, rows.observations[last[open_]])
    if rows.terminated.max() == 1:
        often = np.add.reduceat(rows.terminated == 1, rows.offsets[:-1], dtype=np.int64)
        early = int(np.count_nonzero(often > (said == 1)))
        if early:
            notes.append(
                f"{rows.table.encoders.names.terminated!r} is true before the last row in {early:,} episodes; "
                "only the last row of an episode counts"
            )
    for note in notes:
        _log.info(note)
    return ended, notes


def read_log(
    source: Any,
    features: FeatureSpace | None = None,
    *,
    episode: str = "episode",
    step: str = "step",
    action: str = "action",
    terminated: str = "terminated",
    bins: Any = None,
    per_file: bool = False,
    progress: bool | None = None,
) -> Log:
    """Return a trajectory table as codes, without a model; actions are not looked at.

    Parameters
    ----------
    source
        As for `Dataset.from_table`.
    features
        The features and their values. By default every column but those of episodes, steps, actions, rewards
        and ends is a feature, and its values are those that occur, in order; words in CSV files are numbers
        where all words of a column are.
    episode, step, action, terminated
        The names of the columns that are no features.
    bins
        Feature → `Binning` for columns that hold measurements.
    per_file
        Whether each file numbers its own episodes.
    progress
        Whether to show progress; by default on a terminal.
    """
    names = Names(episode, step, action, terminated=terminated)
    columns: dict[str, ColumnEncoder]
    if features is not None:
        names = names.checked(features.names)
        binned = checked_bins(bins, {name: len(v) for name, v in features.as_dict().items()})
        columns = _feature_columns(features, binned)
        parts = open_source(source, [episode, step, action, terminated, *features.names])
    else:
        names = names.checked([])
        parts = open_source(source, [episode, step, action, terminated])
        found = extra_columns(parts, [episode, step, action, terminated, names.reward])
        if not found:
            listing = ", ".join(parts[0].columns)
            raise DataError(f"{parts[0].shown}: there are no feature columns; the columns are {listing}")
        binned = checked_bins(bins, dict.fromkeys(found))
        columns = {
            name: BinnedColumn(binned[name]) if name in binned else DiscoveredColumn() for name in found
        }
    rows = read_rows(
        _understood(parts, Encoders(names, columns, None, None), binned, per_file=per_file), progress=progress
    )
    _raise_if_broken(rows)
    notes = list(rows.table.notes)
    observations = rows.observations
    if features is None:
        features, observations, never = _settled(columns, binned, observations)
        notes += [f"{name!r} is always missing" for name in never]
    first = first_step(rows.step, rows.offsets)
    numbers = np.repeat(np.arange(len(rows.offsets) - 1), np.diff(rows.offsets))
    return Log(
        features,
        observations.astype(features.code_dtype, copy=False),
        numbers,
        rows.step - first,
        rows.episodes.names(parts),
        tuple(notes),
    )


def _feature_columns(features: FeatureSpace, binned: dict[str, Binning]) -> dict[str, ColumnEncoder]:
    return {
        name: BinnedColumn(binned[name]) if name in binned else ValueColumn(values, name)
        for name, values in features.as_dict().items()
    }


def _understood(
    parts: list[Part], encoders: Encoders, binned: dict[str, Binning], *, per_file: bool
) -> OpenTable:
    names = encoders.names
    roles = {names.episode: "episode", names.step: "step", names.action: "action"}
    for part in parts:
        check_columns(part, encoders.needed(part), roles)
    used = [*roles, *encoders.features, names.reward, names.terminated]
    extra = extra_columns(parts, used)
    notes: list[str] = []
    if extra:
        some = ", ".join(map(repr, extra[:20])) + (", …" if len(extra) > 20 else "")
        notes.append(f"{len(extra)} {'columns are' if len(extra) > 1 else 'column is'} ignored: {some}")
        _log.info(notes[0])
    return OpenTable(parts, encoders, binned, bool(per_file), tuple(notes))


def _settled(
    columns: dict[str, ColumnEncoder], binned: dict[str, Binning], provisional: NDArray[Any]
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
            f"the columns cannot be features as they are: {error}; put measurements into bins"
        ) from error
    return features, codes, [name for name, found in values.items() if tuple(found) == (NEVER_SEEN,)]


def _raise_if_broken(rows: TableRows) -> None:
    broken = broken_episodes(rows.step, rows.actions, rows.offsets)
    if broken.size:
        raise DataError(rows.explain(int(broken[0])))


def all_parts(parts: Iterable[Part]) -> str:
    """Return the names of all parts, for sentences."""
    names = [part.shown for part in parts]
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"

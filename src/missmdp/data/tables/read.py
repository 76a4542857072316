"""Reading trajectory tables: long tables with an episode, a step, one column per feature, and an action."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.admission import only_admitted_by
from missmdp.data.binning import Binning, bin_notes, checked_bins
from missmdp.data.dataset import NO_ACTION, Dataset
from missmdp.data.log import Log
from missmdp.data.tables.discovery import NEVER_SEEN, DiscoveredColumn
from missmdp.data.tables.encoding import BinnedColumn, ColumnEncoder
from missmdp.data.tables.layout import Names, extra_columns
from missmdp.data.tables.metadata import read_metadata
from missmdp.data.tables.missing_words import MissingWords
from missmdp.data.tables.ordered_rows import (
    TableRows,
    feature_columns,
    open_table,
    raise_if_broken,
    read_rows,
    understood,
)
from missmdp.data.tables.rows import Encoders
from missmdp.data.tables.sources import open_source
from missmdp.data.tables.structure import first_step
from missmdp.errors import DataError, ModelError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING, FeatureSpace

__all__ = ["dataset_from_table", "endings", "read_log"]

_log = logging.getLogger(__name__)


def dataset_from_table(
    source: Any, mdp: FactoredMDP, *, progress: bool | None = None, **options: Any
) -> Dataset:
    """Return a trajectory table as a dataset; see `Dataset.from_table`."""
    table = open_table(source, mdp, **options)
    rows = read_rows(table, progress=progress)
    raise_if_broken(rows)
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
            f"episodes that end with an action whose result was not logged: {acted:,} of {len(last):,}; "
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
                f"episodes in which {rows.table.encoders.names.terminated!r} is true before the last row: {early:,}; "
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
    missing: Iterable[str] = (),
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
    missing
        Words that mean missing, besides the usual ones.
    per_file
        Whether each file numbers its own episodes.
    progress
        Whether to show progress; by default on a terminal.
    """
    names = Names(episode, step, action, terminated=terminated)
    words = MissingWords(missing)
    columns: dict[str, ColumnEncoder]
    said: list[str] = []
    if features is not None:
        names = names.checked(features.names)
        binned = checked_bins(bins, {name: len(v) for name, v in features.as_dict().items()})
        columns = feature_columns(features, binned, words)
        said = bin_notes(binned, features.as_dict())
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
            name: BinnedColumn(binned[name], words) if name in binned else DiscoveredColumn(words)
            for name in found
        }
    encoders = Encoders(names, columns, None, None)
    rows = read_rows(understood(parts, encoders, binned, per_file=per_file, notes=said), progress=progress)
    raise_if_broken(rows)
    notes = list(rows.table.notes)
    observations = rows.observations
    if features is None:
        features, observations, never = _settled(columns, binned, observations)
        notes += [f"{name!r} is always missing" for name in never]
        notes += [
            f"{name!r}: {', '.join(map(repr, sorted(column.left_out)))} counts as missing"
            for name, column in columns.items()
            if isinstance(column, DiscoveredColumn) and column.left_out
        ]
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

"""Trajectory tables without a model: features, values and actions are those that occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_list, checked_mapping
from missmdp.data.binning import Binning, as_number, bin_notes, bins_argument, checked_bins
from missmdp.data.tables.content import DatasetParts, LogRows, TableOptions
from missmdp.data.tables.encoding import (
    NEVER_SEEN,
    BinnedColumn,
    ColumnEncoder,
    DiscoveredColumn,
    RewardColumn,
    TruthColumn,
    ValueColumn,
    code_dtype,
)
from missmdp.data.tables.endings import last_actions_note, marked_ends
from missmdp.data.tables.identifiers import only_features, what_words_identify
from missmdp.data.tables.matching import MissingWords
from missmdp.data.tables.ordered_rows import (
    OpenTable,
    TableRows,
    column_names,
    open_features,
    raise_if_broken,
    read_rows,
    reward_column,
    understood,
)
from missmdp.data.tables.rewards import kept_rewards
from missmdp.data.tables.rows import Encoders
from missmdp.data.tables.sources import open_source
from missmdp.data.tables.structure import Names, extra_columns, first_step
from missmdp.data.tables.write import read_metadata
from missmdp.errors import Argument, DataError, Message, ModelError, ParameterError
from missmdp.model.space import MISSING, NO_ACTION, FeatureSpace
from missmdp.words import preview

MANY_VALUES = 1000
"""A feature with more values than these is none: nothing can be learned about each of them."""
MANY_NUMBERS = 30
"""So many different numbers look like measurements."""

Given = Mapping[str, tuple[Any, ...] | None]
"""Features and their values, None where these are the ones that occur."""


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
    if features is None:
        log, never = _settled(rows, {})
        always = (f"{name!r} is always missing" for name in never)
        return replace(log, notes=(*table.notes, *always, *_left_out_words(table)))
    return _log_rows(rows, features, rows.observations, table.notes)


def dataset_without_model(
    source: Any, features: Any, options: TableOptions, *, progress: bool | None = None
) -> DatasetParts:
    """Return a trajectory table as the parts of a dataset that has no model; see `Dataset.from_table`."""
    given = _given_features(features)
    words = MissingWords(options.get("missing", ()))
    action = DiscoveredColumn(words)
    table = _open_unknown(source, options, given, action, TruthColumn(words), reward_column(options))
    rows = read_rows(table, progress=progress)
    _raise_if_broken(rows, action)
    terminated, ends = marked_ends(rows)
    action_names, actions, unused = _settled_actions(rows, action)
    rewards, about_rewards = kept_rewards(rows)
    log, never = _settled(rows, given or {})
    log, about_features = _only_useful(log, table, given or {}, never)
    notes = (*table.notes, *about_features, *_left_out_words(table), *unused, *ends, *about_rewards)
    if len(rows.offsets) == 2:
        notes = (*notes, "the log has one episode, so it shows only once how episodes start")
    metadata = read_metadata(table.parts)
    ids = log.episode_ids
    return DatasetParts(
        log.observations,
        actions,
        rows.offsets,
        terminated,
        seed=metadata.seed,
        behaviour=metadata.behaviour,
        episode_ids=None if ids == tuple(range(len(ids))) else ids,
        bins={n: b for n, b in (table.bins or metadata.bins or {}).items() if n in log.features.names}
        or None,
        notes=notes,
        logged_rewards=rewards,
        feature_space=log.features,
        action_names=action_names,
    )


def _given_features(features: Any) -> Given | None:
    """Return the features that a user asks for; None means all columns."""
    if features is None:
        return None
    if isinstance(features, FeatureSpace):
        return features.as_dict()
    expected = "a list of columns, or a mapping from columns to values"
    given: Any = features
    if isinstance(given, Mapping):
        found = checked_mapping("features", given, expected)
    else:
        found = _listed_once(checked_list("features", given, expected), expected)
    if not found:
        raise ParameterError("features", found, expected, "there must be at least one feature")
    # Values are checked as those of a model are.
    space = FeatureSpace({name: [NEVER_SEEN] if values is None else values for name, values in found.items()})
    return {name: None if found[name] is None else values for name, values in space.as_dict().items()}


def _listed_once(names: list[Any], expected: str) -> dict[Any, None]:
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise ParameterError("features", name, expected)
        if name in names[:place]:
            raise ParameterError("features", name, "different columns", f"{name!r} is listed twice")
    return dict.fromkeys(names)


def _open_unknown(
    source: Any,
    options: TableOptions,
    given: Given | None = None,
    action: ColumnEncoder | None = None,
    terminated: ColumnEncoder | None = None,
    reward: RewardColumn | None = None,
) -> OpenTable:
    """Return a source whose columns are features, apart from those that have a role; or those that are given."""
    words = MissingWords(options.get("missing", ()))
    names = column_names(options).checked(given or (), reward=reward is not None)
    roles = [names.episode, names.step, names.action, names.terminated]
    parts = open_source(source, [*roles, *(given or ())])
    found: Given = given or dict.fromkeys(extra_columns(parts, [*roles, names.reward, Names.reward]))
    if not found:
        listing = ", ".join(parts[0].columns)
        raise DataError(f"{parts[0].shown}: there are no feature columns; the columns are {listing}")
    sizes = {name: None if values is None else len(values) for name, values in found.items()}
    binned = checked_bins(options.get("bins"), sizes)
    columns: dict[str, ColumnEncoder] = {}
    for name, values in found.items():
        if name in binned:
            columns[name] = BinnedColumn(binned[name], words)
        elif values is None:
            columns[name] = DiscoveredColumn(words)
        else:
            columns[name] = ValueColumn(values, name, words)
    ends = None if names.terminated in found else terminated
    return understood(
        parts,
        Encoders(names, columns, action, ends, reward),
        binned,
        per_file=options.get("per_file", False),
        notes=_named_bins(binned, found),
    )


def _named_bins(binned: Mapping[str, Binning], found: Given) -> list[str]:
    """Return which value each bin becomes, where values were given."""
    values = {name: found[name] for name in binned}
    named = {name: known for name, known in values.items() if known is not None}
    return bin_notes({name: binned[name] for name in named}, named)


def _settled(rows: TableRows, given: Given) -> tuple[LogRows, list[str]]:
    """Return the rows with the features that were discovered, and the features of which nothing was seen."""
    table, provisional = rows.table, rows.observations
    recorded = read_metadata(table.parts).bins or {}
    values: dict[str, Sequence[Any]] = {}
    codes = np.empty_like(provisional)
    for position, (name, column) in enumerate(table.encoders.features.items()):
        if isinstance(column, DiscoveredColumn):
            values[name], final = _in_order_of_bins(*column.settle(), recorded.get(name))
            codes[:, position] = final[provisional[:, position]]
        else:
            known = given.get(name)
            values[name] = table.bins[name].labels() if known is None else known
            codes[:, position] = provisional[:, position]
    try:
        features = FeatureSpace(values)
    except ModelError as error:
        raise DataError(
            f"{table.parts[0].shown}: the columns cannot be features as they are: {error}; "
            "put measurements into bins"
        ) from error
    never = [name for name, found in values.items() if tuple(found) == (NEVER_SEEN,)]
    return _log_rows(rows, features, codes, ()), never


def _in_order_of_bins(
    values: tuple[Any, ...], final: NDArray[np.int64], binning: Binning | None
) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """Return values and codes, in the order of the bins that a file says its values are."""
    labels = () if binning is None else binning.labels()
    if not set(values) <= set(labels):
        return values, final
    # The entry at the end is for MISSING, which is −1.
    code_of = np.array([*map(labels.index, values), MISSING])
    return labels, code_of[final]


def _log_rows(
    rows: TableRows, features: FeatureSpace, codes: NDArray[np.integer[Any]], notes: tuple[str, ...]
) -> LogRows:
    return LogRows(
        features,
        codes.astype(features.code_dtype, copy=False),
        np.repeat(np.arange(len(rows.offsets) - 1), np.diff(rows.offsets)),
        rows.step - first_step(rows.step, rows.offsets),
        rows.episodes.names(rows.table.parts),
        notes,
    )


def _left_out_words(table: OpenTable) -> list[str]:
    """Return notes on words that were taken to mean missing, though they may have been values."""
    return [
        f"{name!r}: {', '.join(map(repr, sorted(column.left_out)))} counts as missing"
        for name, column in table.encoders.features.items()
        if isinstance(column, DiscoveredColumn) and column.left_out
    ]


def _raise_if_broken(rows: TableRows, action: DiscoveredColumn) -> None:
    """Raise `DataError` if there are no actions, or episodes that are no histories."""
    name, where = rows.table.encoders.names.action, rows.table.parts[0].shown
    words = ", ".join(map(repr, sorted(action.left_out)))
    hint = f" ({words} counts as missing; an action needs another name)" if words else ""
    if (rows.actions == MISSING).all():
        raise DataError(
            f"{where}: the column {name!r} says of no row what was done{hint}; only the last row of an episode has no "
            "action"
        )
    try:
        raise_if_broken(rows)
    except DataError as error:
        if hint and f"{name!r} is missing" in str(error):
            raise DataError(f"{error}{hint}") from error
        raise


def _settled_actions(
    rows: TableRows, action: DiscoveredColumn
) -> tuple[tuple[Any, ...], NDArray[np.integer[Any]], list[str]]:
    """Return the actions whose results were logged, a code per row, and notes on those that are left out."""
    values, final = action.settle()
    codes = final[rows.actions]
    codes[rows.offsets[1:] - 1] = NO_ACTION
    used = np.unique(codes[codes != NO_ACTION])
    if not used.size:
        raise DataError(
            f"{rows.table.parts[0].shown}: no episode has two rows, so the log shows the result of no action"
        )
    if used.size > MANY_VALUES:
        raise DataError(
            f"{rows.table.parts[0].shown}: {rows.table.encoders.names.action!r} has {used.size:,} different values, "
            f"and a log has at most {MANY_VALUES:,} actions; put doses and the like into ranges before"
        )
    code_of = np.full(len(values) + 1, NO_ACTION)
    code_of[used] = np.arange(len(used))
    notes = last_actions_note(rows)
    only_last = [value for code, value in enumerate(values) if code not in set(used.tolist())]
    if only_last:
        notes.append(f"actions that occur only in last rows, and are left out: {preview(only_last)}")
    return tuple(values[code] for code in used.tolist()), code_of[codes].astype(code_dtype(len(used))), notes


def _only_useful(
    log: LogRows, table: OpenTable, given: Given, never: Sequence[str]
) -> tuple[LogRows, list[str]]:
    """Return a log without columns that cannot be features, and notes on these and on odd ones that stay.

    A feature whose values were given always stays; columns of words that hardly ever recur stay if they were named.
    """
    kept: list[int] = []
    notes: list[str] = []
    where = table.parts[0].shown
    for i, (name, values) in enumerate(log.features.as_dict().items()):
        if not isinstance(table.encoders.features[name], DiscoveredColumn):
            kept.append(i)
            if (log.observations[:, i] == MISSING).all():
                notes.append(f"{name!r} is always missing")
            continue
        if name in never:
            notes.append(f"{name!r} is left out, since it is always missing")
            continue
        identified = "" if name in given else what_words_identify(log, i, values)
        if identified:
            notes.append(f"{name!r} is left out, since it has {identified}")
            continue
        measured = all(isinstance(value, int | float) and as_number(value) is not None for value in values)
        if len(values) > MANY_VALUES:
            raise DataError(_too_many(where, name, len(values), measured=measured))
        kept.append(i)
        if len(values) == 1:
            notes.append(f"{name!r} has only one value, {values[0]!r}")
        elif measured and len(values) > MANY_NUMBERS:
            notes.append(
                Message(
                    f"{name!r} has {len(values)} different numbers; if these are measurements, put them into bins: ",
                    bins_argument(name),
                )
            )
    if not kept:
        raise DataError(f"{where}: no column can be a feature: {'; '.join(notes)}")
    return only_features(log, kept), notes


def _too_many(where: str, name: str, n: int, *, measured: bool) -> Message:
    """Return that a column has too many values for a feature, and what to do."""
    problem = f"{where}: {name!r} has {n:,} different values, and a feature has at most {MANY_VALUES:,}; "
    leave = Message(
        "name the columns that are features, without this one, with ", Argument("features", [...])
    )
    if measured:
        return Message(problem, "put measurements into bins: ", bins_argument(name), "; or ", *leave.parts)
    return Message(problem, *leave.parts)

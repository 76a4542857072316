"""What is missing in a log, before any model: how often, together with what, when, and beside which values.

Everything here is counted from the table. It shows on what missingness depends as far as a log can show it;
whether a value goes missing because of what it would have been (self-censoring) single rows cannot show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.counting import count_missing_by_step, count_missing_by_value
from missmdp.checks import checked_list, checked_names
from missmdp.data.dataset import Dataset
from missmdp.data.description.description import Description
from missmdp.data.description.groups import Groups, MissingBy, group_steps, group_values
from missmdp.data.tables.content import LogRows, TableOptions, known_options
from missmdp.data.tables.identifiers import only_features, what_words_identify
from missmdp.data.tables.structure import Names
from missmdp.errors import DataError, ParameterError
from missmdp.model.space import MISSING, FeatureSpace

MOST_PATTERNS = 1000
"""Rarer patterns than these are only counted."""
MOST_FEATURES = 12
"""For more features than these a picture has no room."""


def describe(
    data: Any,
    *,
    ignore: str | Iterable[str] = (),
    progress: bool | None = None,
    **options: Unpack[TableOptions],
) -> Description:
    """Return what is missing in a log: how often, together with what, over steps, and by other features' values.

    No model is needed: the features are the columns of the table, and their values those that occur.

    Parameters
    ----------
    data
        A `Dataset`, or a table as `Dataset.from_table` reads it: CSV or Parquet files, a folder or a pattern of
        these, or a pandas, polars or pyarrow frame.
    ignore
        Columns to leave out. Columns of words that hardly ever recur, such as ids and notes, are left out of tables
        anyway, with a note.
    progress
        Whether to show progress; by default on a terminal.
    options
        For tables: how to read them, as for `Dataset.from_table`. Without `bins`, measurements are put in ranges,
        but only where they have not too many values.

    Examples
    --------
    >>> import missmdp as mm
    >>> data = mm.collect(mm.load_benchmark("icu-mnar-unid"), 10_000, seed=0)
    >>> mm.describe(data).strongest(1)[0].given
    'test'
    """
    table = known_options(options)
    if isinstance(data, Dataset):
        return describe_log(_without(_log_of(data), ignore))
    from missmdp.data.tables.discovery import log_from_table

    log = log_from_table(data, progress=progress, **table)
    named = (
        table.get("action", Names.action),
        table.get("terminated", Names.terminated),
        table.get("reward"),
    )
    others = {Names.reward, *(name for name in named if name is not None)}
    return describe_log(_without_identifiers(_with_dates(_without(log, ignore, harmless=others))))


def describe_log(log: LogRows) -> Description:
    """Return what is missing in a log that has been read."""
    n_rows = len(log.observations)
    if n_rows == 0:
        raise DataError("the log has no rows, so there is nothing to describe")
    lengths = np.bincount(log.episode)
    over_steps, words = _by_step(log)
    _, first, rows = np.unique(_numbered(words), return_index=True, return_counts=True)
    frequent = np.argsort(-rows, kind="stable")[:MOST_PATTERNS]
    missing = over_steps.missing.sum(axis=0)
    often = _most_often_missing(missing)
    return Description(
        log.features.names,
        n_rows,
        len(lengths),
        (int(lengths.min()), float(np.median(lengths)), int(lengths.max())),
        missing,
        log.observations[first[frequent]] == MISSING,
        rows[frequent].astype(np.int64),
        len(rows),
        often,
        *_patterns_of(log.observations, often),
        over_steps,
        _by_value(log),
        log.notes,
    )


def _log_of(dataset: Dataset) -> LogRows:
    episode = np.repeat(np.arange(dataset.n_episodes), dataset.lengths)
    step = np.arange(dataset.n_steps) - dataset.offsets[episode]
    ids = dataset.episode_ids or tuple(range(dataset.n_episodes))
    return LogRows(dataset.feature_space, dataset.observations, episode, step, ids, dataset.notes)


def _by_step(log: LogRows) -> tuple[MissingBy, NDArray[np.int64]]:
    """Return missing rates by step, and each row's gaps as bits of one or more words, shape (words, N)."""
    groups = group_steps(np.bincount(log.step))
    rows = np.zeros(len(groups.labels), dtype=np.int64)
    missing = np.zeros((len(rows), len(log.features)), dtype=np.int64)
    words = np.zeros((-(-len(log.features) // 62), len(log.step)), dtype=np.int64)
    count_missing_by_step(log.observations, log.step, groups.group_of, rows, missing, words)
    return MissingBy("step", groups.labels, rows, missing, groups.ordered), words


def _numbered(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each column of words, the same for the same words, shape (N,)."""
    number = words[0]
    for word in words[1:]:
        _, number = np.unique(number, return_inverse=True)
        distinct, place = np.unique(word, return_inverse=True)
        number = number * len(distinct) + place
    return number


def _most_often_missing(missing: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the positions of at most 12 features that are missing in some row, in their order."""
    some = np.flatnonzero(missing)
    return tuple(sorted(some[np.argsort(-missing[some], kind="stable")[:MOST_FEATURES]].tolist()))


def _patterns_of(
    observations: NDArray[np.integer[Any]], chosen: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return all patterns of a few features, the most frequent first, and the rows that have them."""
    number = np.zeros(len(observations), dtype=np.int64)
    for bit, i in enumerate(chosen):
        number |= (observations[:, i] == MISSING).astype(np.int64) << bit
    found, rows = np.unique(number, return_counts=True)
    order = np.argsort(-rows, kind="stable")
    bits = np.arange(len(chosen), dtype=np.int64)
    return (found[order, None] >> bits & 1).astype(np.bool_), rows[order].astype(np.int64)


def _by_value(log: LogRows) -> tuple[MissingBy, ...]:
    groups = _value_groups(log.features, log.observations)
    starts = np.cumsum([0, *(len(each.labels) for each in groups)])
    group_of = np.concatenate([each.group_of + start for each, start in zip(groups, starts, strict=False)])
    first = np.cumsum([0, *log.features.sizes[:-1]])
    rows = np.zeros(starts[-1], dtype=np.int64)
    missing = np.zeros((len(rows), len(groups)), dtype=np.int64)
    count_missing_by_value(log.observations, first, group_of, rows, missing)
    return tuple(
        MissingBy(name, each.labels, rows[start:stop], missing[start:stop], each.ordered)
        for name, each, start, stop in zip(log.features.names, groups, starts[:-1], starts[1:], strict=True)
    )


def _value_groups(features: FeatureSpace, observations: NDArray[np.integer[Any]]) -> Sequence[Groups]:
    # Counted with MISSING as slot 0.
    return [
        group_values(values, np.bincount(column.astype(np.int64) + 1, minlength=len(values) + 1)[1:])
        for values, column in zip(features.values, observations.T, strict=True)
    ]


def _without(log: LogRows, ignore: str | Iterable[str], *, harmless: Collection[str] = ()) -> LogRows:
    """Return a log without some of its columns.

    Parameters
    ----------
    log
        The log.
    ignore
        The columns that are not wanted.
    harmless
        Columns that are no features, but that may be ignored as well.
    """
    names = log.features.names
    ignored = (ignore,) if isinstance(ignore, str) else checked_list("ignore", ignore, "a list of features")
    checked_names(
        "ignore", [name for name in ignored if not (isinstance(name, str) and name in harmless)], names
    )
    kept = [i for i, name in enumerate(names) if name not in ignored]
    if not kept:
        problem = "all features are ignored, so there is nothing to describe"
        raise ParameterError("ignore", ignored, "some of the features", problem)
    return only_features(log, kept)


def _without_identifiers(log: LogRows) -> LogRows:
    """Return a log without columns of words that hardly ever recur, such as ids and notes, and with a note on these.

    These are columns with more than 50 different words, of which there are more than half as many as rows that have
    one, or as episodes if hardly any episode has two. If no column would be left, all are.
    """
    kept: list[int] = []
    notes: list[str] = []
    for i, (name, values) in enumerate(log.features.as_dict().items()):
        identified = what_words_identify(log, i, values)
        if identified:
            notes.append(f"{name!r} is left out, since it has {identified}")
        else:
            kept.append(i)
    return replace(only_features(log, kept), notes=(*log.notes, *notes)) if kept else log


def _with_dates(log: LogRows) -> LogRows:
    """Return a log in which words that are all dates (ISO 8601) are dates, as they are in frames and Parquet files."""
    values = log.features.as_dict()
    dates = {name: found for name, words in values.items() if (found := _dates(words))}
    return replace(log, features=FeatureSpace({**values, **dates})) if dates else log


def _dates(words: Sequence[Any]) -> list[datetime]:
    """Return words as dates, or nothing if some are not, or if two are the same."""
    found: list[datetime] = []
    for word in words:
        try:
            found.append(datetime.fromisoformat(word))
        except (TypeError, ValueError):
            return []
    return found if len(set(found)) == len(found) else []

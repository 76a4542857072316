"""Which columns of a log are described: not those that the user ignores, and no identifiers."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from missmdp.data.log import Log
from missmdp.errors import DataError
from missmdp.model.space import FeatureSpace

__all__ = ["with_dates", "without", "without_identifiers"]

MANY_WORDS = 50
"""Columns with at most so many different words are never taken for identifiers."""


def without(log: Log, ignore: str | Iterable[str], *, harmless: Collection[str] = ()) -> Log:
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
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    for name in ignored:
        if name not in names and name not in harmless:
            close = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise DataError(
                f"cannot ignore {name!r}: no feature has this name; the features are {', '.join(names)}{hint}"
            )
    kept = [i for i, name in enumerate(names) if name not in ignored]
    if not kept:
        raise DataError("all features are ignored, so there is nothing to describe")
    return _only(log, kept)


def without_identifiers(log: Log) -> Log:
    """Return a log without columns of words that hardly ever recur, such as ids and notes, and with a note on these.

    These are columns with more than 50 different words, of which there are more than half as many as rows that have
    one, or as episodes if hardly any episode has two. If no column would be left, all are.
    """
    kept: list[int] = []
    notes: list[str] = []
    for i, (name, values) in enumerate(log.features.as_dict().items()):
        identified = _what_words_identify(log, i, values)
        if identified:
            notes.append(f"{name!r} is left out, since it has {identified}")
        else:
            kept.append(i)
    return replace(_only(log, kept), notes=(*log.notes, *notes)) if kept else log


def _what_words_identify(log: Log, i: int, values: Sequence[Any]) -> str:
    """Return how many words a column has in how many rows or episodes if it tells these apart, otherwise nothing."""
    if len(values) <= MANY_WORDS or not all(isinstance(value, str) for value in values):
        return ""
    seen = np.flatnonzero(log.observations[:, i] >= 0)
    words = log.observations[seen, i].astype(np.int64)
    n_words = len(np.unique(words))
    if n_words <= MANY_WORDS:
        return ""
    if 2 * n_words > len(seen):
        return f"{n_words:,} different words in {len(seen):,} rows"
    episode = log.episode[seen]
    n_episodes, n_pairs = len(np.unique(episode)), len(np.unique(episode * len(values) + words))
    if n_pairs < 1.1 * n_episodes and 2 * n_words > n_episodes:
        return f"{n_words:,} different words in {n_episodes:,} episodes"
    return ""


def with_dates(log: Log) -> Log:
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


def _only(log: Log, kept: Sequence[int]) -> Log:
    """Return a log with the features at some positions."""
    if len(kept) == len(log.features):
        return log
    values = log.features.as_dict()
    features = FeatureSpace({log.features.names[i]: values[log.features.names[i]] for i in kept})
    return replace(log, features=features, observations=np.ascontiguousarray(log.observations[:, kept]))

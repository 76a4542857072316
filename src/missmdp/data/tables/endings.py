"""How episodes of a table end: whether in a terminal state, and with actions whose results were not logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.ordered_rows import TableRows
from missmdp.errors import DataError
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import MISSING, StateSpace

_log = logging.getLogger(__name__)


def last_actions_note(rows: TableRows) -> list[str]:
    """Return a note on actions in the last rows of episodes, if there are some."""
    last = rows.offsets[1:] - 1
    acted = int(np.count_nonzero(rows.actions[last] != MISSING))
    if not acted:
        return []
    return [
        f"episodes that end with an action whose result was not logged: {acted:,} of {len(last):,}; "
        "these last actions are left out"
    ]


def marked_ends(rows: TableRows) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which episodes are marked as ended in a terminal state, and a note if none says so.

    Raises
    ------
    DataError
        If a row is marked that is not the last of its episode. Where there is a model, its states can be checked
        against the histories; without one, marks are all that says where episodes end.
    """
    last = rows.offsets[1:] - 1
    name = rows.table.encoders.names.terminated
    early = rows.terminated == 1
    early[last] = False
    if early.any():
        row = int(np.flatnonzero(early)[0])
        raise DataError(
            f"{rows.where(row)}: {name!r} is true, but step {rows.step[row + 1]} follows; only the last row of an "
            "episode can be terminal"
        )
    if (rows.terminated != MISSING).any():
        return rows.terminated[last] == 1, []
    note = f"no episode counts as ended in a terminal state, since there is no column {name!r} that says so"
    if any(name in part.columns for part in rows.table.parts):
        note = f"no episode counts as ended in a terminal state, since {name!r} is empty"
    _log.info(note)
    return np.zeros(len(last), dtype=np.bool_), [note]


def inferred_ends(rows: TableRows, mdp: FactoredMDP) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which episodes ended in a terminal state, and notes on how episodes end.

    Where a table does not say, an episode did if only terminal states admit its last observation.
    """
    last = rows.offsets[1:] - 1
    notes = last_actions_note(rows)
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

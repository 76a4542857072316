"""Rows in order: sorted by episode and step, with the checks that make them histories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.layout import Names, how_to_number
from missmdp.model.space import MISSING

__all__ = ["Orderly", "Place", "Sorting", "broken_episodes", "explain_episode", "sort_rows"]


class Place(NamedTuple):
    """Where a row is from."""

    file: str
    """Empty for frames."""
    row: int
    """Counted from 1, as people do."""

    def __str__(self) -> str:
        return f"{self.file}, row {self.row}" if self.file else f"row {self.row}"


@dataclass(frozen=True)
class Sorting:
    """How rows are put in order of episode and step."""

    order: NDArray[np.int64] | None
    """The old place of each row, or None if they were in order."""
    offsets: NDArray[np.int64]
    """Where episodes start, shape (E + 1,)."""

    def apply(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column in order."""
        return column if self.order is None else column[self.order]

    def source(self, row: int) -> int:
        """Return the old place of a row."""
        return row if self.order is None else int(self.order[row])


def sort_rows(episode: NDArray[np.int64], step: NDArray[np.int64], n_episodes: int) -> Sorting:
    """Return how to put rows in order of episode, then step; rows of one step stay in the order they had."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(episode, minlength=n_episodes))]).astype(np.int64)
    same = episode[1:] == episode[:-1]
    if ((episode[1:] > episode[:-1]) | (same & (step[1:] >= step[:-1]))).all():
        return Sorting(None, offsets)
    order = _by_target(offsets[episode] + step - min(int(step.min()), 1), len(step))
    return Sorting(np.lexsort((step, episode)).astype(np.int64) if order is None else order, offsets)


def _by_target(target: NDArray[np.int64], n_rows: int) -> NDArray[np.int64] | None:
    """Return the order that puts each row where its step says it belongs, or None if rows are no histories.

    Much faster than sorting.
    """
    if target.min() < 0 or target.max() >= n_rows:
        return None
    order = np.full(n_rows, -1, dtype=np.int64)
    order[target] = np.arange(n_rows)
    return order if (order >= 0).all() else None


def first_step(step: NDArray[np.int64], offsets: NDArray[np.int64]) -> int:
    """Return from where steps count: 1 if all episodes start there, else 0."""
    return 1 if len(offsets) > 1 and (step[offsets[:-1]] == 1).all() else 0


class Orderly:
    """Sees, batch by batch, whether rows are histories in order as they come, one episode after the other."""

    def __init__(self) -> None:
        self.so_far = True
        """Whether all rows up to now are; where not, they may still be histories in another order."""
        self._first = 0
        self._last: tuple[int, int, bool] | None = None

    def add(self, episode: NDArray[np.int64], step: NDArray[np.int64], idle: NDArray[np.bool_]) -> None:
        """Look at more rows; `idle` says where there is no action."""
        if self._last is None:
            self._first = int(step[0])
            self.so_far = self._first in (0, 1)
        else:
            last_episode, last_step, last_idle = self._last
            episode = np.concatenate([[last_episode], episode])
            step = np.concatenate([[last_step], step])
            idle = np.concatenate([[last_idle], idle])
        self._last = int(episode[-1]), int(step[-1]), bool(idle[-1])
        same = episode[1:] == episode[:-1]
        goes_on = (step[1:] == step[:-1] + 1) & ~idle[:-1]
        # Episodes are numbered as they appear, so a new one has the next number.
        begins = (episode[1:] == episode[:-1] + 1) & (step[1:] == self._first)
        self.so_far &= bool(((same & goes_on) | (~same & begins)).all())


def broken_episodes(
    step: NDArray[np.int64], actions: NDArray[Any], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the episodes, in order, whose steps do not count 0, 1, 2, … or that lack an action before the end.

    Rows are in order. No actions (an empty array) means that they are not looked at.
    """
    lengths = np.diff(offsets)
    bad = step != np.arange(len(step)) - np.repeat(offsets[:-1] - first_step(step, offsets), lengths)
    if len(actions):
        lacking = actions == MISSING
        lacking[offsets[1:] - 1] = False
        bad |= lacking
    rows = np.flatnonzero(bad)
    return np.unique(np.searchsorted(offsets, rows, side="right") - 1)


def explain_episode(
    step: NDArray[np.int64],
    actions: NDArray[Any],
    name: Any,
    first: int,
    place: Callable[[int], Place],
    names: Names,
) -> str:
    """Return what is wrong with a broken episode, as one sentence.

    Parameters
    ----------
    step, actions
        The episode's rows in order.
    name
        What the table calls it.
    first
        From where steps count.
    place
        Where a row of the episode is from.
    names
        What the columns are called.
    """
    column, action = names.step, names.action
    advice = how_to_number(names.step, names.episode)
    wrong = np.flatnonzero(step != np.arange(len(step)) + first)
    if not wrong.size:
        row = int(np.flatnonzero(actions[:-1] == MISSING)[0])
        return (
            f"{place(row)}, episode {name!r}: {action!r} is missing at step {step[row]}, but step {step[row + 1]} "
            "follows; only the last row of an episode has no action"
        )
    row = int(wrong[0])
    if row == 0:
        return (
            f"{place(row)}, episode {name!r}: {column!r} starts at {step[0]}; steps count from 0 in each episode "
            f"(or from 1 in all of them); {advice}"
        )
    before, here = place(row - 1), place(row)
    if step[row] == step[row - 1]:
        if before.file == here.file:
            rows = f"{before.file}, rows" if before.file else "rows"
            return (
                f"{rows} {before.row} and {here.row}, episode {name!r}: two rows for {column!r} {step[row]}; "
                "each step of an episode has one row"
            )
        return (
            f"{before} and {here}, episode {name!r}: two rows for {column!r} {step[row]}; if each file numbers "
            "its own episodes, pass per_file=True"
        )
    return (
        f"{here}, episode {name!r}: {column!r} is {step[row]}, but {step[row - 1]} comes before it "
        f"({before}); steps count 0, 1, 2, … without gaps; {advice}"
    )

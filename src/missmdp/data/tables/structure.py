"""The structure of a trajectory table: which column is what, and whether rows in order make histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import Argument, DataError, Message, ParameterError
from missmdp.model.space import MISSING
from missmdp.words import closest, did_you_mean

if TYPE_CHECKING:
    from missmdp.data.tables.parts import Part


@dataclass(frozen=True)
class Names:
    """The names of the columns that are not features."""

    episode: str = "episode"
    step: str = "step"
    action: str = "action"
    reward: str = "reward"
    terminated: str = "terminated"

    def checked(self, features: Iterable[str], *, reward: bool = False) -> Names:
        """Return these names if they differ from each other and from the features.

        A feature called reward or terminated is a feature; then there is no such column, unless rewards are to be
        read.
        """
        own = {"episode": self.episode, "step": self.step, "action": self.action}
        if reward:
            own["reward"] = self.reward
        taken: dict[str, str] = {}
        for role, name in {**own, "terminated": self.terminated}.items():
            given: Any = name
            if not isinstance(given, str) or not given.strip():
                raise ParameterError(role, name, "the name of a column")
            if name in taken:
                both = Message(Argument(role), " and ", Argument(taken[name]), f" are both {name!r}")
                raise DataError(both, "; each must be a column of its own")
            taken[name] = role
        for feature in features:
            if feature in own.values():
                role = taken[feature]
                raise DataError(
                    f"the feature {feature!r} is called like the column of {role}s; "
                    "give that column another name and pass ",
                    Argument(role, ..., python="'…'"),
                )
        return self


def how_to_number(step: str, episode: str) -> str:
    """Return how rows that are only in order of time get their steps."""
    return (
        f"if {step!r} holds times, number the rows of each episode instead, in pandas "
        f"frame.sort_values({step!r}).groupby({episode!r}).cumcount()"
    )


def check_columns(part: Part, needed: Sequence[str], roles: dict[str, str], taken: Iterable[str]) -> None:
    """Raise `DataError` unless a part has each of the needed columns, once.

    `roles` has the options with which columns can be named otherwise: column → option. Columns that are `taken`
    are not suggested for anything else.
    """
    free = [column for column in part.columns if column not in {*taken, *roles}]
    for name in needed:
        count = part.columns.count(name)
        if count > 1:
            raise DataError(f"{part.shown}: the column {name!r} occurs twice")
        if count == 0:
            raise DataError(_absent(part, name, roles.get(name), free))


def check_named(parts: Sequence[Part], names: Names, features: Iterable[str]) -> None:
    """Raise `DataError` if a column that need not be there was given a name, and is not there."""
    taken = {names.episode, names.step, names.action, names.terminated, names.reward, *features}
    free = [column for column in parts[0].columns if column not in taken]
    for role, usual, name in (
        ("action", Names.action, names.action),
        ("terminated", Names.terminated, names.terminated),
        ("reward", Names.reward, names.reward),
    ):
        if name != usual and not any(name in part.columns for part in parts):
            raise DataError(_absent(parts[0], name, role, free))


def _absent(part: Part, name: str, option: str | None, free: Sequence[str]) -> Message:
    """Return that there is no column of a name, and what to do; `option` is the argument with which to name it."""
    found = ", ".join(part.columns[:40]) or "none"
    more = f", … ({len(part.columns)} in all)" if len(part.columns) > 40 else ""
    message = f"{part.shown}: there is no column {name!r}; the columns are {found}{more}"
    if option is not None and option in free and option != "reward":
        return Message(f"{message}; it seems to be {option!r}, so leave out ", Argument(option, name))
    if option is not None:
        close = closest(name, free)
        named = Argument(option, ..., python="'…'") if close is None else Argument(option, close)
        return Message(f"{message}; if it has another name, pass ", named)
    return Message(message, did_you_mean(name, free))


def extra_columns(parts: Iterable[Part], used: Iterable[str]) -> list[str]:
    """Return the columns that nobody asked for, in order of appearance."""
    used = set(used)
    return list(dict.fromkeys(name for part in parts for name in part.columns if name not in used))


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
) -> Message:
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
        return Message(
            f"{place(row)}, episode {name!r}: {action!r} is missing at step {step[row]}, but step {step[row + 1]} "
            "follows; only the last row of an episode has no action"
        )
    row = int(wrong[0])
    if row == 0:
        return Message(
            f"{place(row)}, episode {name!r}: {column!r} starts at {step[0]}; steps count from 0 in each episode "
            f"(or from 1 in all of them); {advice}"
        )
    before, here = place(row - 1), place(row)
    if step[row] == step[row - 1]:
        if before.file == here.file:
            rows = f"{before.file}, rows" if before.file else "rows"
            return Message(
                f"{rows} {before.row} and {here.row}, episode {name!r}: two rows for {column!r} {step[row]}; "
                "each step of an episode has one row"
            )
        return Message(
            f"{before} and {here}, episode {name!r}: two rows for {column!r} {step[row]}; if each file numbers "
            "its own episodes, pass ",
            Argument("per_file", True),
        )
    return Message(
        f"{here}, episode {name!r}: {column!r} is {step[row]}, but {step[row - 1]} comes before it "
        f"({before}); steps count 0, 1, 2, … without gaps; {advice}"
    )

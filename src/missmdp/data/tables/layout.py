"""Which column of a trajectory table is what."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from missmdp.data.tables.sources import Part
from missmdp.errors import DataError

__all__ = ["Names", "check_columns", "check_named", "extra_columns", "how_to_number"]


@dataclass(frozen=True)
class Names:
    """The names of the columns that are not features."""

    episode: str = "episode"
    step: str = "step"
    action: str = "action"
    reward: str = "reward"
    terminated: str = "terminated"

    def checked(self, features: Iterable[str]) -> Names:
        """Return these names if they differ from each other and from the features.

        A feature called reward or terminated is a feature; then there is no such column.
        """
        own = {"episode": self.episode, "step": self.step, "action": self.action}
        taken: dict[str, str] = {}
        for role, name in {**own, "terminated": self.terminated}.items():
            given: Any = name
            if not isinstance(given, str) or not given.strip():
                raise DataError(f"{role}= must be the name of a column, got {name!r}")
            if name in taken:
                raise DataError(
                    f"{role}= and {taken[name]}= are both {name!r}; each must be a column of its own"
                )
            taken[name] = role
        for feature in features:
            if feature in own.values():
                role = taken[feature]
                raise DataError(
                    f"the feature {feature!r} is called like the column of {role}s; "
                    f"give that column another name and pass {role}='…'"
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
    ):
        if name != usual and not any(name in part.columns for part in parts):
            raise DataError(_absent(parts[0], name, role, free))


def _absent(part: Part, name: str, option: str | None, free: Sequence[str]) -> str:
    lowered = {column.lower(): column for column in reversed(free)}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    found = ", ".join(part.columns[:40]) or "none"
    more = f", … ({len(part.columns)} in all)" if len(part.columns) > 40 else ""
    message = f"{part.shown}: there is no column {name!r}; the columns are {found}{more}"
    if option is not None and option in free:
        return f"{message}; it seems to be {option!r}, so leave out {option}={name!r}"
    if option is not None:
        example = repr(lowered[close[0]]) if close else "'…'"
        return f"{message}; if it has another name, pass {option}={example}"
    return message + (f"; did you mean {lowered[close[0]]!r}?" if close else "")


def extra_columns(parts: Iterable[Part], used: Iterable[str]) -> list[str]:
    """Return the columns that nobody asked for, in order of appearance."""
    used = set(used)
    return list(dict.fromkeys(name for part in parts for name in part.columns if name not in used))

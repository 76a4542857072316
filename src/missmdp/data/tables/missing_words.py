"""Words that stand for a missing value.

In CSV files everything is a word, so the usual ones count as missing there. In tables with types a null is a
null, and a word is one of the values unless the user says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from missmdp.errors import DataError
from missmdp.model.space import is_missing

__all__ = ["USUAL", "MissingWords", "hint", "same_word"]

_USUAL = frozenset({"", "na", "n/a", "nan", "null", "none", "nat", "<na>", "#n/a", "#na"})
_SUSPECTS = frozenset(
    {
        "-",
        "--",
        "---",
        "–",
        "—",
        ".",
        "..",
        "?",
        "??",
        "*",
        "x",
        "nil",
        "unknown",
        "unk",
        "missing",
        "empty",
        "nd",
    }
    | {
        "n.a.",
        "n. a.",
        "n.d.",
        "k.a.",
        "k. a.",
        "ka",
        "not done",
        "not measured",
        "not available",
        "not known",
    }
)
"""What people write where nothing is known, and what may as well be a value."""


class MissingWords:
    """The words that mean missing, upper or lower case, unless a value of the column is written like that.

    Parameters
    ----------
    further
        Words besides the usual ones; they count in all tables, not only in CSV files.
    """

    def __init__(self, further: Any = ()) -> None:
        given: Any = (further,) if isinstance(further, str) else further
        if not isinstance(given, Iterable) or isinstance(given, bytes):
            raise DataError(f"missing= must be a list of words such as ['-', 'unknown'], got {further!r}")
        self.further = frozenset(same_word(word).strip().lower() for word in cast("Iterable[Any]", given))

    def include(self, value: Any, *, is_text: bool) -> bool:
        """Return whether a cell that is none of its column's values means missing."""
        if isinstance(value, str):
            word = value.strip().lower()
            return (is_text and word in _USUAL) or word in self.further
        return bool(self.further) and same_word(value).lower() in self.further


USUAL = MissingWords()


def hint(value: Any) -> str:
    """Return advice for a word that looks as if it meant missing, nothing for others."""
    if not isinstance(value, str) or value.strip().lower() not in _USUAL | _SUSPECTS:
        return ""
    return f"; if it means that the value is missing, pass missing=[{value!r}] (--missing {value!r} for commands)"


def same_word(value: Any) -> str:
    """Return how a value is written when values of different files are compared: 3.0 and "3" are the same."""
    if isinstance(value, float) and not is_missing(value) and value.is_integer():
        value = int(value)
    return str(value)

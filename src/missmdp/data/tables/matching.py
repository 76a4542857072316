"""Which of a feature's values a cell means, and which words mean missing.

Cells are compared as Python compares: 3.0 means 3 and True means 1. Where nothing is equal, what counts is
how values are written: the word "3" means 3, and the number 1 means a value that is the word "1".

In CSV files everything is a word, so the usual words for "missing" count as missing there. In tables with types a null
is a null, and a word is one of the values unless the user says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from missmdp.errors import Argument, Message, ParameterError
from missmdp.model.space import MISSING, is_missing, plain
from missmdp.model.tables import decimal_comma_hint
from missmdp.words import did_you_mean, preview

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
            raise ParameterError("missing", further, "a list of words such as ['-', 'unknown']")
        self.further = frozenset(same_word(word).strip().lower() for word in cast("Iterable[Any]", given))

    def include(self, value: Any, *, is_text: bool) -> bool:
        """Return whether a cell that is none of its column's values means missing."""
        if isinstance(value, str):
            word = value.strip().lower()
            return (is_text and word in _USUAL) or word in self.further
        return bool(self.further) and same_word(value).lower() in self.further


USUAL = MissingWords()


def hint(value: Any) -> Message:
    """Return advice for a word that looks as if it meant missing, nothing for others."""
    if not isinstance(value, str) or value.strip().lower() not in _USUAL | _SUSPECTS:
        return Message()
    return Message("; if it means that the value is missing, pass ", Argument("missing", [value]))


def same_word(value: Any) -> str:
    """Return how a value is written when values of different files are compared: 3.0 and "3" are the same."""
    if isinstance(value, float) and not is_missing(value) and value.is_integer():
        value = int(value)
    return str(value)


UNKNOWN = -2
"""The code of a cell that means none of the values."""

_TRUTH = {"true": True, "false": False}


class Matcher:
    """Finds the code of a cell among the values that its column can take.

    Parameters
    ----------
    values
        The values; a value's code is its position.
    missing
        What means that there is no value.
    """

    def __init__(self, values: Sequence[Any], missing: MissingWords = USUAL) -> None:
        self.values = tuple(values)
        self._missing = missing
        self._codes = {value: code for code, value in enumerate(self.values)}
        words = [str(value).strip() for value in self.values]
        self._words = {word: code for code, word in enumerate(words)}
        # Two values that are written alike cannot be told apart by their words.
        self._unclear = (
            {word for word in words if word and words.count(word) > 1}
            if len(self._words) < len(words)
            else set[str]()
        )

    def code(self, value: Any, *, is_text: bool = False) -> int:
        """Return the code of a cell, `MISSING` or `UNKNOWN`; `is_text` says that it is from a CSV file."""
        value = plain(value)
        if is_missing(value) or (is_text and not value):
            return MISSING
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        found = self._word_code(value) if is_text else self._equal_code(value)
        if found == UNKNOWN and self._missing.include(value, is_text=is_text):
            return MISSING
        if found == UNKNOWN:
            found = self._parsed_code(value) if isinstance(value, str) else self._written_code(value)
        return found

    def _equal_code(self, value: Any) -> int:
        try:
            return self._codes.get(value, UNKNOWN)
        except TypeError:
            return UNKNOWN

    def _word_code(self, word: str) -> int:
        return UNKNOWN if word in self._unclear else self._words.get(word, UNKNOWN)

    def _parsed_code(self, word: str) -> int:
        """Return the code of what a word means as a number or a truth value, or of how it is written."""
        if word in self._unclear:
            return UNKNOWN
        for meaning in (parse_number(word), _TRUTH.get(word.lower())):
            if meaning is not None and (found := self._equal_code(meaning)) != UNKNOWN:
                return found
        return self._word_code(word)

    def _written_code(self, value: Any) -> int:
        """Return the code of the value that is a word, written as this one would be."""
        found = self._word_code(str(value))
        if found == UNKNOWN and isinstance(value, float) and value.is_integer():
            found = self._word_code(str(int(value)))
        if found == UNKNOWN and isinstance(value, bool):
            found = self._word_code(str(value).lower())
        return found

    def explain(self, value: Any) -> Message:
        """Return what would be right instead of an unknown value."""
        shown = preview(self.values, most=12)
        if str(value).strip() in self._unclear:
            return Message(f"it could mean several of {shown}, which are written alike")
        meant = did_you_mean(str(value), self.values)
        return Message(f"its values are {shown}{meant}", hint(value), decimal_comma_hint(value))


def parse_number(word: str) -> int | float | None:
    """Return the number that a word is, or None."""
    if "_" in word:
        return None
    try:
        return int(word)
    except ValueError:
        try:
            return float(word)
        except ValueError:
            return None

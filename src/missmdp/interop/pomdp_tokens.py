"""Words, colons and statements of a `.pomdp` file.

Words are found by one regular expression. Where in the file a word stands is worked out only for errors, so that
reading does not pay for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError
from missmdp.interop.places import error_at, read_text

__all__ = ["PREAMBLE", "RESERVED", "Statement", "Tokens"]

PREAMBLE = ("discount", "values", "states", "actions", "observations")
_KEYWORDS = frozenset((*PREAMBLE, "start", "T", "O", "R"))
RESERVED = _KEYWORDS | {"include", "exclude", "uniform", "identity", "reset", "reward", "cost"}
"""Words of the grammar, which cannot name anything."""

_COMMENT = re.compile(r"#[^\n]*")
_WORD = re.compile(r"[:*]|[^\s:*]+")


class Statement(NamedTuple):
    """What follows a keyword, up to the next one."""

    keyword: str
    """The keyword; `start include` and `start exclude` are keywords too."""
    place: int
    """Where the keyword stands among the words."""
    first: int
    """The first word after the keyword's colon."""
    stop: int
    """One past the last word."""


class Tokens:
    """The words of a file, without comments."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._text = _COMMENT.sub("", read_text(path))
        self.words: list[str] = _WORD.findall(self._text)

    def error(self, place: int, message: str) -> FormatError:
        """Return the error for a word given by its place, or for the end of the file."""
        found = next(islice(_WORD.finditer(self._text), place, None), None)
        offset = len(self._text.rstrip()) if found is None else found.start()
        line = self._text.count("\n", 0, offset) + 1
        return error_at(self.path, line, offset - self._text.rfind("\n", 0, offset), message)

    def statements(self) -> list[Statement]:
        """Return the statements in order."""
        words = [*self.words, "", "", ""]
        heads: list[tuple[str, int, int]] = []
        for i, word in enumerate(self.words):
            # After a colon in a table a keyword is a name: some files call a state "start" or "T".
            if word in _KEYWORDS and not (heads and heads[-1][0] in ("T", "O", "R") and words[i - 1] == ":"):
                if words[i + 1] == ":":
                    heads.append((word, i, i + 2))
                elif word == "start" and words[i + 1] in ("include", "exclude") and words[i + 2] == ":":
                    heads.append((f"start {words[i + 1]}", i, i + 3))
        if not self.words:
            raise self.error(0, "the file is empty; a .pomdp file starts with lines such as `discount: 0.95`")
        if not heads or heads[0][1] != 0:
            raise self.error(
                0,
                f"expected a statement such as `discount: 0.95`, `states: 3` or `T: …`, found {self.words[0]!r}",
            )
        stops = [*(place for _, place, _ in heads[1:]), len(self.words)]
        return [Statement(*head, stop) for head, stop in zip(heads, stops, strict=True)]

    def number(self, place: int) -> float:
        """Return the word at a place as a finite number."""
        word = self.words[place]
        try:
            value = float(word)
        except ValueError:
            raise self.error(place, f"expected a number, found {word!r}") from None
        if not math.isfinite(value) or "_" in word:
            raise self.error(place, f"expected a finite number, found {word!r}")
        return value

    def numbers(self, first: int, stop: int, count: int, what: str) -> NDArray[np.float64]:
        """Return the words of a range as numbers, of which there must be `count`."""
        words = self._signed(first, stop)
        if len(words) != count:
            for place in range(first, stop):
                if self.words[place] not in ("+", "-"):
                    self.number(place)
            place = min(first + count, stop)
            found = "" if place >= len(self.words) else f" before {self.words[place]!r}"
            raise self.error(place, f"{what}: expected {count:,} numbers, found {len(words):,}{found}")
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            values = np.array([math.nan])
        if not np.isfinite(values).all() or any("_" in word for word in words):
            for place in range(first, stop):
                self.number(place)
        return values

    def _signed(self, first: int, stop: int) -> Sequence[str]:
        """Return words with a sign that stands alone joined to the number after it."""
        words = self.words[first:stop]
        if "-" not in words and "+" not in words:
            return words
        joined: list[str] = []
        for word in words:
            if joined and joined[-1] in ("-", "+"):
                joined[-1] += word
            else:
                joined.append(word)
        return joined

"""The words of a `.pomdp` file, and its head: discount, values, states, actions, observations and start.

Words are found by one regular expression. Where in the file a word stands is worked out only for errors, so reading
does not pay for it. A large file is taken apart into pieces that begin with a table, so its words are never in memory
all at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError, ModelError
from missmdp.interop.incoming import MAX_COUNT, error_at, read_text
from missmdp.model.probabilities import SUM_TOLERANCE, checked_distribution

ALL = -1
"""In the place of an index: all of them."""


PREAMBLE = ("discount", "values", "states", "actions", "observations")


_KEYWORDS = frozenset((*PREAMBLE, "start", "T", "O", "R"))


RESERVED = _KEYWORDS | {"include", "exclude", "uniform", "identity", "reset", "reward", "cost"}
"""Words of the grammar, which cannot name anything."""


_COMMENT = re.compile(r"#[^\n]*")


_WORD = re.compile(r"[:*]|[^\s:*]+")


_TABLE = re.compile(r"\n(?=[TOR]:)")


PIECE = 8_000_000
"""Characters of tables that are read at once, roughly."""


_NEAR = 1000
"""Characters before a table in which the word before it must be."""


_MAX_PAIRS = 10_000_000
"""Pairs of state and action above which a file is refused."""


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
    """The words of a file without comments, or of a piece of it.

    Parameters
    ----------
    path
        Where the file is, for errors.
    text
        All of its text, without comments.
    begin, stop
        Where the piece begins and ends.
    before
        How many words come before it.
    """

    def __init__(self, path: str | Path, text: str, begin: int, stop: int, before: int = 0) -> None:
        self.path = path
        self._all = text
        self._begin, self._stop = begin, stop
        self.before = before

    @property
    def text(self) -> str:
        """The piece of text."""
        return self._all[self._begin : self._stop]

    @cached_property
    def words(self) -> list[str]:
        """The words of the piece."""
        return _WORD.findall(self._all, self._begin, self._stop)

    def error(self, place: int, message: str) -> FormatError:
        """Return the error for a word given by its place, or for the end of the piece."""
        found = next(islice(_WORD.finditer(self._all, self._begin, self._stop), place, None), None)
        offset = len(self._all[: self._stop].rstrip()) if found is None else found.start()
        line = self._all.count("\n", 0, offset) + 1
        return error_at(self.path, line, offset - self._all.rfind("\n", 0, offset), message)

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


class Source:
    """A file without comments, and its pieces."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._text = _COMMENT.sub("", read_text(path))

    def ends(self) -> list[int]:
        """Return where pieces end: what comes before the tables, then about `PIECE` characters of tables each.

        A small file is one piece.
        """
        ends: list[int] = []
        found = _TABLE.search(self._text) if len(self._text) > PIECE else None
        while found is not None:
            # After a colon a keyword is a name.
            before = self._text[max(found.start() - _NEAR, 0) : found.start()].rstrip()
            if before and not before.endswith(":"):
                ends.append(found.end())
            found = _TABLE.search(self._text, found.end() + (PIECE if ends else 0))
        return [*ends, len(self._text)]

    def piece(self, begin: int = 0, stop: int | None = None, before: int = 0) -> Tokens:
        """Return a piece with so many words before it."""
        return Tokens(self.path, self._text, begin, len(self._text) if stop is None else stop, before)


class DeclaredNames:
    """DeclaredNames of one kind, and how the file refers to them."""

    def __init__(self, kind: str, labels: Sequence[Any]) -> None:
        self.kind = kind
        self.labels = labels
        self._index = {label: i for i, label in enumerate(labels)} if isinstance(labels, list) else {}

    def __len__(self) -> int:
        return len(self.labels)

    def find(self, word: str) -> int | None:
        """Return the index of a name or number, −1 for `*`, or None."""
        index = self._index.get(word)
        if index is None:
            if word == "*":
                index = ALL
            elif word.isdecimal() and len(word) < 10 and int(word) < len(self.labels):
                index = int(word)
            else:
                return None
            self._index[word] = index
        return index

    def find_all(self, words: Sequence[str]) -> NDArray[np.int64] | None:
        """Return the indices of names or numbers, or None if a word is `*` or something else."""
        known = self._index.__getitem__
        try:
            indices = np.fromiter(map(known, words), np.int64, len(words))
        except KeyError:
            if any(self.find(word) is None for word in set(words)):
                return None
            indices = np.fromiter(map(known, words), np.int64, len(words))
        return None if (indices == ALL).any() else indices


class Header:
    """What a file says before its tables, and how to read what they refer to.

    Attributes
    ----------
    body : list of Statement
        The tables: the statements T, O and R.
    discount : float
        γ.
    sign : float
        −1 where the file has costs, else 1.
    states, actions, observations : DeclaredNames
        What there is.
    initial : numpy.ndarray
        b₀, shape (S,).
    """

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        statements = tokens.statements()
        given: dict[str, Statement] = {}
        self.body: list[Statement] = []
        for statement in statements:
            kind = statement.keyword.split()[0]
            if kind in (*PREAMBLE, "start"):
                if kind in given:
                    raise tokens.error(statement.place, f"`{kind}:` is given twice")
                given[kind] = statement
            else:
                self.body.append(statement)
        for kind in ("discount", "states", "actions", "observations"):
            if kind not in given:
                example = "0.95" if kind == "discount" else "followed by a number or by names"
                raise tokens.error(len(tokens.words), f"there is no `{kind}:` ({example})")
        self.discount = self._discount(given["discount"])
        self.sign = self._sign(given.get("values"))
        self.states = self._names(given["states"])
        self.actions = self._names(given["actions"])
        self.observations = self._names(given["observations"])
        if len(self.states) * len(self.actions) > _MAX_PAIRS:
            raise tokens.error(
                given["states"].place,
                f"{len(self.states):,} states × {len(self.actions):,} actions are more than {_MAX_PAIRS:,}",
            )
        self.initial = self._start(given.get("start"))

    def _discount(self, statement: Statement) -> float:
        value = float(self.tokens.numbers(statement.first, statement.stop, 1, "the discount")[0])
        if not 0.0 <= value < 1.0:
            hint = "; without discounting use one close to 1, such as 0.999" if value == 1.0 else ""
            raise self.tokens.error(statement.first, f"the discount must be in [0, 1), not {value:g}{hint}")
        return value

    def _sign(self, statement: Statement | None) -> float:
        if statement is None:
            return 1.0
        words = self.tokens.words[statement.first : statement.stop]
        if words not in (["reward"], ["cost"]):
            raise self.tokens.error(
                min(statement.first, len(self.tokens.words)), "`values:` must be `reward` or `cost`"
            )
        return 1.0 if words == ["reward"] else -1.0

    def _names(self, statement: Statement) -> DeclaredNames:
        tokens, kind = self.tokens, statement.keyword
        words = tokens.words[statement.first : statement.stop]
        if not words:
            raise tokens.error(statement.stop, f"`{kind}:` needs a number or a list of names")
        if len(words) == 1 and words[0].isdecimal():
            if len(words[0]) > 18 or not 1 <= int(words[0]) <= MAX_COUNT:
                raise tokens.error(
                    statement.first, f"the number of {kind} must be 1 to {MAX_COUNT:,}, not {words[0]}"
                )
            return DeclaredNames(kind, range(int(words[0])))
        seen: set[str] = set()
        for i, word in enumerate(words):
            if word in ":*" or _is_number(word):
                raise tokens.error(
                    statement.first + i,
                    f"{word!r} cannot be a name; `{kind}:` takes one number or a list of names",
                )
            if word in seen:
                raise tokens.error(statement.first + i, f"{word!r} is named twice among the {kind}")
            seen.add(word)
        return DeclaredNames(kind, words)

    def _start(self, statement: Statement | None) -> NDArray[np.float64]:
        n_states, tokens = len(self.states), self.tokens
        if statement is None:
            return np.full(n_states, 1.0 / n_states)
        words = tokens.words[statement.first : statement.stop]
        if not words:
            raise tokens.error(statement.stop, f"`{statement.keyword}:` is empty")
        if statement.keyword != "start":
            chosen = np.zeros(n_states, dtype=np.bool_)
            for place in range(statement.first, statement.stop):
                index = self.index_at(place, self.states)
                chosen[... if index == ALL else index] = True
            if statement.keyword == "start exclude":
                chosen = ~chosen
            if not chosen.any():
                raise tokens.error(statement.place, "every state is excluded; at least one must be left")
            return chosen / chosen.sum()
        if words == ["uniform"]:
            return np.full(n_states, 1.0 / n_states)
        index = self.states.find(words[0]) if len(words) == 1 else None
        if index is not None and index != ALL:
            return np.eye(1, n_states, index)[0]
        if len(words) == 1 and not _is_number(words[0]):
            raise self._unknown(statement.first, self.states)
        weights = self.weights(statement.first, statement.stop, n_states, "start")
        try:
            return checked_distribution(weights, "start", self.states.labels.__getitem__)
        except ModelError as error:
            raise tokens.error(statement.place, str(error)) from None

    def index_at(self, place: int, names: DeclaredNames) -> int:
        """Return the index of what the word at a place refers to, −1 for `*`."""
        if place >= len(self.tokens.words):
            raise self.tokens.error(place, f"the file ends where one of the {names.kind} should be")
        index = names.find(self.tokens.words[place])
        if index is None:
            raise self._unknown(place, names)
        return index

    def _unknown(self, place: int, names: DeclaredNames) -> FormatError:
        word = self.tokens.words[place]
        known = ", ".join(str(label) for label in names.labels[:6])
        more = f", … ({len(names):,} in all)" if len(names) > 6 else ""
        return self.tokens.error(place, f"{word!r} is not one of the {names.kind}: {known}{more}")

    def weights(self, first: int, stop: int, count: int, what: str) -> NDArray[np.float64]:
        """Return the words of a range as probabilities, of which there must be `count`."""
        values = self.tokens.numbers(first, stop, count, what)
        bad = np.flatnonzero((values < 0.0) | (values > 1.0 + SUM_TOLERANCE))
        if bad.size:
            raise self.tokens.error(
                first + int(bad[0]), f"{what}: a probability must be in [0, 1], not {values[bad[0]]:g}"
            )
        return values


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True

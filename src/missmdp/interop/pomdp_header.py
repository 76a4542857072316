"""The head of a `.pomdp` file: discount, values, states, actions, observations and start, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError, ModelError
from missmdp.interop.places import MAX_COUNT
from missmdp.interop.pomdp_rewards import ALL
from missmdp.interop.pomdp_tokens import PREAMBLE, Statement, Tokens
from missmdp.model.probabilities import SUM_TOLERANCE, checked_distribution

__all__ = ["Header", "Labels"]

_MAX_PAIRS = 10_000_000
"""Pairs of state and action above which a file is refused."""


class Labels:
    """Labels of one kind, and how the file refers to them."""

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
            elif word.isdecimal() and int(word) < len(self.labels):
                index = int(word)
            else:
                return None
            self._index[word] = index
        return index


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
    states, actions, observations : Labels
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

    def _names(self, statement: Statement) -> Labels:
        tokens, kind = self.tokens, statement.keyword
        words = tokens.words[statement.first : statement.stop]
        if not words:
            raise tokens.error(statement.stop, f"`{kind}:` needs a number or a list of names")
        if len(words) == 1 and words[0].isdecimal():
            if len(words[0]) > 18 or not 1 <= int(words[0]) <= MAX_COUNT:
                raise tokens.error(
                    statement.first, f"the number of {kind} must be 1 to {MAX_COUNT:,}, not {words[0]}"
                )
            return Labels(kind, range(int(words[0])))
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
        return Labels(kind, words)

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

    def index_at(self, place: int, names: Labels) -> int:
        """Return the index of what the word at a place refers to, −1 for `*`."""
        if place >= len(self.tokens.words):
            raise self.tokens.error(place, f"the file ends where one of the {names.kind} should be")
        index = names.find(self.tokens.words[place])
        if index is None:
            raise self._unknown(place, names)
        return index

    def _unknown(self, place: int, names: Labels) -> FormatError:
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

"""Features without a model: the values that occur in a column are the values that it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.factors import Cells, factorise, in_order, take
from missmdp.data.tables.missing_words import USUAL, MissingWords
from missmdp.model.columns import meaning
from missmdp.model.space import MISSING, is_missing, plain

__all__ = ["DiscoveredColumn"]

NEVER_SEEN = "(never seen)"
"""The one value of a feature of which no value is known."""


class DiscoveredColumn:
    """Collects the values of a column over all batches; codes are final when all have been seen."""

    def __init__(self, missing: MissingWords = USUAL) -> None:
        self._missing = missing
        self.left_out: set[str] = set()
        """Words that were taken to mean missing, though they may have been values."""
        self._codes: dict[Any, int] = {}
        self._words: set[str] = set()

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[np.int32]:
        """Return provisional codes, `MISSING` where there is no value."""
        return take(
            in_order(factorise(cells)),
            lambda value: self._code(plain(value), is_text=is_text),
            np.dtype(np.int32),
            MISSING,
        )

    def explain(self, value: Any, cells: Cells) -> str:
        """Return nothing of use: any value will do."""
        return f"cannot be {value!r}"

    def _code(self, value: Any, *, is_text: bool) -> int:
        if is_missing(value):
            return MISSING
        if self._missing.include(value, is_text=is_text):
            # All others hardly mean anything else, but a drug may well have the value none.
            if str(value).lower() == "none":
                self.left_out.add(str(value))
            return MISSING
        if is_text:
            self._words.add(value)
            key = _Word(value)
        else:
            try:
                hash(value)
                key = value
            except TypeError:
                key = str(value)
        return self._codes.setdefault(key, len(self._codes))

    def settle(self) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """Return the values in order, and the final code of each provisional one (`MISSING` at the end).

        Words of CSV files are numbers or truth values if all of them are.
        """
        # Beside text that is known to be text, words are text as well.
        has_text = any(isinstance(key, str) and not isinstance(key, _Word) for key in self._codes)
        parse = str if has_text else meaning(self._words)
        values = [parse(key) if isinstance(key, _Word) else key for key in self._codes]
        ordered = _sorted(dict.fromkeys(values)) or [NEVER_SEEN]
        code_of = {value: code for code, value in enumerate(ordered)}
        return tuple(ordered), np.array([*(code_of[value] for value in values), MISSING])


class _Word(str):
    """A word from a CSV file, whose meaning is open until all are known."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Word) and str(self) == str(other)

    __hash__ = str.__hash__


def _sorted(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))

"""Cells → codes, one kind of column at a time.

Each encoder takes a batch of cells and gives a number per row, `UNKNOWN` where a cell makes no sense; what
would have made sense is explained only when somebody has to be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from missmdp.data.binning import Binning, as_number, bins_argument
from missmdp.data.tables.cells import Cells, compute, factorise, in_order, pa, take
from missmdp.data.tables.matching import UNKNOWN, USUAL, Matcher, MissingWords, hint, parse_number
from missmdp.errors import Message
from missmdp.model.space import MISSING, is_missing, plain
from missmdp.model.tables import decimal_comma_hint, meaning

_YES_NO = {"yes": 1, "y": 1, "no": 0, "n": 0}
_MANY = 30
"""So many different numbers, and more than a feature has values, look like measurements."""


def code_dtype(n_codes: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the smallest signed integer type that holds codes 0 .. n − 1, `MISSING` and `UNKNOWN`."""
    return np.dtype(np.int8 if n_codes <= 127 else np.int16 if n_codes <= 32767 else np.int32)


class ColumnEncoder(Protocol):
    """What turns the cells of one column into numbers."""

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[Any]:
        """Return a number per row, `UNKNOWN` where a cell makes no sense."""
        ...

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return what is wrong with a value, given all cells around it."""
        ...


class ValueColumn:
    """Cells that are values of a feature, or actions.

    Parameters
    ----------
    values
        The values; their positions are their codes.
    name
        The feature, for advice on bins; None where bins would make no sense.
    missing
        What means that there is no value.
    """

    def __init__(self, values: Sequence[Any], name: str | None = None, missing: MissingWords = USUAL) -> None:
        self._matcher = Matcher(values, missing)
        self._name = name
        self._dtype = code_dtype(len(self._matcher.values))

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[Any]:
        """Return a code per row, `MISSING` where there is no value."""
        code = self._matcher.code
        return take(factorise(cells), lambda value: code(value, is_text=is_text), self._dtype, MISSING)

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return the values that are allowed, and advice on bins where the column looks like measurements."""
        reason = (f"cannot be {value!r}; ", self._matcher.explain(value))
        if self._name is None or not self._looks_measured(value, cells):
            return Message(*reason)
        edges = f" with {len(self._matcher.values) - 1} edges"
        advice = "; if these are measurements, put them into bins: "
        return Message(*reason, advice, bins_argument(self._name), edges)

    def _looks_measured(self, value: Any, cells: Cells) -> bool:
        number = parse_number(value) if isinstance(value, str) else as_number(value)
        if number is None or len(self._matcher.values) < 2:
            return False
        distinct = [v for v in factorise(cells).values[:10_000] if not is_missing(v)]
        numbers = [parse_number(v) if isinstance(v, str) else as_number(v) for v in distinct]
        return float(number) % 1 != 0 or sum(n is not None for n in numbers) > max(
            _MANY, len(self._matcher.values)
        )


class TruthColumn(ValueColumn):
    """Cells that say yes or no, in one of the ways in which that is written."""

    def __init__(self, missing: MissingWords = USUAL) -> None:
        super().__init__((False, True), missing=missing)

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[Any]:
        """Return 1 or 0 per row, `MISSING` where there is neither."""

        def code(value: Any) -> int:
            known = _YES_NO.get(value.strip().lower()) if isinstance(value, str) else None
            return self._matcher.code(value, is_text=is_text) if known is None else known

        return take(factorise(cells), code, self._dtype, MISSING)

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return what can be written."""
        return Message(f"cannot be {value!r}; expected true or false, yes or no, y or n, 1 or 0", hint(value))


class BinnedColumn:
    """Cells that are measurements, put into bins."""

    def __init__(self, binning: Binning, missing: MissingWords = USUAL) -> None:
        self._binning = binning
        self._missing = missing
        self._dtype = code_dtype(len(binning))

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[Any]:
        """Return the bin per row, `MISSING` where there is no number."""
        # A number may be said to mean missing, as 999 often does; then each has to be looked at.
        if not (isinstance(cells, list) or self._missing.further) and (
            pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)
        ):
            # Not safe means that integers beyond 2⁵³ may be rounded, which no bin will notice.
            numbers = np.asarray(compute.cast(cells, pa.float64(), safe=False), dtype=np.float64)
            return self._binning.codes(numbers).astype(self._dtype)
        return take(factorise(cells), lambda value: self._code(value, is_text=is_text), self._dtype, MISSING)

    def _code(self, value: Any, *, is_text: bool) -> int:
        value = plain(value)
        number = np.nan if self._missing.include(value, is_text=is_text) else as_number(value)
        return UNKNOWN if number is None else int(self._binning.codes(np.array([number]))[0])

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return that a binned column needs numbers."""
        wrong = f"is {value!r}, not a number, and is to be put into {self._binning.describe()}"
        return Message(wrong, hint(value), decimal_comma_hint(value))


def _cast_or_none(cells: Cells) -> NDArray[np.float64] | None:
    """Return numbers, or words of numbers, as floats; None if some are not."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    if not any(is_kind(cells.type) for is_kind in kinds):
        return None
    try:
        # Not safe means that integers beyond 2⁵³ may be rounded.
        return np.asarray(compute.cast(cells, pa.float64(), safe=False), dtype=np.float64)
    except pa.ArrowInvalid:
        return None


class RewardColumn:
    """Cells that are rewards."""

    def __init__(self, missing: MissingWords = USUAL) -> None:
        self._missing = missing

    def numbers(self, cells: Cells, *, is_text: bool) -> NDArray[np.float64]:
        """Return the reward per row, NaN where there is none, and infinity where a cell is no finite number."""
        if not (isinstance(cells, list) or self._missing.further):
            # Rewards hardly ever repeat, so looking at each takes long. Arrow takes words that are empty or numbers.
            empty = is_text and pa.types.is_string(cells.type)
            numbers = _cast_or_none(
                compute.if_else(compute.equal(cells, ""), None, cells) if empty else cells
            )
            if numbers is not None:
                return np.where(np.isneginf(numbers), np.inf, numbers)
        values, places = factorise(cells)
        return np.array([*(self._number(value, is_text=is_text) for value in values), np.nan])[places]

    def _number(self, value: Any, *, is_text: bool) -> float:
        value = plain(value)
        if is_missing(value) or self._missing.include(value, is_text=is_text):
            return np.nan
        number = as_number(value)
        return np.inf if number is None or not np.isfinite(number) else number

    def explain(self, value: Any) -> Message:
        """Return what rewards are."""
        expected = f"cannot be {value!r}; rewards are finite numbers"
        return Message(expected, hint(value), decimal_comma_hint(value))


class StepColumn:
    """Cells that count the steps of an episode; `advice` says how else to get them."""

    def __init__(self, advice: str = "") -> None:
        self._advice = advice

    def encode(self, cells: Cells, *, is_text: bool) -> NDArray[np.int64]:
        """Return the step per row, `UNKNOWN` where a cell is none."""
        if not isinstance(cells, list) and pa.types.is_signed_integer(cells.type):
            steps = np.asarray(compute.fill_null(cells.cast(pa.int64()), UNKNOWN), dtype=np.int64)
            return np.where(steps < 0, UNKNOWN, steps)
        return take(factorise(cells), self._step, np.dtype(np.int64), UNKNOWN)

    @staticmethod
    def _step(value: Any) -> int:
        number = parse_number(value) if isinstance(value, str) else value
        if number is None or isinstance(number, bool) or is_missing(number):
            return UNKNOWN
        try:
            step = int(number)
            # 2⁵³ is where decimals stop being exact; no episode is that long.
            return step if step == number and 0 <= step < 2**53 else UNKNOWN
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return what steps are."""
        expected = "steps are integers that count 0, 1, 2, … in each episode"
        if is_missing(value) or USUAL.include(value, is_text=True):
            return Message(f"is missing; {expected}")
        advice = f"; {self._advice}" if self._advice else ""
        return Message(f"cannot be {value!r}; {expected}{decimal_comma_hint(value)}{advice}")


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

    def explain(self, value: Any, cells: Cells) -> Message:
        """Return nothing of use: any value will do."""
        return Message(f"cannot be {value!r}")

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

"""Columns of Python values from CSV, Parquet, or any frame that speaks Arrow.

CSV has no types. A column is read as words, and what the words mean is decided over all files in which a
feature occurs: a ward called 1 is a number only if every ward is.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import FormatError, ModelError
from missmdp.model.csv_header import encoding_advice, read_header
from missmdp.model.space import is_missing, plain

__all__ = ["Columns", "decimal_comma_hint", "meaning", "settle_types"]

# Leading zeros make a code, not a number, and so do more digits than a number can hold.
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"[+-]?((0|[1-9]\d{0,14})(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_KNOWN = ("action", "probability", "reward", "feature", "value")
"""Columns that tell how a CSV file separates its cells."""
_BOOLEANS = {"true": True, "false": False}


class _Table(NamedTuple):
    names: list[str]
    columns: list[list[Any]]
    orders: dict[str, list[Any]] = {}  # noqa: RUF012 (never written to)
    """The values of columns that say in which order these are (ordered categories)."""


class Columns:
    """A table as columns of Python values; errors name the table and the row.

    Parameters
    ----------
    source
        A CSV or Parquet file, a pandas, polars or pyarrow frame, or a mapping from name to values.
    what
        The table's name in errors.
    may_be_empty
        Whether a table without rows is fine.
    """

    def __init__(self, source: Any, what: str, *, may_be_empty: bool = False) -> None:
        self.what = what
        self.is_text = isinstance(source, str | Path) and Path(source).suffix.lower() == ".csv"
        names, columns, self.orders = _read(source, what)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ModelError(f"{what}: the column {twice[0]!r} occurs twice")
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise FormatError(f"{what}: the columns have different lengths")
        self.names = names
        self.n_rows = max(lengths, default=0)
        if self.n_rows == 0 and not may_be_empty:
            raise ModelError(f"{what}: the table has no rows")
        self._columns = dict(zip(names, columns, strict=True))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column that must be there and have no empty cell."""
        self.require(name)
        values = self._columns[name]
        for row, value in enumerate(values):
            if is_missing(value):
                raise ModelError(f"{self.what}, row {row + 1}: {name!r} is empty")
            try:
                hash(value)
            except TypeError:
                raise ModelError(f"{self.what}, row {row + 1}: {name!r} cannot be {value!r}") from None
        return values

    def require(self, *names: str) -> None:
        """Raise `ModelError` unless there are columns with these names."""
        for name in names:
            if name not in self._columns:
                close = _close(name, [column for column in self.names if column not in names])
                meant = "" if close is None else f"; did you mean {close!r}?"
                raise ModelError(
                    f"{self.what}: there is no column {name!r}{meant} (the columns are {', '.join(self.names)})"
                )

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers."""
        return np.array([self._number(name, row, value) for row, value in enumerate(self[name])])

    def _number(self, name: str, row: int, value: Any) -> float:
        # Words are numbers only where the whole file is words.
        if not isinstance(value, bool) and (self.is_text or not isinstance(value, str)):
            try:
                return float(value)
            except (TypeError, ValueError, OverflowError):
                pass
        raise ModelError(
            f"{self.what}, row {row + 1}: {name!r} is {value!r}, not a number{decimal_comma_hint(value)}"
        )

    def convert(self, name: str, parse: Callable[[str], Any]) -> None:
        """Replace the words of a column, empty ones aside, by what they mean."""
        self._columns[name] = [None if cell is None else parse(cell) for cell in self._columns[name]]


def decimal_comma_hint(value: Any) -> str:
    """Return advice on a word such as "0,5", nothing for others."""
    if not isinstance(value, str) or not _DECIMAL_COMMA.fullmatch(value.strip()):
        return ""
    return f"; a decimal point is expected, as in {value.strip().replace(',', '.')!r}"


def settle_types(tables: Iterable[Columns], names: Iterable[str], known: Iterable[Any] = ()) -> None:
    """Decide what the words in columns of these names mean, jointly over all tables that hold words.

    Words that are written like a known value mean that value.
    """
    by_word = {str(value): value for value in known}
    columns = [(table, name) for table in tables if table.is_text for name in names if name in table]
    words = {cell for table, name in columns for cell in cast("list[str]", table[name])}
    parse = meaning(words)
    for table, name in columns:
        table.convert(name, lambda word: by_word[word] if word in by_word else parse(word))


def meaning(words: set[str]) -> Callable[[str], Any]:
    """Return what words mean if they are all the words of a column: integers, truth values, decimals, or text."""
    if all(_INTEGER.fullmatch(word) for word in words):
        return int
    if all(word.lower() in _BOOLEANS for word in words):
        return lambda word: _BOOLEANS[word.lower()]
    return float if all(_DECIMAL.fullmatch(word) for word in words) else str


def _close(name: str, columns: list[str]) -> str | None:
    """Return the column that may have been meant by a name, or None."""
    short = [column for column in columns if len(column) > 2 and name.startswith(column.lower())]
    lowered = {column.lower(): column for column in reversed(columns)}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=1)]
    return next(iter([*close, *short]), None)


def _read(source: Any, what: str) -> _Table:
    if isinstance(source, str | Path):
        path = Path(source)
        match path.suffix.lower():
            case ".csv":
                return _read_csv(path, what)
            case ".parquet" | ".pq":
                return _read_arrow(path, what)
            case suffix:
                raise FormatError(f"{what}: {path} ends in {suffix!r}; expected .csv or .parquet")
    if isinstance(source, Mapping):
        named = cast("Mapping[Any, Any]", source)
        try:
            columns = [[plain(v) for v in values] for values in named.values()]
            return _Table([str(name) for name in named], columns)
        except TypeError as error:
            raise FormatError(f"{what}: a column is not a list of values ({error})") from error
    return _read_arrow(source, what)


def _read_csv(path: Path, what: str) -> _Table:
    try:
        names, delimiter, skip = read_header(lambda: path.open(encoding="utf-8-sig", newline=""), _KNOWN)
        rows: list[list[str]] = []
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for _ in range(skip):
                next(reader)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(names):
                    raise FormatError(
                        f"{what}: {path}, line {reader.line_num}: {len(row)} cells, but the header has {len(names)}"
                    )
                rows.append(row)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what}: {path} cannot be read: {encoding_advice(path.read_bytes())}") from error
    except (OSError, csv.Error) as error:
        raise FormatError(f"{what}: {path} cannot be read ({error})") from error
    if not names:
        raise FormatError(f"{what}: {path} is empty; expected a header with the names of the columns")
    columns = [[row[i].strip() or None for row in rows] for i in range(len(names))]
    return _Table(names, cast("list[list[Any]]", columns))


def _read_arrow(source: Any, what: str) -> _Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if isinstance(source, Path):
            table = parquet.read_table(source)  # pyright: ignore[reportUnknownMemberType]
        elif type(source).__module__.split(".")[0] == "pandas":
            table = pa.Table.from_pandas(source, preserve_index=False)
        else:
            table = pa.table(source)
        columns: dict[str, Any] = {name: table.column(i) for i, name in enumerate(table.column_names)}
        orders = {
            name: [plain(value) for value in column.unify_dictionaries().chunk(0).dictionary.to_pylist()]
            for name, column in columns.items()
            if pa.types.is_dictionary(column.type) and column.type.ordered and column.num_chunks
        }
        return _Table(list(table.column_names), [column.to_pylist() for column in table.columns], orders)
    except (pa.ArrowException, OSError, TypeError, ValueError, AttributeError, OverflowError) as error:
        where = str(source) if isinstance(source, Path) else type(source).__name__
        raise FormatError(
            f"{what}: {where} cannot be read as a table; expected a CSV or Parquet file "
            f"or a pandas, polars or pyarrow frame ({error})"
        ) from error

"""MDPs from tables, and how small tables are read: CSV, Parquet, or any frame that speaks Arrow.

CSV has no types. A column is read as words, and what the words mean is decided over all files in which a
feature occurs: a ward called 1 is a number only if every ward is.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, ModelError
from missmdp.files import read_bytes
from missmdp.model.given import given_terminal
from missmdp.model.space import FeatureSpace, StateSpace, is_missing, plain
from missmdp.words import did_you_mean

_DELIMITERS = (",", ";", "\t")


class CsvHeader(NamedTuple):
    """What the beginning of a CSV file says."""

    names: list[str]
    """Empty if there is no header."""
    delimiter: str
    skip: int
    """The number of rows up to and including the header."""


def read_header(open_file: Callable[[], TextIO], known: Collection[str]) -> CsvHeader:
    """Return the header of a file; its delimiter is the one that gives most of the known columns.

    A first line such as `sep=;`, which Excel writes and reads, says what the delimiter is.
    """
    with open_file() as file:
        first = file.readline(100).strip().strip('"').lower()
    given = first.removeprefix("sep=") if first.startswith("sep=") else None
    if first == "sep=":  # a tab, of which stripping leaves nothing
        given = "\t"
    # The first of equals wins, a comma before all others.
    headers = [
        _header(open_file, d, given is not None) for d in ([given] if given in _DELIMITERS else _DELIMITERS)
    ]
    return max(headers, key=lambda header: (len(set(known).intersection(header.names)), len(header.names)))


def _header(open_file: Callable[[], TextIO], delimiter: str, has_separator: bool) -> CsvHeader:
    """Return the names in the first line that is not blank."""
    with open_file() as file:
        for place, row in enumerate(csv.reader(file, delimiter=delimiter)):
            if row and not (has_separator and place == 0):
                return CsvHeader([name.strip() for name in row], delimiter, place + 1)
    return CsvHeader([], delimiter, 0)


def encoding_advice(start: bytes) -> str:
    """Return what to do about a file that is no UTF-8 text, given how it starts."""
    is_wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in start[:100]
    found = "UTF-16" if is_wide else "Latin-1 or Windows-1252"
    return f"it is not UTF-8 text, but looks like {found}; save it as UTF-8 (in Excel: CSV UTF-8)"


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
                free = [column for column in self.names if column not in names]
                # Abbreviations are meant too: `prob` for `probability`.
                short = [column for column in free if len(column) > 2 and name.startswith(column.lower())]
                meant = did_you_mean(name, free) or (f"; did you mean {short[0]!r}?" if short else "")
                raise ModelError(
                    f"{self.what}: there is no column {name!r}; the columns are {', '.join(self.names)}{meant}"
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
        content = read_bytes(path)
    except FormatError as error:
        raise FormatError(f"{what}: {error}") from error
    try:
        text = content.decode("utf-8-sig")
        names, delimiter, skip = read_header(lambda: io.StringIO(text, newline=""), _KNOWN)
        rows: list[list[str]] = []
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
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
        raise FormatError(f"{what}: {path} cannot be read: {encoding_advice(content)}") from error
    except csv.Error as error:
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
            table = parquet.read_table(pa.BufferReader(read_bytes(source)))  # pyright: ignore[reportUnknownMemberType]
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
    except FormatError as error:
        raise FormatError(f"{what}: {error}") from error
    except (pa.ArrowException, OSError, TypeError, ValueError, AttributeError, OverflowError) as error:
        where = str(source) if isinstance(source, Path) else type(source).__name__
        raise FormatError(
            f"{what}: {where} cannot be read as a table; expected a CSV or Parquet file "
            f"or a pandas, polars or pyarrow frame ({error})"
        ) from error


ACTION, PROBABILITY, REWARD, NEXT = "action", "probability", "reward", "next_"


class MDPParts(NamedTuple):
    """What tables say of an MDP, as `FactoredMDP` takes it."""

    features: FeatureSpace
    actions: list[Any]
    transition: list[sparse.csr_array]
    reward: NDArray[np.float64]
    initial: NDArray[np.float64]
    terminal: NDArray[np.bool_]
    states: StateSpace


def mdp_from_tables(
    transitions: Any,
    rewards: Any,
    initial: Any,
    *,
    terminal: Any,
    features: Mapping[str, Iterable[Any]] | None,
) -> MDPParts:
    """Return what three tables say of an MDP; see `FactoredMDP.from_tables`."""
    steps, pay, start = (
        Columns(transitions, "transitions"),
        Columns(rewards, "rewards", may_be_empty=True),
        Columns(initial, "initial"),
    )
    ends = None if terminal is None or callable(terminal) else Columns(terminal, "terminal")
    space = _feature_space(steps, pay, start, ends, features)
    actions = list(dict.fromkeys(steps[ACTION]))

    before, after, first = _codes(steps, space), _codes(steps, space, NEXT), _codes(start, space)
    last = np.empty((0, len(space)), dtype=np.int64) if ends is None else _codes(ends, space)
    states = StateSpace(
        space, space.unrank(np.unique(space.rank(np.concatenate([before, after, first, last]))))
    )
    is_terminal = given_terminal(states, terminal if ends is None else None)
    is_terminal[states.find(last)] = True

    source, target = states.find(before), states.find(after)
    action = _positions(steps, ACTION, actions)
    _refuse_repeats(steps, np.column_stack([source, action, target]), "state, action and next state")
    _refuse_gaps(states, actions, source, action, is_terminal)
    probability = steps.numbers(PROBABILITY)
    shape = (len(states), len(states))
    matrices = [
        sparse.csr_array(sparse.coo_array((probability[rows], (source[rows], target[rows])), shape=shape))
        for rows in (action == a for a in range(len(actions)))
    ]
    _refuse_repeats(start, first, "state")
    initial_array = np.zeros(len(states))
    initial_array[states.find(first)] = start.numbers(PROBABILITY)
    return MDPParts(
        space, actions, matrices, _rewards(pay, states, actions), initial_array, is_terminal, states
    )


def _feature_space(
    steps: Columns,
    pay: Columns,
    start: Columns,
    ends: Columns | None,
    features: Mapping[str, Iterable[Any]] | None,
) -> FeatureSpace:
    """Return the features and their values, after settling what the words of all tables mean."""
    # First of all, since a column with a name that is a little wrong would be taken for a feature.
    steps.require(ACTION, PROBABILITY)
    start.require(PROBABILITY)
    pay.require(ACTION, REWARD)
    tables = [steps, pay, start, *([] if ends is None else [ends])]
    known = {} if features is None else FeatureSpace(features).as_dict()
    names = tuple(known) or _feature_names(steps)
    for name in names:
        if name in steps and NEXT + name not in steps:
            raise ModelError(
                f"transitions: there is no column {NEXT + name!r}; the features are {', '.join(names)}, and each has "
                f"a column and another one that is called {NEXT}…"
            )
    for name in names:
        settle_types(tables, (name, NEXT + name), known.get(name, ()))
    settle_types(tables, (ACTION,))
    return FeatureSpace(known or _values(names, steps, start))


def _feature_names(steps: Columns) -> tuple[str, ...]:
    special = {ACTION, PROBABILITY}
    named = tuple(
        name
        for name in steps.names
        if name not in special and not (name.startswith(NEXT) and name.removeprefix(NEXT) in steps.names)
    )
    if not named:
        raise ModelError(f"transitions: no feature columns among {', '.join(steps.names)}")
    return named


def _values(names: Iterable[str], steps: Columns, start: Columns) -> dict[str, list[Any]]:
    """Return the values that occur, sorted where they can be, or as ordered categories have them."""
    values: dict[str, list[Any]] = {}
    for name in names:
        seen = dict.fromkeys([*steps[name], *steps[NEXT + name], *start[name]])
        order = steps.orders.get(name) or start.orders.get(name)
        if order is not None and set(order).issuperset(seen):
            values[name] = order
            continue
        words = {value for value in seen if isinstance(value, str)}
        alike = [value for value in seen if not isinstance(value, str) and str(value) in words]
        if alike:
            raise ModelError(
                f"transitions: feature {name!r} has the values {alike[0]!r} and {str(alike[0])!r}, a number and a "
                "word; give its columns one type"
            )
        try:
            values[name] = sorted(seen)
        except TypeError:
            values[name] = list(seen)
    return values


def _codes(table: Columns, space: FeatureSpace, prefix: str = "") -> NDArray[np.int64]:
    columns = [table[prefix + name] for name in space.names]
    codes = np.empty((table.n_rows, len(space)), dtype=np.int64)
    for row, state in enumerate(zip(*columns, strict=True)):
        try:
            codes[row] = space.encode(state)
        except ModelError as error:
            raise ModelError(f"{table.what}, row {row + 1}: ", *error.args) from None
    return codes


def _positions(table: Columns, name: str, known: Sequence[Any]) -> NDArray[np.int64]:
    place = {value: position for position, value in enumerate(known)}
    values = table[name]
    for row, value in enumerate(values):
        if value not in place:
            raise ModelError(f"{table.what}, row {row + 1}: {name} {value!r} does not occur in transitions")
    return np.array([place[value] for value in values], dtype=np.int64)


def _refuse_repeats(table: Columns, keys: NDArray[np.int64], what: str) -> None:
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(keys)))
    if again.size:
        row = int(again[0])
        raise ModelError(
            f"{table.what}, rows {first[inverse.reshape(-1)[row]] + 1} and {row + 1}: the same {what} twice"
        )


def _refuse_gaps(
    states: StateSpace,
    actions: Sequence[Any],
    source: NDArray[np.int64],
    action: NDArray[np.int64],
    terminal: NDArray[np.bool_],
) -> None:
    listed = np.zeros((len(states), len(actions)), dtype=np.bool_)
    listed[source, action] = True
    absent = np.argwhere(~listed & ~terminal[:, None])
    if absent.size:
        s, a = absent[0]
        raise ModelError(
            f"transitions: there is no row for the state {states.state(int(s))!r} and the action "
            f"{actions[a]!r}; add it, or list the state as terminal"
        )


def _rewards(pay: Columns, states: StateSpace, actions: Sequence[Any]) -> NDArray[np.float64]:
    where, action = states.find(_codes(pay, states.features)), _positions(pay, ACTION, actions)
    unknown = np.flatnonzero(where < 0)
    if unknown.size:
        raise ModelError(
            f"rewards, row {unknown[0] + 1}: this state does not occur in transitions or initial"
        )
    _refuse_repeats(pay, np.column_stack([where, action]), "state and action")
    array = np.zeros((len(states), len(actions)))
    array[where, action] = pay.numbers(REWARD)
    return array

"""Files as parts of a table: named columns that are read in batches.

All cells of a CSV file are words. What a word means is up to the column it is in, not to the file: `1` is a ward's
name as easily as a number.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from missmdp.data.tables.cells import Cells, arrow_csv, compute, pa, parquet
from missmdp.errors import DataError, MissMDPError
from missmdp.model.tables import encoding_advice, read_header

Batches = Iterator[Mapping[str, Cells]]

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")

_BLOCK_BYTES = 1 << 23
_BATCH_ROWS = 1 << 19


@dataclass(frozen=True)
class Part:
    """One file or frame of a table."""

    name: str
    """What errors call it; empty for frames."""
    columns: tuple[str, ...]
    """The names of the columns."""
    read: Callable[[Sequence[str]], Batches]
    """Yields batches of some columns, in order."""
    is_text: bool = False
    """Whether all cells are words (CSV)."""
    path: Path | None = None
    """The file, if it is one."""
    n_rows: int | None = None
    """The number of rows, where it is known beforehand."""
    metadata: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    """What the file says about itself."""
    schema: Any = None
    """The Arrow schema, where the file has types."""
    query: Any = None
    """The ibis table, if it is one."""

    def row(self, row: int) -> str:
        """Return the place of a row (from 0) in words; people count from 1."""
        return f"{self.name}, row {row + 1}" if self.name else f"row {row + 1}"

    @property
    def shown(self) -> str:
        """The name for sentences."""
        return self.name or "the table"


@contextmanager
def reading(name: str, advice: str = "") -> Generator[None, None, None]:
    """Turn every error on the way into a `DataError` about `name`."""
    try:
        yield
    except MissMDPError:
        raise
    except OSError as error:
        reason = error.strerror or _first_line(error)
        raise DataError(f"{name} cannot be read ({reason}){advice}") from error
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # Damaged input can fail anywhere in the libraries below, with errors of any type.
        raise DataError(f"{name} cannot be read ({_first_line(error)}){advice}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def file_part(path: Path, known: frozenset[str]) -> Part:
    """Return a file as a part; `known` columns help to tell how a CSV file separates its cells."""
    is_parquet = str(path).lower().endswith(PARQUET_SUFFIXES)
    return _parquet_part(path) if is_parquet else _csv_part(path, known)


def _csv_part(path: Path, known: frozenset[str]) -> Part:
    """Return a CSV file as a part; its delimiter is the one that gives most of the known columns."""
    with reading(str(path), " as UTF-8 text with a header"), _decoding(path):
        names, delimiter, skip = read_header(lambda: _opened_csv(path), known)
        if any("\0" in name for name in names):
            raise UnicodeError("a null byte in the header")
    if not names:
        raise DataError(f"{path}: the file is empty; expected a header with the names of the columns")

    def read(columns: Sequence[str]) -> Batches:
        places = {name: names.index(name) for name in columns}
        with reading(str(path)), _decoding(path):
            yield from _batches(path, delimiter, skip, len(names), places)

    return Part(str(path), tuple(names), read, is_text=True, path=path)


@contextmanager
def _decoding(path: Path) -> Generator[None, None, None]:
    """Say what to do about bytes that are no UTF-8 text."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise DataError(f"{path} cannot be read: its name is not UTF-8; rename it") from error
    except (UnicodeError, pa.ArrowInvalid) as error:
        if not isinstance(error, UnicodeError) and "UTF8" not in str(error):
            raise
        with (gzip.open if _is_compressed(path) else open)(path, "rb") as file:
            start = cast("BinaryIO", file).read(1000)
        raise DataError(f"{path} cannot be read: {encoding_advice(start)}") from error


def _opened_csv(path: Path) -> TextIO:
    opener = gzip.open if _is_compressed(path) else open
    return cast("TextIO", opener(path, "rt", encoding="utf-8-sig", newline=""))


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _batches(path: Path, delimiter: str, skip: int, width: int, places: dict[str, int]) -> Batches:
    numbered = [str(place) for place in range(width)]
    wanted = {numbered[place]: pa.string() for place in places.values()}
    ragged: list[Any] = []

    def complain(row: Any) -> str:
        ragged.append(row)
        return "error"

    options: dict[str, Any] = {
        "read_options": arrow_csv.ReadOptions(
            column_names=numbered, skip_rows_after_names=skip, block_size=_BLOCK_BYTES, use_threads=False
        ),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=complain
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=wanted, include_columns=list(wanted), strings_can_be_null=False, null_values=[]
        ),
    }
    try:
        with (
            _unheard(complain),
            pa.input_stream(path, compression="gzip" if _is_compressed(path) else None) as stream,
            arrow_csv.open_csv(stream, **options) as file,
        ):
            for batch in file:
                trimmed = {
                    name: compute.utf8_trim_whitespace(batch.column(numbered[i]))
                    for name, i in places.items()
                }
                yield trimmed
    except pa.ArrowInvalid as error:
        if ragged:
            row = ragged[0]
            where = f"{path}, row {row.number - skip}" if row.number else str(path)
            raise DataError(
                f"{where}: {row.actual_columns} cells, but the header has {row.expected_columns}"
            ) from error
        if "Empty CSV file" in str(error):
            return
        raise


@contextmanager
def _unheard(function: object) -> Generator[None]:
    """Keep quiet where Arrow cannot call a function, as with a row that is no text: it fails on that row anyway."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda failed: None if failed.object is function else before(failed)
    try:
        yield
    finally:
        sys.unraisablehook = before


def _parquet_part(path: Path) -> Part:
    """Return a Parquet file as a part."""
    with reading(str(path), "; expected a Parquet file"), _opened_parquet(path) as file:
        schema = file.schema_arrow
        names, n_rows = tuple(schema.names), file.metadata.num_rows
        metadata = dict(schema.metadata or {})
        # As dictionaries, words are decoded once per distinct value rather than once per row.
        words = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]

    def read(columns: Sequence[str]) -> Batches:
        with reading(str(path)), _opened_parquet(path, [name for name in words if name in columns]) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                yield {name: batch.column(name) for name in columns}

    return Part(str(path), names, read, path=path, n_rows=n_rows, metadata=metadata, schema=schema)


def _opened_parquet(path: Path, read_dictionary: Sequence[str] = ()) -> Any:
    return parquet.ParquetFile(path, read_dictionary=list(read_dictionary), page_checksum_verification=True)

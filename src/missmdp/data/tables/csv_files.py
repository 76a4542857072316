"""Reading CSV files: the delimiter is told from the header, and all cells are words.

What a word means is up to the column it is in, not to the file: `1` is a ward's name as easily as a number.
"""

from __future__ import annotations

import gzip
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from missmdp.data.tables.arrow import arrow_csv, compute, pa
from missmdp.data.tables.failures import reading
from missmdp.data.tables.sources import Batches, Part
from missmdp.errors import DataError
from missmdp.model.csv_header import encoding_advice, read_header

__all__ = ["csv_part"]

_BLOCK_BYTES = 1 << 23


def csv_part(path: Path, known: frozenset[str]) -> Part:
    """Return a CSV file as a part; its delimiter is the one that gives most of the known columns."""
    with reading(str(path), " as UTF-8 text with a header"), _decoding(path):
        names, delimiter, skip = read_header(lambda: _opened(path), known)
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
    except (UnicodeError, pa.ArrowInvalid) as error:
        if not isinstance(error, UnicodeError) and "UTF8" not in str(error):
            raise
        with (gzip.open if _is_compressed(path) else open)(path, "rb") as file:
            start = cast("BinaryIO", file).read(1000)
        raise DataError(f"{path} cannot be read: {encoding_advice(start)}") from error


def _opened(path: Path) -> TextIO:
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

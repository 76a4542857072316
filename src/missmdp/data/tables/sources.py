"""Where a trajectory table comes from: files, folders, globs, frames, queries, or plain lists.

Whatever the source, it becomes a list of *parts* (files, mostly), each with named columns that are read in
batches, so that no more than one batch is in memory as it was written.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from missmdp.data.tables.factors import Cells
from missmdp.errors import DataError

__all__ = ["CSV_SUFFIXES", "PARQUET_SUFFIXES", "Batches", "Part", "find_files", "open_source"]

Batches = Iterator[Mapping[str, Cells]]

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
_EXPECTED = "a .csv, .csv.gz, .tsv, .parquet or .pq file"


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


def open_source(source: Any, known: Iterable[str]) -> list[Part]:
    """Return the parts of a source; `known` columns help to tell how a CSV file separates its cells.

    Raises
    ------
    DataError
        If there is nothing to read, or a file is unreadable, damaged or of an unknown kind.
    """
    files = find_files(source)
    if files is None:
        from missmdp.data.tables.frames import frame_part

        return [frame_part(source)]
    known = frozenset(known)
    return [_file_part(path, known) for path in files]


def find_files(source: Any) -> list[Path] | None:
    """Return the files that a source names, in order, or None if it is a table in memory."""
    if isinstance(source, str | Path):
        return _expand(source)
    speaks_arrow = hasattr(source, "__arrow_c_stream__")
    if isinstance(source, (list, tuple, set, frozenset, Iterator)) and not speaks_arrow:
        listed = list(cast("Iterable[Any]", source))
        if isinstance(source, set | frozenset):
            listed.sort(key=str)
        strange = [item for item in listed if not isinstance(item, str | Path)]
        if strange:
            raise DataError(
                f"a list of tables must be a list of paths, but it holds {type(strange[0]).__name__}; "
                "join frames into one first"
            )
        if not listed:
            raise DataError("the list of files is empty")
        return [path for item in listed for path in _expand(item)]
    return None


def _expand(source: str | Path) -> list[Path]:
    if not str(source):
        raise DataError("the name of a table is empty; `.` is the folder that one is in")
    try:
        path = Path(source).expanduser()
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(f"{str(source)!r} cannot be read ({error})") from error
    if is_folder:
        return _tables_in(path)
    if not exists and glob.has_magic(str(path)):
        found = sorted(
            Path(name)
            for name in glob.glob(str(path), recursive=True)
            if is_table(name) and Path(name).is_file()
        )
        if not found:
            raise DataError(f"no file matches {str(source)!r} (looking for {_EXPECTED})")
        return found
    if not exists:
        raise DataError(f"{path}: there is no such file (looking for {_EXPECTED})")
    if not is_table(path):
        raise DataError(f"{path}: cannot tell what this file holds; expected {_EXPECTED}")
    return [path]


def _tables_in(folder: Path) -> list[Path]:
    try:
        # Names with a dot in front are files that are still being written, or not meant to be seen.
        found = sorted(
            path
            for path in folder.rglob("*")
            if is_table(path)
            and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        )
    except OSError as error:
        raise DataError(f"{folder} cannot be read ({error.strerror or error})") from error
    if not found:
        raise DataError(f"{folder}: the folder holds no tables (looking for {_EXPECTED})")
    return found


def is_table(path: str | Path) -> bool:
    """Return whether a file's name says that it holds a table."""
    return str(path).lower().endswith(CSV_SUFFIXES + PARQUET_SUFFIXES)


def _file_part(path: Path, known: frozenset[str]) -> Part:
    if str(path).lower().endswith(PARQUET_SUFFIXES):
        from missmdp.data.tables.parquet_files import parquet_part

        return parquet_part(path)
    from missmdp.data.tables.csv_files import csv_part

    return csv_part(path, known)

"""Where a trajectory table comes from: files, folders, globs, frames, queries, or plain lists.

Whatever the source, it becomes a list of *parts* (files, mostly), each with named columns that are read in batches,
so no more than one batch is in memory as it was written.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.cells import Cells, pa
from missmdp.data.tables.parts import CSV_SUFFIXES, PARQUET_SUFFIXES, Batches, Part, file_part, reading
from missmdp.errors import DataError
from missmdp.model.space import is_missing, plain

_BATCH_ROWS = 1 << 19
_EXPECTED = (
    "a path, a folder, a glob or a list of paths of CSV or Parquet files, a pandas, polars or pyarrow frame, "
    "an ibis table, or a mapping from column to values"
)
_EXPECTED_FILE = "a .csv, .csv.gz, .tsv, .parquet or .pq file"


def open_source(source: Any, known: Iterable[str]) -> list[Part]:
    """Return the parts of a source; `known` columns help to tell how a CSV file separates its cells.

    Raises
    ------
    DataError
        If there is nothing to read, or a file is unreadable, damaged or of an unknown kind.
    """
    files = _find_files(source)
    if files is None:
        return [_frame_part(source)]
    known = frozenset(known)
    return [file_part(path, known) for path in files]


def _find_files(source: Any) -> list[Path] | None:
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
            if _is_table(name) and Path(name).is_file()
        )
        if not found:
            raise DataError(f"no file matches {str(source)!r} (looking for {_EXPECTED_FILE})")
        return found
    if not exists:
        raise DataError(f"{path}: there is no such file (looking for {_EXPECTED_FILE})")
    if not _is_table(path):
        raise DataError(f"{path}: unknown type of file; expected {_EXPECTED_FILE}")
    if not path.is_file():
        # It may never end, or never begin.
        raise DataError(f"{path} cannot be read (it is a pipe or device, not a file)")
    return [path]


def _tables_in(folder: Path) -> list[Path]:
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        # Names with a dot in front are files that are still being written, or not meant to be seen.
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [Path(place, name) for name in names if not name.startswith(".") and _is_table(name)]
        found += [path for path in paths if path.is_file()]
    if not found:
        raise DataError(f"{folder}: the folder contains no tables (looking for {_EXPECTED_FILE})")
    return sorted(found)


def _refuse_folder(error: OSError) -> None:
    """Raise `DataError` for a folder that cannot be looked into: it may well contain tables."""
    raise DataError(f"{error.filename} cannot be read ({error.strerror or error})") from error


def _is_table(path: str | Path) -> bool:
    """Return whether a file's name says that it holds a table."""
    return str(path).lower().endswith(CSV_SUFFIXES + PARQUET_SUFFIXES)


def _frame_part(source: Any) -> Part:
    """Return a table in memory, or the result of a query, as a part."""
    library = type(source).__module__.split(".")[0]
    with reading(f"a table of type {type(source).__name__}", f"; expected {_EXPECTED}"):
        if isinstance(source, Mapping):
            return _columns_part(_mapping_columns(cast("Mapping[Any, Any]", source)))
        if library == "pandas" and hasattr(source, "columns"):
            return _columns_part(_pandas_columns(source))
        if _is_query(source):
            return _query_part(source)
        if library == "polars" and hasattr(source, "collect"):
            source = source.collect()
        if isinstance(source, pa.RecordBatchReader):
            source = source.read_all()
        if isinstance(source, pa.Table | pa.RecordBatch) or hasattr(source, "__arrow_c_stream__"):
            return _arrow_part(pa.table(source))
    raise DataError(f"a table of type {type(source).__name__} cannot be read; expected {_EXPECTED}")


def _is_query(source: Any) -> bool:
    """Return whether a source is an ibis table, whose rows live in some back end."""
    return type(source).__module__.split(".")[0] == "ibis" and hasattr(source, "to_pyarrow_batches")


def _columns_part(columns: dict[str, Cells]) -> Part:
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        (first, n), (other, m) = next(
            (a, b) for a in lengths.items() for b in lengths.items() if a[1] != b[1]
        )
        raise DataError(f"the columns have different lengths: {first!r} has {n} rows, {other!r} has {m}")

    def read(names: Sequence[str]) -> Batches:
        yield {name: columns[name] for name in names}

    return Part("", tuple(columns), read, n_rows=next(iter(lengths.values()), 0))


def _mapping_columns(source: Mapping[Any, Any]) -> dict[str, Cells]:
    columns: dict[str, Cells] = {}
    for name, values in source.items():
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
            raise DataError(f"column {name!r}: expected a list of values, got {values!r}")
        columns[str(name)] = _as_cells(values)
    return columns


def _as_cells(values: Any) -> Cells:
    """Return values as an Arrow array if they have one type, as a list otherwise."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if type(values).__module__.split(".")[0] == "pandas":
        return _series_cells(values)
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.ndim == 1 and array.dtype.kind in "biuf":
            return pa.array(array)
    listed = [None if is_missing(value) else plain(value) for value in values]
    kinds: set[type] = {type(value) for value in listed if value is not None}
    # Arrow would turn integers among decimals into decimals, and cannot hold mixtures at all.
    if len(kinds) <= 1 and kinds <= {bool, int, float, str}:
        try:
            return pa.array(listed)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            pass
    return listed


def _pandas_columns(frame: Any) -> dict[str, Cells]:
    # A frame indexed by episode and step means these as columns.
    levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if levels:
        frame = frame.reset_index(level=levels)
    names = [str(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"the column {twice!r} occurs twice")
    return {name: _series_cells(frame.iloc[:, i]) for i, name in enumerate(names)}


def _series_cells(series: Any) -> Cells:
    if series.dtype != object:
        try:
            return pa.array(series, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
            pass
    return _as_cells(series.tolist())


def _arrow_part(table: Any) -> Part:
    def read(names: Sequence[str]) -> Batches:
        yield {name: table.column(name) for name in names}

    return Part(
        "",
        tuple(table.column_names),
        read,
        n_rows=table.num_rows,
        metadata=dict(table.schema.metadata or {}),
    )


def _query_part(table: Any) -> Part:
    def read(names: Sequence[str]) -> Batches:
        with reading("the query"):
            for batch in _query_batches(table.select(list(names))):
                yield {name: batch.column(name) for name in names}

    return Part("", tuple(table.columns), read, query=table)


def _query_batches(query: Any) -> Iterator[Any]:
    connection = getattr(query.get_backend(), "con", None)
    if type(connection).__name__ == "DuckDBPyConnection" and not hasattr(connection, "fetch_record_batch"):
        # ibis up to 12 asks for batches by this name, which DuckDB has given up in version 2.
        return iter(query.to_pyarrow().to_batches(max_chunksize=_BATCH_ROWS))
    return iter(query.to_pyarrow_batches())

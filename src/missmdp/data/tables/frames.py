"""Tables in memory: pandas, polars and pyarrow frames, queries, and mappings from name to values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.data.tables.arrow import pa
from missmdp.data.tables.factors import Cells
from missmdp.data.tables.failures import reading
from missmdp.data.tables.sources import Batches, Part
from missmdp.errors import DataError
from missmdp.model.space import is_missing, plain

__all__ = ["frame_part", "is_query"]

_BATCH_ROWS = 1 << 19
_EXPECTED = (
    "a path, a folder, a glob or a list of paths of CSV or Parquet files, a pandas, polars or pyarrow frame, "
    "an ibis table, or a mapping from column to values"
)


def frame_part(source: Any) -> Part:
    """Return a table in memory, or the result of a query, as a part."""
    library = type(source).__module__.split(".")[0]
    with reading(f"a table of type {type(source).__name__}", f"; expected {_EXPECTED}"):
        if isinstance(source, Mapping):
            return _columns_part(_mapping_columns(cast("Mapping[Any, Any]", source)))
        if library == "pandas" and hasattr(source, "columns"):
            return _columns_part(_pandas_columns(source))
        if is_query(source):
            return _query_part(source)
        if library == "polars" and hasattr(source, "collect"):
            source = source.collect()
        if isinstance(source, pa.RecordBatchReader):
            source = source.read_all()
        if isinstance(source, pa.Table | pa.RecordBatch) or hasattr(source, "__arrow_c_stream__"):
            return _arrow_part(pa.table(source))
    raise DataError(f"a table of type {type(source).__name__} cannot be read; expected {_EXPECTED}")


def is_query(source: Any) -> bool:
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

"""Reading Parquet files, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from missmdp.data.tables.arrow import pa, parquet
from missmdp.data.tables.failures import reading
from missmdp.data.tables.sources import Batches, Part

__all__ = ["parquet_part"]

_BATCH_ROWS = 1 << 19


def parquet_part(path: Path) -> Part:
    """Return a Parquet file as a part."""
    with reading(str(path), "; expected a Parquet file"), _opened(path) as file:
        schema = file.schema_arrow
        names, n_rows = tuple(schema.names), file.metadata.num_rows
        metadata = dict(schema.metadata or {})
        # As dictionaries, words are decoded once per distinct value rather than once per row.
        words = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]

    def read(columns: Sequence[str]) -> Batches:
        with reading(str(path)), _opened(path, [name for name in words if name in columns]) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                yield {name: batch.column(name) for name in columns}

    return Part(str(path), names, read, path=path, n_rows=n_rows, metadata=metadata, schema=schema)


def _opened(path: Path, read_dictionary: Sequence[str] = ()) -> Any:
    return parquet.ParquetFile(path, read_dictionary=list(read_dictionary), page_checksum_verification=True)

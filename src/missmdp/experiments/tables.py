"""Tables of results: the same rows as .csv, .json or .parquet."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from missmdp.errors import MissMDPError
from missmdp.model.archive import write_atomically

__all__ = ["LONG_TABLES", "TABLES", "listed", "write_columns", "write_table"]

TABLES = (".csv", ".json", ".parquet")
"""The endings of the names of tables."""
LONG_TABLES = (".csv", ".parquet")
"""The same for tables of many rows."""


def write_table(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write rows with the same columns; numbers keep all their digits.

    In .csv and .parquet files, mappings in cells are written as JSON; in .csv files None is empty. In .json files
    what is not finite is null.
    """
    path = Path(path)
    match path.suffix.lower():
        case ".json":
            text = json.dumps([_finite(row) for row in rows], indent=1, ensure_ascii=False)
            content = f"{text}\n".encode()
        case ".csv":
            buffer = io.StringIO(newline="")
            writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            content = buffer.getvalue().encode()
        case ".parquet":
            names = list(rows[0]) if rows else []
            write_columns({name: [_cell(row[name]) for row in rows] for name in names}, path)
            return
        case suffix:
            raise MissMDPError(f"{path}: a table's name must end in {listed(TABLES)}, not {suffix!r}")
    write_atomically(path, content)


def write_columns(columns: Mapping[str, Any], path: str | Path) -> None:
    """Write columns of the same length, lists or arrays, to a .csv or .parquet file; for many rows."""
    from missmdp.data.tables.cells import arrow_csv, pa, parquet

    path = Path(path)
    table, sink = pa.table(dict(columns)), pa.BufferOutputStream()
    match path.suffix.lower():
        case ".csv":
            arrow_csv.write_csv(table, sink)
        case ".parquet":
            parquet.write_table(table, sink)
        case suffix:
            raise MissMDPError(f"{path}: a table's name must end in {listed(LONG_TABLES)}, not {suffix!r}")
    write_atomically(path, sink.getvalue().to_pybytes())


def listed(endings: Sequence[str]) -> str:
    """Return endings in words: ".csv, .json or .parquet"."""
    return f"{', '.join(endings[:-1])} or {endings[-1]}"


def _cell(value: Any) -> Any:
    return json.dumps(_finite(value), ensure_ascii=False) if isinstance(value, Mapping | list) else value


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

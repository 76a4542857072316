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

__all__ = ["TABLES", "write_table"]

TABLES = (".csv", ".json", ".parquet")
"""The endings of the names of tables."""


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
            from missmdp.data.tables.arrow import pa, parquet

            names = list(rows[0]) if rows else []
            sink = pa.BufferOutputStream()
            parquet.write_table(pa.table({name: [_cell(row[name]) for row in rows] for name in names}), sink)
            content = sink.getvalue().to_pybytes()
        case suffix:
            raise MissMDPError(
                f"{path}: a table's name must end in {', '.join(TABLES[:-1])} or {TABLES[-1]}, not {suffix!r}"
            )
    write_atomically(path, content)


def _cell(value: Any) -> Any:
    return json.dumps(_finite(value), ensure_ascii=False) if isinstance(value, Mapping | list) else value


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

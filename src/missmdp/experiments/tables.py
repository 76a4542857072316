"""Tables of results: the same rows as .csv, .json or .parquet, and Markdown between the marks of a page."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from missmdp.errors import MissMDPError
from missmdp.files import read_text, write_atomically
from missmdp.words import listed

TABLES = (".csv", ".json", ".parquet")
"""The endings of the names of tables."""
_ODD = "backslashreplace"
"""What becomes of bytes in names of files that are no UTF-8."""
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
            content = f"{text}\n".encode(errors=_ODD)
        case ".csv":
            lines = _Lines()
            writer = csv.DictWriter(
                lines, fieldnames=list(rows[0]) if rows else [], lineterminator=_Lines.END
            )
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            content = "".join(lines.lines).encode(errors=_ODD)
        case ".parquet":
            names = list(rows[0]) if rows else []
            write_columns({name: [_cell(row[name]) for row in rows] for name in names}, path)
            return
        case suffix:
            raise MissMDPError(f"{path}: a table's name must end in {listed(TABLES, 'or')}, not {suffix!r}")
    write_atomically(path, content)


class _Lines:
    """Lines with short ends, written as if they had long ones: then cells with a part of those are quoted."""

    END = "\r\n"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        """Take note of a line."""
        self.lines.append(f"{line.removesuffix(self.END)}\n")


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
            raise MissMDPError(
                f"{path}: a table's name must end in {listed(LONG_TABLES, 'or')}, not {suffix!r}"
            )
    write_atomically(path, sink.getvalue().to_pybytes())


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], words: Container[int]) -> str:
    """Return a table in Markdown; `words` are columns of words, the others numbers, which are set to the right."""
    aligned = [":---" if i in words else "---:" for i in range(len(columns))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, aligned, *rows))


def put_tables(tables: Mapping[str, str], page: str | Path) -> list[str]:
    """Put tables into a page that people write, each between its marks, and return the names of those put there.

    The marks of a table are the lines <!-- claims --> and <!-- end of claims -->, and so on; what was between them
    is replaced. A page that does not exist yet is made, with all tables.

    Raises
    ------
    MissMDPError
        If the page cannot be read or written, or a table's end is not marked.
    """
    page = Path(page)
    text = _page(page, tables)
    put: list[str] = []
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if start not in text:
            continue
        before, rest = text.split(start, 1)
        if end not in rest:
            raise MissMDPError(f"{page}: there is {start} without {end} after it")
        text = f"{before}{start}\n{table}\n{end}{rest.split(end, 1)[1]}"
        put.append(name)
    write_atomically(page, text.encode())
    return put


def _page(target: Path, tables: Mapping[str, str]) -> str:
    if not target.exists():
        return "\n\n".join(f"<!-- {name} -->\n<!-- end of {name} -->" for name in tables) + "\n"
    return read_text(target)


def _cell(value: Any) -> Any:
    text = json.dumps(_finite(value), ensure_ascii=False) if isinstance(value, Mapping | list) else value
    return text.encode(errors=_ODD).decode() if isinstance(text, str) else text


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

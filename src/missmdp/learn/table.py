"""What was learned as a table: one row for every group and pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from missmdp.errors import MissMDPError
from missmdp.learn.bounds import Bound
from missmdp.model.archive import write_atomically

__all__ = ["learned_rows", "missing_in", "write_learned"]


def missing_in(features: tuple[str, ...], pattern: Any) -> str:
    """Return which features a pattern lacks, in words."""
    return " + ".join(name for name, seen in zip(features, pattern, strict=True) if not seen) or "nothing"


def learned_rows(bound: Bound, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return one row for every group and pattern: its values, how many samples, M̂ and its interval.

    Columns are `indicators` (the features whose indicators these are), a column `given_<feature>` for each of the
    features (None where missingness is not counted by it), and one `given_R_<feature>` for each other indicator that
    groups go by, if any do; then `samples`, `missing` (what the pattern lacks), `estimate`, `lower`, `upper`.
    """
    known = dict.fromkeys([*features, *(name for group in bound.per_group for name in group.given)])
    return [
        {
            "indicators": " + ".join(group.features),
            **{f"given_{name}": group.given.get(name) for name in known},
            "samples": group.samples,
            "missing": missing_in(group.features, pattern),
            "estimate": float(estimate),
            "lower": float(lower),
            "upper": float(upper),
        }
        for group in bound.per_group
        for pattern, estimate, lower, upper in zip(
            group.patterns, group.estimate, group.lower, group.upper, strict=True
        )
    ]


def write_learned(bound: Bound, features: tuple[str, ...], path: str | Path) -> None:
    """Write `learned_rows` to a .csv or .parquet file."""
    from missmdp.data.tables.cells import arrow_csv, pa, parquet

    path = Path(path)
    rows = learned_rows(bound, features)
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    try:
        table = pa.table(columns)
    except pa.ArrowException:
        # Values of mixed types have no column type of their own; words will do.
        words = {name: [None if v is None else str(v) for v in c] for name, c in columns.items()}
        numbers = ("samples", "estimate", "lower", "upper")
        table = pa.table({name: columns[name] if name in numbers else c for name, c in words.items()})
    buffer = pa.BufferOutputStream()
    match path.suffix.lower():
        case ".csv":
            arrow_csv.write_csv(table, buffer)
        case ".parquet" | ".pq":
            parquet.write_table(table, buffer)
        case suffix:
            raise MissMDPError(f"{path}: what was learned is written as .csv or .parquet, not {suffix!r}")
    write_atomically(path, buffer.getvalue().to_pybytes())

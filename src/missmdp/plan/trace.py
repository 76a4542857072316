"""How a solver got where it got: its bounds over time, and where they came from."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_path, checked_title
from missmdp.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

LowerSource: TypeAlias = Literal["vectors", "memory", "observation", "action", "rewards"]
UpperSource: TypeAlias = Literal["points", "grid", "sight", "rewards"]
"""Where a bound came from."""


class TraceRow(NamedTuple):
    """The state of a search at one time."""

    seconds: float
    trials: int
    backups: int
    lower: float
    upper: float
    vectors: int
    points: int


@dataclass(frozen=True, eq=False)
class Trace:
    """A search in rows, one per report, as columns of equal length."""

    seconds: NDArray[np.float64]
    """Since the start, initialisation included."""
    trials: NDArray[np.int64]
    """Rounds of sampling and backups; in a structured search, rounds of a finer grid and better memories."""
    backups: NDArray[np.int64]
    """Backups of α-vectors; in a structured search, sweeps over a grid or a memory."""
    lower: NDArray[np.float64]
    """Lower bound at the start."""
    upper: NDArray[np.float64]
    """Upper bound at the start."""
    vectors: NDArray[np.int64]
    """α-vectors of the lower bound; in a structured search, combinations of nodes in the memory, 0 without one."""
    points: NDArray[np.int64]
    """Belief points of the upper bound; in a structured search, points of the grid."""

    def __len__(self) -> int:
        return len(self.seconds)

    def __repr__(self) -> str:
        if not len(self):
            return "Trace(0 rows)"
        return f"Trace({len(self)} rows, {self.seconds[-1]:.1f} s, value in [{self.lower[-1]:g}, {self.upper[-1]:g}])"

    @property
    def gap(self) -> NDArray[np.float64]:
        """Upper − lower, row by row."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> NDArray[np.float64]:
        """(upper − lower)/|lower|, row by row; infinite where lower is 0 and upper is not."""
        gap, size = self.gap, np.abs(self.lower)
        unbounded = np.where(gap == 0.0, 0.0, np.inf)
        return np.divide(gap, size, out=unbounded, where=(size > 0.0) & (gap != 0.0))

    def rows(self) -> list[TraceRow]:
        """Return the rows, as named tuples of Python numbers."""
        return [
            TraceRow(*row)
            for row in zip(*(self.column(name).tolist() for name in TraceRow._fields), strict=True)
        ]

    def followed_by(self, other: Trace) -> Trace:
        """Return both traces as one, in which bounds never get worse and trials and backups are counted on."""
        columns = {name: np.concatenate([self.column(name), other.column(name)]) for name in TraceRow._fields}
        for name in ("trials", "backups"):
            columns[name][len(self) :] += self.column(name)[-1] if len(self) else 0
        columns["lower"] = np.maximum.accumulate(columns["lower"])
        columns["upper"] = np.minimum.accumulate(columns["upper"])
        return Trace(**columns)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column by its name."""
        return getattr(self, name)

    def to_csv(self, path: str | Path) -> Path:
        """Write the rows to a CSV file, numbers in full, and return its path."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(TraceRow._fields)
        writer.writerows(self.rows())
        write_atomically(path, text.getvalue().encode())
        return Path(path)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas frame; pandas must be installed."""
        import pandas as pd

        return pd.DataFrame({field.name: self.column(field.name) for field in fields(self)})

    def plot(self, path: str | Path, *, title: str | None = None) -> Path:
        """Draw the bounds over time, and their gap below, into an SVG, PNG or PDF file; return its path."""
        from missmdp.plan.pictures import draw_trace

        return draw_trace(self, checked_path(path), title=checked_title(title))


class TraceBuilder:
    """A trace that grows row by row."""

    def __init__(self) -> None:
        self._rows: list[TraceRow] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(
        self,
        *,
        seconds: float,
        trials: int,
        backups: int,
        lower: float,
        upper: float,
        vectors: int,
        points: int,
    ) -> None:
        """Add a row."""
        self._rows.append(TraceRow(seconds, trials, backups, lower, upper, vectors, points))

    def build(self) -> Trace:
        """Return the rows so far as a trace."""

        def floats(name: str) -> NDArray[np.float64]:
            return np.array([getattr(row, name) for row in self._rows], dtype=np.float64)

        def counts(name: str) -> NDArray[np.int64]:
            return np.array([getattr(row, name) for row in self._rows], dtype=np.int64)

        return Trace(
            floats("seconds"),
            counts("trials"),
            counts("backups"),
            floats("lower"),
            floats("upper"),
            counts("vectors"),
            counts("points"),
        )

"""What the readers of both model formats share: errors with their place, sparse tables, and the way to a POMDP.

Both formats give a default for everything, then exceptions, then exceptions to these: what is written later covers
what was written before. A write has a *stamp*, the place in the file where it stands; stamps never decrease.

A file does not mark terminal states: those that every action leaves where they are, with reward 0, are taken as
such. Files act first, so `observe_initial` is False. O is kept once where it is the same for all actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, ModelError
from missmdp.files import read_bytes
from missmdp.model.pomdp import POMDP

MAX_COUNT = 5_000_000
"""States, actions or observations above which a count in a file is taken for a mistake."""


def error_at(path: str | Path, line: int, column: int, message: str) -> FormatError:
    """Return the error for a place in a file, lines and columns counted from one."""
    return FormatError(f"{path}:{line}:{column}: {message}")


def read_text(path: str | Path) -> str:
    """Return the text of a file; whatever is wrong with it becomes a `FormatError`."""
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Comments in old files are often in Latin-1; names and numbers are ASCII either way.
        text = content.decode("latin-1")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        column = text.index("\0") - text.rfind("\n", 0, text.index("\0"))
        raise error_at(path, line, column, "this is not text: it has a zero byte")
    return text


_MAX_ROWS = 10_000_000
MAX_CELLS = 30_000_000
"""Rows and written cells above which a file is refused, before memory runs out."""

Index = NDArray[np.int64]


def as_index(values: object) -> Index:
    """Return numbers as an array of indices."""
    return np.atleast_1d(np.asarray(values, dtype=np.int64))


class Layers:
    """A matrix of shape (n_rows, n_columns) under construction; what is never written is zero.

    Writing a whole row makes everything before it void, so its zeros need not be kept.

    Attributes
    ----------
    written : numpy.ndarray
        Stamp of the last write to each row, −1 where there was none, shape (n_rows,).
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        if n_rows > _MAX_ROWS or n_rows * n_columns >= 2**62:
            raise ModelError(f"a table of {n_rows:,} rows and {n_columns:,} columns is too large")
        self.shape = (n_rows, n_columns)
        self.written = np.full(n_rows, -1, dtype=np.int64)
        self._replaced = np.full(n_rows, -1, dtype=np.int64)
        self._cells: tuple[list[int], list[int], list[float], list[int]] = ([], [], [], [])
        self._blocks: list[tuple[Index, Index, NDArray[np.float64], Index]] = []
        self._size = 0

    def write_cell(self, row: int, column: int, value: float, stamp: int) -> None:
        """Write one cell."""
        rows, columns, values, stamps = self._cells
        rows.append(row)
        columns.append(column)
        values.append(value)
        stamps.append(stamp)

    def write_cells(self, rows: Index, columns: Index, values: NDArray[np.float64], stamp: int) -> None:
        """Write cell by cell; the three arrays have one length."""
        self._close_cells()
        self.make_room(len(rows))
        self._size += len(rows)
        self._blocks.append((rows, columns, values, np.full(len(rows), stamp, dtype=np.int64)))
        self.written[rows] = stamp

    def write_entries(self, rows: Index, columns: Index, values: NDArray[np.float64], stamps: Index) -> None:
        """Write cell by cell, each with its stamp, as `write_cell` does one after the other."""
        self._close_cells()
        self._size += len(rows)
        self._blocks.append((rows, columns, values, stamps))
        np.maximum.at(self.written, rows, stamps)

    def write_rows(self, rows: Index, values: NDArray[np.float64], stamp: int) -> None:
        """Write whole rows: all with the same values, shape (n_columns,), or each with its own, (rows, n_columns)."""
        if values.ndim == 2:
            place, columns = np.nonzero(values)
            self._replaced[rows] = stamp
            self.write_cells(rows[place], columns, values[place, columns], stamp)
            self.written[rows] = stamp
            return
        columns = np.flatnonzero(values)
        self.make_room(len(rows) * len(columns))
        self._replaced[rows] = stamp
        self.write_cells(
            np.repeat(rows, len(columns)),
            np.tile(columns, len(rows)),
            np.tile(values[columns], len(rows)),
            stamp,
        )
        self.written[rows] = stamp

    def write_identity(self, rows: Index, stamp: int) -> None:
        """Write whole rows that have a one in the column of their place in `rows`, else zeros."""
        self._replaced[rows] = stamp
        self.write_cells(rows, np.arange(len(rows)), np.ones(len(rows)), stamp)

    def make_room(self, cells: int) -> None:
        """Raise `ModelError` if there is no room for so many cells more; call it before they are made."""
        if self._size + cells > MAX_CELLS:
            raise ModelError(f"this makes more than {MAX_CELLS:,} numbers that are not zero, too many")

    def _close_cells(self) -> None:
        """Move the cells written one by one to the blocks, so blocks are in the order of writing."""
        rows, columns, values, stamps = self._cells
        if rows:
            self._cells = ([], [], [], [])
            self.write_entries(as_index(rows), as_index(columns), np.array(values), as_index(stamps))

    def resolve(self) -> sparse.csr_array:
        """Return the matrix: of all writes to a cell the last one counts."""
        self._close_cells()
        valid = [stamps >= self._replaced[rows] for rows, _, _, stamps in self._blocks]
        blocks = list(zip(self._blocks, valid, strict=True))
        rows = np.concatenate([as_index([]), *(block[0][keep] for block, keep in blocks)])
        columns = np.concatenate([as_index([]), *(block[1][keep] for block, keep in blocks)])
        values = np.concatenate([np.zeros(0), *(block[2][keep] for block, keep in blocks)])
        cell = rows * self.shape[1] + columns
        # Stable, so equal cells stay in the order of writing and the last of each run is the last write.
        order = np.argsort(cell, kind="stable")
        cell = cell[order]
        last = order[np.append(cell[1:] != cell[:-1], True) if cell.size else np.zeros(0, dtype=np.bool_)]
        matrix = sparse.csr_array((values[last], (rows[last], columns[last])), shape=self.shape)
        matrix.eliminate_zeros()
        return matrix


def row_means(
    values: NDArray[np.float64], weights: NDArray[np.float64], starts: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Return Σ weight · value of each row, where rows of equal values give that value itself.

    Weights are probabilities and sum to one only up to rounding; a constant must not suffer from that.

    Parameters
    ----------
    values, weights
        Row after row, shape (entries,).
    starts
        Where each row starts, shape (rows,); no row is empty.
    """
    if not len(starts):
        return np.zeros(0)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return np.where(low == high, low, np.add.reduceat(values * weights, starts))


def pomdp_from_file(
    path: str | Path,
    *,
    states: Sequence[Any],
    actions: Sequence[Any],
    observations: Sequence[Any],
    transition: Sequence[sparse.csr_array],
    reward: NDArray[np.float64],
    observation: Sequence[sparse.csr_array],
    initial: NDArray[np.float64],
    discount: float,
) -> POMDP:
    """Return the POMDP of a file, from matrices whose rows have been checked."""
    first = observation[0]
    shared = all(same_matrix(first, other) for other in observation[1:])
    try:
        return POMDP(
            states=states,
            actions=actions,
            observations=observations,
            transition=tuple(transition),
            reward=reward,
            observation=(first,) if shared else tuple(observation),
            initial=initial,
            terminal=absorbing(transition) & (reward == 0.0).all(axis=1),
            discount=discount,
            observe_initial=False,
        )
    except ModelError as error:
        raise FormatError(f"{path}: {error}") from error


def absorbing(transition: Sequence[sparse.csr_array]) -> NDArray[np.bool_]:
    """Return which states no action leaves, shape (S,)."""
    return np.all([matrix.diagonal() == 1.0 for matrix in transition], axis=0)


def same_matrix(one: sparse.csr_array, other: sparse.csr_array) -> bool:
    """Return whether two matrices in canonical form are equal bit for bit."""
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )

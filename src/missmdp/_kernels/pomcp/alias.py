"""Draw from one of many discrete distributions in two loads and without a branch, for simulations inside a search.

Walker's alias method with a power of two of columns per row: the first bits of a random word choose the column, the
others decide between the column's two outcomes. Probabilities are exact to 2⁻⁵², or to 2⁻⁶⁴ times the columns of
the row if that is more. Unlike `_kernels.sampling`, equal words give no coupled draws; inside a search nobody asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel

__all__ = ["AliasRows", "fill_alias", "pick"]

_ZERO, _ONE, _SIX, _HALF, _LOW = (
    np.uint64(0),
    np.uint64(1),
    np.uint64(6),
    np.uint64(32),
    np.uint64(0xFFFFFFFF),
)
_SIZE_BITS = np.uint64(63)
_ALWAYS = np.uint64(0xFFFFFFFFFFFFFFFF)


class AliasRows(NamedTuple):
    """Distributions over outcomes below 2³², as rows."""

    row: NDArray[np.uint64]
    """Where the columns of each row are: 64 · (the first) + log₂(how many), shape (rows,)."""
    column: NDArray[np.uint64]
    """Shape (columns, 2): below this fraction of 2⁶⁴ the first outcome, else the second; first + 2³² · second."""


@inner
def pick(rows: AliasRows, row: Any, word: Any) -> Any:
    """Return the outcome (uint64) that 64 random bits choose from a row."""
    place = rows.row[row]
    size = place & _SIZE_BITS
    column = (place >> _SIX) + ((word >> _ONE) >> (_SIZE_BITS - size))
    shift = _ZERO if (word << size) < rows.column[column, 0] else _HALF
    return (rows.column[column, 1] >> shift) & _LOW


@kernel
def fill_alias(
    start: NDArray[np.int64],
    outcome: NDArray[np.int64],
    probability: NDArray[np.float64],
    row: NDArray[np.uint64],
    column: NDArray[np.uint64],
) -> None:
    """Fill `column` for rows with their outcomes at start[r] …; `row` says where the columns are.

    Vose's way: columns that are less than full are topped up by outcomes that have more than a column.
    """
    widest = 0
    for r in range(len(row)):
        widest = max(widest, 1 << np.int64(row[r] & _SIZE_BITS))
    share = np.empty(widest)
    waiting = np.empty(widest, dtype=np.int64)
    for r in range(len(row)):
        width = 1 << np.int64(row[r] & _SIZE_BITS)
        first = np.int64(row[r] >> _SIX)
        size = start[r + 1] - start[r]
        total = 0.0
        for i in range(size):
            total += probability[start[r] + i]
        low, high = 0, width
        for i in range(width):
            share[i] = probability[start[r] + i] / total * width if i < size else 0.0
            if share[i] < 1.0:
                waiting[low] = i
                low += 1
            else:
                high -= 1
                waiting[high] = i
        while low > 0 and high < width:
            low -= 1
            poor, rich = waiting[low], waiting[high]
            own = np.uint64(outcome[start[r] + poor]) if poor < size else _ZERO
            other = np.uint64(outcome[start[r] + rich])
            column[first + poor, 0] = np.uint64(share[poor] * 2.0**64)
            column[first + poor, 1] = own | (other << _HALF)
            share[rich] -= 1.0 - share[poor]
            if share[rich] < 1.0:
                high += 1
                waiting[low] = rich
                low += 1
        # What is left is full, up to rounding.
        for i in range(low):
            _fill_whole(column, first + waiting[i], outcome[start[r] + min(waiting[i], size - 1)])
        for i in range(high, width):
            _fill_whole(column, first + waiting[i], outcome[start[r] + waiting[i]])


@inner
def _fill_whole(column: NDArray[np.uint64], place: Any, outcome: Any) -> None:
    column[place, 0] = _ALWAYS
    column[place, 1] = np.uint64(outcome) | (np.uint64(outcome) << _HALF)

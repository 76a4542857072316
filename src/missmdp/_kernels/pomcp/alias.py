"""Draw from one of many discrete distributions in two loads and without a branch, for simulations inside a search.

Walker's alias method with a power of two of columns per row: the first bits of a random word choose the column, the
others decide between the column's two outcomes. A column is a pair of words: of 32 bits each where outcomes fit into
16, since searches wait for memory more than for anything else, and of 64 bits elsewhere. Probabilities are rounded to
multiples of 2⁻³², or 2⁻⁵², of a column. Unlike in `_kernels.random`, equal words give no coupled draws; inside a
search nobody asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel

_ZERO, _ONE, _SIX, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(8)
_SIZE_BITS, _WORD = np.uint64(63), np.uint64(64)


class AliasRows(NamedTuple):
    """Distributions over outcomes below 2¹⁶ or 2³², as rows."""

    row: NDArray[np.uint64]
    """Where the columns of each row are: 64 · (the first) + log₂(how many), shape (rows,)."""
    column: NDArray[Any]
    """Shape (columns, 2), uint32 or uint64: below this fraction of a word the first outcome, else the second; and both
    of them, the second in the upper half of the word."""


@inner
def pick(rows: AliasRows, row: Any, word: Any) -> Any:
    """Return the outcome (uint64) that 64 random bits choose from a row."""
    width = _EIGHT * np.uint64(rows.column.itemsize)
    half = width >> _ONE
    place = rows.row[row]
    size = place & _SIZE_BITS
    column = (place >> _SIX) + ((word >> _ONE) >> (_SIZE_BITS - size))
    fraction = (word << size) >> (_WORD - width)
    shift = _ZERO if fraction < np.uint64(rows.column[column, 0]) else half
    return (np.uint64(rows.column[column, 1]) >> shift) & ((_ONE << half) - _ONE)


@kernel
def fill_alias(
    start: NDArray[np.int64],
    outcome: NDArray[np.int64],
    probability: NDArray[np.float64],
    row: NDArray[np.uint64],
    column: NDArray[Any],
) -> None:
    """Fill `column` for rows with their outcomes at start[r] …; `row` says where the columns are.

    Vose's way: columns that are less than full are topped up by outcomes that have more than a column.
    """
    width_bits = 8 * column.itemsize
    half = np.uint64(width_bits // 2)
    unit = 2.0**width_bits
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
            column[first + poor, 0] = np.uint64(share[poor] * unit)
            column[first + poor, 1] = own | (other << half)
            share[rich] -= 1.0 - share[poor]
            if share[rich] < 1.0:
                high += 1
                waiting[low] = rich
                low += 1
        # What is left is full, up to rounding; which of two equal outcomes is drawn does not matter.
        for i in range(width):
            if low <= i < high:
                continue
            own = np.uint64(outcome[start[r] + min(waiting[i], size - 1)])
            column[first + waiting[i], 0] = _ZERO
            column[first + waiting[i], 1] = own | (own << half)

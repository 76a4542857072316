"""Columns as Arrow arrays or lists, with their distinct values.

Logs are long and features have few values, so whatever Python has to decide about a value is decided once
per distinct value; rows only follow by taking places.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.model.space import is_missing, plain

pa: Any = import_module("pyarrow")
compute: Any = import_module("pyarrow.compute")
arrow_csv: Any = import_module("pyarrow.csv")
parquet: Any = import_module("pyarrow.parquet")


Cells: TypeAlias = Any
"""A column or a part of one: an Arrow array where it can be, a list where values have no common type."""


class Factors(NamedTuple):
    """Distinct values and, for each row, the place of its value, −1 where there is none."""

    values: list[Any]
    places: NDArray[np.integer[Any]]


def factorise(cells: Cells) -> Factors:
    """Return the distinct values of a column, in no particular order, and where they occur.

    Values may include some that mean missing (NaN) and, in categorical columns, some that never occur.
    """
    if isinstance(cells, list):
        return _factorise_list(cast("list[Any]", cells))
    array: Any = cells
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary())
    if pa.types.is_null(array.type):
        return Factors([], np.full(len(array), -1, dtype=np.int64))
    # Older versions of Arrow cannot encode half floats.
    by_hand = pa.types.is_nested(array.type) or pa.types.is_float16(array.type)
    if by_hand or isinstance(array.type, pa.BaseExtensionType):
        return _factorise_list(array.to_pylist())
    if not pa.types.is_dictionary(array.type):
        array = compute.dictionary_encode(array)
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # some versions keep one chunk wrapped
        array = array.chunk(0)
    places = compute.fill_null(array.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Factors(array.dictionary.to_pylist(), places)


def _factorise_list(cells: list[Any]) -> Factors:
    values: list[Any] = []
    place_of: dict[Any, int] = {}
    places = np.full(len(cells), -1, dtype=np.int64)
    for row, value in enumerate(map(plain, cells)):
        if is_missing(value):
            continue
        # True, 1 and 1.0 are equal, but written differently.
        key: Any = (cast("Any", type(value)), value)
        try:
            hash(key)
        except TypeError:
            key = (cast("Any", type(value)), repr(value))
        if key not in place_of:
            place_of[key] = len(values)
            values.append(value)
        places[row] = place_of[key]
    return Factors(values, places)


def in_order(factors: Factors) -> Factors:
    """Return only the values that occur, in order of first appearance."""
    n_rows = len(factors.places)
    first = np.full(len(factors.values) + 1, n_rows)
    # Of several writes to one place the last one stays, so going backwards the first row does.
    first[factors.places[::-1]] = np.arange(n_rows - 1, -1, -1)
    used = np.argsort(first[:-1], kind="stable")[: np.count_nonzero(first[:-1] < n_rows)]
    rename = np.full(len(factors.values) + 1, -1)
    rename[used] = np.arange(len(used))
    return Factors([factors.values[i] for i in used.tolist()], rename[factors.places])


def take(factors: Factors, convert: Callable[[Any], int], dtype: np.dtype[Any], missing: int) -> NDArray[Any]:
    """Return a number per row: what `convert` makes of its value, or `missing` where there is none."""
    # Places of −1 read the entry at the end.
    table = np.array([*map(convert, factors.values), missing], dtype=dtype)
    return table[factors.places]


def cell(cells: Cells, row: int) -> Any:
    """Return the Python value in a row, None where there is none."""
    return plain(cast("list[Any]", cells)[row]) if isinstance(cells, list) else cells[row].as_py()

"""Records: kernels see the arrays of a named tuple as they are, whatever their shapes and types."""

import sys
from typing import Any, NamedTuple

import numba
import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.records import RecordType, record


@record
class Shelf(NamedTuple):
    count: Any
    grid: Any
    solid: Any
    mark: Any


@inner
def add(shelf, place, out):
    shelf.count[place] += 1
    out[0] += len(shelf.count) + shelf.grid.shape[0] * 10 + shelf.grid.shape[1] * 100


@kernel
def use(shelf, out):
    for place in range(len(shelf.count)):
        if shelf.mark[place]:
            add(shelf, place, out)
    row = shelf.grid[1, 1:3]
    for k in range(len(row)):
        out[1] += row[k]
        row[k] = -row[k]
    for i in range(shelf.solid.shape[0]):
        for j in range(shelf.solid.shape[1]):
            out[2] += shelf.solid[i, j, 1] * (i + 1) * (j + 2)


def shelf():
    return Shelf(
        count=np.zeros(3, np.int32),
        grid=np.arange(8.0).reshape(2, 4),
        solid=np.arange(12, dtype=np.int64).reshape(2, 3, 2),
        mark=np.array([True, False, True]),
    )


def test_kernels_read_and_write_the_arrays():
    arrays, out = shelf(), np.zeros(3)
    use(arrays, out)
    weights = np.outer([1, 2], [2, 3, 4])
    assert out.tolist() == [2 * (3 + 20 + 400), 5.0 + 6.0, (arrays.solid[:, :, 1] * weights).sum()]
    assert arrays.count.tolist() == [1, 0, 1]
    assert arrays.grid.tolist() == [[0.0, 1.0, 2.0, 3.0], [4.0, -5.0, -6.0, 7.0]]


def test_replaced_arrays_are_seen():
    arrays, out = shelf(), np.zeros(3)
    use(arrays, out)
    larger = arrays._replace(mark=np.ones(5, np.bool_), count=np.zeros(5, np.int32))
    use(larger, out := np.zeros(3))
    assert out[0] == 5 * (5 + 20 + 400)


def test_one_kernel_serves_all_lengths_and_other_types_have_their_own():
    arrays = shelf()
    kind = numba.typeof(arrays)
    assert isinstance(kind, RecordType)
    assert numba.typeof(arrays._replace(grid=np.zeros((9, 9)))) is kind
    other = numba.typeof(arrays._replace(grid=np.zeros((9, 9), np.float32)))
    assert other != kind
    assert str(other) != str(kind)


def test_arrays_with_gaps_are_taken_one_by_one():
    arrays = shelf()
    gaps = arrays._replace(grid=np.arange(16.0).reshape(2, 8)[:, ::2])
    assert not isinstance(numba.typeof(gaps), RecordType)
    use(gaps, out := np.zeros(3))
    assert out[1] == 10.0 + 12.0


def test_nothing_is_kept_of_what_was_handed_over():
    arrays = shelf()
    before = [sys.getrefcount(array) for array in arrays]
    for _ in range(100):
        use(arrays, np.zeros(3))
    assert [sys.getrefcount(array) for array in arrays] == before

"""Rows that are equal bit for bit are one class."""

import numpy as np
from scipy import sparse

from missmdp.model.equal_rows import canonical, equal_rows

ROWS = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.5, 0.5 + 1e-16, 0.0], [0.0, 0.0, 1.0]])


def test_classes_are_numbered_as_they_first_occur():
    found = equal_rows([canonical(sparse.csr_array(ROWS))])
    assert found.number.tolist() == [0, 1, 0, 2, 1]
    assert found.first.tolist() == [0, 1, 3]


def test_zeros_and_the_order_of_entries_do_not_matter():
    shuffled = sparse.csr_array(
        (np.array([0.5, 0.0, 0.5, 0.5, 0.5]), [1, 2, 0, 0, 1], [0, 3, 5]), shape=(2, 3)
    )
    assert equal_rows([canonical(shuffled)]).number.tolist() == [0, 0]


def test_all_matrices_and_what_stands_beside_must_be_equal():
    matrix = canonical(sparse.csr_array(ROWS))
    other = canonical(sparse.csr_array(np.eye(5)[[0, 0, 1, 0, 0]]))
    assert equal_rows([matrix, other]).number.tolist() == [0, 1, 2, 3, 1]
    beside = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    assert equal_rows([matrix], [beside]).number.tolist() == [0, 1, 0, 2, 3]


def test_only_some_rows():
    found = equal_rows([canonical(sparse.csr_array(ROWS))], rows=[1, 2, 4])
    assert found.number.tolist() == [-1, 0, 1, -1, 0]
    assert found.first.tolist() == [1, 2]

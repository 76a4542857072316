"""Rows that are equal bit for bit are one class."""

import numpy as np
import pytest
from scipy import sparse

from missmdp.model import equal_rows as module
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


@pytest.mark.parametrize("keys_differ", [True, False], ids=["keys", "all keys the same"])
def test_many_rows_as_a_dictionary_of_their_contents_has_them(keys_differ, monkeypatch):
    rng = np.random.default_rng(7)
    if not keys_differ:
        monkeypatch.setattr(module, "_mixed", lambda keys, salt: np.zeros_like(keys))
    for _ in range(20):
        matrices = [
            canonical(sparse.csr_array(rng.integers(0, 3, (60, 4)) * (rng.random((60, 4)) < 0.4) / 4.0))
            for _ in range(2)
        ]
        beside = rng.integers(0, 2, (60, 2)).astype(float) * rng.choice([-1.0, 1.0], (60, 1))
        rows = rng.permutation(60)[:50].tolist()
        contents: dict[bytes, int] = {}
        expected = [
            contents.setdefault(
                np.concatenate([matrices[0].toarray()[r], matrices[1].toarray()[r], beside[r]]).tobytes(),
                len(contents),
            )
            for r in rows
        ]
        found = equal_rows(matrices, [beside], rows)
        assert found.number[rows].tolist() == expected
        assert (found.number == -1).sum() == 10
        assert found.first.tolist() == [rows[expected.index(c)] for c in range(len(contents))]

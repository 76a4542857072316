"""Cells, their keys, and the store that keeps them."""

from dataclasses import dataclass

import numpy as np
import pytest

from large_models import random_model, treat_all_as_large
from missmdp.errors import FormatError
from missmdp.experiments.grid.cell import KINDS, Cell, CellResult, run_cell
from missmdp.experiments.grid.fingerprint import model_hash
from missmdp.experiments.grid.runner import run_cells
from missmdp.experiments.grid.store import CellStore


@dataclass(frozen=True)
class Square(Cell, kind="test square", version=1):
    number: int
    words: tuple[str, ...] = ()

    def label(self):
        return f"square-{self.number}"

    def estimates_shape(self):
        return (1, 3)

    def work(self):
        return CellResult({"square": self.number**2}, np.full((1, 3), float(self.number)))


def test_the_key_is_that_of_the_kind_its_version_and_the_parameters():
    assert Square(3).key == Square(3).key
    others = [Square(4), Square(3, ("a",)), Square(3, ("a", "b"))]
    assert len({Square(3).key, *(cell.key for cell in others)}) == 4
    assert Square(3).name == f"square-3-{Square(3).key[:10]}"


def test_another_version_of_a_kind_finds_nothing_of_the_one_before(tmp_path, monkeypatch):
    store = CellStore(tmp_path)
    store.write(Square(3), run_cell(Square(3)))
    assert store.missing([Square(3)]) == []
    monkeypatch.setattr(Square, "version", 2)
    assert store.missing([Square(3)]) == [Square(3)]


def test_what_a_cell_reads_is_part_of_its_key(monkeypatch):
    before = Square(3).key
    monkeypatch.setattr(Square, "inputs", lambda self: {"model": "another"})
    assert Square(3).key != before


def test_no_two_kinds_have_one_name():
    with pytest.raises(AssertionError, match="two kinds"):

        class Other(Cell, kind="test square", version=1):
            pass

    assert KINDS["test square"] is Square


def test_what_is_written_is_read(tmp_path):
    store = CellStore(tmp_path)
    result = run_cell(Square(3))
    store.write(Square(3), result)
    read = store.read(Square(3))
    assert (read.found, read.seconds, read.version) == ({"square": 9}, result.seconds, result.version)
    np.testing.assert_array_equal(read.estimates, result.estimates)
    assert store.read(Square(4)) is None


def test_a_cell_under_the_name_of_another_is_not_taken_for_it(tmp_path, caplog):
    store = CellStore(tmp_path)
    store.write(Square(3), run_cell(Square(3)))
    store.path(Square(3)).rename(store.path(Square(4)))
    assert store.read(Square(4)) is None
    assert "the cell counts as not finished" in caplog.text


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_file_that_belongs_to_a_cell_must_be_what_it_was(tmp_path, monkeypatch, damage):
    store = CellStore(tmp_path)
    monkeypatch.setattr(Square, "files", (".txt",))
    own = store.path(Square(3), ".txt")
    own.write_text("three")
    store.write(Square(3), run_cell(Square(3)))
    assert store.read(Square(3)) is not None
    own.unlink() if damage == "gone" else own.write_text("four")
    assert store.read(Square(3)) is None


def test_cells_of_an_earlier_version_are_refused(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "learning-icu-smar-all-100-00-0123456789.npz").write_bytes(b"old")
    with pytest.raises(FormatError, match="earlier version of missmdp"):
        run_cells([Square(3)], tmp_path, workers=1, progress=False)


def test_a_grid_goes_on_where_it_was(tmp_path):
    cells = [Square(number) for number in range(4)]
    first = run_cells(cells[:2], tmp_path, workers=1, progress=False)
    told = []
    again = run_cells(cells, tmp_path, workers=1, progress=False, report=lambda *each: told.append(each))
    assert (first.finished, again.found, again.finished, again.status) == (2, 2, 2, "finished")
    assert [cell for _, _, cell, _ in told] == cells[2:]


def test_a_kind_without_work_is_run_by_whoever_makes_it():
    class Idle(Cell, kind="test idle", version=1):
        pass

    with pytest.raises(NotImplementedError, match="test idle"):
        Idle().work()


def test_large_models_have_a_hash(monkeypatch):
    treat_all_as_large(monkeypatch)
    made, other = (random_model(seed)() for seed in (1, 2))
    assert model_hash(made) == model_hash(random_model(1)())
    assert model_hash(made) != model_hash(other)

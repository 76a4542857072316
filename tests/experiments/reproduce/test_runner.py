import gc
import os
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.reproduce.pretend import (
    TINY,
    dies_on_pomcp,
    fails_on_pomcp,
    is_pomcp,
    pretend,
    slow_pretend,
)
from missmdp.errors import MissMDPError
from missmdp.experiments.grid.store import CellStore
from missmdp.experiments.reproduce.plan import all_cells
from missmdp.experiments.reproduce.runner import reproduce
from missmdp.experiments.reproduce.summary import summarise


def tables(folder):
    """Return the bytes of all tables."""
    found = {path.name: path.read_bytes() for path in (Path(folder) / "tables").iterdir()}
    assert len(found) == 12
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert reproduce(TINY, folder, workers=1, progress=False, work=pretend).status == "finished"
    return folder


def test_processes_give_the_same_tables(undisturbed, tmp_path):
    done = reproduce(TINY, tmp_path, workers=2, progress=False, work=pretend)
    assert (done.status, done.finished, done.found) == ("finished", len(all_cells(TINY)), 0)
    assert tables(tmp_path) == tables(undisturbed)


def test_what_is_finished_is_not_run_again(undisturbed, tmp_path):
    order = []

    def interrupted(cell):
        order.append(cell.name)
        if len(order) == 7:
            raise KeyboardInterrupt
        return pretend(cell)

    stopped = reproduce(TINY, tmp_path, workers=1, progress=False, work=interrupted)
    assert (stopped.status, stopped.finished) == ("interrupted", 6)
    assert not (tmp_path / "tables").exists()
    assert "run it again" in str(stopped)
    order.clear()

    def counted(cell):
        order.append(cell.name)
        return pretend(cell)

    done = reproduce(TINY, tmp_path, workers=1, progress=False, work=counted)
    assert (done.status, done.found, done.finished) == ("finished", 6, len(order))
    assert len(order) == len(all_cells(TINY)) - 6
    assert tables(tmp_path) == tables(undisturbed)


def test_a_damaged_cell_is_run_again(undisturbed, tmp_path):
    reproduce(TINY, tmp_path, workers=1, progress=False, work=pretend)
    cells = all_cells(TINY)
    store = CellStore(tmp_path / "cells")
    first, second, third = (store.path(cell) for cell in cells[:3])
    first.write_bytes(first.read_bytes()[:-20])
    second.write_bytes(b"")
    content = bytearray(third.read_bytes())
    content[len(content) // 2] ^= 255
    third.write_bytes(content)
    done = reproduce(TINY, tmp_path, workers=1, progress=False, work=pretend)
    assert (done.finished, done.status) == (3, "finished")
    assert tables(tmp_path) == tables(undisturbed)


def test_what_a_killed_run_was_writing_is_swept_away(tmp_path):
    cells = tmp_path / "cells"
    cells.mkdir()
    for name in (f".value-x.cell.{'0f' * 16}", ".mine"):
        (cells / name).write_bytes(b"half")
    CellStore(cells).sweep()
    assert [path.name for path in cells.iterdir()] == [".mine"]


def test_more_runs_extend_fewer(undisturbed, tmp_path):
    reproduce(replace(TINY, runs=1), tmp_path, workers=1, progress=False, work=pretend)
    done = reproduce(TINY, tmp_path, workers=1, progress=False, work=pretend)
    assert done.finished == 2 * 2 * 2
    assert tables(tmp_path) == tables(undisturbed)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cell_that_fails_does_not_stop_the_others(tmp_path, workers):
    done = reproduce(TINY, tmp_path, workers=workers, progress=False, work=fails_on_pomcp)
    failing = [cell for cell in all_cells(TINY) if is_pomcp(cell)]
    assert done.status == "failed"
    assert set(done.failed) == {cell.name for cell in failing}
    assert done.finished == len(all_cells(TINY)) - len(failing)
    assert "RuntimeError: no particles in icu-smar" in str(done)
    # What is there can be looked at.
    assert summarise(tmp_path).finished == done.finished


def test_a_worker_that_is_killed_loses_nothing_that_is_finished(undisturbed, tmp_path):
    with pytest.raises(MissMDPError, match="killed"):
        reproduce(TINY, tmp_path, workers=2, progress=False, work=dies_on_pomcp)
    done = reproduce(TINY, tmp_path, workers=1, progress=False, work=pretend)
    assert done.status == "finished"
    assert tables(tmp_path) == tables(undisturbed)


def test_a_folder_that_cannot_be_written_is_found_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissMDPError, match="cannot be written"):
        reproduce(
            TINY, tmp_path / "file" / "run", workers=1, progress=False, work=lambda cell: pytest.fail("ran")
        )


def test_the_report_is_told_of_each_cell(tmp_path):
    told = []
    reproduce(
        replace(TINY, baselines=(), value_sizes=(), fully_observed=False),
        tmp_path,
        workers=1,
        progress=False,
        work=pretend,
        report=lambda *arguments: told.append(arguments),
    )
    assert [finished for finished, *_ in told] == list(range(1, 13))
    assert {wanted for _, wanted, *_ in told} == {12}


def test_a_full_disk_is_one_error_without_warnings(tmp_path, monkeypatch):
    """Workers are busy when the first cell cannot be written."""

    def refuse(self, cell, result):
        raise MissMDPError(f"{self.path(cell)}: cannot be written (No space left on device)")

    monkeypatch.setattr(CellStore, "write", refuse)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(MissMDPError, match="No space left on device"):
            reproduce(TINY, tmp_path, workers=2, progress=False, work=slow_pretend)
        gc.collect()
    assert [str(one.message) for one in said] == []
    assert os.listdir(tmp_path / "cells") == []

"""Folders with one writer, and files that are read and written as a whole."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from missmdp import files
from missmdp.errors import DataError
from missmdp.files import LOCK, held_folder, remove_leftovers, write_atomically

HOLD = """
import sys, time
from missmdp.files import held_folder
with held_folder(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def in_another_thread(work):
    found = []

    def attempt():
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return found[0]


def hold(folder, **options):
    with held_folder(folder, **options):
        return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_held_by_one_thread_and_left_as_it_was(tmp_path):
    with held_folder(tmp_path):
        with held_folder(tmp_path / "." / "../" / tmp_path.name):
            assert hold(tmp_path) == [LOCK], "who holds it may ask again"
        refused = in_another_thread(lambda: hold(tmp_path))
        assert isinstance(refused, DataError)
        assert str(refused).startswith(f"{tmp_path} is in use by process {os.getpid()}; ")
    assert in_another_thread(lambda: hold(tmp_path)) == [LOCK]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_process_is_refused_at_once_and_free_when_that_is_killed(tmp_path, holder):
    with pytest.raises(DataError, match=f"is in use by process {holder.pid}; wait for it, or give another"):
        hold(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / LOCK).exists(), "nobody was there to remove it"
    assert hold(tmp_path) == [LOCK]
    assert list(tmp_path.iterdir()) == []


def test_waiting_for_a_folder(tmp_path, holder):
    threading.Timer(0.3, holder.kill).start()
    assert hold(tmp_path, patience=30.0) == [LOCK]


def test_many_at_once_hold_it_one_after_the_other(tmp_path):
    """Files of the lock come and go all the time; nobody may hold one that is not there any more."""
    folder, inside, most = tmp_path / "a" / "b", [], []

    def work():
        for _ in range(50):
            with held_folder(folder, patience=60.0):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200
    assert not (folder / LOCK).exists()


def test_a_folder_of_which_nothing_came_is_not_left_behind(tmp_path):
    assert hold(tmp_path / "a" / "b") == [LOCK]
    assert not (tmp_path / "a").exists()


def test_what_is_made_in_a_held_folder_stays(tmp_path):
    with held_folder(tmp_path / "a" / "b"):
        write_atomically(tmp_path / "a" / "b" / "x", b"1")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["x"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_lock_that_is_no_file_is_not_touched(tmp_path, kind):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    match kind:
        case "link":
            (tmp_path / LOCK).symlink_to(victim)
        case "pipe":
            os.mkfifo(tmp_path / LOCK)
        case _:
            (tmp_path / LOCK).mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        hold(tmp_path)
    assert victim.read_text() == "precious"
    assert not stat.S_ISREG((tmp_path / LOCK).lstat().st_mode)


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder, what in (("file", "is a file; give a folder"), ("file/below", "cannot be written")):
        with pytest.raises(DataError, match=what):
            hold(tmp_path / folder)
    with pytest.raises(DataError, match="cannot be written"), held_folder("nul\0"):
        pass


def test_where_files_cannot_be_locked_there_is_a_warning(tmp_path, monkeypatch, caplog):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*arguments):
        raise OSError(files.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert hold(tmp_path) == [LOCK]
    assert f"{tmp_path}: files cannot be locked here" in caplog.text


def test_a_lock_on_a_full_disk_holds_all_the_same(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(files.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "write", refuse)
    with held_folder(tmp_path):
        refused = in_another_thread(lambda: hold(tmp_path))
    assert "is in use by another process" in str(refused)


def test_leftovers_are_those_of_one_file(tmp_path):
    for name in (f".a.csv.{'0' * 32}", f".b.csv.{'0' * 32}", ".a.csv.mine", "a.csv"):
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "a.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.csv.mine", f".b.csv.{'0' * 32}", "a.csv"]


def test_small_files_need_little_memory(tmp_path):
    tracemalloc = pytest.importorskip("tracemalloc")
    path = tmp_path / "small"
    path.write_bytes(b"content")
    tracemalloc.start()
    try:
        assert files.read_bytes(path) == b"content"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()

"""Compiled kernels on disk: whatever is wrong with the folder or its files, kernels are compiled and right."""

import hashlib
import importlib
import logging
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numba
import pytest

import missmdp
from missmdp._kernels import cache

SOURCE = """
from missmdp._kernels.jit import kernel

@kernel
def twice(x):
    return x + x

@kernel
def thrice(x):
    return twice(x) + x
"""


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(cache, "_told", set())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for compiled code, and beside it the module tiny.py with its kernels."""
    (tmp_path / "tiny.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(folder):
    """Return the kernel `twice` of a new process, as far as it knows, once it has run."""
    sys.modules.pop("tiny", None)
    tiny = importlib.import_module("tiny")
    assert Path(tiny.__file__).parent == folder.parent
    assert tiny.twice(21) == 42
    return tiny.twice


def found(folder):
    """Return whether the kernel is found on disk."""
    return sum(run(folder).stats.cache_hits.values()) == 1


def file_of(folder):
    (file,) = folder.rglob("tiny.twice*.kernel")
    return file


def test_what_is_compiled_is_found_by_the_next_process(folder, caplog):
    assert not found(folder)
    assert found(folder)
    assert not caplog.records
    assert [path.suffix for path in folder.rglob("*") if path.is_file()] == [".kernel"]


def test_a_change_of_the_source_or_a_version_compiles_again(folder, monkeypatch):
    run(folder)
    for version in ("__version__", "_NUMBA"):
        monkeypatch.setattr(cache, version, "another")
        assert not found(folder)
        assert found(folder)
    source = folder.parent / "tiny.py"
    source.write_text(SOURCE + "\n")
    assert not found(folder)


def whole(content):
    return hashlib.sha256(content).digest() + content


DAMAGES = {
    "empty": lambda content: b"",
    "only the digest": lambda content: content[:32],
    "cut": lambda content: content[: len(content) // 2],
    "one bit": lambda content: content[:-200] + bytes([content[-200] ^ 1]) + content[-199:],
    "random": lambda content: bytes(range(256)) * 64,
    "not a pickle": lambda content: whole(b"no pickle"),
    "another pickle": lambda content: whole(pickle.dumps(5)),
    "a type that is gone": lambda content: whole(b"cno_such_module\nGone\n."),
    "other code": lambda content: whole(_with_payload(content[32:], ())),
}


def _with_payload(content, payload):
    stamp, key, _ = pickle.loads(content)
    return numba.core.serialize.dumps((stamp, key, payload))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_replaced(folder, caplog, damage):
    run(folder)
    file = file_of(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert not found(folder)
    assert found(folder)
    assert not caplog.records


def test_code_for_other_arguments_or_of_another_function_is_not_taken(folder):
    kernel = run(folder)
    integers = file_of(folder)
    content = integers.read_bytes()
    integers.unlink()
    kernel(2.5)
    reals = file_of(folder)
    assert reals != integers
    reals.write_bytes(content)
    again = run(folder)
    assert again(2.5) == 5.0
    assert not any(again.stats.cache_hits.values())


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path)])
def test_something_else_in_the_place_of_a_file(folder, caplog, make):
    run(folder)
    file = file_of(folder)
    file.unlink()
    make(file)
    assert not found(folder)
    if not file.is_dir():
        assert found(folder)
        assert not caplog.records
        return
    (record,) = caplog.records
    assert str(file) in record.message
    assert "directory" in record.message
    assert list(file.parent.iterdir()) == [file]


def nowhere(folder, monkeypatch):
    """Let there be no folder that can be written; permissions would not stop root."""
    plain = folder.parent / "plain file"
    plain.touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(plain / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(plain / "home"))
    (folder.parent / "__pycache__").touch()


def test_without_any_folder_there_is_one_warning(folder, caplog, monkeypatch):
    nowhere(folder, monkeypatch)
    for _ in range(2):
        assert not found(folder)  # two kernels each time
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(folder.parent / "__pycache__") in record.message
    assert "NUMBA_CACHE_DIR" in record.message
    assert "\n" not in record.message


def test_worker_processes_leave_the_warning_to_the_first(folder, caplog, monkeypatch):
    nowhere(folder, monkeypatch)
    monkeypatch.setattr("multiprocessing.parent_process", object)
    run(folder)
    assert not caplog.records


def test_a_user_without_a_home_gets_no_folder_called_tilde(tmp_path):
    (tmp_path / "tiny.py").write_text(SOURCE)
    (tmp_path / "__pycache__").touch()
    code = "import os; os.path.expanduser = str; import tiny; print(tiny.thrice(5))"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(missmdp.__file__).parents[1])])}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "15\n"
    assert done.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"tiny.py", "__pycache__"}


FULL = """
import resource, sys, numba, missmdp._kernels.random
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
import tiny
print(tiny.twice(21), tiny.thrice(21), tiny.twice(0.5))
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are set as Unix does")
def test_a_full_disk_is_one_warning_that_names_the_folder(folder):
    folder.mkdir()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", FULL, str(folder.parent)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "42 63 1.0\n"
    assert done.stderr.count("\n") == 1
    assert str(folder) in done.stderr
    assert "File too large" in done.stderr
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_processes_that_compile_at_the_same_time_all_find_their_code(folder):
    code = f"import sys; sys.path.insert(0, {str(folder.parent)!r}); import tiny; print(tiny.thrice({{}}))"
    values = ["1", "1.5", "1"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    commands = [[sys.executable, "-c", code.format(value)] for value in values]
    running = [subprocess.Popen(one, env=environment, stdout=subprocess.PIPE, text=True) for one in commands]
    assert [one.communicate()[0].strip() for one in running] == ["3", "4.5", "3"]
    assert [one.returncode for one in running] == [0] * 3
    kernel = run(folder)
    kernel(1.5)
    assert sum(kernel.stats.cache_hits.values()) == 2


def test_a_package_that_cannot_be_written_works_without_a_home(tmp_path):
    package = tmp_path / "missmdp"
    shutil.copytree(Path(missmdp.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {source.parent for source in package.rglob("*.py")}:
        (folder / "__pycache__").touch()  # permissions would not stop root
    plain = tmp_path / "plain"
    plain.touch()
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), sysconfig.get_path("purelib")]),
        "HOME": str(plain / "home"),
    }
    command = [sys.executable, "-m", "missmdp", "collect", "icu-smar", "--steps", "50", "-o", "log.csv"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "written to log.csv" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "compiled code cannot be kept" in done.stderr

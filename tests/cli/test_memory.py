"""Too little memory: one line that says how much is needed, and never a wait."""

import os
import subprocess
import sys

import pytest

from missmdp.cli import memory
from missmdp.cli.memory import check_memory, is_out_of_memory
from missmdp.errors import MissMDPError
from missmdp.memory import MB

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) << 20,) * 2)
from missmdp.__main__ import main
main()
"""
POSIX = pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are kept on Linux")


def limited(size, *words):
    command = [sys.executable, "-c", LIMITED, str(size), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@POSIX
@pytest.mark.parametrize("size", [50, 60, 80, 100, 150, 200, 250, 300, 400, 512, 600, 1000])
def test_a_small_limit_is_one_line(size, tmp_path):
    done = limited(size, "run", "icu-smar", "--steps", "2000", "-o", str(tmp_path / "run"))
    expected = (
        f"Error: missmdp run needs 2,048 MB of address space, but the limit is {size:,} MB (ulimit -v)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)
    assert not list(tmp_path.iterdir())


@POSIX
def test_help_needs_little_and_other_mistakes_are_said_first():
    for words in (["--help"], ["run", "--help"], ["--version"]):
        assert limited(60, *words).returncode == 0
    assert limited(60, "absent").stderr == "Error: No such command 'absent' (see missmdp --help)\n"


@POSIX
def test_a_limit_that_is_high_enough():
    done = limited(memory.ADDRESSES[False] // MB, "show", "icu-smar")
    assert (done.returncode, done.stderr) == (0, "")


def test_libraries_are_thrifty_where_addresses_are_few(monkeypatch):
    monkeypatch.setattr(memory, "container_limit", lambda: None)
    for name in memory.THRIFTY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory, "address_limit", lambda: 64 * 1024 * MB)
    check_memory("run")
    assert not memory.THRIFTY.keys() & os.environ.keys()
    monkeypatch.setattr(memory, "address_limit", lambda: 2500 * MB)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    check_memory("run")
    assert [os.environ[name] for name in memory.THRIFTY] == ["3", "system"]


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/", {"memory.max": "536870912"}, 512),
        ("0::/", {"memory.max": "max"}, None),
        ("0::/", {}, None),
        ("0::/a/b", {"a/memory.max": "314572800", "a/b/memory.max": "max"}, 300),
        ("5:cpu,memory:/a", {"memory/a/memory.limit_in_bytes": "104857600"}, 100),
        ("5:memory:/elsewhere", {"memory/memory.limit_in_bytes": "104857600"}, 100),
        ("5:cpu:/a", {"memory/a/memory.limit_in_bytes": "104857600"}, None),
        ("nonsense\n::\n", {"memory.max": "-1"}, None),
    ],
)
def test_the_limit_of_a_container(tmp_path, groups, files, limit):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, content in files.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    for swap, expected in (("0", limit), ("500", None)):
        (tmp_path / "proc/meminfo").write_text(f"MemTotal:   1 kB\nSwapTotal:   {swap} kB\n")
        found = memory.container_limit(tmp_path)
        assert found == (None if expected is None else expected * MB)


def test_what_a_small_container_is_told(monkeypatch):
    monkeypatch.setattr(memory, "address_limit", lambda: None)
    monkeypatch.setattr(memory, "container_limit", lambda: 512 * MB)
    check_memory("describe")
    with pytest.raises(
        MissMDPError, match=r"missmdp run needs 768 MB of memory, but the limit is 512 MB \(of the"
    ):
        check_memory("run")


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (ImportError("libx.so: failed to map segment from shared object"), True),
        (caused(OSError("libllvmlite.so cannot be loaded"), OSError("failed to map segment")), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (type("OutOfMemoryException", (Exception,), {})("x"), True),
        (OSError(28, "No space left on device"), False),
        (KeyError("cannot allocate memory"), False),
    ],
)
def test_what_comes_from_memory_that_has_run_out(error, expected):
    assert is_out_of_memory(error) is expected

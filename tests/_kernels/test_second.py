"""A second process compiles where that helps, not elsewhere, and never outlives the first."""

import logging
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from missmdp._kernels import second

SLEEP = "import time; time.sleep(60)"
CALL = "missmdp.plan.sarsop.ready.compile_from_the_end"


@pytest.fixture
def commands(monkeypatch):
    """Return the commands of processes that would have been started."""
    started = []

    def start(command, **_):
        started.append(command)
        return subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)

    class Library:
        DEVNULL, PIPE, TimeoutExpired = subprocess.DEVNULL, subprocess.PIPE, subprocess.TimeoutExpired
        Popen = staticmethod(start)

    monkeypatch.setattr(second, "subprocess", Library)
    monkeypatch.setattr(second, "_cores", lambda: 2)
    monkeypatch.setattr(second, "free_memory", lambda: 1e10)
    monkeypatch.setattr(second, "is_kept_on_disk", lambda _: True)
    monkeypatch.setattr(second, "is_compiled", lambda _: False)
    monkeypatch.setattr(second, "_running", [])
    return started


def use():
    with second.compiling(CALL, None):
        pass


def test_a_process_is_started(commands):
    use()
    assert len(commands) == 1
    assert "import missmdp.plan.sarsop.ready as work; work.compile_from_the_end()" in commands[0][-1]


def test_one_is_enough(commands):
    with second.compiling(CALL, None):
        second._running[:] = [subprocess.Popen([sys.executable, "-c", SLEEP])]
        use()
        second._running[0].kill()
        second._running[0].wait()
    assert len(commands) == 1


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (second, "_cores", lambda: 1),
        (second, "free_memory", lambda: 5e8),
        (second, "is_kept_on_disk", lambda _: False),
        (second, "is_compiled", lambda _: True),
        (sys, "executable", "/usr/bin/an-application"),
        (sys, "executable", None),
        (multiprocessing, "parent_process", lambda: "a parent"),
    ],
)
def test_none_where_it_would_not_help(commands, monkeypatch, where, name, value):
    monkeypatch.setattr(where, name, value)
    use()
    assert commands == []


def test_one_that_cannot_be_started_is_not_missed(commands, monkeypatch, caplog):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(second.subprocess, "Popen", staticmethod(refuse))
    with caplog.at_level(logging.DEBUG, logger=second.__name__):
        use()
    assert "no more processes" in caplog.text


def obedient():
    code = f"from missmdp._kernels import second; second.obey(); print('ready', flush=True); {SLEEP}"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_it_ends_when_it_is_told_to():
    process = obedient()
    begin = time.monotonic()
    second._end(process)
    assert process.returncode == 1
    assert time.monotonic() - begin < 30
    process.stdout.close()


def test_it_ends_where_it_does_not_listen():
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdin=subprocess.PIPE)
    second._end(process)
    assert process.returncode is not None


def test_ctrl_c_is_for_the_first_process():
    process = obedient()
    os.kill(process.pid, 2)
    time.sleep(0.2)
    assert process.poll() is None
    second._end(process)
    process.stdout.close()


def test_it_ends_with_a_first_process_that_is_killed():
    code = (
        "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " stdin=subprocess.PIPE); time.sleep(60)"
    )
    own = f"from missmdp._kernels import second; second.obey(); print('ready', flush=True); {SLEEP}"
    first = subprocess.Popen([sys.executable, "-c", code, own], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "ready\n"
    first.kill()
    first.wait()
    # The second process held the other end of the pipe: it is closed when that one is gone.
    assert first.stdout.read() == ""
    first.stdout.close()

"""Signals while the main thread is stuck in one long call, which Python does not interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

PROGRAM = '''
import ctypes, hashlib, sys, threading, time
from pathlib import Path
import click
from missmdp.__main__ import main
from missmdp.cli.main import cli
from missmdp.files import removed_after

SWALLOWING = """
import time

def wait(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)

try:
    wait(0.5)
except:
    pass
"""

def compute():
    hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 10**9)

def fail_as(function, *arguments):
    try:
        function(*arguments)
    except BaseException:
        raise RuntimeError("query interrupted") from None

@cli.command()
@click.argument("temporary", type=Path)
def hang(temporary):
    with removed_after(temporary):
        temporary.write_text("half of a file")
        {begin}
        print("ready", flush=True)
        {hang}

main()
'''
WAYS = {
    "a call that cannot be interrupted": {"begin": "pass", "hang": "compute()"},
    "a thread that does not end": {
        "begin": "threading.Thread(target=compute).start()",
        "hang": "time.sleep(600)",
    },
    "a callback, in which Python loses exceptions": {
        "begin": "pass",
        "hang": "ctypes.CFUNCTYPE(None)(lambda: time.sleep(1))(); time.sleep(600)",
    },
    "a library that makes another error of it": {
        "begin": "pass",
        "hang": "fail_as(time.sleep, 600)",
    },
    "an import that loses exceptions": {
        "begin": "Path('swallowing.py').write_text(SWALLOWING); sys.path.insert(0, '')",
        "hang": "import swallowing; time.sleep(600)",
    },
    "an import that takes long": {
        "begin": "Path('swallowing.py').write_text(SWALLOWING + 'wait(600)'); sys.path.insert(0, '')",
        "hang": "import swallowing",
    },
    "an ordinary wait": {"begin": "pass", "hang": "time.sleep(600)"},
}


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "Interrupted\n"), (signal.SIGTERM, 143, "Terminated\n")],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_ends_the_program(tmp_path, way, number, code, said):
    temporary = tmp_path / "temporary"
    command = [sys.executable, "-c", PROGRAM.format(**WAYS[way]), "hang", str(temporary)]
    with subprocess.Popen(
        # As in a terminal, also where the tests run in the background, which ignores Ctrl-C.
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert temporary.exists()
            time.sleep(0.1)
            process.send_signal(number)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, error) == (code, said)
    assert not temporary.exists()


def test_a_main_thread_that_is_busy_but_looks_is_left_alone(tmp_path):
    """A solver takes note of Ctrl-C and goes on, for longer than the watchdog waits."""
    program = """
import os, signal, time
from missmdp.cli.watchdog import signals_end_the_program
signal.signal(signal.SIGINT, lambda number, frame: None)
with signals_end_the_program():
    os.kill(os.getpid(), signal.SIGINT)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
print("done")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_a_second_ctrl_c_ends_what_goes_on_after_the_first():
    program = """
import os, signal, time
from missmdp.cli.watchdog import signals_end_the_program
signal.signal(signal.SIGINT, lambda number, frame: None)
with signals_end_the_program():
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stderr) == (130, "Interrupted\n")

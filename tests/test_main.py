"""The way in: a signal ends the program with one word, whatever Python is loading."""

import signal
import subprocess
import sys
import tomllib

import pytest

from command_output import start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

PROGRAM = """
import os, signal, sys
from missmdp.__main__ import main

class AtImport:
    left = {moment}
    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.{name})

signal.signal(signal.SIGINT, signal.{before})  # which may be ignored, in a background job
sys.meta_path.insert(0, AtImport())
main()
"""


def ended(*words, moment, number=signal.SIGINT, before="default_int_handler"):
    program = PROGRAM.format(moment=moment, name=number.name, before=before)
    process = start(*words, program=program)
    printed, errors = process.communicate()
    return process.returncode, printed, errors


@pytest.mark.parametrize("moment", [1, 5, 30, 80, 150, 400, 600])
@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, (130, "", "Interrupted\n")), (signal.SIGTERM, (143, "", "Terminated\n"))],
)
def test_signals_while_modules_are_loaded(moment, number, said):
    assert ended("show", "icu-smar", moment=moment, number=number) == said


def test_a_signal_that_is_ignored_stays_so():
    code, printed, errors = ended("--version", moment=5, before="SIG_IGN")
    assert (code, errors) == (0, "")
    assert printed.startswith("missmdp, version")


def leaving(number, prepared):
    """Return how the program ends with a signal on its way out."""
    program = f"""
import atexit, os, signal, threading, time
from missmdp.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
def come():
    os.kill(os.getpid(), signal.{number.name})
{prepared}
main()
"""
    process = start("--version", program=program)
    printed, errors = process.communicate()
    assert printed.startswith("missmdp, version")
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_itself_ends_changes_nothing(number):
    assert leaving(number, "atexit.register(come)") == (0, "")


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, (130, "Interrupted\n")), (signal.SIGTERM, (143, "Terminated\n"))]
)
def test_a_signal_while_threads_are_waited_for(number, said):
    # It comes once the main thread is waiting for this one.
    busy = "threading.Thread(target=lambda: (time.sleep(1), come(), time.sleep(30))).start()"
    assert leaving(number, busy) == said


def test_ctrl_c_within_exec_keeps_the_exit_code():
    """Python would end by the signal, since a plain `KeyboardInterrupt` left `exec`."""
    program = """
import os, signal
from missmdp.__main__ import main
from missmdp.cli.main import cli

@cli.command()
def stop():
    exec("os.kill(os.getpid(), signal.SIGINT)")

signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
    process = start("stop", program=program)
    printed, errors = process.communicate()
    assert (process.returncode, printed, errors) == (130, "", "Interrupted\n")


def test_little_is_loaded_before_signals_are_heard():
    code = "import sys, missmdp.__main__; print(sorted({'click', 'pathlib', 'typing'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}; {code}"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_script_enters_here(request):
    project = tomllib.loads((request.config.rootpath / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"missmdp": "missmdp.__main__:main"}

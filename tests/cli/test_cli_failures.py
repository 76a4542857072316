"""How commands end: exit codes, what is said, and that it is one line; signals, pipes and full disks."""

import os
import signal
import subprocess
import sys
import time

import click
import pytest

import missmdp as mm
from command_output import start, succeeded
from missmdp.cli.failures import AnswerIsNo, Commands, Terminated, one_line, sigterm_raises
from missmdp.cli.main import cli, main
from missmdp.errors import Argument, Message, ParameterError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes")


def ended(error, monkeypatch, capsys):
    """Return how a command that raises an error ends, and what is said."""

    @click.group(cls=Commands)
    def group():
        pass

    @group.command()
    def fail():
        raise error

    monkeypatch.setattr(sys, "argv", ["missmdp", "fail"])
    with pytest.raises(SystemExit) as end:
        group(prog_name="missmdp")
    printed, errors = capsys.readouterr()
    assert printed == ""
    return end.value.code, errors


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (mm.ModelError("no\n  such \n\nstate\n"), 2, "Error: no such state\n"),
        (mm.DataError("pass ", Argument("per_file", True)), 2, "Error: pass per_file=True\n"),
        (OSError(28, "No space left on device", "/x/y.csv"), 2, "Error: /x/y.csv: No space left on device\n"),
        (OSError(28, "No space left on device"), 2, "Error: No space left on device\n"),
        (OSError("odd"), 2, "Error: odd\n"),
        (MemoryError(), 2, "Error: there is not enough memory for this (MemoryError)\n"),
        (click.UsageError("a\nb."), 2, "Error: a b (see missmdp fail --help)\n"),
        (click.ClickException("two; things"), 2, "Error: two; things\n"),
        (AnswerIsNo("it does not fit"), 1, "Error: it does not fit\n"),
        (KeyboardInterrupt(), 130, "Interrupted\n"),
        (click.Abort(), 130, "Interrupted\n"),
        (Terminated(), 143, "Terminated\n"),
        (SystemExit(3), 3, ""),
        (click.exceptions.Exit(4), 4, ""),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (
            KeyError("x"),
            70,
            "Error: unexpected KeyError: 'x'; please report this (MISSMDP_DEBUG=1 shows where)\n",
        ),
        (
            EOFError("ran out"),
            70,
            "Error: unexpected EOFError: ran out; please report this (MISSMDP_DEBUG=1 shows where)\n",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_kind_of_failure_has_its_code(monkeypatch, capsys, error, code, said):
    monkeypatch.delenv("MISSMDP_DEBUG", raising=False)
    assert ended(error, monkeypatch, capsys) == (code, said)


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
@pytest.mark.parametrize("error", [KeyError("x"), mm.ModelError("wrong")])
def test_debugging_shows_where(monkeypatch, capsys, value, shown, error):
    monkeypatch.setenv("MISSMDP_DEBUG", value)
    code, errors = ended(error, monkeypatch, capsys)
    assert code in (2, 70)
    assert errors.splitlines()[-1].startswith("Error: ")
    assert ("Traceback" in errors) is shown
    assert ("raise error" in errors) is shown


def test_callers_that_want_exceptions_get_them():
    with pytest.raises(mm.ModelError):
        cli(["show", "no-such-model"], standalone_mode=False)


@click.group(cls=Commands)
def odd():
    """Have options of every kind."""


@odd.command()
@click.argument("model")
@click.option("--step")
@click.option("-a", "--always", "always_observed", multiple=True, metavar="FEATURE")
@click.option("--block", "blocks", multiple=True)
@click.option("--bins", multiple=True, metavar="COLUMN=EDGES")
@click.option("--sizes")
@click.option("--per-file", is_flag=True)
@click.option("--observe-initial/--act-first", default=None)
def fail(model, **options):
    """Raise what the test wants."""
    raise fail.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (mm.DataError("pass ", Argument("step", "day")), "pass --step day"),
        (mm.DataError("pass ", Argument("step", "my day")), "pass --step 'my day'"),
        (mm.DataError("pass ", Argument("always_observed", ["a", "b c"])), "pass --always a --always 'b c'"),
        (mm.DataError("declare ", Argument("always_observed", [...])), "declare --always FEATURE"),
        (mm.DataError("give ", Argument("blocks", [("x", "y")])), "give --block x,y"),
        (mm.DataError("or ", Argument("bins", {"fever": ...})), "or --bins fever=EDGES"),
        (mm.DataError("give ", Argument("sizes", [10, 100])), "give --sizes 10,100"),
        (mm.DataError("give ", Argument("per_file", True)), "give --per-file"),
        (mm.DataError("give ", Argument("observe_initial", False)), "give --act-first"),
        (mm.DataError("give ", Argument("observe_initial", True)), "give --observe-initial"),
        (mm.DataError(Argument("step"), " and ", Argument("sizes"), " differ"), "--step and --sizes differ"),
        (mm.DataError("see ", Argument("model")), "see MODEL"),
        (mm.DataError("no option: ", Argument("horizon", 3)), "no option: horizon=3"),
        (mm.DataError("a: ", *mm.DataError(Message("b ", Argument("step", "c"))).args), "a: b --step c"),
        (
            ParameterError("always_observed", "x", "a list"),
            "--always must be a list, got 'x' (see missmdp fail --help)",
        ),
        (ParameterError("horizon", 0, "a positive number"), "horizon must be a positive number, got 0"),
        (mm.DataError("step='day' in a value stays"), "step='day' in a value stays"),
    ],
)
def test_arguments_in_errors_are_options_of_the_command(monkeypatch, capsys, error, said):
    monkeypatch.setattr(fail, "error", error, raising=False)
    with pytest.raises(SystemExit) as left:
        odd(["fail", "m"], prog_name="missmdp")
    assert left.value.code == 2
    assert capsys.readouterr().err == f"Error: {said}\n"


def test_lines_are_joined_whatever_breaks_them():
    assert one_line(" a\r\nb\x0bc\u2028d\x85 e  f\n\n") == "a b c d e  f"


def test_without_words_there_is_help(run):
    assert succeeded(run()) == succeeded(run("--help"))


def test_help_says_what_codes_mean(run):
    out = succeeded(run("--help"))
    for code in ("0 ", "1 ", "2 ", "130 "):
        assert f"\n    {code}" in out


def test_a_verdict_is_no_wrong_call(run, tmp_path):
    (tmp_path / "log.csv").write_text("episode,step,first,second,action\n1,0,z,x,\n")
    result = run("validate", "example-1", tmp_path / "log.csv")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "'z'" in result.stdout


# Streams


@POSIX
def test_a_reader_that_has_gone_is_no_failure(tmp_path):
    process = start("graph", "predator-smar", cwd=tmp_path)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 1
    process.stderr.close()


@POSIX
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no such device")
@pytest.mark.parametrize("words", [["graph", "example-1"], ["benchmarks"], ["show", "example-1"]])
def test_a_full_disk_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "missmdp", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


@POSIX
@pytest.mark.parametrize(("words", "code"), [("graph example-1", 0), ("show absent.mmdp", 2)])
def test_streams_may_be_closed(words, code):
    command = f'"{sys.executable}" -m missmdp {words}'
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (closed, done)
        assert "Traceback" not in done.stderr


# Signals

WAITING = """
import signal, time
from missmdp.cli.main import cli, main

@cli.command()
def wait():
    try:
        print("waiting", flush=True)
        time.sleep(60)
    finally:
        print("closing", flush=True)
        time.sleep({seconds})
        print("closed", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored, in a background job
main()
"""


@POSIX
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGTERM, 143, "Terminated\n"), (signal.SIGINT, 130, "Interrupted\n")]
)
def test_signals_close_what_is_open(number, code, said):
    process = start("wait", program=WAITING.format(seconds=0))
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    printed, errors = process.communicate()
    assert (process.returncode, printed, errors) == (code, "closing\nclosed\n", said)


@POSIX
def test_a_second_sigterm_ends_at_once():
    process = start("wait", program=WAITING.format(seconds=60))
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "closing\n"
    process.send_signal(signal.SIGTERM)
    printed, errors = process.communicate()
    assert (process.returncode, printed, errors) == (-signal.SIGTERM, "", "")


@POSIX
def test_sigterm_is_left_as_it_was():
    def own(number, frame):
        pass

    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (own, signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGTERM, handler)
            with sigterm_raises():
                assert (signal.getsignal(signal.SIGTERM) is handler) is (handler is not signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) == handler
    finally:
        signal.signal(signal.SIGTERM, before)


@POSIX
def test_sigterm_leaves_no_half_written_log(tmp_path):
    process = start("collect", "icu-smar", "--steps", 5_000_000, "-o", tmp_path / "log.csv")
    while not list(tmp_path.iterdir()) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (143, "Terminated\n")
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_process_that_was_forked_ends_by_sigterm_as_others_do():
    program = """
import os, signal, sys, time
from missmdp.cli.failures import sigterm_raises
with sigterm_raises():
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b".")
        time.sleep(60)
        os._exit(0)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else status)
"""
    printed, errors = start(program=program).communicate()
    assert (printed, errors) == (f"{int(signal.SIGTERM)}\n", "")


def test_importing_the_command_line_changes_no_signals():
    program = "import signal, missmdp.cli.main; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    assert start(program=program).communicate()[0] == "True\n"


def test_main_runs_outside_the_main_thread_too(monkeypatch, capsys):
    import threading

    codes = []

    def call():
        try:
            main()
        except SystemExit as end:
            codes.append(end.code)

    monkeypatch.setattr(sys, "argv", ["missmdp", "--version"])
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert codes == [0]
    assert mm.__version__ in capsys.readouterr().out

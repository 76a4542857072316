"""Wrong calls of every command: one line that says what is wrong, exit code 2, and nothing written."""

import re
import shlex
import sys

import pytest

import missmdp as mm
from cli.wrong_call_files import make_files
from cli.wrong_calls import CALLS
from command_output import start
from missmdp.cli.main import cli, main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    make_files(folder)
    return folder


@pytest.fixture(autouse=True)
def nothing_changes(files, monkeypatch):
    """Run in the folder of files, which has to stay as it is."""
    monkeypatch.chdir(files)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = content(files)
    yield
    for name in [name for name in sys.modules if name.startswith("wrong_call_")]:
        del sys.modules[name]
    assert content(files) == before


def content(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def told(printed, errors):
    """Return what is wrong, if that is all there is to read."""
    assert printed == ""
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("Error: ")
    assert "unexpected " not in errors.replace("unexpected extra argument", "")
    # Older versions of click say it with a colon.
    return re.sub(r"No such option: (\S+)", r"No such option '\1'", errors)


@pytest.mark.parametrize(("call", "message"), CALLS.items(), ids=range(len(CALLS)))
def test_a_wrong_call_is_one_line_and_code_2(monkeypatch, capsys, call, message):
    monkeypatch.setattr(sys, "argv", ["missmdp", *shlex.split(call)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2, call
    assert message in told(*capsys.readouterr()), call


def test_every_command_is_called_wrongly():
    assert {call.split()[0] for call in CALLS} >= set(cli.commands)


@pytest.mark.parametrize("command", ["evaluate one.mmdp --policy ppo -o x.csv", "tune-ppo one.mmdp -o x"])
def test_what_needs_an_extra_says_how_to_get_it(monkeypatch, capsys, command):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.setattr(sys, "argv", ["missmdp", *shlex.split(command)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert 'pip install "missmdp[ppo]"' in told(*capsys.readouterr())


@pytest.mark.parametrize(
    "call",
    [
        "show icu-samr",
        "learn one.mmdp",
        "learn one.mmdp log.csv --confidence 1.5",
        "show wrong_call_models:wordy",
        "describe cut.parquet",
        "evaluate icu-smar --policy one.mmpolicy -o x.csv",
        "solve one.mmdp -o file/x.mmpolicy",
    ],
)
def test_a_real_process_says_the_same(files, monkeypatch, call):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    process = start(*shlex.split(call), cwd=files)
    printed, errors = process.communicate()
    assert process.returncode == 2
    assert CALLS[call] in told(printed, errors)


def test_the_files_are_good_where_nothing_is_done_to_them(files):
    """So that what is said about the damaged ones is about the damage."""
    assert mm.MissMDP.load("one.mmdp").n_states == 4
    assert mm.Dataset.from_table("log.csv", mm.MissMDP.load("one.mmdp").mdp).n_steps == 60
    assert mm.AlphaVectorPolicy.load("one.mmpolicy").n_vectors > 0

"""What commands print about names and values that hold escape sequences: text, and nothing that steers a terminal."""

import csv
import logging
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

import missmdp as mm
from hostile_names import CLIPBOARD, FEATURES, VALUES, hostile_model, no_text

FILE = f"x{CLIPBOARD}\n\u202e"
"""In names of files."""
LOG = f"log{FILE}.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a log of it, and a log that does not fit it."""
    path = tmp_path_factory.mktemp("names")
    model = hostile_model()
    model.save(path / "ward.mmdp")
    log = mm.collect(model, 400, seed=0)
    log.to_csv(path / LOG)
    with (path / LOG).open(newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[3:]:
        row[3] = row[3] and f"other\x1b[2J{row[3]}"
    with (path / "other.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


COMMANDS = {
    "show": ("show", "ward.mmdp", "--steps", "20", "--graph", f"{FILE}.svg"),
    "graph": ("graph", "ward.mmdp", "-o", f"{FILE}.dot"),
    "coverage": ("coverage", "ward.mmdp", "--steps", "20"),
    "collect": ("collect", "ward.mmdp", "--steps", "20", "-o", f"{FILE}.csv"),
    "describe": ("describe", LOG, "--picture", f"{FILE}.svg"),
    "validate": ("validate", "ward.mmdp", LOG),
    "misfit": ("validate", "ward.mmdp", "other.csv"),
    "diagnose": ("diagnose", "ward.mmdp", LOG, "-o", f"{FILE}.json"),
    "learn": ("learn", "ward.mmdp", LOG, "-o", f"{FILE}.mmdp"),
    "learn-model": ("learn-model", LOG, "--reward", "reward", "--discount", "0.9", "-o", f"{FILE}.mmdp"),
    "why": ("diagnose", LOG, "-o", f"{FILE}.json"),
    "aimi": ("learn", "ward.mmdp", LOG, "--learner", "aimi", "-o", f"{FILE}.csv"),
    "em": ("learn", "ward.mmdp", LOG, "--learner", "em", "--structure", "mcar", "--draws", "2"),
    "unfit": ("learn", "ward.mmdp", "other.csv"),
    "plan-data": ("plan-data", "ward.mmdp", "--epsilon", "5", "--timeout", "0"),
    "solve": ("solve", "ward.mmdp", "-o", f"{FILE}.mmpolicy"),
    "evaluate": ("evaluate", "ward.mmdp", "--policy", f"{FILE}=random", "--episodes", "5", "-o", f"{FILE}.csv"),
    "reproduce": ("reproduce", "--profile", "smoke", "--dry-run", "-o", FILE),
    "export": ("export", "ward.mmdp", f"{FILE}.pomdp"),
    "no model": ("show", f"{FILE}.mmdp"),
    "no benchmark": ("show", FILE),
    "no function": ("show", f"{FILE}:{FILE}"),
    "no command": (FILE,),
    "no option": ("show", f"--{FILE}"),
    "no value": ("learn", "ward.mmdp", LOG, "--learner", FILE),
    "no feature": ("learn", "ward.mmdp", LOG, "--always", FILE),
    "no column": ("describe", LOG, "--episode", FILE),
    "no policy": ("evaluate", "ward.mmdp", "--policy", FILE),
    "no ending": ("solve", "ward.mmdp", "-o", FILE),
    "no run": ("report", FILE),
}  # fmt: skip
RUN = ("run", "ward.mmdp", LOG, "--learner", "asmar", "--learner", "amcar", "--no-diagnosis", "--no-certificate",
       "--episodes", "5", "--max-trials", "3", "--sensitivity-episodes", "0", "-o", FILE)  # fmt: skip


@pytest.mark.parametrize("arguments", [*COMMANDS.values(), RUN], ids=[*COMMANDS, "run"])
def test_what_is_printed_is_text(run, folder, tmp_path, monkeypatch, arguments):
    shutil.copytree(folder, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    result = run(*arguments)
    assert result.exit_code in (0, 1, 2), result.output
    assert result.stdout + result.stderr
    assert not no_text(result.stdout + result.stderr)
    if result.exit_code == 2:
        assert result.stderr.count("\n") == 1


CONTROLS = re.compile("\x1b\\[(?:[?]25[lh]|1A|2K|[\\d;]*m)|\r")
"""What rich makes of colours and moving lines."""
PROGRAM = """
import sys
from missmdp import progress
from missmdp.cli.main import cli
progress._DELAY = 0.0
progress._PAUSE = 0.0
for line in sys.stdin.read().split("\\0\\0"):
    try:
        cli(line.split("\\0"), prog_name="missmdp")
    except SystemExit as end:
        if end.code == 70:
            raise
"""


def test_a_terminal_gets_colours_and_lines_that_move_from_us_alone(folder):
    """With all that is shown only there, and data that commands print as data."""
    printed = [
        *COMMANDS.values(),
        RUN,
        ("graph", "ward.mmdp"),
        ("collect", "ward.mmdp", "--steps", "9", "-o", "-"),
    ]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(theirs)
    process.stdin.write("\0\0".join("\0".join(line) for line in printed).encode())
    process.stdin.close()
    shown = b""
    # Reading from a terminal that nobody writes to any more is an error.
    while part := _read(ours):
        shown += part
    os.close(ours)
    text = shown.decode()
    assert process.wait() == 0, text
    assert "\x1b[1m" in text
    assert "\x1b[2K" in text
    assert "\x1b[8m" not in text
    assert r"\x1b[8m" in text
    assert no_text(CONTROLS.sub("", text)) == set()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_data_for_other_programs_is_exact(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    graph = mm.MissingnessGraph.from_dot(run("graph", "ward.mmdp").stdout)
    assert graph == hostile_model().mgraph()
    printed = run("collect", "ward.mmdp", "--steps", 50, "-o", "-").stdout_bytes.decode()
    rows = list(csv.DictReader(printed.splitlines(keepends=True)))
    assert set(FEATURES) < set(rows[0])
    assert {row[FEATURES[1]] for row in rows} <= {"", *VALUES}


def test_errors_of_a_megabyte_are_cut(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    long = tmp_path / "long.csv"
    long.write_text(f"episode,step,action,{'x' * 10**6}\n0,0,{'y' * 10**6},1\n")
    for command in (("describe", long, "--episode", "z"), ("learn", "ward.mmdp", long)):
        error = run(*command).stderr
        assert 0 < len(error) < 5000


def test_tracebacks_and_logs_are_text_too(run, monkeypatch):
    monkeypatch.setenv("MISSMDP_DEBUG", "1")
    result = run("show", f"{FILE}.mmdp")
    assert "Traceback" in result.stderr
    assert not no_text(result.stderr)
    record = logging.LogRecord("missmdp", logging.WARNING, "", 0, "%s: damaged", (FILE,), None)
    assert not no_text(logging.lastResort.format(record))


@pytest.mark.skipif(sys.platform == "darwin", reason="such names cannot be there")
def test_names_of_files_that_are_no_text_are_refused_or_escaped(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    odd = "x\udcff"
    shutil.copy("ward.mmdp", f"{odd}.mmdp")
    shutil.copy(LOG, f"{odd}.csv")
    assert r"x\udcff.csv cannot be read: its name is not UTF-8" in run("describe", f"{odd}.csv").stderr
    assert "name must be UTF-8" in run("evaluate", "ward.mmdp", "--policy", f"{odd}=random").stderr
    shown = run("evaluate", f"{odd}.mmdp", "--policy", "random", "--episodes", 5, "-o", f"{odd}.json")
    assert shown.exit_code == 0
    assert r"Written to x\udcff.json" in shown.stdout

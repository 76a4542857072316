"""Commands that write a folder hold it: the second one says so in one line and ends, before any work."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from missmdp.files import LOCK, held_folder

TRIES = 5
RUN = ("run", "example-1", "--steps", "300", "--episodes", "20", "--sensitivity-episodes", "2", "--quiet")
REPRODUCE = (
    *("reproduce", "--benchmarks", "icu-smar", "--sizes", "100", "--runs", "2", "--value-sizes", "none"),
    *("--baselines", "random", "--baseline-seeds", "1", "--episodes", "20", "--value-runs", "1"),
    *("--no-fully-observed", "--workers", "1", "--quiet"),
)


@contextmanager
def held_by_another(folder):
    """Hold a folder in another thread, which counts as another one."""
    begun, over = threading.Event(), threading.Event()

    def hold():
        with held_folder(folder):
            begun.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "command",
    [
        RUN,
        REPRODUCE,
        ("reproduce", "--study", "bounds"),
        ("tune-ppo", "example-1", "--trials", "1", "--steps", "100"),
    ],
    ids=["run", "reproduce", "study", "tune-ppo"],
)
@pytest.mark.usefixtures("trained_without_torch")
def test_a_folder_in_use_is_refused_before_any_work(run, tmp_path, command):
    folder = tmp_path / "out"
    with held_by_another(folder):
        result = run(*command, "-o", folder)
        assert os.listdir(folder) == [LOCK]
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"Error: {folder} is in use by process {os.getpid()}; wait for it, or give another folder"
    ]
    assert result.stdout == ""


def test_a_report_waits_for_the_run(run, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with held_by_another(tmp_path):
        result = run("report", tmp_path)
    assert result.exit_code == 2
    assert "is in use by process" in result.stderr


TABLE = {"run": "data.csv", "reproduce": "learning.csv"}
"""One that the seed decides."""


def contents(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def start(*words):
    command = [sys.executable, "-m", "missmdp", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("command", [RUN, REPRODUCE], ids=["run", "reproduce"])
def test_of_two_started_at_the_same_moment_one_does_all_and_one_nothing(tmp_path, command):
    """Five tries of two processes each: a minute."""
    alone = {}
    for seed in ("1", "7"):
        folder = tmp_path / seed
        process = start(*command, "--seed", seed, "-o", folder)
        assert process.communicate(timeout=300)[1] == ""
        alone[seed] = contents(folder), (folder / "tables" / TABLE[command[0]]).read_bytes()
    assert alone["1"][1] != alone["7"][1]
    for k in range(TRIES):
        folder = tmp_path / f"both-{k}"
        both = {seed: start(*command, "--seed", seed, "-o", folder) for seed in ("1", "7")}
        errors = {seed: process.communicate(timeout=300)[1] for seed, process in both.items()}
        winner, loser = sorted(both, key=lambda seed: both[seed].returncode)
        assert (both[winner].returncode, both[loser].returncode) == (0, 2), errors
        assert errors[loser] == (
            f"Error: {folder} is in use by process {both[winner].pid}; wait for it, or give another folder\n"
        )
        assert (contents(folder), (folder / "tables" / TABLE[command[0]]).read_bytes()) == alone[winner]

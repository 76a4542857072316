"""Worker processes: they do not outlive who asked for their work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GRID = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from missmdp.experiments.grid.cell import Cell
from missmdp.experiments.grid.executors import execute

@dataclass(frozen=True)
class Wait(Cell, kind="test-wait"):
    number: int
    folder: str

def work(cell):
    Path(cell.folder, str(os.getpid())).touch()
    time.sleep(600)

list(execute([Wait(number, sys.argv[1]) for number in range(4)], workers=2, work=work))
"""


def is_running(process: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at the processes of Linux")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", GRID, str(tmp_path)])
    try:
        until(lambda: len(list(tmp_path.iterdir())) == 2)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    workers = [int(path.name) for path in tmp_path.iterdir()]
    try:
        until(lambda: not any(map(is_running, workers)), seconds=10.0)
    finally:
        for worker in filter(is_running, workers):
            os.kill(worker, signal.SIGKILL)

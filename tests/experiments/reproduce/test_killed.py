"""A run that is killed by force, again and again, ends with the tables of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

KILLS = 10
SEED = 20261115
MOST_CELLS = 6
"""That are finished between two kills, at least."""


def start(folder):
    command = [
        sys.executable,
        "-m",
        "missmdp",
        "reproduce",
        "--profile",
        "smoke",
        "-o",
        str(folder),
        "--quiet",
    ]
    # A session of its own: killing is for the workers too.
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(folder):
    process = start(folder)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output


def tables(folder):
    return {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}


def n_cells(folder):
    return len(list((folder / "cells").glob("*.cell"))) if (folder / "cells").exists() else 0


@pytest.mark.slow
def test_killed_at_ten_random_moments_smoke_ends_with_the_same_tables(tmp_path):
    assert "56 of 56 cells" in finish(tmp_path / "undisturbed")
    moments = random.Random(SEED)
    folder, cells = tmp_path / "killed", [0]
    for _ in range(KILLS):
        process = start(folder)
        # By how far it has come, and some time more: in the middle of the work, however fast the machine is.
        wanted = cells[-1] + moments.randint(0, MOST_CELLS)
        while process.poll() is None and n_cells(folder) < wanted:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 2.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        cells.append(n_cells(folder))
    assert cells == sorted(cells)
    # Some were killed in the middle of the work.
    assert len({count for count in cells if 0 < count < 56}) > 2
    assert f"({cells[-1]} from before)" in finish(folder)
    expected = tables(tmp_path / "undisturbed")
    assert len(expected) == 12
    assert tables(folder) == expected
    assert (folder / "report.html").is_file()

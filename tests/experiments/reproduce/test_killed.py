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
    return len(list((folder / "cells").glob("*.npz"))) if (folder / "cells").exists() else 0


@pytest.mark.slow
def test_killed_at_ten_random_moments_smoke_ends_with_the_same_tables(tmp_path):
    began = time.monotonic()
    assert "56 of 56 cells" in finish(tmp_path / "undisturbed")
    took = time.monotonic() - began
    moments = random.Random(SEED)
    cells = [0]
    for _ in range(KILLS):
        process = start(tmp_path / "killed")
        time.sleep(moments.uniform(0.0, took / 3))
        # It may have finished meanwhile, if the machine was slow before.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        cells.append(n_cells(tmp_path / "killed"))
    assert cells == sorted(cells)
    # Some were killed in the middle of the work.
    assert len(set(cells)) > 2
    assert f"({cells[-1]} from before)" in finish(tmp_path / "killed")
    expected = tables(tmp_path / "undisturbed")
    assert len(expected) == 12
    assert tables(tmp_path / "killed") == expected
    assert (tmp_path / "killed" / "report.html").is_file()

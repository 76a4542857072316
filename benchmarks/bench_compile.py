"""Compilation: a first `missmdp run` on a new machine, beside the same with its kernels kept."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import row

JOB = ("run", "icu-smar", "--steps", "10000")
"""What `make demo` does."""


class _Taken(NamedTuple):
    """What a job took, in seconds."""

    wall: float
    processor: float
    """By all processes together."""
    stages: dict[str, float]


def run() -> None:
    """Print how long the job takes with no kernel compiled and with all of them kept, by stages."""
    with tempfile.TemporaryDirectory() as folder:
        first, again = _job(Path(folder), "first"), _job(Path(folder), "again")
    row("missmdp run icu-smar --steps 10000", "first", "again, and what compiling adds")
    for stage in first.stages:
        _compare(f"  {stage}", first.stages[stage], again.stages.get(stage, 0.0))
    _compare("wall time", first.wall, again.wall)
    _compare("processor time, all processes", first.processor, again.processor)


def _job(folder: Path, name: str) -> _Taken:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    command = [sys.executable, "-m", "missmdp", *JOB, "-o", str(folder / name)]
    nothing = subprocess.DEVNULL
    begin, before = time.perf_counter(), _processor()
    subprocess.run(command, env=environment, stdout=nothing, stderr=nothing, check=True)
    wall = time.perf_counter() - begin
    record = json.loads((folder / name / "run.json").read_text(encoding="utf-8"))
    return _Taken(wall, _processor() - before, record["timings"])


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _compare(what: str, first: float, again: float) -> None:
    row(what, f"{first:.1f} s", f"{again:.1f} s, +{first - again:.1f} s")

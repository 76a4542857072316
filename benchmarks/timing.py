"""Time things side by side."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

__all__ = ["child_peak_memory", "fresh_interpreter", "interleaved", "row"]


def interleaved(*functions: Callable[[], object], repeats: int = 5) -> list[float]:
    """Return the median seconds of each function, run in turns so that noise hits all of them alike."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def child_peak_memory(code: str) -> float:
    """Return the peak memory in MB of a fresh Python that runs some code."""
    # On Linux the kernel's maximum of a process goes back to before it was its own; the high-water mark does not.
    report = """
import pathlib, resource, sys
status = pathlib.Path("/proc/self/status")
if status.exists():
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
print(peak, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return float(done.stderr.split()[-1]) / 1024.0


def fresh_interpreter(code: str) -> None:
    """Run some code in a fresh Python."""
    subprocess.run([sys.executable, "-c", code], check=True)


def row(what: str, value: str, goal: str = "") -> None:
    """Print one line of the report."""
    print(f"{what:<64} {value:>12}  {goal}", flush=True)

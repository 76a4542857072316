"""A second process that compiles kernels while this one goes on.

What it has compiled is on disk when it is needed here. Without it everything takes longer, no more: so it is started
only where there is a core and memory for it, and it ends with the process that has started it, however that ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from missmdp._kernels.cache import is_compiled, is_kept_on_disk
from missmdp.files import remove_temporary_files
from missmdp.memory import MB, free_memory

__all__ = ["compiling", "obey"]

_MEMORY = 1024 * MB
"""What is to be free: twice what compiling takes."""
_PATIENCE = 1.0
"""Seconds in which it ends by itself, once it is told to."""

_log = logging.getLogger(__name__)
_running: list[subprocess.Popen[bytes]] = []


@contextmanager
def compiling(function: str, kernel: Any) -> Generator[None, None, None]:
    """While the block runs, let a second process call a function of ours that compiles, named in full.

    `kernel` is one of those that it compiles. Nothing is done where that one is compiled, or where it would not help.
    """
    process = None if is_compiled(kernel) else _start(function, kernel)
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _start(function: str, kernel: Any) -> subprocess.Popen[bytes] | None:
    if any(process.poll() is None for process in _running) or not _would_help(kernel):
        return None
    module, _, name = function.rpartition(".")
    code = f"from missmdp._kernels import second; second.obey(); import {module} as work; work.{name}()"
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=nothing, stderr=nothing
        )
    except OSError as error:
        _log.debug("no second process to compile with: %s", error)
        return None
    _running[:] = [process]
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def obey() -> None:
    """In the second process: leave Ctrl-C to the first one, and end when that ends or closes the pipe between them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        sys.stdin.buffer.read()
        remove_temporary_files()
        os._exit(1)

    threading.Thread(target=watch, name="missmdp-parent", daemon=True).start()


def _would_help(kernel: Any) -> bool:
    is_python = Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
    if not is_python or multiprocessing.parent_process() is not None:
        return False
    return _cores() > 1 and is_kept_on_disk(kernel) and free_memory() >= _MEMORY


def _cores() -> int:
    """Return how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1

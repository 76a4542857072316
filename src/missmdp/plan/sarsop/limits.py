"""When to stop: time, memory, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from missmdp.plan.base import Status

__all__ = ["Limits", "Stop"]

_SHARE_OF_MEMORY = 0.75


class Stop(Exception):  # noqa: N818, it is no error
    """A limit was reached; the bounds at this time hold."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status: Status = status


class Limits:
    """The limits of one search; its clock starts when it is made.

    Parameters
    ----------
    timeout
        In seconds; None for no limit.
    memory
        In megabytes; None for three quarters of the machine's.
    """

    def __init__(self, timeout: float | None, memory: float | None) -> None:
        self._start = time.perf_counter()
        self._timeout = float("inf") if timeout is None else timeout
        self._memory = _machine_memory() * _SHARE_OF_MEMORY if memory is None else memory * 1e6
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._start

    def check(self) -> None:
        """Raise `Stop` if time is up, or Ctrl-C was pressed."""
        if self._interrupted:
            raise Stop("interrupted")
        if self.seconds >= self._timeout:
            raise Stop("timeout")

    def check_memory(self, nbytes: int) -> None:
        """Raise `Stop` if that many bytes are too many."""
        if nbytes > self._memory:
            raise Stop("memory")

    @contextmanager
    def catch_interrupts(self) -> Generator[None, None, None]:
        """Take Ctrl-C as a wish to stop with what there is; a second one interrupts at once.

        Signals reach the main thread only: elsewhere nothing is caught.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # A handler that did not come from Python is None and cannot be put back.
        before = signal.getsignal(signal.SIGINT) or signal.default_int_handler

        def note(number: int, frame: Any) -> None:
            self._interrupted = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on this system
        return float("inf")

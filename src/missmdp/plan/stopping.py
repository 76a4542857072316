"""When a solver stops: its goal, limits on time and memory, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal[
    "precision", "converged", "exhausted", "timeout", "memory", "trials", "interrupted", "trained", "online"
]
"""Why a solver ended: the precision was reached, nothing was left to do, a limit was hit, Ctrl-C, all training steps
were made, or planning happens while acting (online)."""

ROUNDING = 1e-15
"""Of the largest value that is possible: smaller gaps and changes are those of the arithmetic."""
_SHARE_OF_MEMORY = 0.75


def raise_if_interrupted(status: str | None) -> None:
    """Raise what solvers and evaluations have caught, where a part is of no use without the rest."""
    if status == "interrupted":
        raise KeyboardInterrupt


class Stop(Exception):  # noqa: N818, it is no error
    """A limit was reached; what has been found by now holds."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status: Status = status


class Stopwatch:
    """The time limit of one run, which Ctrl-C ends early; the clock starts when it is made.

    Parameters
    ----------
    timeout
        In seconds; None for no limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self._start = time.perf_counter()
        self.timeout = timeout
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """The seconds that are left; infinitely many without a limit."""
        return float("inf") if self.timeout is None else max(self.timeout - self.seconds, 0.0)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C came.

        If it came after the last look at the limits, the work is done, but the caller may have more to do. So results
        say it too.
        """
        return self._interrupted

    @property
    def stopped_by(self) -> Status | None:
        """What says that it is time to stop: Ctrl-C, the time limit, or None."""
        if self._interrupted:
            return "interrupted"
        return "timeout" if self.left <= 0.0 else None

    def check(self) -> None:
        """Raise `Stop` if time is up, or Ctrl-C was pressed."""
        status = self.stopped_by
        if status is not None:
            raise Stop(status)

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


class SearchLimits(Stopwatch):
    """The limits of one search.

    Parameters
    ----------
    timeout
        In seconds; None for no limit.
    memory
        In megabytes; None for three quarters of the machine's.
    """

    def __init__(self, timeout: float | None = None, memory: float | None = None) -> None:
        super().__init__(timeout)
        self.memory = _machine_memory() * _SHARE_OF_MEMORY if memory is None else memory * 1e6
        """In bytes."""
        self._kept_back = 0.0

    def keep_back(self, seconds: float, most: float) -> None:
        """Stop so many seconds early, at most a share `most` of the time limit, to leave time for a last step."""
        if self.timeout is not None:
            self._kept_back = min(seconds, most * self.timeout)

    @property
    def stopped_by(self) -> Status | None:
        """What says that it is time to stop: Ctrl-C, the time limit (less what is kept back), or None."""
        if self._interrupted:
            return "interrupted"
        return "timeout" if self.left <= self._kept_back else None

    @contextmanager
    def shortened(self, share: float) -> Generator[None, None, None]:
        """Reduce the time limit to a share of itself in the block, for a search that comes first."""
        timeout = self.timeout
        if timeout is not None:
            self.timeout = share * timeout
        try:
            yield
        finally:
            self.timeout, self._kept_back = timeout, 0.0

    def check_memory(self, nbytes: int) -> None:
        """Raise `Stop` if that many bytes are too many."""
        if nbytes > self.memory:
            raise Stop("memory")


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not on this system
        return float("inf")


@dataclass(frozen=True)
class Goal:
    """When a search has done enough."""

    precision: float
    absolute_precision: float | None = None
    max_trials: int | None = None
    most_work: float = float("inf")
    """Multiplications after which the search ends as if it had made all its trials."""
    lower: float = -float("inf")
    """What is known from an earlier search, which counts besides what a search finds itself."""
    upper: float = float("inf")

    def is_reached(self, lower: float, upper: float, scale: float) -> bool:
        """Return whether bounds are close enough; `scale` is the largest value that is possible."""
        lower, upper = max(lower, self.lower), min(upper, self.upper)
        absolute = 0.0 if self.absolute_precision is None else self.absolute_precision
        return upper - lower <= max(self.precision * abs(lower), absolute, ROUNDING * scale)

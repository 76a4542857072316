"""SIGTERM, as schedulers and `kill` send it, as an end that leaves nothing half done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from missmdp.cli.failures import Terminated

__all__ = ["sigterm_raises"]


@contextmanager
def sigterm_raises() -> Generator[None, None, None]:
    """Turn SIGTERM into `Terminated`, so that what is open is closed; a second one ends the process at once.

    Where SIGTERM is ignored or handled already, and outside the main thread, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL:
        yield
        return
    here = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() != here:
            # A process that was forked from this one, and inherited this function: it ends as others do.
            os.kill(os.getpid(), signal.SIGTERM)
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

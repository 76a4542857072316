"""A thread that ends the program where a signal cannot: while something compiles, or waits for other threads.

Python looks at signals between two steps of the main thread. Our own long work is cut into short calls, so Ctrl-C and
SIGTERM are seen at once. A single call into a library can take longer, such as optimising a kernel or factorising a
matrix. Then nobody would hear the signal, and this thread ends the program in its place.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from missmdp.files import remove_temporary_files

_PATIENCE = 0.7
"""Seconds that the main thread has to show that it has seen a signal."""
_TO_LEAVE = 0.3
"""Seconds that threads and libraries have to end once everything is said."""
_SAID = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}
_watching = threading.Event()


@contextmanager
def signals_end_the_program() -> Generator[None, None, None]:
    """End the program soon after SIGINT or SIGTERM if the main thread does not notice."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading,), name="missmdp-watchdog", daemon=True).start()
    _watching.set()
    try:
        yield
    finally:
        _watching.clear()
        signal.set_wakeup_fd(before)
        os.close(writing)


def leave_soon(code: int) -> None:
    """End the program, at the latest in a moment: everything is said, but threads may still be busy."""
    if _watching.is_set():
        remove_temporary_files()
        timer = threading.Timer(_TO_LEAVE, os._exit, (code,))
        timer.daemon = True
        timer.start()


def _watch(reading: int) -> None:
    while numbers := os.read(reading, 64):
        for number in numbers:
            # Others, such as that of a window that changes its size, are not ours. One that is ignored does not come.
            if number in _SAID and not _is_noticed():
                _end(signal.Signals(number))
    os.close(reading)


def _is_noticed() -> bool:
    """Return whether the main thread takes another step, and so has seen its signals."""
    noticed = threading.Event()

    def step(_: Any) -> int:
        noticed.set()
        return 0

    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(step)
    _kept.append(call)
    add: Any = ctypes.pythonapi.Py_AddPendingCall
    # Where too many calls wait already, the main thread is stuck all the more.
    return add(call, None) == 0 and noticed.wait(_PATIENCE)


_kept: list[Any] = []
"""Calls that the main thread may still make, however late."""


def _end(number: signal.Signals) -> None:
    try:
        remove_temporary_files()
        # On a terminal behind ^C, and with the cursor that a progress bar may have hidden.
        before = "\x1b[?25h\n" if os.isatty(2) else ""
        os.write(2, f"{before}{_SAID[number]}\n".encode())
    finally:
        os._exit(128 + number)

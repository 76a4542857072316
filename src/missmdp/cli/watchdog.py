"""A thread that ends the program where a signal cannot: while something compiles, or waits for other threads.

Python looks at signals between two steps of the main thread. Our own long work is cut into short calls, so Ctrl-C and
SIGTERM are seen at once. A single call into a library can take longer, such as optimising a kernel or factorising a
matrix. Then nobody would hear the signal, and this thread ends the program in its place. Where Python loses the
exception that a signal raised, as it does in functions that libraries call back, the signal is sent again.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, cast

from missmdp.files import remove_temporary_files

_PATIENCE = 0.7
"""Seconds that the main thread has to show that it has seen a signal."""
_SAID = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated"}
_LONG_IMPORT = 0.3
"""Seconds that an import has to end: nothing is open then that would be lost."""
_SOON = 2.0
"""Seconds within which a second Ctrl-C means that the program is to end, whatever it could go on with."""
_AGAIN = 0.05
"""Seconds after which a signal is sent again."""
_watching = threading.Event()
_came: list[tuple[signal.Signals, float]] = []
"""The signals that came, and when."""
_early: list[float] = []
"""When a signal came that was too early."""
_resent = threading.Event()
"""Whether the next signal is one that was sent again."""
_Hook = Callable[[Any], object]


class Terminated(BaseException):
    """SIGTERM; unlike Ctrl-C it never means to go on with what there is."""


@contextmanager
def signals_end_the_program() -> Generator[None, None, None]:
    """End the program soon after SIGINT or SIGTERM if the main thread does not notice."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before, hook = signal.set_wakeup_fd(writing, warn_on_full_buffer=False), sys.unraisablehook
    sys.unraisablehook = _not_lost(hook, {number: signal.getsignal(number) for number in _SAID})
    threading.Thread(target=_watch, args=(reading,), name="missmdp-watchdog", daemon=True).start()
    _watching.set()
    try:
        yield
    finally:
        _watching.clear()
        signal.set_wakeup_fd(before)
        sys.unraisablehook = hook
        os.close(writing)


def last_signal() -> signal.Signals | None:
    """Return the signal that came last; libraries turn what it raises into errors of their own."""
    if _watching.is_set() and not _came:
        time.sleep(_AGAIN)  # the thread may not have heard of it yet
    return _came[-1][0] if _came else None


def _since() -> float:
    """Return how many seconds ago Ctrl-C came."""
    return min(
        (time.monotonic() - when for number, when in _came if number == signal.SIGINT), default=math.inf
    )


def leave_at_once(code: int) -> None:
    """End the program where it is watched: all is said and closed, but Python would wait for threads that are busy."""
    if _watching.is_set():
        remove_temporary_files()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # Worker processes end by themselves; what they shared with this one would be complained about.
        shared: Any = sys.modules.get("multiprocessing.util")
        with suppress(Exception):
            shared._run_finalizers(0)
        os._exit(code)


def _watch(reading: int) -> None:
    while numbers := os.read(reading, 64):
        for number in numbers:
            # Others, such as that of a window that changes its size, are not ours. One that is ignored does not come.
            if number in _SAID:
                impatient = number == signal.SIGINT and _since() < _SOON and not _resent.is_set()
                _resent.clear()
                _came.append((signal.Signals(number), time.monotonic()))
                if not _is_noticed():
                    _end(signal.Signals(number))
                if impatient:
                    # It may go on with the next step of a run, as it should after one Ctrl-C alone.
                    time.sleep(_PATIENCE)
                    _end(signal.SIGINT)
    os.close(reading)


def _not_lost(hook: _Hook, handlers: dict[signal.Signals, Any]) -> _Hook:
    """Return what is to be done with exceptions that Python cannot raise: those of signals are raised again soon."""

    def again(lost: Any) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt | Terminated):
            hook(lost)
            return
        number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handlers[number])
        _send_again(number)

    return again


def _send_again(number: int) -> None:
    def send() -> None:
        _resent.set()
        signal.pthread_kill(cast("int", threading.main_thread().ident), number)

    timer = threading.Timer(_AGAIN, send)
    timer.daemon = True
    timer.start()


def comes_too_early(number: int, frame: FrameType | None) -> bool:
    """Return whether a signal comes while something is imported; it is then sent again, and at last ends the program.

    Modules that try whether others are there lose exceptions.
    """
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    if frame is None or not _watching.is_set():
        _early.clear()
        return False
    _early.append(time.monotonic())
    if _early[-1] - _early[0] > _LONG_IMPORT:
        _end(signal.Signals(number))
    _send_again(number)
    return True


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

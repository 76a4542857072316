"""Progress on long work: a calm line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from missmdp.errors import ParameterError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.status import Status

_DELAY = 0.5
"""Seconds before anything is shown, so short work stays silent."""
_PAUSE = 0.1
"""Seconds between two changes of a status line."""


def _enabled(progress: bool | None) -> bool:
    """Return whether to show progress; by default on a terminal."""
    if progress is None:
        return sys.stderr.isatty()
    if not isinstance(progress, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("progress", progress, "True, False or None")
    return progress


class Advance:
    """What long work calls to report: `advance(done)` adds to what is done."""

    def __init__(self, description: str, total: float | None, *, enabled: bool) -> None:
        self._description = description
        self._total = total
        self._enabled = enabled
        self._done = 0.0
        self._start = time.monotonic()
        self._display: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, amount: float = 1.0) -> None:
        self._done += amount
        if not self._enabled:
            return
        if self._display is None and time.monotonic() - self._start >= _DELAY:
            self._open()
        if self._display is not None and self._task is not None:
            self._display.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from missmdp.terminal import make_console

        self._display = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=make_console(stderr=True, soft_wrap=False),
            transient=True,
        )
        self._task = self._display.add_task(self._description, total=self._total)
        self._display.start()

    def close(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None


@contextmanager
def show_progress(
    description: str, total: float | None = None, *, enabled: bool | None = None
) -> Generator[Advance, None, None]:
    """Yield an `Advance`; shown on standard error if that is a terminal, or as `enabled` says."""
    advance = Advance(description, total, enabled=_enabled(enabled))
    try:
        yield advance
    finally:
        advance.close()


class Say:
    """What long work without a known end calls to report: `say(text)` replaces the line that is shown."""

    def __init__(self, description: str, *, enabled: bool) -> None:
        self._description = description
        self._enabled = enabled
        self._last = time.monotonic() + _DELAY - _PAUSE
        self._display: Status | None = None

    def __call__(self, text: str) -> None:
        if not self._enabled or time.monotonic() - self._last < _PAUSE:
            return
        self._last = time.monotonic()
        from rich.text import Text

        from missmdp.terminal import make_console

        line = Text(f"{self._description}: {text}")
        if self._display is None:
            self._display = make_console(stderr=True, soft_wrap=False).status(line)
            self._display.start()
        else:
            self._display.update(line)

    def close(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None


@contextmanager
def show_status(description: str, *, enabled: bool | None = None) -> Generator[Say, None, None]:
    """Yield a `Say`; shown on standard error if that is a terminal, or as `enabled` says."""
    say = Say(description, enabled=_enabled(enabled))
    try:
        yield say
    finally:
        say.close()

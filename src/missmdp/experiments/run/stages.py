"""The stages of a run as people see them: what is done stays as a line, and what is under way lives below."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from missmdp.words import printable

if TYPE_CHECKING:
    from rich.progress import Progress

_TITLES = 16
"""Columns for the names of stages."""


class Stage:
    """A stage that is under way; `result` is said when it is done."""

    def __init__(self) -> None:
        self.result = ""
        self.quiet_below = 0.0
        """Seconds up to which nothing is said after all."""


class Stages:
    """Times stages, and shows them on standard error.

    Parameters
    ----------
    shown
        Whether to show them: as a live line on a terminal, as plain lines elsewhere. None for on a terminal only.
    """

    def __init__(self, shown: bool | None = None) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = self._terminal if shown is None else shown
        self.seconds: dict[str, float] = {}
        """By key, in order."""
        self.current = ""
        """The title of the stage that is under way, or was when something went wrong."""

    @contextmanager
    def stage(self, key: str, title: str, doing: str = "") -> Generator[Stage, None, None]:
        """Time a stage; stages with one key add up.

        Parameters
        ----------
        key
            Under which its time is kept.
        title
            A word or two.
        doing
            What is under way, in a few words.
        """
        self.current = title
        stage = Stage()
        began = time.perf_counter()
        display = self._live(title, doing) if self._shown and self._terminal else None
        try:
            yield stage
        finally:
            if display is not None:
                display.stop()
        took = time.perf_counter() - began
        self.seconds[key] = self.seconds.get(key, 0.0) + took
        if self._shown and took >= stage.quiet_below:
            self._line(title, stage.result, took)

    def _live(self, title: str, doing: str) -> Progress:
        from rich.progress import Progress, SpinnerColumn, TextColumn

        from missmdp.terminal import make_console

        display = Progress(
            SpinnerColumn(style="none"),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.elapsed:.0f} s", style="dim"),
            console=make_console(stderr=True, soft_wrap=False),
            transient=True,
        )
        display.add_task(f"{title:<{_TITLES}}{doing}".rstrip(), total=None)
        display.start()
        return display

    def _line(self, title: str, result: str, took: float) -> None:
        from rich.text import Text

        from missmdp.terminal import make_console

        line = printable(f"✓ {title:<{_TITLES}}{result}".rstrip())
        console = make_console(stderr=True)
        if self._terminal:
            # One line each, whatever the width.
            room = max(20, console.width - 10)
            line = line if len(line) <= room else f"{line[: room - 1]}…"
        console.print(Text(line).append(f"  {took:.1f} s", style="dim"))

"""The console that commands and progress print on, where names and values of others cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251 (here it is made)
from rich.segment import Segment
from rich.text import Text

from missmdp.words import printable

__all__ = ["Console", "make_console"]


class _Terminal(Console):
    """A console that escapes what it is given to print; colours and cursor moves are its own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string with its markup; widths are measured after this."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the parts of what is printed, including texts that were no strings."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=printable(part.text))


def make_console(*, stderr: bool = False, soft_wrap: bool = True) -> Console:
    """Return where to print."""
    # Not highlighted: numbers in states and names are not what the eye should jump to. And a value :cat: is no emoji.
    return _Terminal(highlight=False, emoji=False, soft_wrap=soft_wrap, stderr=stderr)

"""Plain tables and sentences that fit a terminal, and stay whole where they go to a file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from missmdp.cli.printing import make_console

__all__ = ["Column", "columns_width", "print_columns", "print_labelled", "print_sentence"]

Column = list[str]
"""A title and the cells below it."""
_LABELS = 14
"""Of the words on the left, as in `missmdp solve`."""
_NARROWEST, _WIDEST = 40, 100
"""Columns between which sentences are broken into lines."""


def columns_width(columns: Sequence[Column]) -> int:
    """Return how wide a table will be."""
    return sum(max(map(cell_len, column)) for column in columns) + 2 * (len(columns) - 1)


def print_columns(columns: Sequence[Column]) -> None:
    """Print a table without lines: the first column to the left, the others to the right."""
    console = make_console()
    widths = [max(map(cell_len, column)) for column in columns]
    for i, row in enumerate(zip(*columns, strict=True)):
        spaces = [" " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]
        cells = [
            text + space if place == 0 else space + text
            for place, (text, space) in enumerate(zip(row, spaces, strict=True))
        ]
        console.print(escape("  ".join(cells).rstrip()), style="bold" if i == 0 else None)


def print_labelled(label: str, text: str, *, whole: bool = False) -> None:
    """Print a label on the left, and text beside it: in lines that fit, or whole."""
    console = make_console()
    space = " " * max(2, _LABELS - cell_len(label))
    for i, line in enumerate([text] if whole else _lines(text, console, _LABELS)):
        console.print(escape(f"{' ' * _LABELS if i else label + space}{line}"))


def print_sentence(text: str) -> None:
    """Print text in lines that fit."""
    console = make_console()
    for line in _lines(text, console):
        console.print(escape(line))


def _lines(text: str, console: Console, indent: int = 0) -> list[str]:
    """Return lines that are broken between words alone, so that names of files stay whole."""
    width = max(_NARROWEST, min(_WIDEST, console.width)) if console.is_terminal else _WIDEST
    return textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False) or [""]

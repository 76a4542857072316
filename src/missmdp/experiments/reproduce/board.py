"""The map of a Predator benchmark."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from typing import TYPE_CHECKING

from missmdp.benchmarks.predator import MAPS, Board
from missmdp.experiments.reproduce.style import SMALL
from missmdp.model.picture import INK, draw_box, draw_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_board"]

_GROUND = {".": "#F3EFE2", "J": "#7FA87A", "^": "#B9B4AC", "#": "#4A4A4A"}
_WORDS = {".": "plains", "J": "jungle", "^": "mountain", "#": "blocked"}


def draw_board(axes: Axes, benchmark: str) -> None:
    """Draw the map of a Predator benchmark, with a key below."""
    board = Board(MAPS[benchmark.removeprefix("predator-")])
    for row, letters in enumerate(board.rows):
        for column, letter in enumerate(letters):
            draw_box(axes, column + 0.03, row + 0.03, 0.94, 0.94, _GROUND[letter])
            if letter == "^":
                draw_text(axes, column + 0.5, row + 0.5, "▲", fontsize=SMALL, color="#77716A")
    found = [letter for letter in _WORDS if any(letter in row for row in board.rows)]
    step = board.width / len(found)
    for i, letter in enumerate(found):
        draw_box(axes, i * step + 0.05, board.height + 0.25, 0.3, 0.3, _GROUND[letter])
        place = (i * step + 0.45, board.height + 0.41)
        draw_text(axes, *place, _WORDS[letter], ha="left", fontsize=SMALL - 1, color=INK)
    axes.set_xlim(0.0, board.width)
    axes.set_ylim(board.height + 0.7, 0.0)
    axes.set_aspect("equal", anchor="N")
    axes.axis("off")

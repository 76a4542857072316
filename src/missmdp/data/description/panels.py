"""The upper half of a description's picture: what is missing together, and over steps."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp.data.description.associations import FEW_ROWS
from missmdp.data.description.description import Description, percent
from missmdp.data.description.groups import MissingBy
from missmdp.model.picture import draw_box, draw_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LETTER", "SMALL_LETTER", "draw_patterns", "draw_steps"]

BLUE, PALE, GRAY, EMPTY, GROUND = "#4C78B0", "#B4C8E4", "#9AA3AF", "#D5D9DF", "#F1F4F8"
LETTER, SMALL_LETTER = 0.064, 0.055
"""The width of a letter of a name and of small print, in inches like all lengths here."""
MOST_PATTERNS = 12
ROW, COLUMN, DOT = 0.22, 0.22, 0.065
"""The pitch of patterns and of features in the matrix, and the radius of a dot."""
STRIP, STRIP_GAP = 0.28, 0.06
"""The height of a feature's strip over steps, and of what is between two."""
PERCENT = 0.5
"""The room for a percentage."""


def draw_patterns(
    axes: Axes,
    described: Description,
    names: Sequence[str],
    corner: tuple[float, float],
    width: float,
) -> float:
    """Draw which of some features are missing together, as dots, and how often, as bars; return where it ends."""
    left, y = corner
    gaps = described.often_missing
    # Others may be missing in these rows as well, so that the shares are not those of the whole.
    some = f" (of these {len(gaps)} features)" if len(gaps) < len(described.can_go_missing) else ""
    draw_text(axes, left, y, f"Missing together{some}", ha="left", fontsize=9, weight="bold")
    y += 0.32 + _draw_column_names(axes, [names[i] for i in gaps], left, y + 0.32)
    patterns, rows = described.often_patterns[:MOST_PATTERNS], described.often_pattern_rows[:MOST_PATTERNS]
    rarer = described.n_rows - int(rows.sum())
    bars = left + max(len(gaps) * COLUMN, 0.4 if rarer else 0.0) + 0.1
    scale = (left + width - bars - PERCENT) / int(rows.max())
    for number, (pattern, count) in enumerate(zip(patterns, rows.tolist(), strict=True)):
        if number % 2 == 0:
            draw_box(axes, left, y - ROW / 2, len(gaps) * COLUMN, ROW, GROUND, zorder=0)
        _draw_dots(axes, pattern, left + COLUMN / 2, y)
        draw_box(axes, bars, y - 0.07, scale * count, 0.14, BLUE if pattern.any() else GRAY)
        share = percent(count / described.n_rows)
        draw_text(axes, bars + scale * count + 0.06, y, share, ha="left", fontsize=7)
        y += ROW
    if rarer:
        # Without a bar: all rarer patterns together may dwarf the frequent ones.
        draw_text(axes, bars - 0.1, y, "rarer", ha="right", fontsize=7)
        draw_text(axes, bars, y, percent(rarer / described.n_rows), ha="left", fontsize=7)
        y += ROW
    y += 0.03
    for x, gap, text in ((left, True, "missing"), (left + 0.75, False, "observed")):
        _draw_dots(axes, np.array([gap]), x + COLUMN / 2, y)
        draw_text(axes, x + COLUMN / 2 + 0.12, y, text, ha="left", fontsize=6.5)
    return y


def _draw_column_names(axes: Axes, names: Sequence[str], left: float, y: float) -> float:
    """Write the names of features above their dots, slanted if they are long; return the room that they need."""
    longest = max(map(len, names))
    slanted = longest > 2
    room = 0.72 * LETTER * longest if slanted else 0.12
    style = {"rotation": 45, "rotation_mode": "anchor", "ha": "left"} if slanted else {}
    for column, name in enumerate(names):
        x = left + (column + (0.4 if slanted else 0.5)) * COLUMN
        draw_text(axes, x, y + room - ROW / 2 - 0.02, name, va="bottom", fontsize=7.5, **style)
    return room


def _draw_dots(axes: Axes, pattern: NDArray[np.bool_], x: float, y: float) -> None:
    """Draw a row of dots, those of missing features filled and joined."""
    from matplotlib.patches import Circle

    missing = np.flatnonzero(pattern)
    if len(missing) > 1:
        draw_box(axes, x + missing[0] * COLUMN, y - 0.01, (missing[-1] - missing[0]) * COLUMN, 0.02, BLUE)
    for column, gap in enumerate(pattern):
        colour = BLUE if gap else EMPTY
        axes.add_patch(Circle((x + column * COLUMN, y), DOT, facecolor=colour, linewidth=0, zorder=2))


def draw_steps(
    axes: Axes,
    described: Description,
    gaps: Sequence[int],
    names: Sequence[str],
    corner: tuple[float, float],
    width: float,
) -> float:
    """Draw a strip for each of some features, full where it is always missing; return where it ends."""
    left, y = corner
    draw_text(axes, left, y, "Missing over steps", ha="left", fontsize=9, weight="bold")
    y += 0.22
    start = left + 0.1 + LETTER * max(len(names[i]) for i in gaps)
    room = left + width - PERCENT - start
    by = described.over_steps
    column = room / len(by)
    for i in gaps:
        draw_text(axes, start - 0.08, y + STRIP / 2, names[i], ha="right", fontsize=7.5)
        draw_box(axes, start, y, room, STRIP, GROUND)
        # One outline each, since boxes side by side show seams.
        for rows_too_few, colour in ((False, BLUE), (True, PALE)):
            rates = np.where((by.rows < FEW_ROWS) == rows_too_few, by.rates[:, i], 0.0)
            axes.fill(*_staircase(rates, start, y + STRIP, column), facecolor=colour, linewidth=0)
        overall = percent(float(described.rates[i]))
        draw_text(axes, start + room + 0.06, y + STRIP / 2, overall, ha="left", fontsize=7)
        y += STRIP + STRIP_GAP
    _draw_step_labels(axes, by, start, y + 0.04, column)
    pale = f"; pale: fewer than {FEW_ROWS} rows" if (by.rows < FEW_ROWS).any() else ""
    key = f"step in the episode (a full strip: always missing{pale})"
    draw_text(axes, start + room + PERCENT, y + 0.22, key, ha="right", fontsize=6.5)
    return y + 0.22


def _staircase(
    rates: NDArray[np.float64], x: float, y: float, column: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the outline of bars without gaps, which stand on y and grow upwards."""
    edges = x + column * np.repeat(np.arange(len(rates) + 1.0), 2)
    return edges, y - STRIP * np.concatenate([[0.0], np.repeat(rates, 2), [0.0]])


def _draw_step_labels(axes: Axes, by: MissingBy, start: float, y: float, column: float) -> None:
    """Write as many steps as there is room for: ranges where they start, single steps in their middle."""
    firsts = [label.split(" – ")[0] for label in by.labels]
    ranges = any(first != label for first, label in zip(firsts, by.labels, strict=True))
    every = math.ceil((SMALL_LETTER * max(map(len, firsts)) + 0.12) / column)
    for group in range(0, len(by), every):
        x = start + (group if ranges else group + 0.5) * column
        draw_text(axes, x, y, firsts[group], fontsize=6.5)

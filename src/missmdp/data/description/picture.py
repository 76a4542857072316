"""The picture of a description: what is missing together, over steps, and by the values of other features."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp.data.description.groups import FEW_ROWS, MissingBy
from missmdp.model.picture import INK, check_picture_name, draw_box, draw_text, save_picture
from missmdp.words import rate_text, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from missmdp.data.description.description import Description

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
    # Others may be missing in these rows as well, so the shares are not those of the whole.
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
        share = rate_text(count / described.n_rows)
        draw_text(axes, bars + scale * count + 0.06, y, share, ha="left", fontsize=7)
        y += ROW
    if rarer:
        # Without a bar: all rarer patterns together may dwarf the frequent ones.
        draw_text(axes, bars - 0.1, y, "rarer", ha="right", fontsize=7)
        draw_text(axes, bars, y, rate_text(rarer / described.n_rows), ha="left", fontsize=7)
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
        overall = rate_text(float(described.rates[i]))
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


CELL, CELL_HEIGHT, SMALL = 0.27, 0.22, 0.55
"""A cell's width and height in inches, and how much smaller it is with few rows."""
BLOCK_GAP = 0.22
VALUE_LETTERS = 23
"""Letters after which a value is cut: enough for two dates."""
MOST_BLOCKS = 12
SCALE = ("#EEF3FA", "#8FB0D9", "#3F6DA8", "#17315C")
"""From never missing to always missing: one hue, so only lightness matters."""
OWN = "#E2E2E2"

Block = tuple[MissingBy, str]
"""The groups of a feature, and its name as it is written."""


def draw_by_value(
    axes: Axes,
    described: Description,
    gaps: Sequence[int],
    names: Sequence[str],
    corner: tuple[float, float],
    width: float,
) -> float:
    """Draw a table of rates for every feature that has values, in lines; return where they end."""
    left, y = corner
    title = "Missing by the value of another feature, in percent of the rows where that one is observed"
    draw_text(axes, left, y, title, ha="left", fontsize=9, weight="bold")
    y += 0.3
    start = left + 0.1 + LETTER * max(len(names[i]) for i in gaps)
    blocks = _blocks(described, names)
    for line in _lines(blocks, left + width - start):
        upright = any(len(label) > 3 for by, _ in line for label in by.labels)
        longest = max(min(len(label), VALUE_LETTERS) for by, _ in line for label in by.labels)
        labels = SMALL_LETTER * longest + 0.04 if upright else 0.12
        x, y = start, y + labels + 0.12
        for by, name in line:
            draw_text(axes, x, y - labels - 0.12, name, ha="left", fontsize=8)
            _draw_labels(axes, by, x, y - 0.03, upright=upright)
            _draw_cells(axes, described, by, gaps, x, y)
            x += _width(by, name) + BLOCK_GAP
        for row, i in enumerate(gaps):
            draw_text(axes, start - 0.08, y + (row + 0.5) * CELL_HEIGHT, names[i], ha="right", fontsize=7.5)
        y += len(gaps) * CELL_HEIGHT + 0.3
    drawn = {described.features[i] for i in gaps}
    marks: list[tuple[str, str, bool]] = []
    if any((by.rows < FEW_ROWS).any() for by, _ in blocks):
        marks.append((f"fewer than {FEW_ROWS} rows", SCALE[1], True))
    if any(by.what in drawn for by, _ in blocks):
        marks.append(("the feature itself", OWN, False))
    return _draw_key(axes, start, y, marks)


def _blocks(described: Description, names: Sequence[str]) -> list[Block]:
    """Return what to draw: features with values, if there are too many those with the strongest associations."""
    blocks = [(by, name) for by, name in zip(described.by_value, names, strict=True) if len(by)]
    if len(blocks) > MOST_BLOCKS:
        ranked = dict.fromkeys([*(a.given for a in described.strongest()), *described.features])
        kept = [name for name in ranked if any(by.what == name for by, _ in blocks)][:MOST_BLOCKS]
        blocks = [(by, name) for by, name in blocks if by.what in kept]
    return blocks


def _width(by: MissingBy, name: str) -> float:
    return max(len(by) * CELL, LETTER * 1.1 * len(name))


def _lines(blocks: Sequence[Block], room: float) -> Iterator[list[Block]]:
    """Yield as many blocks at a time as fit beside each other, one at least."""
    line: list[Block] = []
    used = 0.0
    for block in blocks:
        needed = _width(*block)
        if line and used + needed > room:
            yield line
            line, used = [], 0.0
        line.append(block)
        used += needed + BLOCK_GAP
    if line:
        yield line


def _draw_labels(axes: Axes, by: MissingBy, x: float, y: float, *, upright: bool) -> None:
    for group, label in enumerate(by.labels):
        place = (x + (group + 0.5) * CELL, y)
        text = shortened(label, VALUE_LETTERS)
        draw_text(axes, *place, text, fontsize=6.5, va="bottom", rotation=90 if upright else 0)


def _draw_cells(
    axes: Axes, described: Description, by: MissingBy, gaps: Sequence[int], x: float, y: float
) -> None:
    """Draw the rate of every feature at every value; the feature itself, observed there, is left gray."""
    rates = by.rates
    for row, i in enumerate(gaps):
        for group, rows in enumerate(by.rows.tolist()):
            corner = (x + group * CELL, y + row * CELL_HEIGHT)
            if by.what == described.features[i]:
                _draw_cell(axes, corner, OWN)
                continue
            rate = float(rates[group, i])
            _draw_cell(axes, corner, colour_of(rate), small=rows < FEW_ROWS)
            if rows >= FEW_ROWS:
                middle = (corner[0] + CELL / 2, corner[1] + CELL_HEIGHT / 2)
                ink = "white" if rate > 0.45 else INK
                draw_text(axes, *middle, f"{100 * rate:.0f}", fontsize=6, color=ink)


def _draw_cell(axes: Axes, corner: tuple[float, float], colour: str, *, small: bool = False) -> None:
    size = SMALL if small else 0.94
    width, height = CELL * size, CELL_HEIGHT * size
    draw_box(
        axes, corner[0] + (CELL - width) / 2, corner[1] + (CELL_HEIGHT - height) / 2, width, height, colour
    )


def colour_of(rate: float) -> str:
    """Return the colour of a rate: a mixture of the two nearest colours of the scale."""
    place = min(max(rate, 0.0), 1.0) * (len(SCALE) - 1)
    below = min(int(place), len(SCALE) - 2)
    a, b = (bytes.fromhex(SCALE[k][1:]) for k in (below, below + 1))
    mixed = (round(p + (place - below) * (q - p)) for p, q in zip(a, b, strict=True))
    return "#" + bytes(mixed).hex()


def _draw_key(axes: Axes, x: float, y: float, marks: Sequence[tuple[str, str, bool]]) -> float:
    """Draw the scale and what other cells mean (text, colour, whether small); return where that ends."""
    draw_text(axes, x, y, "never", ha="left", fontsize=6.5)
    x += 0.34
    for tenth in range(11):
        draw_box(axes, x + 0.14 * tenth, y - 0.06, 0.14, 0.12, colour_of(tenth / 10))
    x += 11 * 0.14 + 0.06
    draw_text(axes, x, y, "always missing", ha="left", fontsize=6.5)
    x += 1.05
    for text, colour, small in marks:
        _draw_cell(axes, (x, y - CELL_HEIGHT / 2), colour, small=small)
        draw_text(axes, x + CELL + 0.05, y, text, ha="left", fontsize=6.5)
        x += CELL + 0.25 + SMALL_LETTER * len(text)
    return y + 0.28


WIDTH, MARGIN, GAP = 9.0, 0.3, 0.4
"""Inches, like all lengths in this picture; y grows downwards."""
NAME_LETTERS = 20
"""Letters after which a feature's name is cut."""


def draw_description(described: Description, path: Path, *, title: str | None = None) -> Path:
    """Draw a description into an SVG, PNG or PDF file and return its path; the same one gives the same file."""
    check_picture_name(path)
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    y = MARGIN
    if title:
        draw_text(axes, MARGIN, y, title, ha="left", fontsize=11)
        y += 0.38
    gaps = described.often_missing
    names = [shortened(name, NAME_LETTERS) for name in described.features]
    if gaps:
        half = (WIDTH - 2 * MARGIN - GAP) / 2
        ends = (
            draw_patterns(axes, described, names, (MARGIN, y), half),
            draw_steps(axes, described, gaps, names, (MARGIN + half + GAP, y), half),
        )
        y = max(ends) + GAP
        if len(described.features) > 1 and any(map(len, described.by_value)):
            y = draw_by_value(axes, described, gaps, names, (MARGIN, y), WIDTH - 2 * MARGIN)
    for line in _remarks(described, drawn=len(gaps)):
        draw_text(axes, MARGIN, y, line, ha="left", fontsize=7)
        y += 0.16
    height = y + 0.1
    # Only now is it known how much room everything takes.
    figure.set_size_inches(WIDTH, height)
    axes.set_xlim(0.0, WIDTH)
    axes.set_ylim(height, 0.0)
    return save_picture(figure, path)


def _remarks(described: Description, *, drawn: int) -> list[str]:
    lines = [] if described.can_go_missing else ["Nothing is missing."]
    if described.never_missing:
        lines.append(shortened(f"Never missing: {', '.join(described.never_missing)}", 140))
    absent = len(described.can_go_missing) - drawn
    if absent:
        lines.append(f"Not drawn: {absent} that {'are' if absent > 1 else 'is'} missing more seldom")
    with_values = sum(len(by) > 0 for by in described.by_value)
    if drawn and with_values > MOST_BLOCKS:
        clear = len({association.given for association in described.strongest()})
        which = "where rates differ most clearly" if clear >= MOST_BLOCKS else ""
        which = which or (
            "with all where rates differ clearly" if clear else "as rates differ clearly at none"
        )
        lines.append(f"By value: {MOST_BLOCKS} of {with_values} features, {which}")
    return lines

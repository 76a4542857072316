"""The lower half of a description's picture: missing rates by the values of other features."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from missmdp.data.description.associations import FEW_ROWS
from missmdp.data.description.description import Description
from missmdp.data.description.groups import MissingBy
from missmdp.data.description.panels import LETTER, SMALL_LETTER
from missmdp.model.picture import INK, draw_box, draw_text, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_BLOCKS", "draw_by_value"]

CELL, CELL_HEIGHT, SMALL = 0.27, 0.22, 0.55
"""A cell's width and height in inches, and how much smaller it is with few rows."""
BLOCK_GAP = 0.22
VALUE_LETTERS = 23
"""Letters after which a value is cut: enough for two dates."""
MOST_BLOCKS = 12
SCALE = ("#EEF3FA", "#8FB0D9", "#3F6DA8", "#17315C")
"""From never missing to always missing: one hue, so that only lightness matters."""
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

"""The picture of a description: what is missing together, over steps, and by the values of other features."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from pathlib import Path

from missmdp.data.description.description import Description
from missmdp.data.description.heat import MOST_BLOCKS, draw_by_value
from missmdp.data.description.panels import draw_patterns, draw_steps
from missmdp.model.picture import check_picture_name, draw_text, save_picture, shortened

__all__ = ["draw_description"]

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

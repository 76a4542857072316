"""Where things go in charts of rows: beside each other on a page, below each other on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from missmdp.experiments.report.svg import Drawing, fitted, text_width, wrapped

__all__ = ["RowLayout", "RowText"]

_STACKED_BELOW = 500.0
"""Width below which labels stand above their rows."""
_GAP = 12.0
_LEAST_PLOT = 240.0
"""What the plot keeps where labels are long."""
_MOST_FIGURE = 0.34
"""The part of the width that figures may take."""
_LINE = 15.0


@dataclass(frozen=True)
class RowText:
    """What is written in a row: its label, the figure, and what the figure becomes where there is little room."""

    label: str
    figure: str
    short: str | None = None


@dataclass(frozen=True)
class RowLayout:
    """The columns of a chart of rows: label, plot, figure; or label and figure above the plot."""

    width: float
    start: float
    end: float
    """Where the plot is."""
    stacked: bool
    short: bool = False
    """Whether figures are short, in all rows, since in one there is no room for more."""

    @classmethod
    def of(cls, width: float, texts: Sequence[RowText]) -> RowLayout:
        """Return the layout for these texts."""
        if width < _STACKED_BELOW:
            full = max(
                (text_width(text.label) + _GAP + text_width(text.figure) for text in texts), default=0.0
            )
            return cls(width, 8.0, width - 8.0, stacked=True, short=full > width)
        figures = max((text_width(text.figure) for text in texts), default=0.0)
        labels = max((text_width(text.label) for text in texts), default=0.0)
        right = min(figures, _MOST_FIGURE * width) + _GAP
        left = min(labels, width - right - _GAP - _LEAST_PLOT) + _GAP
        return cls(width, left, width - max(right, 20.0), stacked=False)

    def figure(self, text: RowText) -> str:
        """Return the figure as it is shown."""
        if not self.stacked:
            return fitted(text.figure, self.width - self.end - _GAP)
        return text.short if self.short and text.short is not None else text.figure

    def lines(self, text: RowText) -> list[str]:
        """Return the label in one or two lines."""
        room = self.start - _GAP if not self.stacked else self.width - text_width(self.figure(text)) - _GAP
        lines = wrapped(text.label, room)
        return lines if len(lines) < 3 else [lines[0], fitted(" ".join(lines[1:]), room)]

    def height(self, text: RowText) -> float:
        """Return the height of a row."""
        return (42.0 if self.stacked else 25.0) + _LINE * (len(self.lines(text)) - 1)

    @property
    def heading(self) -> float:
        """The height of a heading."""
        return 28.0

    def middle(self, top: float, bottom: float) -> float:
        """Return the height at which the marks of a row are."""
        return bottom - 14.0 if self.stacked else (top + bottom) / 2

    def bands(self, rows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """Return where grid lines go, so that they cross no letters: along rows (top, bottom), or their marks."""
        if self.stacked:
            return [(self.middle(*row) - 9.0, self.middle(*row) + 9.0) for row in rows]
        merged: list[tuple[float, float]] = []
        for top, bottom in rows:
            follows = bool(merged) and merged[-1][1] == top
            merged.append((merged.pop()[0] if follows else top, bottom))
        return merged

    def write(self, drawing: Drawing, top: float, bottom: float, text: RowText, style: str = "") -> None:
        """Write a row's label and figure."""
        lines = self.lines(text)
        first = top + 15.0 if self.stacked else (top + bottom - _LINE * (len(lines) - 1)) / 2 + 4.5
        for position, line in enumerate(lines):
            drawing.text(0.0, first + _LINE * position, line, style, full=_hint(text.label, lines))
        shown, baseline = self.figure(text), first if self.stacked else (top + bottom) / 2 + 4.5
        drawing.text(
            self.width,
            baseline,
            shown,
            f"value {style}".strip(),
            anchor="end",
            full=_hint(text.figure, [shown]),
        )

    def write_heading(self, drawing: Drawing, top: float, text: str) -> None:
        """Write a heading over rows; bold letters are a little wider."""
        drawing.text(0.0, top + 20.0, fitted(text, self.width / 1.06), "strong", full=text)


def _hint(whole: str, lines: Sequence[str]) -> str | None:
    """Return what was to be shown, where something of it is not."""
    return None if " ".join(lines).replace("\u00a0", " ") == whole.replace("\u00a0", " ") else whole

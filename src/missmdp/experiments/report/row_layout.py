"""Where things go in charts of rows: beside each other on a page, below each other on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from missmdp.experiments.report.svg import Drawing, fitted, text_width

__all__ = ["RowLayout"]

_STACKED_BELOW = 500.0
"""Width below which labels stand above their rows."""
_GAP = 12.0
_LEAST_PLOT = 200.0
"""What the plot keeps where labels are long."""


@dataclass(frozen=True)
class RowLayout:
    """The columns of a chart of rows: label, plot, figure; or label and figure above the plot."""

    width: float
    start: float
    end: float
    """Where the plot is."""
    stacked: bool

    @classmethod
    def of(cls, width: float, labels: Sequence[str], texts: Sequence[str]) -> RowLayout:
        """Return the layout for these labels and figures."""
        if width < _STACKED_BELOW:
            return cls(width, 8.0, width - 8.0, stacked=True)
        right = min(max(map(text_width, texts), default=0.0), 0.34 * width) + _GAP
        left = min(max(map(text_width, labels), default=0.0), width - right - _LEAST_PLOT) + _GAP
        return cls(width, left, width - max(right, 20.0), stacked=False)

    @property
    def row(self) -> float:
        """The height of a row."""
        return 42.0 if self.stacked else 25.0

    @property
    def heading(self) -> float:
        """The height of a heading."""
        return 28.0

    def middle(self, top: float) -> float:
        """Return the height at which a row's marks are."""
        return top + (28.0 if self.stacked else 12.5)

    def bands(self, tops: Sequence[float]) -> list[tuple[float, float]]:
        """Return where grid lines go, so that they cross no letters: along rows, or along the marks of each."""
        if self.stacked:
            return [(self.middle(top) - 9.0, self.middle(top) + 9.0) for top in tops]
        merged: list[tuple[float, float]] = []
        for top in tops:
            follows = bool(merged) and merged[-1][1] == top
            start = merged.pop()[0] if follows else top
            merged.append((start, top + self.row))
        return merged

    def write(
        self, drawing: Drawing, top: float, label: str, text: str, style: str = "", short: str | None = None
    ) -> None:
        """Write a row's label and figure; `short` is what the figure becomes where there is no room for both."""
        if self.stacked:
            if short is not None and text_width(label) + text_width(text) + _GAP > self.width:
                text = short
            room = self.width - text_width(text) - (_GAP if text else 0.0)
            drawing.text(0.0, top + 15.0, fitted(label, room), style, full=label)
            drawing.text(self.width, top + 15.0, text, f"value {style}".strip(), anchor="end")
            return
        baseline = top + 17.0
        drawing.text(0.0, baseline, fitted(label, self.start - _GAP), style, full=label)
        room = self.width - self.end - _GAP
        shown = fitted(text, room)
        drawing.text(self.width, baseline, shown, f"value {style}".strip(), anchor="end", full=text)

    def write_heading(self, drawing: Drawing, top: float, text: str) -> None:
        """Write a heading over rows."""
        drawing.text(0.0, top + 20.0, fitted(text, self.width / 1.06), "strong", full=text)

"""What all pictures share: text, boxes, and files that are the same bytes for the same picture."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import io
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from missmdp.errors import MissMDPError
from missmdp.model.archive import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["INK", "check_picture_name", "draw_box", "draw_text", "save_picture", "shortened"]

INK = "#333333"
"""The colour of text and thin lines."""
OPTIONS: dict[str, dict[str, Any]] = {
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": None}},
    ".png": {"format": "png", "metadata": {"Software": None}, "dpi": 200},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}
"""By the file's ending; without dates and versions, so that the same picture gives the same file."""

_LOCK = threading.Lock()
"""matplotlib's settings belong to the whole process."""


def check_picture_name(path: Path) -> None:
    """Raise `MissMDPError` unless the file's ending is one that we can draw; call it before long work."""
    if path.suffix.lower() not in OPTIONS:
        raise MissMDPError(f"{path}: a picture's name must end in {', '.join(OPTIONS)}")


def draw_text(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write text, centred and in ink unless `style` says otherwise; dollar signs are dollar signs."""
    full: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "parse_math": False, **style}
    axes.text(x, y, text, **full)


def draw_box(axes: Axes, x: float, y: float, width: float, height: float, colour: str, **style: Any) -> None:
    """Fill a rectangle that has a corner at (x, y)."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, linewidth=0, **style))


def shortened(text: str, letters: int) -> str:
    """Return a text as it is, or its two ends if it has too many letters; names often differ in the end."""
    if len(text) <= letters:
        return text
    ending = (letters - 1) // 2
    return f"{text[: letters - 1 - ending]}…{text[len(text) - ending :]}"


def save_picture(figure: Figure, path: Path) -> Path:
    """Write a figure to an SVG, PNG or PDF file, at once or not at all, and return its path."""
    import matplotlib as mpl

    check_picture_name(path)
    buffer = io.BytesIO()
    with (
        _LOCK,
        mpl.rc_context({"svg.hashsalt": "missmdp", "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        # Letters that the font lacks become boxes; the rest of the picture is still worth having.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(buffer, **OPTIONS[path.suffix.lower()])
    write_atomically(path, buffer.getvalue())
    return path

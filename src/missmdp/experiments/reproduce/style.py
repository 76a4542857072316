"""What the pictures of a run share: one colour and mark per learner, names for people, plain axes."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from missmdp.experiments.reproduce.cells import TOLD, learner_names, registered
from missmdp.model.picture import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUIET, FAINT = "#6B6B6B", "#E4E4E4"
"""Of what stands beside learners, and of lines that guide the eye."""
SMALL = 8.0
"""Size of letters."""
_MARKS = {"triangle": "^", "circle": "o", "square": "s", "hexagon": "h", "wedge": "v"}
"""Shape of a mark on pages → in pictures."""


def _policies() -> dict[str, str]:
    plain = [name for name in learner_names() if not name.endswith(TOLD)]
    names = sorted(learner_names(), key=lambda name: plain.index(name.removesuffix(TOLD)))
    return {
        "optimal": "optimal",
        **{name: name.replace(TOLD, ", m-graph") for name in names},
        "prior": "prior",
        "ppo-memory": "PPO, memory",
        "ppo": "PPO",
        "pomcp": "POMCP",
        "random": "random",
    }


POLICIES = _policies()
"""Policies in the order in which they are shown, and what they are called."""
SHAPES = {
    **{name: "diamond" if name.endswith(TOLD) else registered(name).shape for name in learner_names()},
    "optimal": "diamond",
    "prior": "ring",
    "random": "cross",
}
"""Of marks on pages. People with any kind of colour vision tell learners apart, since marks differ too."""
COLOURS = {name: registered(name).colour for name in learner_names()}
"""Of learners; as on pages."""
MARKS = {
    name: "P" if name.endswith(TOLD) else _MARKS.get(registered(name).shape, "D") for name in learner_names()
}
"""Of learners in pictures."""

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int) -> str:
    """Return a power of ten."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def size_text(size: int) -> str:
    """Return a dataset's size: 10, 50, 10², 5·10³."""
    digits = str(size)
    factor = digits.rstrip("0")
    exponent = len(digits) - len(factor)
    if exponent < 2:
        return digits
    return power(exponent) if factor == "1" else f"{factor}·{power(exponent)}"


def plain_axes(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """Take away what is not data."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#9A9A9A")
    axes.tick_params(colors=INK, labelsize=SMALL, length=2.5)
    axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def write_title(axes: Axes, title: str, below: str) -> None:
    """Write a title above axes, and a quiet line between the two."""
    axes.annotate(
        below,
        (0.5, 1.0),
        xytext=(0, 3),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        fontsize=SMALL,
        color=QUIET,
    )
    axes.set_title(title, fontsize=SMALL + 1.5, color=INK, pad=15, fontweight="bold")


def draw_key(figure: Figure, entries: Sequence[Any], columns: int | None = None) -> None:
    """Draw one key for all panels, above them, row by row."""
    columns = columns or len(entries)
    figure.legend(
        handles=[entry for column in range(columns) for entry in entries[column::columns]],
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=SMALL + 0.5,
        labelcolor=INK,
        handlelength=2.1,
        columnspacing=1.5,
    )

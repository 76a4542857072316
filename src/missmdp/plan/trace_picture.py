"""The picture of a search: bounds over time, and their gap below on a logarithmic axis."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from missmdp.errors import MissMDPError
from missmdp.model.picture import INK, check_picture_name, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from missmdp.plan.trace import Trace

__all__ = ["draw_trace"]

LOWER, UPPER, BETWEEN = "#6C8EBF", "#B5473C", "#EEEEEE"


def draw_trace(trace: Trace, path: Path, *, title: str | None = None) -> Path:
    """Draw a trace into an SVG, PNG or PDF file and return its path; the same trace gives the same file."""
    check_picture_name(path)
    if not len(trace):
        raise MissMDPError(f"{path}: nothing to draw, the trace has no rows")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_bounds(above, trace)
    _draw_gap(below, trace)
    if title:
        figure.suptitle(title, fontsize=11, color=INK, parse_math=False)
    return save_picture(figure, path)


def _draw_bounds(axes: Axes, trace: Trace) -> None:
    axes.fill_between(trace.seconds, trace.lower, trace.upper, step="post", color=BETWEEN, linewidth=0)
    axes.step(trace.seconds, trace.upper, where="post", color=UPPER, label="upper bound")
    axes.step(trace.seconds, trace.lower, where="post", color=LOWER, label="lower bound")
    axes.set_ylabel("value at the start", color=INK)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)
    _plain(axes)


def _draw_gap(axes: Axes, trace: Trace) -> None:
    from matplotlib.ticker import LogFormatter

    share = 100.0 * trace.relative_gap
    if (np.isfinite(share) & (share > 0.0)).any():
        axes.step(trace.seconds, np.where(share > 0.0, share, np.nan), where="post", color=INK)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.4)))
        axes.tick_params(which="minor", colors=INK, labelsize=8.5)
        axes.set_ylabel("relative gap (%)", color=INK)
    else:
        # No logarithm of zero: where the lower bound is 0, or the gap has closed, the gap itself.
        axes.step(trace.seconds, trace.gap, where="post", color=INK)
        axes.set_ylabel("gap", color=INK)
    axes.set_xlabel("seconds", color=INK)
    _plain(axes)


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)

"""The page and the picture of the study `dynamics`."""

# pyright: reportUnknownMemberType=false
# matplotlib's keyword arguments are untyped.

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from missmdp.experiments.reproduce.style import QUIET, SMALL, draw_key, plain_axes, size_text
from missmdp.experiments.reproduce.summary import ratio_of_means
from missmdp.experiments.studies.study import Rows
from missmdp.model.picture import INK, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = """# Dynamics learned from the log alone

`JointEM` learns T, b₀ and M from a log with gaps. It is told the features, which episodes ended, the discount, and
the reward as a function of state, action and next state; nothing else. The data come from
uniformly random behaviour.

```
missmdp reproduce --study dynamics -o results    # hours; finished cells are kept, and the same command resumes
python docs/make.py results results              # puts the tables and the figure into this page
```

## How close it comes

- *TV of T̂*: total variation between T̂(· | s, a) and T(· | s, a). It is averaged over actions, and over states by
  how often random behaviour visits them, terminal states left out.
- *ATV of M̂*: total variation between M̂ and M, averaged over reachable states.
- *Normalised value*: the learned model is solved to a gap of 0.1 % or with 24 trials (10,000 steps and predator-mcar:
  8), and the policy acts in the true model. 1 is the value of the optimal policy, 0 that of the prior's; both know T.
- *seconds*: of processor time to fit.

Means ± standard errors over logs. Policies are evaluated on 4,000 episodes with a control variate (1,000,000 steps:
40,000). The policies of a run meet the same random numbers; runs 10 to 19 use those of runs 0 to 9.

![Total variation of T̂ and M̂, and normalised value, over the steps of the log](figures/dynamics.svg)

Normalised values below −1 are not drawn.

<!-- dynamics -->
<!-- end of dynamics -->

## Beside filling in the gaps

Current practice completes the log, and then goes on as if nothing had been missing. Gaps are filled in

- *complete cases*: not at all. Only steps between two complete observations are used. The policy acts on the last
  observation.
- *last observation*: with the value that was last seen in the episode; at first, with the commonest value.
- *commonest value*: with the value of the feature that occurs most often.
- *multiple imputation*: by chained Bayesian regressions, each row by itself (scikit-learn's `IterativeImputer`,
  which draws from the posterior), five times.

Policies fill in what they see in the same way; with multiple imputation they take the action that is best on
average over the five draws. They are learned

- *counted T*: from relative frequencies, by value iteration. Only actions that were tried in a state count there.
- *fitted Q*: by fitted Q-iteration with extremely randomised trees (scikit-learn's `ExtraTreesRegressor`), over the
  codes of the features.

Normalised values after 100,000 steps, from the same five logs for each policy:

<!-- imputation -->
<!-- end of imputation -->

Differences in value (not normalised) between JointEM and the eight others, paired by log. *Significantly*:
Student's 95 % interval over logs excludes 0. *Better than all*: in the mean.

<!-- verdict -->
<!-- end of verdict -->
"""

_COLOURS = ("#A85A00", "#0B62A6", "#00745A", "#8A2B62", "#5B4AA8", "#5B5B5B")
_MARKS = ("o", "s", "^", "D", "v", "P")
_LEAST = 1e-5
"""The least total variation that is drawn."""
_LOWEST = -1.0
"""Normalised values below are not drawn."""


def draw_dynamics_figure(found: Mapping[str, Rows], folder: Path) -> list[Path]:
    """Draw total variation and normalised values over the steps of logs; nothing if there are none."""
    learning = found.get("dynamics-learning", [])
    values = [row for row in found.get("dynamics-values", []) if row["policy"] == "JointEM"]
    if not learning:
        return []
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(8.6, 3.3))
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.04)
    panels = figure.subplots(1, 3)
    entries: list[Line2D] = []
    benchmarks = list(dict.fromkeys(row["benchmark"] for row in learning))
    for benchmark, colour, mark in zip(benchmarks, _COLOURS, _MARKS, strict=False):
        own = [row for row in learning if row["benchmark"] == benchmark]
        worth = [row for row in values if row["benchmark"] == benchmark]
        curves = (_means(own, "tv"), _means(own, "atv"), _ratios(worth))
        for axes, curve in zip(panels, curves, strict=True):
            axes.plot(curve.keys(), curve.values(), color=colour, marker=mark, markersize=4, linewidth=1.2)
        entries.append(
            Line2D([], [], color=colour, marker=mark, markersize=4, linewidth=1.2, label=benchmark)
        )
    sizes = sorted({int(row["steps"]) for row in learning})
    titles = ("TV of T̂, by visits", "ATV of M̂", "normalised value")
    for axes, title in zip(panels, titles, strict=True):
        _finish(axes, title, sizes)
    for axes in panels[:2]:
        axes.set_yscale("log")
        low, high = (math.log10(end) for end in axes.get_ylim())
        axes.set_ylim(10.0 ** math.floor(low), 10.0 ** math.ceil(high))
    panels[2].set_ylim(bottom=max(panels[2].get_ylim()[0], _LOWEST))
    panels[2].axhline(1.0, color=QUIET, linewidth=0.9, zorder=1.5)
    draw_key(figure, entries)
    return [save_picture(figure, folder / "dynamics.svg")]


def _finish(axes: Axes, title: str, sizes: list[int]) -> None:
    plain_axes(axes)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [size_text(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("steps", color=INK, fontsize=SMALL)
    axes.set_title(title, color=INK, fontsize=SMALL + 1)


def _by_size(found: Rows) -> dict[int, Rows]:
    groups: dict[int, Rows] = {}
    for row in sorted(found, key=lambda row: int(row["steps"])):
        groups.setdefault(int(row["steps"]), []).append(row)
    return groups


def _means(found: Rows, name: str) -> dict[int, float]:
    return {size: max(float(_column(rows, name).mean()), _LEAST) for size, rows in _by_size(found).items()}


def _ratios(found: Rows) -> dict[int, float]:
    ratios: dict[int, float] = {}
    for size, rows in _by_size(found).items():
        value, optimal, prior = (_column(rows, name) for name in ("value", "optimal", "prior"))
        ratio = ratio_of_means(value - prior, optimal - prior) if len(rows) > 1 else None
        if ratio is not None:
            ratios[size] = ratio.mean
    return ratios


def _column(rows: Rows, name: str) -> NDArray[np.float64]:
    return np.array([float(row[name]) for row in rows])

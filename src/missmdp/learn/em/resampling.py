"""The bootstrap: the log drawn anew, and M fitted to each drawing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit, Maximised, iterate
from missmdp.progress import show_progress

__all__ = ["FEWEST_EPISODES", "resampled_fits", "units_of"]

FEWEST_EPISODES = 20
"""With fewer, pieces between full observations are drawn instead: given where they begin, they are independent."""

_MOST_ITERATIONS = 100


def units_of(histories: Histories) -> str:
    """Return what is drawn: "episodes", or "pieces" of history where there are few episodes."""
    return "episodes" if len(np.unique(histories.piece_episode)) >= FEWEST_EPISODES else "pieces"


def resampled_fits(
    histories: Histories,
    fit: EMFit,
    draws: int,
    seed: int,
    threads: int | None = None,
    progress: bool | None = None,
) -> Iterator[Maximised]:
    """Yield M fitted to logs that are drawn from the log with replacement; the structure stays as it is.

    Parameters
    ----------
    histories
        The log.
    fit
        M fitted to it: where each fit starts.
    draws
        How many logs to draw.
    seed
        Decides what is drawn.
    progress
        Whether to show progress; by default on a terminal.
    """
    generator = np.random.default_rng(seed)
    episodes, owner = np.unique(histories.piece_episode, return_inverse=True)
    whole = units_of(histories) == "episodes"
    size = len(episodes) if whole else len(histories.end_node)
    with show_progress("Drawing the log anew", draws, enabled=progress) as advance:
        for _ in range(draws):
            times: NDArray[np.float64] = np.bincount(
                generator.integers(size, size=size), minlength=size
            ).astype(np.float64)
            drawn = histories.reweighted(times[owner.reshape(-1)] if whole else times)
            yield iterate(
                drawn, fit.model, fit.table, tolerance=1e-6, max_iterations=_MOST_ITERATIONS, threads=threads
            ).maximised
            advance()

"""Bounds from full observation and from one action for ever, for sites too closely tied together for a grid.

If all values are known, gaps do not matter and nothing needs to be told: only values tie sites together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from missmdp.plan.factored.cores import MOST_IN_CORE, Core, Label, Operator, TooTiedError, empty_core, one_row
from missmdp.plan.factored.grid import Grid, Tensor, Ties
from missmdp.plan.factored.parts import Move, Parts
from missmdp.plan.factored.team import Team
from missmdp.plan.stopping import Stopwatch


class Seen(Grid):
    """A grid of corners only, built without what moves tell.

    Parameters
    ----------
    parts
        The model.
    clock
        When to stop while it is made.
    team
        Threads to use; one if not given.

    Raises
    ------
    TooTiedError
        If one use of a move would take too much memory.
    """

    def __init__(self, parts: Parts, clock: Stopwatch, team: Team | None = None) -> None:
        corners = [np.eye(size) for size in parts.sizes]
        super().__init__(
            Ties(parts, clock, told=False), corners, [np.zeros(len(rows)) for rows in corners], team=team
        )

    def _of_move(self, move: Move, rows: Sequence[Tensor]) -> Operator:
        parts, n_sites = self.parts, self.parts.n_sites
        goes_on = parts.goes_on(move.after)
        # Bonds: values now, next values.
        cores = [Core(-1, sign.sites, sign.table) for sign in move.signs]
        cores += [Core(-1, tuple(n_sites + k for k in part.sites), part.table) for part in goes_on]
        for site, kernel in enumerate(move.kernels):
            self.ties.clock.check()
            empty_core(*kernel.table.shape)  # whether it fits
            cores.append(Core(site, kernel.sites, one_row(kernel.table)))
        now = [Label(site, np.arange(size), size) for site, size in enumerate(parts.sizes)]
        after = [label._replace(bond=n_sites + label.bond) for label in now]
        operator = Operator(cores, parts.sizes, now, after)
        if operator.peak() > max(float(MOST_IN_CORE), 8.0 * math.prod(map(float, parts.sizes))):
            raise TooTiedError
        return operator

    def _starts(self) -> Iterator[tuple[int, Tensor, Operator]]:
        for scene, belief in enumerate(self.parts.beginning):
            if belief.any():
                cores = [Core(site, (), np.eye(size)) for site, size in enumerate(self.parts.sizes)]
                yield scene, belief, Operator(cores, self.parts.sizes)

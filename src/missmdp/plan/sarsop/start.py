"""Where a search begins: every class a point, every blind policy a vector, and the start."""

from __future__ import annotations

import numpy as np

from missmdp._kernels.sarsop.lower import start_blind
from missmdp._kernels.sarsop.points import add_beliefs
from missmdp._kernels.sarsop.upper import start_corners
from missmdp.plan.sarsop.lower import look_at_all
from missmdp.plan.sarsop.search import BUDGET, Search

__all__ = ["set_up"]


def set_up(search: Search) -> None:
    """Give a search its first points and vectors, with bounds that hold everywhere; takes next to no time."""
    compiled, pools = search.compiled, search.pools
    start_corners(search.model, pools.points, compiled.highest, pools.counters)
    start_blind(search.model, pools.vectors, compiled.lowest, pools.counters)
    look_at_all(search, 0.0)
    support = np.flatnonzero(compiled.start)
    if len(support) > 1:
        search.root = pools.n_points
        ends = np.array([0, len(support)])
        beliefs = support.astype(np.int32), compiled.start[support]
        while add_beliefs(*search.lower_arrays(), ends, *beliefs, 0, BUDGET) < 0:
            pools.grow()
        look_at_all(search, 0.0)

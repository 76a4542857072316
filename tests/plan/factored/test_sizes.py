"""What grids and memories take is no less than what their arrays do."""

from __future__ import annotations

import numpy as np
import pytest

from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Grid, Ties
from missmdp.plan.factored.memory import Memory
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.factored.sizes import Sizes
from random_factored import random_factored


def in_operators(operators) -> int:
    """Return the bytes of the tables that belong to a site."""
    return sum(core.table.nbytes for one in operators for core in one.cores if core.site >= 0)


@pytest.mark.parametrize("seed", range(12))
def test_no_less_than_what_is_made(seed):
    parts = Parts(random_factored(seed))
    try:
        ties = Ties(parts)
    except TooTiedError:
        pytest.skip("too much is tied together")
    sizes, rng = Sizes(ties), np.random.default_rng(seed)
    rows = [np.vstack([np.eye(n), rng.dirichlet(np.ones(n), size=3)]) for n in parts.sizes]
    grid = Grid(ties, rows, [np.zeros(len(row)) for row in rows])
    taken = in_operators(operator for _, operator in grid.moves)
    taken += sum(array.nbytes for array in (*grid.values, *grid.rewards, *grid.chosen))
    assert taken <= sizes.grid(grid.shape)
    usual = [np.full(n, 1.0 / n) for n in parts.sizes]
    actions = [np.zeros(grid.shape, dtype=np.int16) for _ in parts.scenes]
    memory = Memory(parts, rows, usual, actions)
    policy = MemoryPolicy.from_memory(parts.model, memory)
    taken = in_operators(map(memory._operator, range(len(memory.moves))))
    taken += sum(array.nbytes for array in (*memory.values, *memory.rewards, *policy.steps))
    assert taken <= sizes.memory(memory.shape, memory.nodes)


def test_what_fits_takes_no_more_than_there_is():
    ties = Ties(Parts(random_factored(13)))
    sizes = Sizes(ties)
    for nbytes in (1e5, 1e7, 1e9):
        most = sizes.most_entries(nbytes)
        length = (most / sizes.n_scenes) ** (1.0 / ties.parts.n_sites)
        tensors = sizes.per_entry * most
        assert tensors <= nbytes * (1.0 + 1e-9)
        moves = 4000.0 * len(ties.moves)
        assert sizes.grid([length] * ties.parts.n_sites) <= 2.0 * nbytes + moves

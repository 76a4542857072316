"""RockSample (Smith and Simmons, 2004), the usual large POMDP: a rover, and rocks that may be worth a visit.

A rover on an n × n map knows where it is and where k rocks are, but not which of them are good: each is with
probability ½. It moves (walls stop it), samples the rock where it stands (+10 if good, which makes it bad, −10 if bad;
nothing happens where there is none), or checks a rock with a sensor whose accuracy falls with the distance d:
(1 + 2^(−d/20))/2. Leaving to the east pays 10 and ends the episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.pomdp import POMDP

DISCOUNT = 0.95
HALF_EFFICIENCY = 20.0
"""The distance at which a check is right with probability ¾."""
PRIZE = 10.0
"""For a good rock, or for leaving; a bad rock costs as much."""
MOVES = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}
NOTHING, GOOD, BAD = range(3)
READINGS = ("nothing", "good", "bad")


class Map(NamedTuple):
    """Where the rover starts and where the rocks are, as (x, y) with 0 ≤ x, y < size."""

    size: int
    start: tuple[int, int]
    rocks: Sequence[tuple[int, int]]


ROCKSAMPLE_7_8 = Map(7, (0, 3), ((2, 0), (0, 1), (3, 1), (6, 3), (2, 4), (3, 4), (5, 5), (1, 6)))
"""12,545 states; rocks where the literature has them."""
ROCKSAMPLE_11_11 = Map(
    11,
    (0, 5),
    ((0, 3), (0, 7), (1, 8), (2, 4), (3, 3), (3, 8), (4, 3), (5, 8), (6, 1), (9, 3), (9, 9)),
)
"""247,809 states; rocks where the literature has them."""


def rocksample(world: Map, *, position_seen: bool = True) -> POMDP:
    """Return RockSample on a map.

    Parameters
    ----------
    world
        The map.
    position_seen
        Whether observations say where the rover is. It knows that in any case, since it moves for certain: the
        problem is the same, with fewer observations.
    """
    size, n_rocks = world.size, len(world.rocks)
    n_cells, n_goods = size * size, 1 << n_rocks
    live = n_cells * n_goods
    cell, goods = np.divmod(np.arange(live), n_goods)
    x, y = cell % size, cell // size
    reward = np.zeros((live + 1, 5 + n_rocks))
    targets: list[NDArray[np.int64]] = []
    for a, (dx, dy) in enumerate(MOVES.values()):
        there = np.clip(y + dy, 0, size - 1) * size + np.clip(x + dx, 0, size - 1)
        leaves = x + dx == size
        targets.append(np.where(leaves, live, there * n_goods + goods))
        reward[:-1, a] = PRIZE * leaves
    rock = np.full(n_cells, -1)
    for i, (at_x, at_y) in enumerate(world.rocks):
        rock[at_y * size + at_x] = i
    bit = np.where(rock[cell] >= 0, 1 << np.maximum(rock[cell], 0), 0)
    is_good = goods & bit > 0
    reward[:-1, 4] = PRIZE * np.where(is_good, 1.0, np.where(bit > 0, -1.0, 0.0))
    targets.append(np.arange(live) - np.where(is_good, bit, 0))
    targets += [np.arange(live)] * n_rocks
    initial = np.zeros(live + 1)
    first = (world.start[1] * size + world.start[0]) * n_goods
    initial[first : first + n_goods] = 1.0 / n_goods
    unchecked = [_seen(np.zeros(live), np.zeros(live, dtype=np.int64), cell, n_cells, position_seen)] * 5
    checked = [
        _seen(_accuracy(x, y, at), np.where(goods >> i & 1, GOOD, BAD), cell, n_cells, position_seen)
        for i, at in enumerate(world.rocks)
    ]
    return POMDP(
        states=[*zip(x.tolist(), y.tolist(), goods.tolist(), strict=True), "left"],
        actions=[*MOVES, "sample", *(f"check {i}" for i in range(n_rocks))],
        observations=[
            *((c % size, c // size, r) for c in range(n_cells if position_seen else 1) for r in READINGS),
            "left",
        ],
        transition=tuple(_moves(target, live + 1) for target in targets),
        reward=reward,
        observation=(*unchecked, *checked),
        initial=initial,
        terminal=np.arange(live + 1) == live,
        discount=DISCOUNT,
        observe_initial=False,
    )


def _accuracy(x: NDArray[np.int64], y: NDArray[np.int64], rock: tuple[int, int]) -> NDArray[np.float64]:
    distance = np.hypot(x - rock[0], y - rock[1])
    return 0.5 + 0.5 * 2.0 ** (-distance / HALF_EFFICIENCY)


def _moves(target: NDArray[np.int64], n_states: int) -> sparse.csr_array:
    """Return a transition matrix where what follows is certain; the last state is terminal."""
    return sparse.csr_array(
        (np.ones(n_states), np.append(target, n_states - 1), np.arange(n_states + 1)),
        shape=(n_states, n_states),
    )


def _seen(
    accuracy: NDArray[np.float64],
    reading: NDArray[np.int64],
    cell: NDArray[np.int64],
    n_cells: int,
    position_seen: bool,
) -> sparse.csr_array:
    """Return O where a reading is made with some accuracy, or where `reading` is `NOTHING` everywhere."""
    live = len(cell)
    n_observations = len(READINGS) * (n_cells if position_seen else 1) + 1
    block = len(READINGS) * cell if position_seen else np.zeros(live, dtype=np.int64)
    states = np.arange(live)
    if (reading == NOTHING).all():
        row, column, prob = states, block, np.ones(live)
    else:
        row = np.concatenate([states, states])
        column = np.concatenate([block + reading, block + GOOD + BAD - reading])
        prob = np.concatenate([accuracy, 1.0 - accuracy])
    return sparse.csr_array(
        (
            np.append(prob, 1.0),
            (np.append(row, live), np.append(column, n_observations - 1)),
        ),
        shape=(live + 1, n_observations),
    )

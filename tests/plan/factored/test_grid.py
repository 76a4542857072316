"""Grids: with corners only they see everything; one action for ever; bounds while values still move."""

from __future__ import annotations

import math

import numpy as np
import pytest

from missmdp.plan.factored.cores import TooTiedError
from missmdp.plan.factored.grid import Grid, Ties
from missmdp.plan.factored.parts import Parts
from missmdp.plan.stopping import Stop, Stopwatch
from oracles.factored import Ticks, blind_values, seen_value
from random_factored import random_factored


def corners(seed: int, values: float = 0.0) -> Grid:
    ties = Ties(Parts(random_factored(seed)))
    eyes = [np.eye(size) for size in ties.parts.sizes]
    start = [np.full(ties.parts.sizes, values) for _ in ties.parts.scenes]
    return Grid(ties, eyes, [np.zeros(len(eye)) for eye in eyes], start)


@pytest.mark.parametrize("seed", range(20))
def test_corners_are_full_observation(seed):
    model = random_factored(seed)
    try:
        grid = corners(seed)
    except TooTiedError:
        pytest.skip("too much is tied together")
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-12) / (1.0 - model.discount)
    wanted = seen_value(model)
    found = grid.solve(Stopwatch(None), 1e-9 * scale)
    assert wanted - 1e-11 * scale <= found <= wanted + 2e-9 * scale
    blind = blind_values(model)
    for action, value in enumerate(blind):
        found = grid.blind(action, Stopwatch(None), 1e-5 * scale)
        assert value - 2e-5 * scale <= found <= value + 1e-11 * scale


@pytest.mark.parametrize("seed", [3, 13, 18, 32])
def test_one_action_for_ever_is_a_bound_after_any_number_of_sweeps(seed):
    model = random_factored(seed)
    assert not model.mdp.terminal.any()
    grid = corners(seed)
    scale = float(np.abs(model.mdp.reward).max()) / (1.0 - model.discount)
    for action, value in enumerate(blind_values(model)):
        for sweeps in (1, 2, 3, 5):
            found = grid.blind(action, Stopwatch(None), 0.0, max_sweeps=sweeps)
            assert found <= value + 1e-11 * scale


@pytest.mark.parametrize("seed", [3, 13, 18, 32])
def test_one_action_for_ever_takes_no_more_sweeps_than_it_needs(seed):
    grid, limits = corners(seed), Ticks(10**9)
    scale = float(np.abs(grid.parts.reward).max()) / (1.0 - grid.parts.discount)
    grid.blind(0, limits, 1e-3 * scale)
    moves = sum(move.action == 0 for move, _ in grid.moves)
    needed = math.log(2e3) / -math.log(grid.parts.discount) + 2.0
    assert 10**9 - limits.ticks <= needed * moves


@pytest.mark.parametrize("seed", [3, 13, 18, 32])
@pytest.mark.parametrize("begin", [-1.0, 1.0])
def test_interrupted_grids_are_bounds(seed, begin):
    model = random_factored(seed)
    assert not model.mdp.terminal.any()
    scale = float(np.abs(model.mdp.reward).max()) / (1.0 - model.discount)
    wanted = seen_value(model)
    for ticks in range(0, 60, 3):
        grid = corners(seed, 10.0 * begin * scale)
        try:
            grid.solve(Ticks(ticks), 1e-9 * scale)
        except Stop:
            if math.isinf(grid.rest):
                continue
        assert grid.bound() >= wanted - 1e-9 * scale


def test_gaps_with_too_many_patterns_are_refused_before_they_are_listed(monkeypatch):
    def never(gaps):
        raise AssertionError

    parts = Parts(random_factored(0))
    monkeypatch.setattr("missmdp.plan.factored.grid.MOST_TERMS", 0)
    monkeypatch.setattr("missmdp.plan.factored.grid.told_by_gaps", never)
    with pytest.raises(TooTiedError):
        Ties(parts)

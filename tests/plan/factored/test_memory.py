"""Memories: their value against one equation per state and nodes, interrupted or not; where nodes move to."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from missmdp.plan.factored import mixtures
from missmdp.plan.factored.memory import Memory
from missmdp.plan.factored.nodes import near
from missmdp.plan.factored.parts import Parts
from missmdp.plan.factored.policy import MemoryPolicy
from missmdp.plan.stopping import Stop, Stopwatch
from oracles.factored import Ticks, memory_value
from random_factored import random_factored

SEEDS = [seed for seed in range(400) if random_factored(seed).n_states <= 12][:6]
"""Of models that are small enough for the equations."""


def random_memory(seed: int) -> Memory:
    """Return a controller that does anything at three nodes or so per site."""
    rng = np.random.default_rng(seed)
    parts = Parts(random_factored(seed))
    beliefs = [np.vstack([np.eye(n), rng.dirichlet(np.ones(n), size=1)]) for n in parts.sizes]
    shape = tuple(len(site) for site in beliefs)
    return Memory(
        parts,
        beliefs,
        [rng.dirichlet(np.ones(n)) for n in parts.sizes],
        [rng.integers(parts.n_actions, size=shape).astype(np.int16) for _ in parts.scenes],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_values_are_exact(seed):
    memory = random_memory(seed)
    model = memory.parts.model
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-12) / (1.0 - model.discount)
    wanted = memory_value(MemoryPolicy.from_memory(model, memory))
    assert memory.solve(Stopwatch(None), 1e-10 * scale) == pytest.approx(wanted, abs=1e-9 * scale)
    for what in ("actions", "steps"):
        other = memory.proposed(Stopwatch(None), 0.5, what)
        wanted = memory_value(MemoryPolicy.from_memory(model, other))
        assert other.solve(Stopwatch(None), 1e-10 * scale) == pytest.approx(wanted, abs=1e-9 * scale)


@pytest.mark.parametrize("begin", [-10.0, 10.0])
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_interrupted_memories_are_bounds(seed, begin):
    model = random_factored(seed)
    scale = max(float(np.abs(model.mdp.reward).max()), 1e-12) / (1.0 - model.discount)
    wanted = memory_value(MemoryPolicy.from_memory(model, random_memory(seed)))
    for ticks in range(0, 60, 7):
        memory = random_memory(seed)
        memory.values = [values + begin * scale for values in memory.values]
        try:
            memory.solve(Ticks(ticks), 1e-9 * scale)
        except Stop:
            if math.isinf(memory.rest):
                continue
        assert memory.bound() <= wanted + 1e-9 * scale


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_sums_over_the_values_of_nodes(seed):
    """Nodes that are never met count nothing, and take nothing from others, wherever they are."""
    rng = np.random.default_rng(seed)
    memory = random_memory(seed)
    for _ in range(20):
        met = [rng.random((n, size)) < 0.4 for n, size in zip(memory.nodes, memory.parts.sizes, strict=True)]
        for site in met:
            site[0, 0] = True
        memory.pairs = [np.argwhere(site) for site in met]
        table = rng.random([len(pairs) for pairs in memory.pairs])
        expected = np.zeros(memory.nodes)
        for place in np.ndindex(*table.shape):
            nodes = tuple(pairs[k, 0] for pairs, k in zip(memory.pairs, place, strict=True))
            expected[nodes] += table[place]
        np.testing.assert_allclose(memory._by_nodes(table), expected, rtol=1e-12)


def test_a_changed_memory_promises_nothing_yet():
    memory = random_memory(SEEDS[0])
    memory.solve(Stopwatch(None), 1e-3)
    assert math.isinf(memory.changed(memory.actions, memory.steps).rest)


@pytest.mark.parametrize("seed", range(10))
def test_near(seed):
    rng = np.random.default_rng(seed)
    n_values = int(rng.integers(2, 5))
    nodes = np.vstack([np.eye(n_values), rng.dirichlet(np.ones(n_values), size=3)])
    wanted = np.vstack([rng.dirichlet(np.ones(n_values), size=8), nodes])
    weights = near(nodes, wanted)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0.0).all()
    assert ((weights > 0.0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(weights[8:] @ nodes, nodes, atol=1e-12)
    # A belief that holds all values possible is never taken for one that does not.
    assert (weights[:8, :n_values] == 0.0).all()


def test_nodes_that_are_near_piece_by_piece(monkeypatch):
    rng = np.random.default_rng(4)
    nodes, wanted = np.vstack([np.eye(4), rng.dirichlet(np.ones(4), 9)]), rng.dirichlet(np.ones(4), 30)
    whole = near(nodes, wanted)
    for numbers in (1, 60, 700, 5000):
        monkeypatch.setattr(mixtures, "_AT_A_TIME", numbers)
        np.testing.assert_array_equal(near(nodes, wanted), whole)


def test_many_values_take_little_memory():
    rng = np.random.default_rng(4)
    nodes, wanted = np.eye(50), rng.dirichlet(np.ones(50), 50)
    tracemalloc.start()
    try:
        near(nodes, wanted)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All at once, that would be 50⁴ numbers of 8 bytes.
    assert peak < 1.5 * 8 * 50**4
    assert peak < 120e6

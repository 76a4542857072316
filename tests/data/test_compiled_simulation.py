"""Models as the simulator sees them, against dense tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

import missmdp as mm
from missmdp._kernels.random import draw
from missmdp.data.simulation import compile_policy, compile_simulation, interleaved, row_sampler, seed_words
from missmdp.model.policy import ActionTable, MemorylessPolicy
from oracles.policy_values import World
from random_pomdps import pomdps, tiger
from strategies import missmdps


def rows(sampler, width):
    """Return the distributions of a sampler, shape (rows, width)."""
    table = np.zeros((len(sampler.start) - 1, width))
    for r in range(len(table)):
        inside = slice(sampler.start[r], sampler.start[r + 1])
        np.add.at(table[r], sampler.target[inside], np.diff(sampler.cdf[inside], prepend=0.0))
    return table


def check_dynamics(simulation, world):
    n, n_actions = world.reward.shape
    np.testing.assert_allclose(rows(simulation.initial, n), [world.initial], atol=1e-12)
    moves = rows(simulation.transition, n).reshape(n, n_actions, n)
    np.testing.assert_allclose(moves, world.transition.transpose(1, 0, 2), atol=1e-12)
    np.testing.assert_array_equal(simulation.reward, world.reward)
    np.testing.assert_array_equal(simulation.terminal, world.terminal)
    assert simulation.n_actions == n_actions
    assert (simulation.potential == 0.0).all()
    going_on = ~world.terminal
    np.testing.assert_array_equal(simulation.advantage[going_on], world.reward[going_on])


@given(pomdps())
def test_pomdps(pomdp):
    simulation = compile_simulation(pomdp)
    check_dynamics(simulation, World(pomdp))
    assert simulation.n_watched == len(pomdp.observation)
    shown = rows(simulation.observation, pomdp.n_observations)
    shown = shown.reshape(pomdp.n_states, simulation.n_watched, pomdp.n_observations)
    expected = np.stack([matrix.toarray() for matrix in pomdp.observation], axis=1)
    np.testing.assert_allclose(shown, expected, atol=1e-12)


@given(missmdps())
def test_miss_mdps(model):
    simulation, world = compile_simulation(model), World(model)
    check_dynamics(simulation, world)
    assert simulation.n_watched == 1
    listed = [tuple(z) for z in model.missingness.occurring().observations]
    shown = rows(simulation.observation, len(listed))
    for row, expected in zip(shown, world.seen[0], strict=True):
        np.testing.assert_allclose(row, [expected.get(z, 0.0) for z in listed], atol=1e-12)


@given(missmdps(["mcar"], full=True))
def test_one_draw_hides_the_same_features_in_every_state(model):
    """So that policies which are in different states still share their luck."""
    simulation = compile_simulation(model)
    shown = model.missingness.occurring().observations
    for u in np.linspace(0.0, 0.999, 12):
        patterns = {
            tuple(value is None for value in shown[draw(simulation.observation, s, u)])
            for s in range(model.n_states)
        }
        assert len(patterns) == 1


def test_advantages_follow_from_the_potential():
    model, potential = tiger(), np.array([3.0, -2.0])
    simulation = compile_simulation(model, potential)
    np.testing.assert_array_equal(simulation.potential, potential)
    future = np.stack([matrix @ potential for matrix in model.transition], axis=1)
    np.testing.assert_allclose(
        simulation.advantage, model.reward + model.discount * future - potential[:, None]
    )
    assert simulation.advantage.flags.c_contiguous


def test_matrices_are_interleaved_by_rows():
    matrices = [np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[4.0, 0.0], [5.0, 6.0]])]
    sparse_ones = [sparse.csr_array(m) for m in matrices]
    assert interleaved(sparse_ones).toarray().tolist() == [[1, 2], [4, 0], [0, 3], [5, 6]]
    assert interleaved(sparse_ones[:1]) is sparse_ones[0]


def test_draws_invert_the_cdf():
    table = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0, 0.0]])
    sampler = row_sampler(table)
    for u, expected in ((0.0, 0), (0.1999, 0), (0.2, 2), (0.6999, 2), (0.7001, 3), (1 - 1e-16, 3)):
        assert draw(sampler, 0, u) == expected
        assert draw(sampler, 1, u) == 1


def test_seeds_become_words():
    seed, words = seed_words(5)
    assert seed == 5
    assert words.dtype == np.uint64
    assert words.shape == (2,)
    np.testing.assert_array_equal(words, seed_words(5)[1])
    assert (words != seed_words(6)[1]).all()
    fresh, fresh_words = seed_words(None)
    np.testing.assert_array_equal(seed_words(fresh)[1], fresh_words)


class OwnTable(MemorylessPolicy):
    """A policy of somebody's own, with any table."""

    def __init__(self, row, probabilities):
        self.parts = ActionTable(row, probabilities)

    def probabilities(self, observation, model):
        return self.parts.probabilities[0]

    def table(self, model):
        return self.parts


def test_tables_of_own_policies_are_checked():
    model = mm.load_benchmark("example-1")
    shape, n = model.missingness.probabilities.shape, model.n_actions
    zeros, uniform = np.zeros(shape, dtype=np.int64), np.full((1, n), 1.0 / n)
    compile_policy(OwnTable(zeros, uniform), model)
    for row, probabilities in (
        (zeros + 1, uniform),
        (zeros - 1, uniform),
        (zeros + 2**40, uniform),
        (zeros * 0.5, uniform),
        (zeros[:1], uniform),
        (zeros, np.full((1, n + 5), 1.0 / (n + 5))),
        (zeros, uniform[0]),
        (zeros, uniform * 2.0),
        (zeros, uniform * np.nan),
        (zeros, np.eye(n)[:1] * 2.0 - uniform),
        (zeros, None),
    ):
        with pytest.raises(mm.ModelError):
            compile_policy(OwnTable(row, probabilities), model)

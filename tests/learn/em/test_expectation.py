"""Expectation steps against sums over all hidden paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.data.counts import as_counts
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.histories import prepare_histories
from oracles.expectation import expected_by_paths
from strategies import missmdps, seeds


def random_table(rng: np.random.Generator, blocks: Blocks, n_states: int) -> np.ndarray:
    return rng.dirichlet(np.ones(len(blocks.patterns)), size=n_states).T


@given(missmdps(), seeds())
@settings(max_examples=30, deadline=None)
def test_all_hidden_paths(model, seed):
    rng = np.random.default_rng(seed)
    log = mm.collect(model, 24, seed=seed % 2**31, horizon=4)
    blocks = Blocks.seen_in(model.mdp, as_counts(log).observed)
    table = random_table(rng, blocks, model.n_states)
    found = prepare_histories(log, blocks).expect(table)
    counts, total = expected_by_paths(log, blocks.patterns, table)
    assert found.log_likelihood == pytest.approx(total, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.counts, counts, atol=1e-9)
    assert found.counts.sum() == pytest.approx(log.n_steps)


@pytest.mark.parametrize("name", ["icu-smar", "icu-mnar-unid"])
def test_the_likelihood_of_the_filter(name):
    """Where no state is terminal, the likelihood is that of `log_likelihood`."""
    truth = mm.load_benchmark(name)
    log = mm.collect(truth, 3000, seed=1)
    blocks = Blocks.seen_in(truth.mdp, as_counts(log).observed)
    places = [
        int(np.flatnonzero((truth.missingness.patterns == row).all(axis=1))[0]) for row in blocks.patterns
    ]
    found = prepare_histories(log, blocks).expect(truth.missingness.probabilities.T[places])
    assert found.log_likelihood == pytest.approx(mm.log_likelihood(log, truth).total, rel=1e-12)


def test_threads_change_nothing():
    truth = mm.load_benchmark("predator-mnar-unid")
    log = mm.collect(truth, 20_000, seed=2)
    blocks = Blocks.seen_in(truth.mdp, as_counts(log).observed)
    histories = prepare_histories(log, blocks)
    table = random_table(np.random.default_rng(0), blocks, truth.n_states)
    one, more = histories.expect(table, threads=1), histories.expect(table, threads=3)
    assert one.log_likelihood == more.log_likelihood
    assert np.array_equal(one.counts, more.counts)


def test_equal_pieces_are_counted_once():
    """A log that is repeated has no more nodes, and twice the counts."""
    truth = mm.load_benchmark("icu-smar")
    log = mm.collect(truth, 2000, seed=3, horizon=50)
    twice = mm.Dataset(
        truth.mdp,
        np.concatenate([log.observations] * 2),
        np.concatenate([log.actions] * 2),
        np.concatenate([log.offsets, log.offsets[1:] + log.n_steps]),
        np.concatenate([log.terminated] * 2),
    )
    blocks = Blocks.seen_in(truth.mdp, as_counts(log).observed)
    one, two = prepare_histories(log, blocks), prepare_histories(twice, blocks)
    table = random_table(np.random.default_rng(1), blocks, truth.n_states)
    assert one.n_nodes == two.n_nodes
    np.testing.assert_allclose(two.expect(table).counts, 2.0 * one.expect(table).counts, rtol=1e-9)


def walk() -> mm.FactoredMDP:
    """A walk from 0 to 3, one step at a time, that may stay; 3 is terminal."""
    return mm.FactoredMDP(
        features={"place": range(4)},
        actions=["go"],
        transition=lambda s, a: {s: 0.5, (min(s.place + 1, 3),): 0.5},
        reward=lambda s, a: 0.0,
        initial={(0,): 1.0},
        terminal=lambda s: s.place == 3,
        discount=0.9,
    )


def log_of(mdp: mm.FactoredMDP, *episodes: list[int | None], terminated: bool = False) -> mm.Dataset:
    codes = np.array(
        [[-1 if place is None else place] for episode in episodes for place in episode], dtype=np.int8
    )
    offsets = np.cumsum([0, *map(len, episodes)])
    actions = np.zeros(len(codes), dtype=np.int8)
    actions[offsets[1:] - 1] = -1
    return mm.Dataset(mdp, codes, actions, offsets, np.full(len(episodes), terminated))


def test_that_an_episode_goes_on_is_seen():
    """At the third step the walk may be anywhere but at the end, since a fourth step follows."""
    mdp = walk()
    log = log_of(mdp, [0, 1, None, None, None], terminated=True)
    blocks = Blocks.of(mdp.space.features, [("place",)])
    counts = prepare_histories(log, blocks).expect(np.full((2, 4), 0.5)).counts
    # From 1 the end is reached in exactly three steps by one stay and two goes, the last step a go.
    assert counts[1, 3] == pytest.approx(1.0)
    assert counts[1, 1] == pytest.approx(0.5)
    assert counts[1, 2] == pytest.approx(1.5)


def test_a_log_that_goes_on_after_the_end_is_taken_as_it_is():
    mdp = walk()
    log = log_of(mdp, [2, 3, 3, None])
    blocks = Blocks.of(mdp.space.features, [("place",)])
    histories = prepare_histories(log_of(mdp, [0, 1, 2, 3, 3, None]), blocks)
    assert histories.impossible == 0
    assert histories.expect(np.full((2, 4), 0.5)).counts[1, 3] == pytest.approx(1.0)
    assert prepare_histories(log, blocks).impossible > 0


def test_an_episode_called_terminated_that_is_not():
    """Where no terminal state admits the last observation, the flag says nothing."""
    mdp = walk()
    blocks = Blocks.of(mdp.space.features, [("place",)])
    histories = prepare_histories(log_of(mdp, [0, 1, None, 1], terminated=True), blocks)
    assert histories.impossible == 0
    assert histories.expect(np.full((2, 4), 0.5)).counts[1, 1] == pytest.approx(1.0)


def test_what_cannot_happen_is_left_out():
    mdp = walk()
    log = log_of(mdp, [0, 1, 0, 1], [0, 1, None, 2])
    blocks = Blocks.of(mdp.space.features, [("place",)])
    histories = prepare_histories(log, blocks)
    assert histories.impossible == 1
    counts = histories.expect(np.full((2, 4), 0.5)).counts
    # The rest of the episode is judged anew from where it is known to be.
    assert counts.sum() == pytest.approx(7.0)


def test_observations_of_no_state():
    mdp = mm.FactoredMDP(
        features={"a": range(2), "b": range(2)},
        actions=["go"],
        transition=lambda s, a: {s: 1.0},
        reward=lambda s, a: 0.0,
        initial={(0, 0): 0.5, (1, 1): 0.5},
        discount=0.9,
    )
    log = mm.Dataset(
        mdp,
        np.array([[0, 0], [0, 1]], dtype=np.int8),
        np.array([-1, -1]),
        np.array([0, 1, 2]),
        np.array([False] * 2),
    )
    with pytest.raises(mm.DataError, match="episode 1, step 0: no state of the model can show"):
        mm.DynamicsEM(mdp).fit(log)

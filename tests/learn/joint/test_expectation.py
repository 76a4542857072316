"""Expectation steps for T, b₀ and M together, against sums over all hidden paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.learn.joint.layout import ENDED, OPEN, prepare
from oracles.joint import steps_by_paths
from strategies import missmdps, seeds


@given(missmdps(), seeds())
@settings(max_examples=30, deadline=None)
def test_all_hidden_paths(model, seed):
    rng = np.random.default_rng(seed)
    log = mm.collect(model, 18, seed=seed % 2**31, horizon=4)
    if (log.actions < 0).all():
        return
    prepared = prepare(log, None, ends=True)
    histories, layout = prepared.histories, prepared.histories.layout
    states = layout.states.space
    n, n_actions = len(states), len(log.action_names)
    transition = rng.dirichlet(np.ones(n), size=(n, n_actions))
    initial, ended = rng.dirichlet(np.ones(n)), rng.uniform(0.1, 0.9, size=n)
    table = rng.dirichlet(np.ones(len(layout.blocks.patterns)), size=n).T
    before = layout.state_of[layout.steps.before]
    after = layout.state_of[layout.steps.after]
    blocks = transition[before[:, :, None], layout.steps.action[:, None, None], after[:, None, :]]
    chance = np.where(layout.steps.ending[:, None] == ENDED, ended[after], 1.0 - ended[after])
    blocks = blocks * np.where(layout.steps.ending[:, None] == OPEN, 1.0, chance)[:, None, :]
    first = layout.state_of[layout.starts.seen]
    chance = np.where(layout.starts.ending[:, None] == ENDED, ended[first], 1.0 - ended[first])
    start = initial[first] * np.where(layout.starts.ending[:, None] == OPEN, 1.0, chance)
    found = histories.expect(blocks, start, table)

    place = {tuple(row): i for i, row in enumerate(states.codes.tolist())}
    pattern = {tuple(row): k for k, row in enumerate(layout.blocks.patterns.tolist())}
    moved, began, total = steps_by_paths(
        log,
        lambda s, a, t: transition[place[s], a, place[t]],
        lambda s: initial[place[s]],
        lambda r, s: table[pattern[r], place[s]],
        lambda s: ended[place[s]],
    )
    assert found.log_likelihood == pytest.approx(total, rel=1e-9)
    counted = np.zeros((n, n_actions, n))
    np.add.at(
        counted, (before[:, :, None], layout.steps.action[:, None, None], after[:, None, :]), found.moved
    )
    expected = np.zeros_like(counted)
    for (s, a, t), weight in moved.items():
        expected[place[s], a, place[t]] += weight
    np.testing.assert_allclose(counted, expected, atol=1e-9)
    starts = np.zeros(n)
    np.add.at(starts, first, found.began)
    np.testing.assert_allclose(starts, [began[tuple(row)] for row in states.codes.tolist()], atol=1e-9)
    assert found.counts.sum() == pytest.approx(log.n_steps)


def test_threads_change_nothing():
    truth = mm.load_benchmark("icu-smar")
    log = mm.collect(truth, 60_000, seed=2)
    histories = prepare(log, None, ends=False).histories
    layout, rng = histories.layout, np.random.default_rng(0)
    transition, initial = rng.random(layout.shape), rng.random(layout.start_shape)
    table = rng.dirichlet(np.ones(len(layout.blocks.patterns)), size=layout.states.n_states).T
    one, more = (histories.expect(transition, initial, table, threads=k) for k in (1, 3))
    assert one.log_likelihood == more.log_likelihood
    assert np.array_equal(one.moved, more.moved)
    assert np.array_equal(one.counts, more.counts)

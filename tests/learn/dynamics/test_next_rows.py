"""Rows of next values, their counts, and the likelihood when they are changed, against sums over all hidden paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.data.counts import as_counts
from missmdp.learn.blocks import Blocks
from missmdp.learn.dynamics.next_rows import NextRows, Target, next_rows, targets, where_words
from missmdp.learn.dynamics.tilted import tilted_histories
from missmdp.learn.em.histories import prepare_histories
from missmdp.learn.em.observation_classes import merged_states
from oracles.expectation import expected_by_paths, moves_by_paths
from strategies import missmdps, seeds


def prepared(model: mm.MissMDP, seed: int):
    """Return a short log, its histories, a random M, and the rows of all features."""
    rng = np.random.default_rng(seed)
    log = mm.collect(model, 24, seed=seed % 2**31, horizon=4)
    blocks = Blocks.seen_in(model.mdp, as_counts(log).observed)
    table = rng.dirichlet(np.ones(len(blocks.patterns)), size=model.n_states).T
    histories = prepare_histories(log, blocks)
    classes = merged_states(model.mdp)
    rows = [
        own
        for feature in range(len(model.mdp.features))
        for own in next_rows(model.mdp, classes, histories, feature)
    ]
    return rng, log, blocks, table, histories, classes, rows


def cell_of(mdp: mm.FactoredMDP, classes, rows: NextRows, action: int, here: int, there: int) -> int:
    """Return the cell of a move; the last action leads to first states."""
    first = action == mdp.n_actions
    after = 0 if rows.follows is None else int(mdp.space.codes[there, rows.follows])
    return int(rows.cell[classes.count if first else classes.of_state[here], action, after])


@given(missmdps(), seeds())
@settings(max_examples=30, deadline=None)
def test_counts_are_sums_over_paths(model, seed):
    _, log, blocks, table, histories, classes, listed = prepared(model, seed)
    uses = histories.uses(table)[0]
    moves = moves_by_paths(log, blocks.patterns, table)
    for rows in listed:
        expected = np.zeros(rows.probability.shape)
        for action, here, there in zip(*np.nonzero(moves), strict=True):
            cell = cell_of(model.mdp, classes, rows, action, here, there)
            expected[cell, model.mdp.space.codes[there, rows.feature]] += moves[action, here, there]
        np.testing.assert_allclose(rows.counts(uses), expected, atol=1e-9)
        assert (expected[rows.probability == 0.0] == 0.0).all()


@given(missmdps(), seeds())
@settings(max_examples=30, deadline=None)
def test_a_tilt_is_another_mdp(model, seed):
    """The likelihood of changed rows is that of an MDP whose T and b₀ are multiplied out."""
    rng, log, blocks, table, histories, classes, listed = prepared(model, seed)
    mdp, uses = model.mdp, histories.uses(table)[0]
    found = [target for rows in listed for target in targets(rows, mdp.n_actions, rows.counts(uses))]
    if not found:
        return
    target = found[rng.integers(len(found))]
    tilt = rng.normal(size=len(target.values))
    factor = dict(zip(target.values.tolist(), np.exp(tilt).tolist(), strict=True))

    def changed(matrix: np.ndarray, action: int) -> np.ndarray:
        matrix = matrix.copy()
        for here, row in enumerate(matrix):
            cells = [cell_of(mdp, classes, target.rows, action, here, there) for there in range(len(row))]
            for cell in {cell for cell, p in zip(cells, row, strict=True) if p > 0.0 and target.cells[cell]}:
                own = np.array([cell == other for other in cells])
                total = row[own].sum()
                row[own] *= [factor.get(int(v), 1.0) for v in mdp.space.codes[own, target.rows.feature]]
                row[own] *= total / row[own].sum()
        return matrix

    other = mm.FactoredMDP(
        dict(mdp.features),
        mdp.actions,
        [changed(matrix.toarray(), action) for action, matrix in enumerate(mdp.transition)],
        mdp.reward,
        changed(mdp.initial[None, :], mdp.n_actions)[0],
        mdp.terminal,
        mdp.discount,
        states=[tuple(state) for state in mdp.states],
    )
    moved = mm.Dataset(other, log.observations, log.actions, log.offsets, log.terminated)
    expected = expected_by_paths(moved, blocks.patterns, table)[1]
    assert tilted_histories(histories, target, tilt).uses(table)[1] == pytest.approx(expected, rel=1e-9)


def shaky() -> mm.FactoredMDP:
    """A machine that wears; how it shakes follows how worn it is after the step."""
    shakes = {0: 0.1, 1: 0.7}

    def transition(state, action):
        worn = {0: 0.2, 1: 1.0}[state.worn] if action == "run" else 0.0
        return [
            ((w, s), p * (shakes[w] if s else 1.0 - shakes[w]))
            for w, p in ((0, 1.0 - worn), (1, worn))
            if p > 0.0
            for s in (0, 1)
        ]

    return mm.FactoredMDP(
        features={"worn": [0, 1], "shakes": [0, 1]},
        actions=["run", "mend"],
        transition=transition,
        reward=0.0,
        initial={(0, 0): 0.9, (0, 1): 0.1},
        discount=0.9,
    )


def test_what_is_tested_of_a_machine():
    mdp = shaky()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"worn": 0.5}))
    log = mm.collect(model, 2000, seed=0, horizon=20)
    histories = prepare_histories(log, Blocks.seen_in(mdp, as_counts(log).observed))
    uses, classes = histories.uses(np.full((2, 4), 0.5))[0], merged_states(mdp)

    def told(feature: int) -> list[tuple]:
        return [
            (target.kind, target.action, where_words(mdp, classes, rows, target.cells))
            for rows in next_rows(mdp, classes, histories, feature)
            for target in targets(rows, 2, rows.counts(uses))
        ]

    # A worn machine stays worn, and after mending none is: only a new one that runs leaves a choice.
    assert told(0) == [("feature", None, "worn is 0")]
    assert told(1) == [
        ("feature", None, ""),
        ("action", 0, ""),
        ("action", 1, ""),
        ("start", 2, ""),
        ("row", 0, "next worn is 1"),
        ("row", None, "next worn is 0"),
    ]


def test_a_changed_row_sums_to_one():
    mdp = shaky()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"worn": 0.5}))
    log = mm.collect(model, 500, seed=0, horizon=20)
    histories = prepare_histories(log, Blocks.seen_in(mdp, as_counts(log).observed))
    rows = next_rows(mdp, merged_states(mdp), histories, 1)[0]
    target = Target(rows, rows.probability.max(axis=1) > 0.0, np.array([1]), None, "feature")
    changed = rows.tilted(target.cells, np.array([0.0, 300.0]))
    np.testing.assert_allclose(changed[target.cells].sum(axis=1), 1.0)
    assert changed[target.cells][:, 1] == pytest.approx(1.0)

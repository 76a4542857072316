"""Ranks against finite differences of the law of all histories, and what they mean against solving for M."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import missmdp as mm
from learn.identifiability.small_models import graph_of, iid, narrow_problem, random_problem
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.logistic import logistic_model
from missmdp.learn.identifiability.check import as_structure
from missmdp.learn.identifiability.counterexample import counterexample
from missmdp.learn.identifiability.possible_observations import possible_observations
from missmdp.learn.identifiability.spans import known_rows, left_rows, one_step_spans, stacked
from missmdp.learn.identifiability.tangent import tangent_of
from oracles.observation_laws import (
    free_parameters,
    law,
    numeric_jacobian,
    numeric_rank,
    random_point,
)


def brute_force_rank(mdp, factors, horizon, seed=0):
    """Return the rank of the law of z₀ … z_h at a random M by differences, and the number of parameters."""
    count, table = free_parameters(factors, mdp.reachable, random_point(factors, seed))
    patterns = factors.blocks.patterns
    return numeric_rank(
        numeric_jacobian(lambda raised: law(mdp, table(raised), patterns, horizon), count)
    ), count


def check_rank(mdp, factors, horizon):
    answer = mm.identifiability(mdp, factors, horizon=horizon)
    rank, count = brute_force_rank(mdp, factors, horizon)
    assert answer.n_parameters == count
    assert answer.rank == rank
    if answer.globally:
        assert rank == count
    if answer.rank < count:
        assert not answer.locally
        assert answer.unidentified
        assert answer.states.any()
    return answer


@pytest.mark.parametrize("seed", [0, 1, 2, 8, 9, 10, 11, 12, 14, 22, 25])
def test_the_rank_is_that_of_finite_differences(seed):
    check_rank(*random_problem(seed), horizon=1)


@pytest.mark.parametrize(("seed", "grows"), [(7, 2), (11, 0), (17, 2)])
def test_the_rank_of_longer_histories_is_that_of_finite_differences(seed, grows):
    mdp, factors = narrow_problem(seed)
    one, two = (check_rank(mdp, factors, horizon) for horizon in (1, 2))
    assert two.rank - one.rank == grows


@pytest.mark.parametrize(("seed", "horizon"), [(6, 1), (6, 2), (10, 2), (17, 2)])
def test_histories_begin_again_after_full_observations(seed, horizon):
    """From one first state: its law over h steps, and that of h − 1 steps from every T(· | s, a)."""
    made, factors = narrow_problem(seed)
    first = np.eye(made.n_states)[-1]
    mdp = mm.FactoredMDP(made.features, made.actions, made.transition, 0.0, first)
    count, table = free_parameters(factors, mdp.reachable, random_point(factors, 0))
    rows = mdp.transition[0].toarray()

    def laws(raised):
        starts = [law(mdp, table(raised), factors.blocks.patterns, horizon)]
        starts += [
            law(mdp, table(raised), factors.blocks.patterns, horizon - 1, initial=row)
            for row in np.unique(rows, axis=0)
        ]
        return np.concatenate(starts)

    assert mm.identifiability(mdp, factors, horizon=horizon).rank == numeric_rank(
        numeric_jacobian(laws, count)
    )


@pytest.mark.parametrize("seed", [9, 12, 22, 25])
def test_policies_leave_out_histories(seed):
    """One action where x is seen, and any or another one where it is not: what is known is less than all of T."""
    mdp, factors = random_problem(seed)
    last = mdp.n_actions - 1

    def actions(seen):
        return [0] if seen[0] is not None else [last]

    count, table = free_parameters(factors, mdp.reachable, random_point(factors, seed))
    patterns = factors.blocks.patterns
    for horizon in (1, 2):
        answer = mm.identifiability(
            mdp, factors, policy=lambda z: {mdp.actions[a]: 1.0 for a in actions(z)}, horizon=horizon
        )
        expected = numeric_jacobian(
            lambda raised, h=horizon: law(mdp, table(raised), patterns, h, policy=actions), count
        )
        assert answer.rank == numeric_rank(expected)


def test_actions_that_are_only_taken_in_the_dark():
    """Where x is seen, the next state is drawn anew; where it is not, x decides: rows of T that are never known."""
    rows = np.random.default_rng(2).dirichlet(np.ones(6), size=3)
    dark = rows[[1, 1, 1, 1, 2, 2]]
    mdp = mm.FactoredMDP({"x": range(3), "y": range(2)}, range(2), [rows[[0] * 6], dark], 0.0, rows[0])
    patterns = Blocks.of(mdp.space.features, [["x"], ["y"]]).patterns
    seen = possible_observations(mdp, patterns, lambda z: 0 if z.x is not None else 1)
    first = mdp.initial
    assert known_rows(mdp, seen).toarray() == pytest.approx(np.stack([first, rows[0]]))
    assert left_rows(mdp, seen).toarray() == pytest.approx(np.stack([first, *rows]))
    # With y missing and x seen to be 0 or 1, the next row is known all the same.
    seen = possible_observations(mdp, patterns, lambda z: 1 if z.x is not None and z.y is None else 0)
    assert known_rows(mdp, seen).toarray() == pytest.approx(np.stack([first, *rows]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_ranks_are_those_of_finite_differences(seed):
    check_rank(*random_problem(seed), horizon=2 if seed % 4 == 0 else 1)


@pytest.mark.slow
def test_many_ranks_of_longer_histories_are_those_of_finite_differences():
    """Also: what is said never to be learned is open after three steps too, and some ranks grow after one."""
    grown = never = 0
    for seed in range(20):
        mdp, factors = narrow_problem(seed)
        one, two = (check_rank(mdp, factors, horizon) for horizon in (1, 2))
        grown += two.rank > one.rank
        if two.locally is False and mdp.n_states < 12:
            assert brute_force_rank(mdp, factors, 3)[0] < two.n_parameters
            never += 1
    assert grown >= 3
    assert never >= 2


@pytest.mark.parametrize(("sizes", "rank", "count"), [((3, 3), 15, 18), ((2, 3), 11, 12)])
def test_open_directions_change_no_law(sizes, rank, count):
    """Two self-censoring indicators with all parents over i.i.d. states: |X||Y| + |X| + |Y| equations."""
    mdp = iid(sizes)
    graph = graph_of([("x", "x"), ("y", "x"), ("x", "y"), ("y", "y")])
    answer = mm.identifiability(mdp, graph)
    assert (answer.rank, answer.n_parameters) == (rank, count)
    assert rank == sizes[0] * sizes[1] + sizes[0] + sizes[1]
    assert brute_force_rank(mdp, as_structure(mdp, graph, None), 2) == (rank, count)


def test_two_values_leave_no_direction_open_but_another_solution():
    """Eight equations for eight probabilities: isolated solutions, but not one only."""
    mdp = iid((2, 2))
    graph = graph_of([("x", "x"), ("y", "x"), ("x", "y"), ("y", "y")])
    answer = mm.identifiability(mdp, graph)
    assert (answer.identified, answer.globally, answer.locally) == (False, False, True)
    assert "quite different" in answer.describe()
    factors = as_structure(mdp, graph, None)
    seen = possible_observations(mdp, factors.blocks.patterns, None)
    spans = one_step_spans(known_rows(mdp, seen), seen.members)
    whole = stacked(spans, seen.members, seen.pattern * mdp.n_states, 16)
    found = counterexample(factors, mdp.reachable, whole, np.random.default_rng(5))
    one, other = (factors.table(thetas) for thetas in (found.one, found.other))
    assert np.abs(one - other).max() > 1e-3
    for horizon in (1, 2):
        laws = [law(mdp, table, factors.blocks.patterns, horizon) for table in (one, other)]
        assert laws[0] == pytest.approx(laws[1], abs=1e-11)


@pytest.mark.parametrize("seed", [1, 8, 12, 24])
def test_what_is_identified_globally_has_no_other_solution(seed):
    """Solve for M from the law of z₀ z₁, from many starts: whatever has that law is the M that made it."""
    mdp, factors = random_problem(seed)
    assert mm.identifiability(mdp, factors).globally
    point = random_point(factors, seed)
    count, table = free_parameters(factors, mdp.reachable, point)
    patterns = factors.blocks.patterns
    target = law(mdp, table(np.zeros(count)), patterns, 1)
    found = 0
    for start in range(4):
        begin = free_values(factors, mdp, random_point(factors, 100 + start))
        solved = optimize.least_squares(
            lambda raised: law(mdp, table(raised), patterns, 1) - target,
            begin - free_values(factors, mdp, point),
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        if np.abs(solved.fun).max() < 1e-10:
            found += 1
            assert np.abs(solved.x).max() < 1e-5
    assert found


def free_values(factors, mdp, thetas):
    return np.concatenate(
        [
            theta[np.unique(part.label[:, mdp.reachable]), 1:].reshape(-1)
            for part, theta in zip(factors.parts, thetas, strict=True)
        ]
    )


def test_logistic_structures_have_the_right_derivatives():
    """Against differences of P(pattern | state) written down anew."""
    mdp, _ = random_problem(5)
    blocks = Blocks.of(mdp.space.features, [["x"], ["y"]])
    even = np.full((4, mdp.n_states), 0.25)
    model = logistic_model(mdp, blocks, [mdp.space.features.names] * 2, even, 0.0)
    tangent = tangent_of(model, mdp.reachable, np.random.default_rng(0))
    kept = [tangent.group[tangent.owner == i] for i in (0, 1)]
    rates = [tangent.table[blocks.missing[:, i]].sum(axis=0) for i in (0, 1)]
    odds = [np.log(rate / (1.0 - rate)) for rate in rates]

    def table(raised):
        parts = np.split(raised, [len(kept[0])])
        moved = [
            1.0 / (1.0 + np.exp(-(own + design[:, columns] @ part)))
            for own, design, columns, part in zip(odds, model.designs, kept, parts, strict=True)
        ]
        chances = [np.where(blocks.missing[:, i : i + 1], rate, 1.0 - rate) for i, rate in enumerate(moved)]
        return (chances[0] * chances[1]).reshape(-1)

    expected = numeric_jacobian(table, tangent.n_parameters)
    assert tangent.jacobian.toarray() == pytest.approx(expected, abs=1e-8)
    assert np.linalg.matrix_rank(model.designs[0][mdp.reachable]) == len(kept[0])

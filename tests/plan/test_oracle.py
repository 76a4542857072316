"""The oracles that judge solvers, judged: by enumeration, closed forms and linear programs.

A few models are enough: these tests are about the oracles, which are small and seldom change.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from oracles.pomdp import Tables, Value, backups, improved, optimum, unit_tables
from oracles.pomdp_trees import best_tree, constant_value, graph_value, horizon_value, mdp_value, policy_value
from random_pomdps import build, random_pomdp, tiger

SEEDS = (0, 2, 7, 12)
"""Models that act first and that observe first, some with terminal states or observations that depend on the action."""


def exact_steps(pomdp, horizon: int) -> Value:
    """Return the value function of `horizon` actions in the units of `unit_tables`."""
    value = Value.of(np.zeros((1, pomdp.n_states)))
    for _ in range(horizon):
        value, short = improved(unit_tables(pomdp), value, 1e-12, most=1000)
        assert short <= 1e-12
    return value


def in_rewards(pomdp, unit_value: float, horizon: int) -> float:
    """Return a value of so many actions in the POMDP's rewards."""
    tables = Tables(pomdp)
    steps = 1.0 - pomdp.discount**horizon
    return (tables.most - tables.least) * unit_value + tables.least * steps


def start_beliefs(pomdp):
    tables = Tables(pomdp)
    return list(tables.first_beliefs()) if pomdp.observe_initial else [(1.0, tables.initial)]


def few_trees(pomdp, horizon: int) -> bool:
    length = range(1, horizon + 1) if pomdp.observe_initial else range(horizon)
    trees = float(pomdp.n_actions) ** sum(pomdp.n_observations**k for k in length)
    return trees * (pomdp.n_states * pomdp.n_observations) ** horizon <= 2e5


def assert_within(value: float, bounds: tuple[float, float], scale: float) -> None:
    assert bounds[0] - 1e-9 * scale <= value <= bounds[1] + 1e-9 * scale


def test_expectimax_over_beliefs_is_the_best_policy_tree():
    tried = [(p, n) for p in map(random_pomdp, range(30)) for n in (1, 2, 3) if few_trees(p, n)]
    assert {horizon for _, horizon in tried} == {1, 2, 3}
    assert len(tried) >= 20
    for pomdp, horizon in tried:
        scale = Tables(pomdp).most - Tables(pomdp).least
        assert horizon_value(pomdp, horizon) == pytest.approx(
            best_tree(pomdp, horizon), rel=1e-12, abs=1e-12 * scale
        )


def test_value_functions_of_few_steps_are_exact():
    for pomdp in map(random_pomdp, SEEDS):
        for horizon in (1, 2, 3):
            value = exact_steps(pomdp, horizon)
            found = sum(p * value.at(belief[None])[0] for p, belief in start_beliefs(pomdp))
            assert in_rewards(pomdp, found, horizon) == pytest.approx(
                horizon_value(pomdp, horizon), rel=1e-10, abs=1e-10 * optimum(pomdp, most=2).scale
            )


def test_the_optimum_is_within_the_bounds_of_short_horizons_and_of_belief_graphs():
    for pomdp in map(random_pomdp, SEEDS):
        tables, found = Tables(pomdp), optimum(pomdp)
        low, high = found.start
        assert low <= high
        horizon = 1
        while (pomdp.n_actions * pomdp.n_observations) ** (horizon + 1) <= 2000 and horizon < 8:
            horizon += 1
        short, tail = horizon_value(pomdp, horizon), pomdp.discount**horizon
        slack = 1e-9 * found.scale
        assert short + tail * tables.least <= high + slack
        assert short + tail * tables.most >= low - slack
        graph = graph_value(pomdp, nodes=100)
        assert graph[0] <= high
        assert graph[1] >= low


def linear_pieces(tables: Tables, value: Value) -> np.ndarray:
    """Return every vector of HV: each action with each choice of a vector per observation."""
    return np.array(
        [
            tables.reward[:, a]
            + tables.discount * sum(tables.joint[a, z] @ value.vectors[k] for z, k in enumerate(chosen))
            for a in range(tables.reward.shape[1])
            for chosen in product(range(len(value.vectors)), repeat=tables.first.shape[1])
        ]
    )


def largest_difference(upper: np.ndarray, lower: np.ndarray) -> float:
    """Return max over beliefs of max_β β·b − max_α α·b, by one linear program per β: max x with x ≤ (β − α)·b."""
    n = upper.shape[1]
    best = -np.inf
    for vector in upper:
        solved = linprog(
            np.append(np.zeros(n), -1.0),
            A_ub=np.column_stack((lower - vector, np.ones(len(lower)))),
            b_ub=np.zeros(len(lower)),
            A_eq=np.append(np.ones(n), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, None)] * n + [(None, None)],
        )
        best = max(best, -solved.fun)
    return best


def test_distances_between_value_functions_agree_with_linear_programs():
    """The corners that qhull finds miss nothing: d⁺ and d⁻ are those of linear programs over all vectors."""
    compared = 0
    for seed in range(10):
        pomdp = random_pomdp(seed)
        unit = unit_tables(pomdp)
        value = exact_steps(pomdp, 2)
        if pomdp.n_actions * len(value.vectors) ** pomdp.n_observations > 300:
            continue
        better, short = improved(unit, value, 1e-3, most=8)
        all_pieces = linear_pieces(unit, value)
        exact = backups(unit, value, value.corners)[0] - value.at(value.corners)
        assert exact.max() == pytest.approx(largest_difference(all_pieces, value.vectors), abs=1e-8)
        below = (better.at(better.corners) - value.at(better.corners)).min()
        assert below == pytest.approx(-largest_difference(value.vectors, better.vectors), abs=1e-8)
        assert short == pytest.approx(largest_difference(all_pieces, better.vectors), abs=1e-8)
        compared += 1
    assert compared >= 5


def test_corners_of_known_value_functions():
    """Of three lines over two states, and of three planes over three states that meet in one belief."""
    lines = Value.of(np.array([[0.0, 0.9], [0.6, 0.6], [0.9, 0.0], [0.1, 0.1]]))
    np.testing.assert_allclose(np.unique(lines.corners[:, 0]), [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0], atol=1e-12)
    assert len(lines.vectors) == 3
    planes = Value.of(np.eye(3))
    middle = np.full(3, 1.0 / 3.0)
    assert np.isclose(planes.corners, middle).all(axis=1).any()
    assert {tuple(np.round(corner, 6)) for corner in planes.corners} == {
        *map(tuple, np.eye(3)),
        (0.5, 0.5, 0.0),
        (0.5, 0.0, 0.5),
        (0.0, 0.5, 0.5),
        tuple(np.round(middle, 6)),
    }


def test_seen_states_give_the_value_of_the_mdp():
    for pomdp in map(random_pomdp, SEEDS):
        tables = Tables(pomdp)
        seen = build(
            tables.transition,
            np.eye(pomdp.n_states),
            tables.reward,
            pomdp.initial,
            terminal=pomdp.terminal,
            discount=pomdp.discount,
        )
        found = optimum(seen)
        value = mdp_value(seen)
        assert_within(float(seen.initial @ value), found.observing, found.scale)
        first = (seen.initial @ tables.reward) + pomdp.discount * np.einsum(
            "s,ast,t->a", seen.initial, tables.transition, value
        )
        assert_within(float(first.max()), found.acting, found.scale)
        assert found.width <= 1e-6
        ahead = tables.reward + pomdp.discount * np.einsum("ast,t->sa", tables.transition, value)
        np.testing.assert_allclose(ahead.max(axis=1), value, atol=1e-11 * found.scale)


def test_blind_models_have_the_value_of_the_best_sequence_of_actions():
    for pomdp in map(random_pomdp, SEEDS):
        tables = Tables(pomdp)
        blind = build(
            tables.transition,
            np.ones((pomdp.n_states, 1)),
            tables.reward,
            pomdp.initial,
            terminal=pomdp.terminal,
            discount=min(pomdp.discount, 0.6),
        )
        horizon = 6
        best = -np.inf
        for actions in product(range(blind.n_actions), repeat=horizon):
            belief, total = blind.initial, 0.0
            for t, a in enumerate(actions):
                total += blind.discount**t * float(belief @ tables.reward[:, a])
                belief = belief @ tables.transition[a]
            best = max(best, total)
        found = optimum(blind)
        tail = blind.discount**horizon
        assert best + tail * found.tables.least <= found.acting[1] + 1e-9 * found.scale
        assert best + tail * found.tables.most >= found.acting[0] - 1e-9 * found.scale
        assert found.acting == pytest.approx(found.observing, rel=1e-9, abs=1e-9 * found.scale)
        constant = max(float(blind.initial @ constant_value(blind, a)) for a in range(blind.n_actions))
        assert constant <= found.acting[1]


def test_tiger():
    found = optimum(tiger())
    assert found.acting == pytest.approx((19.3713, 19.3713), abs=2e-3)
    assert found.width <= 1e-6


def test_closed_forms():
    """One state; a state that ends everything; a coin whose side is seen before the bet with probability p."""
    one = build(np.ones((2, 1, 1)), [[1.0]], [[2.0, 3.0]], [1.0], discount=0.75)
    assert optimum(one).start == pytest.approx((12.0, 12.0))
    to_end = [[[0.0, 1.0], [0.0, 1.0]]] * 2
    paid_once = build(
        to_end, np.ones((2, 1)), [[-5.0, -7.0], [0.0, 0.0]], [1.0, 0.0], terminal=[False, True], discount=0.5
    )
    assert optimum(paid_once).start == pytest.approx((-5.0, -5.0))
    assert optimum(replace(paid_once, reward=-paid_once.reward)).start == pytest.approx((7.0, 7.0))
    p, discount = 0.3, 0.8
    coin = build(
        np.full((2, 2, 2), 0.5),
        [[p, 0.0, 1.0 - p], [0.0, p, 1.0 - p]],
        [[1.0, -1.0], [-1.0, 1.0]],
        [0.5, 0.5],
        discount=discount,
    )
    assert optimum(coin).observing == pytest.approx((p / (1.0 - discount),) * 2, abs=1e-4)
    assert optimum(coin).acting == pytest.approx((discount * p / (1.0 - discount),) * 2, abs=1e-4)


def test_terminal_states_pay_nothing_whatever_their_rows_say():
    rows = [[[0.5, 0.5], [1.0, 0.0]]]
    pomdp = build(rows, np.ones((2, 1)), [[1.0], [100.0]], [1.0, 0.0], terminal=[False, True], discount=0.9)
    exact = 1.0 / (1.0 - 0.45)
    assert_within(exact, optimum(pomdp).start, exact)
    assert_within(exact, graph_value(pomdp), exact)
    assert mdp_value(pomdp) == pytest.approx([exact, 0.0], abs=1e-9)


def test_the_first_observation_is_that_of_the_first_matrix():
    """Only the first action's matrix shows the state; one of two guesses must follow."""
    show, hide = np.eye(2), [[1.0, 0.0], [1.0, 0.0]]
    rewards = [[1.0, 0.0], [0.0, 1.0]]
    for matrices, expected in (([show, hide], 1.0), ([hide, show], 0.5)):
        pomdp = build(
            np.stack([np.eye(2)] * 2),
            np.stack(matrices),
            rewards,
            [0.5, 0.5],
            discount=0.0,
            observe_initial=True,
        )
        assert optimum(pomdp).start == pytest.approx((expected, expected))
        assert horizon_value(pomdp, 1) == best_tree(pomdp, 1) == expected


def test_values_of_policies_are_those_of_linear_equations_and_never_above_the_optimum():
    for pomdp in map(random_pomdp, SEEDS):
        found = optimum(pomdp)
        for action in range(pomdp.n_actions):
            bounds = policy_value(pomdp, lambda _, action=action: action)
            assert_within(float(pomdp.initial @ constant_value(pomdp, action)), bounds, found.scale)
            assert bounds[0] <= found.start[1]
        rewards = Tables(pomdp).reward

        def myopically(belief, rewards=rewards):
            return int((belief @ rewards).argmax())

        myopic = policy_value(pomdp, myopically)
        assert myopic[0] <= found.start[1]
        below = policy_value(pomdp, myopically, ceiling=lambda b, found=found: found.at(b)[1])
        assert myopic[0] == pytest.approx(below[0], abs=1e-12 * found.scale)
        assert below[1] <= min(myopic[1], found.start[1] + 1e-9 * found.scale)

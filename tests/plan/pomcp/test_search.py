"""The search: bit for bit what a slow one does, right in expectation, and right in the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from missmdp._kernels.pomcp.search import decided, grow, plant
from missmdp.plan.pomcp.search import compile_generative, new_tree, search_rules
from oracles.pouct import Search
from random_pomdps import build, pomdps, random_pomdp, tiger
from strategies import random_mdp, seeds


def searched(model, roots, key, *, max_depth=20, exploration=1.0, batches=1):
    """Return the model as kernels see it and the tree after one simulation per root."""
    compiled = compile_generative(model)
    rules = search_rules(max_depth, exploration, len(roots))
    tree = new_tree(compiled.n_actions, len(roots), max_depth)
    roots = np.asarray(roots, dtype=np.int32)
    plant(compiled, tree)
    for part in np.array_split(np.arange(len(roots)), batches):
        if len(part):
            grow(compiled, rules, tree, roots[part], np.uint64(key), int(part[0]), len(part))
    return compiled, tree


@given(pomdps(), seeds(), st.integers(1, 6), st.sampled_from([0.0, 1.0, 30.0]), st.integers(1, 120))
def test_it_is_the_slow_search_bit_for_bit(pomdp, seed, max_depth, exploration, queries):
    roots = np.random.default_rng(seed).choice(pomdp.n_states, size=queries, p=pomdp.initial)
    compiled, tree = searched(pomdp, roots, seed, max_depth=max_depth, exploration=exploration)
    slow = Search(compiled, max_depth=max_depth, exploration=exploration)
    slow.run(roots, seed)
    actions = range(compiled.n_actions)
    assert tree.visits[: compiled.n_actions].tolist() == [slow.visits[(), a] for a in actions]
    assert tree.value[: compiled.n_actions].tolist() == [slow.mean[(), a] for a in actions]
    assert int(tree.size[0]) == len(slow.known)
    assert sorted(tree.value[: tree.size[0] * compiled.n_actions].tolist()) == sorted(
        slow.mean[h, a] for h in slow.known for a in actions
    )
    assert decided(compiled, tree) == slow.best()


@given(pomdps(), seeds(), st.integers(2, 7))
def test_batches_make_no_difference(pomdp, seed, batches):
    roots = np.random.default_rng(seed).choice(pomdp.n_states, size=60, p=pomdp.initial)
    _, whole = searched(pomdp, roots, seed)
    _, parts = searched(pomdp, roots, seed, batches=batches)
    size = int(whole.size[0]) * pomdp.n_actions
    assert whole.value[:size].tolist() == parts.value[:size].tolist()


@pytest.mark.slow
def test_models_with_many_states_are_searched_alike(monkeypatch):
    """Tables of twice the width, for models with many states: bit for bit the slow search too."""
    monkeypatch.setattr("missmdp.plan.pomcp.search._NARROW", 0)
    for seed in range(20):
        pomdp = random_pomdp(seed)
        roots = np.random.default_rng(seed).choice(pomdp.n_states, size=100, p=pomdp.initial)
        compiled, tree = searched(pomdp, roots, seed, max_depth=5)
        assert compiled.wander.column.dtype == np.uint64
        slow = Search(compiled, max_depth=5, exploration=1.0)
        slow.run(roots, seed)
        assert tree.value[: pomdp.n_actions].tolist() == [slow.mean[(), a] for a in range(pomdp.n_actions)]


def test_a_tree_is_used_again():
    """What an earlier decision left in the arrays does not show."""
    compiled, rules, tree = compile_generative(tiger()), search_rules(8, 5.0, 50), new_tree(3, 50, 8)
    values = []
    for key in (1, 2, 1):
        plant(compiled, tree)
        grow(compiled, rules, tree, np.zeros(50, dtype=np.int32), np.uint64(key), 0, 50)
        values.append(tree.value[: 3 * tree.size[0]].tolist())
    assert values[0] == values[2] != values[1]


@pytest.mark.parametrize("max_depth", [1, 2, 3, 7, 20])
def test_the_depth_limit_counts_actions(max_depth):
    """One unit a step: the mean is the sum of exactly max_depth discounted units, in the tree and in rollouts."""
    model = build([[[1.0]], [[1.0]]], [[0.5, 0.5]], [[1.0, 1.0]], [1.0], discount=0.9)
    exact = sum(0.9**t for t in range(max_depth))
    for queries in (1, 300):
        _, tree = searched(model, [0] * queries, 5, max_depth=max_depth)
        tried = tree.visits[:2] > 0
        assert tree.value[:2][tried] == pytest.approx(exact, rel=1e-12)


def test_nothing_is_earned_after_the_end():
    """1 → 2 → end, a unit for each step: nothing more comes, though terminal states would pay if they were asked."""
    T = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    model = build([T, T], np.eye(3), np.ones((3, 2)), [1, 0, 0], terminal=[0, 0, 1], discount=0.5)
    _, tree = searched(model, [0] * 100, 3)
    assert tree.value[:2].tolist() == [1.5, 1.5]
    assert int(tree.size[0]) == 3, "the root and the middle after each action; the end takes no node"
    compiled, tree = searched(model, [2] * 10, 3)
    assert tree.visits[:2].tolist() == [0, 0]
    assert decided(compiled, tree) == 0


def test_one_query_tries_one_action_and_ties_go_to_the_first():
    model = build(np.ones((3, 1, 1)), [[1.0]], [[-2.0, -2.0, -3.0]], [1.0], discount=0.0)
    for key in range(20):
        compiled, tree = searched(model, [0], key)
        assert tree.visits[:3].sum() == 1
        assert tree.visits[decided(compiled, tree)] == 1, "0 is better than any mean, but was never seen"
    compiled, tree = searched(model, [0] * 30, 0)
    assert decided(compiled, tree) == 0


def test_untried_actions_are_tried_in_random_order():
    """The first of 3 actions, for 3,000 keys: each share is 1/3 within 5 standard errors (fails with 2e-6)."""
    model = build(np.ones((3, 1, 1)), [[1.0]], [[1.0, 2.0, 3.0]], [1.0], discount=0.0)
    first = [int(np.flatnonzero(searched(model, [0], key)[1].visits[:3])[0]) for key in range(3_000)]
    share = np.bincount(first, minlength=3) / 3_000
    assert (np.abs(share - 1 / 3) <= 5 * np.sqrt(2 / 9 / 3_000)).all()


def random_values(pomdp, depth):
    """Return what uniformly random actions earn in so many steps, by state."""
    value = np.zeros(pomdp.n_states)
    for _ in range(depth):
        value = np.mean(
            [pomdp.reward[:, a] + pomdp.discount * (T @ value) for a, T in enumerate(pomdp.transition)],
            axis=0,
        )
    return value


@pytest.mark.parametrize(("seed", "max_depth"), [(4, 1), (11, 2), (23, 6), (25, 20)])
def test_first_means_have_the_value_of_random_actions(seed, max_depth):
    """One simulation per action: its mean is ρ(b, a) plus what random actions earn after it, in expectation.

    Within 5 standard errors of 4,000 searches, and rounding; at most 12 comparisons fail with 7e-6.
    """
    pomdp = random_pomdp(seed)
    rng = np.random.default_rng(seed)
    compiled, rules = compile_generative(pomdp), search_rules(max_depth, 1.0, pomdp.n_actions)
    tree = new_tree(pomdp.n_actions, pomdp.n_actions, max_depth)
    samples = []
    for key in range(4_000):
        start = int(rng.choice(pomdp.n_states, p=pomdp.initial))
        plant(compiled, tree)
        grow(
            compiled,
            rules,
            tree,
            np.full(pomdp.n_actions, start, np.int32),
            np.uint64(key),
            0,
            pomdp.n_actions,
        )
        samples.append(np.array(tree.value[: pomdp.n_actions]))
    later = random_values(pomdp, max_depth - 1)
    expected = [
        pomdp.initial @ (pomdp.reward[:, a] + pomdp.discount * (T @ later))
        for a, T in enumerate(pomdp.transition)
    ]
    error = 5 * np.std(samples, axis=0) / np.sqrt(4_000) + 1e-9 * np.abs(pomdp.reward).max()
    assert (np.abs(np.mean(samples, axis=0) - expected) <= error).all()


def optimal_action_values(mdp, depth):
    """Return Q of the best behaviour over so many steps in an MDP whose states are seen, shape (S, A)."""
    value = np.zeros(mdp.n_states)
    for _ in range(depth):
        q = np.stack([mdp.reward[:, a] + mdp.discount * (T @ value) for a, T in enumerate(mdp.transition)], 1)
        value = q.max(axis=1)
    return q


def test_it_finds_the_best_action_where_states_are_seen():
    """Regret below a tenth of the range of values, in 8 random MDPs of full observability, from every state."""
    decisions = 0
    for seed in range(8):
        mdp = random_mdp(np.random.default_rng(seed), {"ward": ("a", "b"), "level": (0, 1, 2)}, 3)
        model = mm.MissMDP(mdp, mm.MissingnessFunction.fully_observed(mdp))
        exact = optimal_action_values(mdp, 4)
        scale = float(np.ptp(exact)) or 1.0
        for s in np.flatnonzero(~np.asarray(mdp.terminal)).tolist():
            compiled, tree = searched(model, [s] * 4_000, seed, max_depth=4, exploration=scale)
            chosen = decided(compiled, tree)
            assert exact[s, chosen] >= exact[s].max() - 0.1 * scale
            decisions += 1
    assert decisions >= 20


def test_means_come_close_to_the_optimal_values():
    """A deterministic walk to a prize: with many simulations the root's best mean is the discounted prize."""
    n = 6
    right, left = np.eye(n, k=1), np.eye(n, k=-1)
    right[-1, -1] = left[0, 0] = 1.0
    reward = np.zeros((n, 2))
    reward[n - 2, 0] = 1.0
    model = build(
        [right, left], np.eye(n), reward, np.eye(n)[0], terminal=np.arange(n) == n - 1, discount=0.9
    )
    compiled, tree = searched(model, [0] * 20_000, 1, max_depth=8, exploration=0.3)
    assert decided(compiled, tree) == 0
    assert tree.value[0] == pytest.approx(0.9 ** (n - 2), abs=0.05)
    assert tree.visits[0] > 0.9 * 20_000


def test_more_exploration_spreads_visits():
    shares = []
    for exploration in (0.0, 1_000.0, 100_000.0):
        _, tree = searched(tiger(), [0, 1] * 500, 0, exploration=exploration)
        shares.append(tree.visits[:3].min() / 1_000)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.3

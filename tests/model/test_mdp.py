"""Factored MDPs: the ways to write one down agree, and what the library adds to what was written."""

from __future__ import annotations

from itertools import product
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import missmdp as mm
from oracles.definitions import reachable_states
from strategies import mdps

LEVELS = range(3)


def drift(state, action):
    """Return where a patient goes: treated, one level down; else up with 0.25. Level 2 ends it."""
    if action == "treat":
        return {(state.ward, max(state.level - 1, 0)): 1.0}
    return {(state.ward, state.level): 0.75, (state.ward, state.level + 1): 0.25}


def cost(state, action):
    return -1.0 * state.level - (0.5 if action == "treat" else 0.0)


@pytest.fixture
def clinic() -> mm.FactoredMDP:
    return mm.FactoredMDP(
        features={"ward": ["north", "south"], "level": LEVELS},
        actions=["wait", "treat"],
        transition=drift,
        reward=cost,
        initial={("north", 1): 0.25, ("south", 0): 0.75},
        terminal=lambda state: state.level == 2,
        discount=0.9,
    )


def assert_same(first: mm.FactoredMDP, second: mm.FactoredMDP) -> None:
    assert first.space == second.space
    assert first.actions == second.actions
    assert first.discount == second.discount
    for a, b in zip(first.transition, second.transition, strict=True):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    for name in ("reward", "initial", "terminal", "reachable"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def dense(mdp: mm.FactoredMDP) -> list[np.ndarray]:
    return [matrix.toarray() for matrix in mdp.transition]


def test_functions_say_what_the_arrays_hold(clinic):
    assert [tuple(s) for s in clinic.states] == list(product(["north", "south"], LEVELS))
    for (s, state), (a, action) in product(enumerate(clinic.states), enumerate(clinic.actions)):
        successors = {state: 1.0} if state.level == 2 else drift(state, action)
        expected = [successors.get(tuple(other), 0.0) for other in clinic.states]
        np.testing.assert_array_equal(clinic.transition[a].toarray()[s], expected)
        assert clinic.reward[s, a] == (0.0 if state.level == 2 else cost(state, action))
    assert clinic.initial.tolist() == [0.0, 0.25, 0.0, 0.75, 0.0, 0.0]
    assert clinic.terminal.tolist() == [False, False, True] * 2
    assert clinic.reachable.all()


@pytest.mark.parametrize(
    "matrices",
    [
        lambda m: m,
        lambda m: [sparse.csr_array(a) for a in m],
        lambda m: [sparse.coo_matrix(a) for a in m],
        lambda m: np.stack(m),
        lambda m: [a.tolist() for a in m],
        lambda m: {"treat": m[1], "wait": m[0]},
    ],
    ids=["dense", "csr_array", "coo_matrix", "one array", "lists", "mapping"],
)
def test_matrices_give_the_same_model_as_functions(clinic, matrices):
    same = mm.FactoredMDP(
        clinic.features,
        clinic.actions,
        matrices(dense(clinic)),
        clinic.reward,
        clinic.initial,
        clinic.terminal,
        0.9,
    )
    assert_same(same, clinic)


def test_matrices_take_functions_and_mappings_too(clinic):
    same = mm.FactoredMDP(
        clinic.features,
        clinic.actions,
        dense(clinic),
        cost,
        {("south", 0): 0.75, ("north", 1): 0.25},
        lambda state: state.level == 2,
        0.9,
        states=list(clinic.states),
    )
    assert_same(same, clinic)


def test_tables_give_the_same_model_as_functions(clinic):
    rows = [
        (*state, action, *successor, p)
        for state in clinic.states
        if state.level < 2
        for action in clinic.actions
        for successor, p in drift(state, action).items()
    ]
    names = ["ward", "level", "action", "next_ward", "next_level", "probability"]
    same = mm.FactoredMDP.from_tables(
        {name: [row[i] for row in rows] for i, name in enumerate(names)},
        {
            "ward": [s.ward for s in clinic.states for _ in clinic.actions],
            "level": [s.level for s in clinic.states for _ in clinic.actions],
            "action": ["wait", "treat"] * clinic.n_states,
            "reward": [cost(s, a) for s in clinic.states for a in clinic.actions],
        },
        {"ward": ["north", "south"], "level": [1, 0], "probability": [0.25, 0.75]},
        terminal={"ward": ["north", "south"], "level": [2, 2]},
        discount=0.9,
    )
    assert_same(same, clinic)


@settings(max_examples=30)
@given(mdps())
def test_a_model_written_as_functions_has_the_reachable_part_of_its_matrices(mdp):
    """Reading the matrices through functions finds the same reachable states, in the order of rank."""
    tables = [matrix.toarray() for matrix in mdp.transition]
    index = {tuple(state): s for s, state in enumerate(mdp.states)}

    def successors(state, action):
        row = tables[mdp.action_index(action)][index[tuple(state)]]
        return {other: row[s] for other, s in reversed(index.items())}

    again = mm.FactoredMDP(
        mdp.features,
        mdp.actions,
        successors,
        lambda state, action: mdp.reward[index[tuple(state)], mdp.action_index(action)],
        {state: mdp.initial[s] for state, s in index.items()},
        lambda state: mdp.terminal[index[tuple(state)]],
        mdp.discount,
    )
    reached = np.flatnonzero(mdp.reachable)
    np.testing.assert_array_equal(again.space.codes, mdp.space.codes[reached])
    for first, second in zip(again.transition, mdp.transition, strict=True):
        np.testing.assert_array_equal(first.toarray(), second.toarray()[np.ix_(reached, reached)])
    for name in ("reward", "initial", "terminal"):
        np.testing.assert_array_equal(getattr(again, name), getattr(mdp, name)[reached])
    assert again.reachable.all()


@settings(max_examples=30)
@given(mdps())
def test_reachable_states_are_those_on_a_path_from_the_start(mdp):
    expected = reachable_states(mdp)
    assert {tuple(s) for s, reached in zip(mdp.states, mdp.reachable, strict=True) if reached} == expected


def test_matrices_keep_states_out_of_reach_and_mark_them():
    """From 0 one gets to 1 only; 2 leads into both but nothing leads to it; 3 is reached only through 2."""
    move = [[0, 1, 0, 0], [1, 0, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1]]
    mdp = mm.FactoredMDP({"cell": range(4)}, ["go"], [move], np.ones((4, 1)), [1, 0, 0, 0])
    assert mdp.n_states == 4
    assert mdp.reachable.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(mdp.transition[0].toarray(), move)


def test_terminal_states_lead_nowhere_else():
    """Beyond a terminal state nothing is reached, whatever the matrices say of it."""
    move = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    mdp = mm.FactoredMDP(
        {"cell": range(3)}, ["go"], [move], [[1.0], [5.0], [7.0]], [1, 0, 0], [False, True, False]
    )
    assert mdp.reachable.tolist() == [True, True, False]
    np.testing.assert_array_equal(mdp.transition[0].toarray(), [[0, 1, 0], [0, 1, 0], [1, 0, 0]])
    assert mdp.reward.tolist() == [[1.0], [0.0], [7.0]]


@settings(max_examples=25)
@given(mdps())
def test_terminal_states_are_absorbing_with_reward_zero(mdp):
    for s in np.flatnonzero(mdp.terminal):
        assert (mdp.reward[s] == 0.0).all()
        for matrix in mdp.transition:
            np.testing.assert_array_equal(matrix.toarray()[s], np.eye(mdp.n_states)[s])


def test_what_matrices_say_of_terminal_states_may_be_anything():
    move = np.array([[0.5, 0.5], [np.nan, -3.0]])
    mdp = mm.FactoredMDP({"cell": range(2)}, ["go"], [move], [[1.0], [np.nan]], [1, 0], [False, True])
    np.testing.assert_array_equal(mdp.transition[0].toarray(), [[0.5, 0.5], [0, 1]])
    assert mdp.reward.tolist() == [[1.0], [0.0]]


def test_terminal_states_are_asked_for_neither_reward_nor_successors():
    asked = []

    def successors(state, action):
        asked.append(("transition", state.level))
        return {(state.level + 1,): 1.0}

    def reward(state, action):
        asked.append(("reward", state.level))
        return 1.0

    mm.FactoredMDP({"level": LEVELS}, ["go"], successors, reward, {(0,): 1.0}, lambda s: s.level == 2)
    assert sorted(asked) == [("reward", 0), ("reward", 1), ("transition", 0), ("transition", 1)]


def test_a_model_that_starts_at_its_end():
    mdp = mm.FactoredMDP({"level": LEVELS}, ["go"], drift, cost, {(2,): 1.0}, lambda s: s.level == 2)
    assert mdp.n_states == 1
    np.testing.assert_array_equal(mdp.transition[0].toarray(), [[1.0]])


def test_successors_can_be_pairs_that_add_up():
    """A list of pairs counts equal states together, as at a border where two moves end alike."""
    mdp = mm.FactoredMDP(
        {"cell": range(3)},
        ["go"],
        lambda s, a: [
            (min(s.cell + 1, 2), 0.75),
            (max(s.cell - 1, 0), 0.125),
            ((max(s.cell - 2, 0),), 0.125),
        ],
        lambda s, a: 0.0,
        {0: 1.0},
    )
    np.testing.assert_array_equal(
        mdp.transition[0].toarray(), [[0.25, 0.75, 0.0], [0.25, 0.0, 0.75], [0.125, 0.125, 0.75]]
    )


def test_successors_in_pairs_can_be_written_in_any_way():
    """Pairs need no hashable states, so mappings and lists do as well as tuples."""
    mdp = mm.FactoredMDP(
        {"ward": ["north", "south"], "level": LEVELS},
        ["go"],
        lambda s, a: [({"level": s.level, "ward": "south"}, 0.5), ([s.ward, 0], 0.5)],
        lambda s, a: 0.0,
        {("north", 1): 1.0},
    )
    assert [tuple(s) for s in mdp.states] == [("north", 0), ("north", 1), ("south", 0), ("south", 1)]
    np.testing.assert_array_equal(
        mdp.transition[0].toarray(), [[0.5, 0, 0.5, 0], [0.5, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0.5, 0.5]]
    )


def test_the_start_can_be_pairs_that_add_up():
    pairs = [((0,), 0.25), (2, 0.5), ([0], 0.25)]
    for transition in (lambda s, a: {s: 1.0}, [np.eye(3)]):
        mdp = mm.FactoredMDP({"cell": range(3)}, ["go"], transition, 0.0, pairs)
        assert mdp.initial[mdp.space.index((0,))] == 0.5
        assert mdp.initial[mdp.space.index((2,))] == 0.5


def test_terminal_states_can_be_listed():
    """Also those that cannot be reached, which a function would not be asked about."""
    ends = [("north", 2), {"level": 2, "ward": "south"}, ("north", 1)]
    mdp = mm.FactoredMDP(
        {"ward": ["north", "south"], "level": LEVELS},
        ["wait", "treat"],
        drift,
        cost,
        {("south", 1): 1.0},
        ends,
    )
    assert [tuple(s) for s, end in zip(mdp.states, mdp.terminal, strict=True) if end] == [("south", 2)]
    still = mm.FactoredMDP(
        mdp.features, ["wait"], [np.eye(6)], 1.0, {("south", 1): 1.0}, {("north", 2), ("south", 2)}
    )
    assert still.terminal.tolist() == [False, False, True] * 2


def test_one_reward_can_do_for_all():
    mdp = mm.FactoredMDP({"level": LEVELS}, ["a", "b"], [np.eye(3)] * 2, -2.5, {0: 1.0}, [(2,)])
    assert mdp.reward.tolist() == [[-2.5, -2.5], [-2.5, -2.5], [0.0, 0.0]]


def test_successors_of_probability_zero_are_no_states():
    mdp = mm.FactoredMDP(
        {"level": LEVELS}, ["go"], lambda s, a: {(s.level,): 1.0, (2,): 0.0}, lambda s, a: 0.0, {(0,): 1.0}
    )
    assert [s.level for s in mdp.states] == [0]


def test_zeros_that_a_sparse_matrix_stores_are_no_transitions():
    stored = sparse.csr_array(([0.0, 1.0, 1.0, 1.0], ([0, 0, 1, 2], [2, 1, 0, 2])), shape=(3, 3))
    mdp = mm.FactoredMDP({"cell": range(3)}, ["go"], [stored], np.zeros((3, 1)), [1, 0, 0])
    assert mdp.transition[0].nnz == 3
    assert mdp.reachable.tolist() == [True, True, False]
    assert stored.nnz == 4


def test_numpy_values_and_bare_values_name_states():
    mdp = mm.FactoredMDP(
        {"level": np.arange(3)},
        np.array(["up", "down"]),
        lambda s, a: {np.int64(min(s.level + 1, 2)) if a == "up" else 0: np.float32(1.0)},
        lambda s, a: np.int8(s.level),
        {0: 1},
    )
    assert mdp.actions == ("up", "down")
    assert type(mdp.actions[0]) is str
    np.testing.assert_array_equal(dense(mdp)[0], [[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert mdp.reward[:, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("off", [4e-7, -4e-7, 1e-9, -1e-10])
def test_sums_close_to_one_are_scaled_to_one(off):
    move = np.array([[0.25, 0.75 + off], [0.5, 0.5]])
    mdp = mm.FactoredMDP({"cell": [0, 1]}, ["go"], [move], np.zeros((2, 1)), [0.125 + off, 0.875])
    np.testing.assert_array_equal(mdp.transition[0].toarray()[0], move[0] / move[0].sum())
    np.testing.assert_array_equal(mdp.initial, np.array([0.125 + off, 0.875]) / (1.0 + off))
    assert abs(mdp.transition[0].toarray()[0].sum() - 1.0) < 1e-15
    np.testing.assert_array_equal(mdp.transition[0].toarray()[1], [0.5, 0.5])


@pytest.mark.parametrize("off", [1e-4, -1e-4])
def test_sums_farther_from_one_are_refused(off):
    move = np.array([[0.25, 0.75 + off], [0.5, 0.5]])
    with pytest.raises(mm.ModelError, match="sum to"):
        mm.FactoredMDP({"cell": [0, 1]}, ["go"], [move], np.zeros((2, 1)), [0.125, 0.875])
    with pytest.raises(mm.ModelError, match=r"initial.*sum to"):
        mm.FactoredMDP({"cell": [0, 1]}, ["go"], [np.eye(2)], np.zeros((2, 1)), [0.125, 0.875 + off])


@pytest.mark.parametrize(("share", "count"), [(0.333333, 3), (0.142857, 7), (0.166667, 6)])
def test_shares_typed_with_six_digits_are_rounding(share, count):
    row = dict.fromkeys(range(count), share)
    mdp = mm.FactoredMDP({"cell": range(count)}, ["go"], lambda s, a: row, lambda s, a: 0.0, row)
    np.testing.assert_allclose(mdp.transition[0].toarray(), 1.0 / count, rtol=1e-15)
    np.testing.assert_allclose(mdp.initial, 1.0 / count, rtol=1e-15)


@settings(max_examples=25)
@given(mdps(), st.integers(0, 2**32 - 1))
def test_building_a_model_from_itself_changes_no_bit(mdp, seed):
    """Rows are first spoiled by rounding noise, so that the first model has scaled them."""
    noise = np.random.default_rng(seed).uniform(1 - 2e-7, 1 + 2e-7, (mdp.n_states, mdp.n_states))
    parts = (mdp.reward, mdp.initial, mdp.terminal, mdp.discount)
    noisy = [matrix * noise for matrix in dense(mdp)]
    once = mm.FactoredMDP(mdp.features, mdp.actions, noisy, *parts, states=mdp.space)
    twice = mm.FactoredMDP(
        once.features,
        once.actions,
        once.transition,
        once.reward,
        once.initial,
        once.terminal,
        once.discount,
        states=once.space,
    )
    assert_same(once, twice)
    for first, second in zip(once.transition, twice.transition, strict=True):
        np.testing.assert_array_equal(first.indices, second.indices)
        np.testing.assert_array_equal(first.indptr, second.indptr)


def test_models_cannot_be_changed(clinic):
    arrays = (clinic.reward, clinic.initial, clinic.terminal, clinic.reachable, clinic.space.codes)
    for array in (*arrays, clinic.transition[0].data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@settings(max_examples=30)
@given(mdps(), mdps())
def test_models_are_equal_when_all_that_they_hold_is(first, second):
    again = mm.FactoredMDP(
        first.features,
        first.actions,
        dense(first),
        first.reward,
        first.initial,
        first.terminal,
        first.discount,
        states=first.space,
    )
    assert again == first
    try:
        assert_same(first, second)
    except AssertionError:
        assert first != second
    else:
        assert first == second


@pytest.mark.parametrize("part", ["reward", "initial", "terminal", "discount", "actions", "transition"])
def test_models_that_differ_in_one_part_differ(part):
    parts = {
        "transition": [np.eye(2)],
        "reward": np.ones((2, 1)),
        "initial": [0.5, 0.5],
        "terminal": [False, False],
        "discount": 0.5,
        "actions": ["go"],
    }
    others = {
        "transition": [np.eye(2)[::-1]],
        "reward": np.ones((2, 1)) * 2,
        "initial": [0.25, 0.75],
        "terminal": [False, True],
        "discount": 0.25,
        "actions": ["stay"],
    }
    first = mm.FactoredMDP({"cell": [0, 1]}, **parts)
    assert first == mm.FactoredMDP({"cell": [0, 1]}, **parts)
    assert first != mm.FactoredMDP({"cell": [0, 1]}, **{**parts, part: others[part]})
    assert first != mm.FactoredMDP({"cell": [0, 2]}, **parts)


def test_what_was_given_stays_with_the_user():
    move, reward, initial = np.eye(2), np.ones((2, 1)), np.array([0.5, 0.5])
    mdp = mm.FactoredMDP({"cell": [0, 1]}, ["go"], [move], reward, initial)
    for array in (move, reward, initial):
        array[:] = 0.25
    assert mdp.transition[0].toarray().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert mdp.reward.tolist() == [[1.0], [1.0]]
    assert mdp.initial.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("name", "steps"), [("icu-smar", 269), ("predator-smar", 237)])
def test_horizons_of_the_benchmarks(name, steps):
    assert mm.load_benchmark(name).mdp.horizon() == steps


def simple(reward: float, discount: float) -> mm.FactoredMDP:
    return mm.FactoredMDP(
        {"cell": [0]}, ["go"], lambda s, a: {s: 1.0}, lambda s, a: reward, {(0,): 1.0}, discount=discount
    )


@pytest.mark.parametrize(("reward", "discount"), [(1.0, 0.9), (-40.0, 0.95), (0.3, 0.5), (-2.0, 0.99)])
@pytest.mark.parametrize("precision", [1e-1, 1e-3, 1e-6])
def test_after_the_horizon_less_than_the_precision_is_left(reward, discount, precision):
    """γ^L · max |ρ| / (1 − γ) ≤ precision, and one step earlier it is not."""
    steps = simple(reward, discount).horizon(precision)
    left = abs(reward) / (1.0 - discount)
    assert discount**steps * left <= precision * (1 + 1e-9)
    assert steps == 1 or discount ** (steps - 1) * left > precision * (1 - 1e-9)


def test_a_horizon_without_rewards_is_that_of_rewards_of_one():
    """Such models are simulated too, and an episode of one step would show nothing of them."""
    assert simple(reward=0.0, discount=0.9).horizon() == simple(reward=1.0, discount=0.9).horizon() == 88


def test_horizons_are_at_least_one_step():
    assert simple(reward=5.0, discount=0.0).horizon() == 1
    assert simple(reward=1e-6, discount=0.5).horizon() == 1


def test_a_horizon_beyond_the_smallest_float():
    """(1 − γ) · precision / max |ρ| is 1e-331, below every float: ln of it is −331 ln 10."""
    expected = int(np.ceil(331 * np.log(10) / np.log(2)))
    assert simple(reward=5e148, discount=0.5).horizon(1e-182) == expected


@settings(max_examples=30)
@given(mdps())
def test_the_last_action_is_remembered(mdp):
    """Against the same MDP written as functions of (state, last action)."""
    names = tuple(mdp.features)
    tables = dense(mdp)
    index = {tuple(state): s for s, state in enumerate(mdp.states)}
    states = list(index)

    def successors(state, action):
        row = tables[mdp.action_index(action)][index[tuple(state)[:-1]]]
        return {(*other, action): p for other, p in zip(states, row, strict=True) if p > 0.0}

    expected = mm.FactoredMDP(
        {**mdp.features, "done": ("start", *mdp.actions)},
        mdp.actions,
        successors,
        lambda state, action: mdp.reward[index[tuple(state)[:-1]], mdp.action_index(action)],
        {(*state, "start"): mdp.initial[s] for state, s in index.items()},
        lambda state: mdp.terminal[index[tuple(state)[:-1]]],
        mdp.discount,
    )
    found = mdp.with_last_action("done", none="start")
    assert tuple(found.features) == (*names, "done")
    assert_same(found, expected)


def test_missingness_can_depend_on_the_last_action(clinic):
    """Treating hides the level; before the first action nothing is hidden."""
    mdp = clinic.with_last_action()
    rates = {"none": 0.0, "wait": 0.125, "treat": 1.0}
    M = mm.MissingnessFunction.independent(mdp, {"level": lambda s: rates[s.last_action]})
    model = mm.MissMDP(mdp, M)
    assert M.always_observed == ("ward", "last_action")
    assert model.types().name == "simple MAR"
    assert model.mgraph().edges == (("last_action", "level"),)
    belief = mm.initial_belief(("north", 1, "none"), model)
    belief = mm.update_belief(belief, "treat", ("north", None, "treat"), model)
    assert belief[mdp.space.index(("north", 0, "treat"))] == 1.0
    with pytest.raises(mm.ImpossibleObservation):
        mm.update_belief(belief, "treat", ("north", 0, "treat"), model)


def test_actions_are_found_by_name(clinic):
    assert [clinic.action_index(a) for a in clinic.actions] == [0, 1]
    assert (clinic.n_states, clinic.n_actions) == (6, 2)
    assert "6 states of ward, level" in repr(clinic)
    assert clinic.features == {"ward": ("north", "south"), "level": (0, 1, 2)}


@pytest.mark.parametrize("value", ["0.9", b"0.9"])
def test_numbers_in_words_are_no_numbers(value):
    for changes in ({"discount": value}, {"reward": value}, {"initial": {(0,): value}}):
        arguments = {"reward": 1.0, "initial": {(0,): 1.0}, **changes}
        with pytest.raises(mm.ModelError, match="number"):
            mm.FactoredMDP({"cell": [0]}, ["go"], lambda s, a: {s: 1.0}, **arguments)


def test_terminal_states_and_initial_pairs_can_be_listed():
    def walk(state, action):
        return {(min(state.cell + 1, 2),): 1.0}

    listed = mm.FactoredMDP(
        {"cell": range(3)}, ["go"], walk, 2, [((0,), 0.5), ((0,), 0.25), ((1,), 0.25)], {(2,)}
    )
    written = mm.FactoredMDP(
        {"cell": range(3)}, ["go"], walk, lambda s, a: 2, {(0,): 0.75, (1,): 0.25}, lambda s: s.cell == 2
    )
    assert listed == written
    assert listed.reward.tolist() == [[2], [2], [0]]
    with pytest.raises(mm.ModelError, match="terminal.*cannot be 7"):
        mm.FactoredMDP({"cell": range(3)}, ["go"], walk, 2, {(0,): 1.0}, [(7,)])


@settings(max_examples=40)
@given(mdps(), st.data())
def test_it_does_not_matter_how_a_function_writes_successors(mdp, data):
    """Dicts and lists of pairs with plain floats take a shortcut; mappings, zeros and other numbers do not."""
    forms = [
        lambda pairs: dict(pairs),
        lambda pairs: list(pairs),
        lambda pairs: MappingProxyType(dict(pairs)),
        lambda pairs: {state: np.float64(p) for state, p in pairs},
        lambda pairs: {**dict(pairs), tuple(mdp.states[0]): dict(pairs).get(tuple(mdp.states[0]), 0.0)},
        lambda pairs: [(list(state), p) for state, p in pairs],
        lambda pairs: iter(pairs),
    ]
    chosen = data.draw(st.lists(st.sampled_from(forms), min_size=mdp.n_states, max_size=mdp.n_states))

    def build(form):
        def transition(state, action):
            s = mdp.space.index(state)
            row = mdp.transition[mdp.action_index(action)][[s]]
            pairs = [
                (tuple(mdp.states[int(c)]), float(p)) for c, p in zip(row.indices, row.data, strict=True)
            ]
            return form(s)(pairs)

        start = {tuple(mdp.states[int(s)]): float(mdp.initial[s]) for s in np.flatnonzero(mdp.initial)}
        return mm.FactoredMDP(mdp.features, mdp.actions, transition, 0.0, start, discount=mdp.discount)

    assert build(lambda s: forms[0]) == build(lambda s: chosen[s])

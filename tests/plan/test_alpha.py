"""α-vector policies: values, decisions and lookaheads against loops over dense tables, and Tiger by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

import missmdp as mm
from missmdp.plan.value_function import ComponentVectors, state_components
from oracles.alpha import Dense, backed_up, tiger
from policies import beliefs, policies, random_policy, tiny_pomdps
from strategies import missmdps, seeds


@given(policies(), seeds())
def test_values_and_decisions_are_those_of_the_definition(policy, seed):
    dense = Dense(policy)
    for belief in beliefs(policy, seed):
        listed = belief.tolist()
        assert policy.value(belief) == pytest.approx(dense.value(listed), abs=1e-9)
        assert policy.actions.index(policy.action(belief)) in dense.actions(listed)
        ahead = policy.action_values(belief)
        assert list(ahead) == list(policy.actions)
        assert list(ahead.values()) == pytest.approx(
            [dense.lookahead(listed, a) for a in range(len(policy.actions))], abs=1e-9
        )


@given(policies())
def test_the_initial_value_is_expected_over_the_first_observation_or_of_acting_first(policy):
    dense = Dense(policy)
    initial = policy.pomdp.initial.tolist()
    first = [row[:] for row in policy.pomdp.observation[0].toarray().tolist()]
    dense.O[0] = first
    expected = dense.expected(initial, 0) if policy.observe_initial else Dense(policy).value(initial)
    assert policy.initial_value == pytest.approx(expected, abs=1e-9)


@given(policies(), seeds())
def test_beliefs_may_be_mappings(policy, seed):
    for belief in beliefs(policy, seed, count=2):
        named = {policy.pomdp.states[s]: float(belief[s]) for s in np.flatnonzero(belief)}
        assert policy.value(named) == policy.value(belief)


def test_tiger_after_one_and_two_backups_by_hand():
    """After one backup α is ρ; after two, it adds what is best at the beliefs that follow."""
    one = backed_up(tiger(), 1)
    assert sorted(zip(one.actions.tolist(), one.values.tolist(), strict=True)) == [
        (0, [-1.0, -1.0]),
        (1, [-100.0, 10.0]),
        (2, [10.0, -100.0]),
    ]
    two = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 2)])
    even = [0.5, 0.5]
    assert two.action(even) == "listen"
    assert two.value(even) == pytest.approx(-1.0 + 0.95 * -1.0)
    # At 0.98 the door pays 10 · 0.98 − 100 · 0.02 now, and −1 later.
    assert two.action([0.98, 0.02]) == "open right"
    assert two.value([0.98, 0.02]) == pytest.approx(9.8 - 2.0 - 0.95)
    assert two.action_values([0.98, 0.02])["open right"] == pytest.approx(9.8 - 2.0 + 0.95 * -1.95)


def test_tiger_is_worth_19_37():
    """The known optimum is 19.3713; k backups of 0 are below it by at most 0.95^k · 2000."""
    policy = mm.AlphaVectorPolicy(tiger(), [backed_up(tiger(), 160)])
    assert policy.initial_value == pytest.approx(19.3713, abs=0.01)
    assert [policy.action([b, 1 - b]) for b in (0.5, 0.85, 0.97, 0.03)] == [
        "listen",
        "listen",
        "open right",
        "open left",
    ]


def test_observing_first_is_worth_as_much_as_a_free_look():
    vectors = backed_up(tiger(), 40)
    policy = mm.AlphaVectorPolicy(tiger(), [vectors], observe_initial=True)
    assert policy.observe_initial
    acting = mm.AlphaVectorPolicy(tiger(), [vectors])
    expected = 0.5 * (acting.value([0.85, 0.15]) + acting.value([0.15, 0.85]))
    assert policy.initial_value == pytest.approx(expected)
    assert policy.initial_value > acting.initial_value


@given(tiny_pomdps() | missmdps().map(mm.MissMDP.to_pomdp))
def test_connected_components_split_states_and_no_finer_split_would_do(pomdp):
    components = state_components(pomdp)
    assert (
        sorted(s for component in components for s in component.tolist())
        == np.flatnonzero(~pomdp.terminal).tolist()
    )
    seen = [
        {(a, int(z)) for a, matrix in enumerate(pomdp.observation) for z in matrix[[s]].nonzero()[1]}
        for s in range(pomdp.n_states)
    ]
    for k, component in enumerate(components):
        for other in components[:k]:
            assert not any(seen[s] & seen[t] for s in component for t in other)
        reached, new = {int(component[0])}, [int(component[0])]
        while new:
            s = new.pop()
            near = {int(t) for t in component if seen[s] & seen[t]} - reached
            reached |= near
            new += near
        assert reached == set(component.tolist())


def two_rooms(**changes):
    """Two states that are always told apart, and a terminal one that looks like the second."""
    parts = {
        "states": ["a", "b", "end"],
        "actions": ["stay", "leave"],
        "observations": ["A", "B"],
        "transition": (sparse.csr_array(np.eye(3)), sparse.csr_array(np.eye(3)[[1, 2, 2]])),
        "reward": np.array([[1.0, 0.0], [2.0, 5.0], [0.0, 0.0]]),
        "observation": (sparse.csr_array(np.array([[1.0, 0], [0, 1], [0, 1]])),),
        "initial": np.array([0.5, 0.5, 0.0]),
        "terminal": np.array([False, False, True]),
        "discount": 0.5,
        "observe_initial": False,
    }
    return mm.POMDP(**{**parts, **changes})


def rooms(*components, pomdp=None):
    made = [ComponentVectors(np.array(s), np.array(v, dtype=float), np.array(a)) for s, v, a in components]
    return mm.AlphaVectorPolicy(pomdp or two_rooms(), made)


GOOD = (([0], [[2.0], [1.25]], [0, 1]), ([1], [[4.0], [5.0]], [0, 1]))


def test_a_belief_that_spans_components_is_decided_by_lookahead():
    policy = rooms(*GOOD)
    # stay: 0.5 · 1 + 0.5 · 2 + 0.5 · (0.5 · 2 + 0.5 · 5); leave: 0.5 · 5 + 0.5 · (0.5 · 5 + 0)
    assert policy.action_values([0.5, 0.5, 0.0]) == {
        "stay": pytest.approx(3.25),
        "leave": pytest.approx(3.75),
    }
    assert policy.action([0.5, 0.5, 0.0]) == "leave"
    assert policy.value([0.5, 0.5, 0.0]) == policy.initial_value == pytest.approx(3.75)


def test_terminal_states_are_worth_nothing():
    policy = rooms(*GOOD)
    assert policy.value({"end": 1.0}) == 0.0
    assert policy.action({"end": 1.0}) == "stay"
    assert policy.action_values({"end": 1.0}) == {"stay": 0.0, "leave": 0.0}
    assert policy.value({"b": 0.25, "end": 0.75}) == pytest.approx(1.25)


def test_a_model_that_is_over_needs_no_components():
    pomdp = two_rooms(
        terminal=np.ones(3, dtype=bool),
        reward=np.zeros((3, 2)),
        transition=(sparse.csr_array(np.eye(3)),) * 2,
    )
    policy = mm.AlphaVectorPolicy(pomdp, [])
    assert policy.n_vectors == 0
    assert policy.initial_value == 0.0


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ([GOOD[0]], "no component has the state 'b'"),
        ([GOOD[0], ([0, 1], [[1.0, 2.0]], [0])], "'a' is in component 0 and in component 1"),
        ([*GOOD, ([2], [[0.0]], [0])], "'end' is terminal.*component 2"),
        ([([1, 0], [[1.0, 2.0]], [0])], "component 0: states must be in ascending order"),
        ([([0, 0], [[1.0, 2.0]], [0])], "ascending order, each once"),
        ([([], [[]], [0])], "component 0 has no states"),
        ([([0, 3], [[1.0, 2.0]], [0])], "the index 3 is out of range; there are 3"),
        ([([0, -1], [[1.0, 2.0]], [0])], "the index -1 is out of range"),
        ([([0.0, 1.0], [[1.0, 2.0]], [0])], "must be a row of indices"),
        ([([0, 1], [[1.0]], [0])], r"values must have shape \(vectors, 2\)"),
        ([([0, 1], [1.0, 2.0], [0])], r"values must have shape \(vectors, 2\)"),
        ([([0, 1], np.empty((0, 2)), np.empty(0, dtype=int))], "at least one vector"),
        ([([0, 1], [[1.0, np.nan]], [0])], "every value must be finite, got nan"),
        ([([0, 1], [[1.0, np.inf]], [0])], "every value must be finite, got inf"),
        (
            [([0, 1], [[1.0, 1e308]], [0])],
            r"every value must be finite and at most 1e\+150 in size, got 1e\+308",
        ),
        ([([0, 1], [[1.0, 2.0]], [2])], "actions: the index 2 is out of range"),
        ([([0, 1], [[1.0, 2.0]], [0, 1])], "2 actions for 1 vectors"),
    ],
)
def test_what_is_wrong_with_components_is_named(components, message):
    with pytest.raises(mm.ModelError, match=message):
        rooms(*components)


def test_components_that_an_observation_leaves_open_are_named():
    blind = two_rooms(observation=(sparse.csr_array(np.array([[1.0, 0], [0.5, 0.5], [0, 1]])),))
    with pytest.raises(mm.ModelError, match="'A' can come from .*'a'.*must be in one component"):
        rooms(*GOOD, pomdp=blind)
    assert rooms(([0, 1], [[1.0, 2.0]], [0]), pomdp=blind).n_vectors == 1


def test_other_things_are_no_models_components_or_beliefs():
    with pytest.raises(mm.ModelError, match="expected a MissMDP or a POMDP, got int"):
        mm.AlphaVectorPolicy(3, [])
    with pytest.raises(mm.ModelError, match="component 0: expected ComponentVectors, got tuple"):
        mm.AlphaVectorPolicy(two_rooms(), [GOOD[0]])
    policy = rooms(*GOOD)
    for belief, message in [
        ([0.5, 0.5], r"shape \(3,\), got \(2,\)"),
        ([0.5, 0.6, 0.0], "sum to 1.1"),
        ([1.5, -0.5, 0.0], "'b' is negative"),
        ({"c": 1.0}, "there is no state 'c'; the states are 'a', 'b', 'end'"),
        ({"a": "all"}, "not a number"),
        ("a", "numbers"),
    ]:
        with pytest.raises(mm.ModelError, match=message):
            policy.value(belief)


def test_vectors_cannot_be_changed_by_accident():
    values = np.array([[2.0]])
    component = ComponentVectors(np.array([0]), values, np.array([0]))
    policy = mm.AlphaVectorPolicy(
        two_rooms(), [component, ComponentVectors(np.array([1]), values + 1, np.array([1]))]
    )
    values[:] = 100.0
    assert policy.value({"a": 1.0}) == 2.0
    with pytest.raises(ValueError, match="read-only"):
        policy.components[0].values[0, 0] = 1.0


def test_the_components_of_a_benchmark_are_the_valuations_of_what_is_always_observed():
    policy = random_policy(mm.load_benchmark("icu-smar"), 0)
    assert len(policy.components) == 20
    assert repr(policy).startswith(
        f"AlphaVectorPolicy({policy.n_vectors} vectors, 20 components, for MissMDP('icu-smar'"
    )


def test_a_value_function_reads_one_number_per_state():
    """Kernels would read on behind a belief that is too short."""
    values = random_policy(tiger(), 0).value_function
    right = np.array([0.5, 0.5])
    assert values.decide(right.astype(np.float32)) == values.decide(right)
    for wrong in (right[:1], np.ones(10**6), right[None], np.array(["a", "b"]), np.empty(0)):
        for use in (values.decide, values.action_values, values.immediate):
            with pytest.raises(mm.ModelError):
                use(wrong)
        for use in (values.predicted, values.outcomes, values.after):
            with pytest.raises(mm.ModelError):
                use(wrong, 0)

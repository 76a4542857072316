"""The states that occur: finding, grouping and admitting them, against brute force."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import missmdp as mm
from missmdp.model.space import FeatureSpace, StateSpace
from oracles.definitions import admits
from strategies import feature_dicts, rows, seeds


@st.composite
def state_spaces(draw: st.DrawFn) -> StateSpace:
    """Draw some of the combinations of a feature space, in random order."""
    features = FeatureSpace(draw(feature_dicts()))
    everything = np.array(list(product(*map(range, features.sizes))))
    rng = np.random.default_rng(draw(seeds()))
    return StateSpace(features, rng.permutation(everything)[: draw(st.integers(1, len(everything)))])


@settings(max_examples=30)
@given(state_spaces())
def test_states_are_found_where_they_are(space):
    listed = [tuple(state) for state in space.states]
    assert [space.index(state) for state in listed] == list(range(len(space)))
    assert [tuple(space.state(i)) for i in range(len(space))] == listed
    everything = np.array(list(product(*map(range, space.features.sizes))))
    expected = [
        listed.index(state) if (state := tuple(space.features.decode(codes))) in listed else -1
        for codes in everything
    ]
    np.testing.assert_array_equal(space.find(everything), expected)
    for codes, place in zip(everything, expected, strict=True):
        if place < 0:
            with pytest.raises(mm.ModelError, match="is not one of the"):
                space.index(space.features.decode(codes))


@settings(max_examples=30)
@given(state_spaces(), st.data())
def test_groups_are_the_states_that_agree(space, data):
    n = len(space.features)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    groups = space.groups(mask)
    keys = [tuple(code for code, kept in zip(row, mask, strict=True) if kept) for row in space.codes.tolist()]
    for (i, a), (j, b) in product(enumerate(keys), repeat=2):
        assert (groups.label[i] == groups.label[j]) == (a == b)
    assert groups.count == len(set(keys)) == len(set(groups.label.tolist()))

    values = np.array(
        data.draw(st.lists(st.integers(-5, 5), min_size=len(space), max_size=len(space))), dtype=float
    )
    kept = np.array([i for i in range(len(space)) if i % 2 == 0])
    spread = groups.among(kept).spread(values[kept])
    for label in range(groups.count):
        members = [values[i] for i in kept if groups.label[i] == label]
        assert spread[label] == (max(members) - min(members) if members else 0.0)


@settings(max_examples=30)
@given(state_spaces(), st.data())
def test_the_states_that_admit_an_observation(space, data):
    observation = data.draw(rows(space.features, missing=True))
    expected = [admits(observation, state) for state in space.states]
    np.testing.assert_array_equal(space.admit(space.features.encode_observation(observation)), expected)


@settings(max_examples=30)
@given(state_spaces())
def test_all_observations_are_all_ways_to_poke_holes(space):
    expected = {
        tuple(value if seen else None for value, seen in zip(state, pattern, strict=True))
        for state in space.states
        for pattern in product((True, False), repeat=len(space.features))
    }
    found = space.all_observations()
    decoded = [tuple(space.features.decode_observation(codes)) for codes in found]
    assert len(decoded) == len(expected)
    assert set(decoded) == expected
    assert [tuple(codes) for codes in found.tolist()] == sorted(tuple(codes) for codes in found.tolist())


def test_listing_too_many_observations_is_refused():
    space = StateSpace(FeatureSpace({f"f{i}": [0, 1] for i in range(28)}), np.zeros((1, 28), dtype=int))
    with pytest.raises(mm.ModelError, match=r"2\^28 patterns × 1 states"):
        space.all_observations()


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0], [0, 2], [0, 0]], r"the state State\(level=0, ward='n'\) is listed twice"),
        ([[0, 3]], "outside the features' values"),
        ([[-1, 0]], "outside the features' values"),
        ([[0, 258]], "outside the features' values"),
        ([[0]], r"of shape \(states, features\) = \(1, 2\), got \(1, 1\)"),
        ([0, 1], r"of shape \(states, features\) = \(2, 2\), got \(2,\)"),
    ],
    ids=["twice", "too large", "missing", "too large for a byte", "too few columns", "one row"],
)
def test_codes_that_are_no_states_are_refused(codes, message):
    features = FeatureSpace({"level": [0, 1], "ward": ["n", "s", "w"]})
    with pytest.raises(mm.ModelError, match=message):
        StateSpace(features, np.array(codes))


def test_rows_behave_like_a_list_of_states():
    space = StateSpace(FeatureSpace({"level": [0, 1, 2]}), np.array([[2], [0], [1]]))
    assert [state.level for state in space.states] == [2, 0, 1]
    assert space.states[-1] == (1,)
    assert space.states[:2] == [(2,), (0,)]
    assert (0,) in space.states
    assert len(space.states) == 3
    assert "State(level=2)" in repr(space.states)


def test_state_spaces_can_be_pickled():
    space = StateSpace(FeatureSpace({"level": [0, 1], "ward": ["n", "s"]}), np.array([[1, 0], [0, 1]]))
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space
    assert copy.index((0, "s")) == 1


def test_enumeration_shows_how_far_it_is(monkeypatch):
    shown = []

    @contextmanager
    def spy(description, total=None, *, enabled=None):
        done = []
        yield lambda amount=1.0: done.append(amount)
        shown.append((description, total, enabled, sum(done)))

    monkeypatch.setattr("missmdp.model.given.show_progress", spy)
    monkeypatch.setattr("missmdp.model.mdp.show_progress", spy)
    for progress in (True, False, None):
        mm.FactoredMDP(
            {"place": range(50)},
            ["on"],
            lambda state, action: {(min(state.place + 1, 49),): 1.0},
            lambda state, action: 0.0,
            {(0,): 1.0},
            progress=progress,
        )
        assert shown == [("Enumerating states", None, progress, 50), ("Evaluating rewards", 50, progress, 50)]
        shown.clear()

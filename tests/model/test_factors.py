"""T feature by feature: matrices, expectations, beliefs and reachable states against all pairs of states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import missmdp as mm
from large_models import random_model
from missmdp.model.factors import Factors
from missmdp.model.given import _all_codes
from missmdp.model.space import FeatureSpace


def random_factors(seed: int) -> Factors:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 4, size=random.integers(1, 5))
    names = [f"f{i}" for i in range(len(sizes))]
    transitions: dict[str, Any] = {}
    for i, name in enumerate(names):
        parents = random.permutation(len(sizes))[: random.integers(0, len(sizes) + 1)]
        weights = random.integers(0, 3, size=[*sizes[parents], 2, sizes[i]]).astype(float)
        weights[..., 0] += weights.sum(axis=-1) == 0
        transitions[name] = ([names[p] for p in parents], weights / weights.sum(axis=-1, keepdims=True))
    space = FeatureSpace({name: range(size) for name, size in zip(names, sizes, strict=True)})
    return Factors(space, ("a", "b"), transitions)


def multiplied_out(factors: Factors, action: int) -> np.ndarray:
    codes = list(np.ndindex(factors.sizes))
    return np.array(
        [
            [
                np.prod(
                    [
                        scope.table[(*(now[p] for p in scope.parents), action, after[i])]
                        for i, scope in enumerate(factors.scopes)
                    ]
                )
                for after in codes
            ]
            for now in codes
        ]
    )


@pytest.mark.parametrize("seed", range(30))
def test_against_all_pairs_of_states(seed):
    factors, random = random_factors(seed), np.random.default_rng(seed)
    whole = [multiplied_out(factors, a) for a in range(2)]
    for a, matrix in enumerate(whole):
        np.testing.assert_allclose(factors.matrix(a).toarray(), matrix, atol=1e-14)
        values = random.random(factors.n_states)
        np.testing.assert_allclose(factors.expect(values, a), matrix @ values)
        np.testing.assert_allclose(factors.spread(values, a), values @ matrix)
    assert factors.count_entries() == sum(np.count_nonzero(matrix) for matrix in whole)
    start, terminal = random.random((2, factors.n_states)) < 0.2
    step = (sum(whole) > 0.0) & ~terminal[:, None]
    reached = start.copy()
    for _ in range(factors.n_states):
        reached |= step[reached].any(axis=0)
    assert (factors.reach(start, terminal) == reached).all()


def wear(wear: int, load: int, action: str) -> dict[int, float]:
    rate = 0.1 + 0.1 * load
    return {0: 1.0} if action == "fix" else {2: 1.0} if wear == 2 else {wear: 1.0 - rate, wear + 1: rate}


PUMP: dict[str, Any] = {
    "features": {"load": (0, 1), "wear": (0, 1, 2)},
    "actions": ("run", "fix"),
    "transitions": {
        "load": ((), lambda action: {0: 0.5, 1: 0.5}),
        "wear": (("wear", "load"), wear),
    },
    "reward": [
        ("load", lambda load, action: 2.0 + 2.0 * load - 4.0 * (action == "fix")),
        ("wear", lambda wear, action: -3.0 * (wear == 2)),
    ],
    "initial": {"load": {0: 0.5, 1: 0.5}, "wear": 0},
    "discount": 0.9,
}


def test_the_same_model_as_with_functions():
    mdp = mm.FactoredMDP.from_factors(**PUMP)
    other = mm.FactoredMDP(
        PUMP["features"],
        PUMP["actions"],
        lambda s, a: {(load, w): 0.5 * p for load in (0, 1) for w, p in wear(s.wear, s.load, a).items()},
        lambda s, a: 2.0 + 2.0 * s.load - 4.0 * (a == "fix") - 3.0 * (s.wear == 2),
        {(0, 0): 0.5, (1, 0): 0.5},
        discount=0.9,
    )
    assert mdp.states[:] == other.states[:]
    for mine, theirs in zip(mdp.transition, other.transition, strict=True):
        np.testing.assert_allclose(mine.toarray(), theirs.toarray())
    np.testing.assert_allclose(mdp.reward, other.reward)
    np.testing.assert_allclose(mdp.initial, other.initial)
    assert mdp.reachable.all()


def test_terminal_states_by_some_features():
    mdp = mm.FactoredMDP.from_factors(**PUMP, terminal=("wear", lambda wear: wear == 2))
    assert [tuple(mdp.states[s]) for s in np.flatnonzero(mdp.terminal)] == [(0, 2), (1, 2)]
    assert mdp.transition[0][2, 2] == 1.0
    assert (mdp.reward[mdp.terminal] == 0.0).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"transitions": {"load": ((), lambda action: {0: 1.0})}}, "the feature 'wear' has no transitions"),
        ({"transitions": {**PUMP["transitions"], "x": ((), wear)}}, "there is no feature 'x'"),
        ({"transitions": {**PUMP["transitions"], "wear": wear}}, "'wear': expected a pair"),
        ({"transitions": {**PUMP["transitions"], "wear": (("heat",), wear)}}, "no feature 'heat'"),
        ({"transitions": {**PUMP["transitions"], "wear": (("wear", "wear"), wear)}}, "named twice"),
        ({"transitions": {**PUMP["transitions"], "load": ((), lambda a: {0: 0.7})}}, "sum to 0.7"),
        ({"transitions": {**PUMP["transitions"], "load": ((), lambda a: {5: 1.0})}}, "cannot be 5"),
        ({"transitions": {**PUMP["transitions"], "load": ((), np.ones((2, 3)))}}, r"expected \(2, 2\)"),
        ({"initial": {"load": 0}}, "the feature 'wear' has no first value"),
        ({"initial": {"load": 3, "wear": 0}}, "cannot be 3"),
        ({"reward": [("wear", lambda wear, action: "much")]}, "not a number"),
        ({"max_states": 5}, "6 combinations, more than max_states=5; use fewer features or values"),
        ({"transitions": None}, r"transitions: expected \{feature: .*\}, got NoneType"),
        ({"transitions": [1, 2]}, r"transitions: expected \{feature: .*\}, got list"),
        (
            {"transitions": {**PUMP["transitions"], "wear": (("lod",), wear)}},
            "the transitions of 'wear': there is no feature 'lod'.*did you mean 'load'",
        ),
        ({"transitions": {**PUMP["transitions"], "laod": ((), wear)}}, "'laod'; did you mean 'load'"),
        ({"transitions": {**PUMP["transitions"], "load": ((), lambda a: None)}}, r"expected \{value: prob"),
        ({"reward": [("lod", lambda load, action: 1.0)]}, "part 1 of the reward: there is no feature 'lod'"),
        ({"reward": lambda state, action: 1.0}, "reward: expected a list of pairs .* got a function"),
        ({"reward": np.zeros((6, 2))}, "got ndarray. A reward for whole states is one pair that names all"),
        ({"reward": None}, "reward: expected a list of pairs"),
        ({"terminal": ("lod", lambda load: True)}, "terminal: there is no feature 'lod'"),
        ({"initial": {"laod": 0, "wear": 0}}, "initial: there is no feature 'laod'; did you mean 'load'"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    with pytest.raises(mm.ModelError, match=message):
        mm.FactoredMDP.from_factors(**{**PUMP, **changed})


def test_matrices_that_do_not_fit_are_refused():
    fleet = {f"wear {i}": range(3) for i in range(12)}
    transitions = {name: ((name,), lambda wear, action: {0: 0.5, 1: 0.3, 2: 0.2}) for name in fleet}
    mdp = mm.FactoredMDP.from_factors(fleet, ("run",), transitions, 0.0, dict.fromkeys(fleet, 0))
    assert mdp.n_states == 3**12
    assert mdp.reachable.all()
    with pytest.raises(
        mm.ModelError, match="matrices of this model, with .* entries, would take about .* TB of memory"
    ):
        _ = mdp.transition


def test_the_last_action_as_a_feature():
    """All combinations are states; those that can be reached are what the same model has as matrices."""
    pump = mm.FactoredMDP.from_factors(**PUMP, terminal=("wear", lambda wear: wear == 2))
    matrices = mm.FactoredMDP(
        pump.features, pump.actions, pump.transition, pump.reward, pump.initial, pump.terminal, pump.discount
    )
    wide, narrow = pump.with_last_action(), matrices.with_last_action()
    kept = np.flatnonzero(wide.reachable)
    assert wide.n_states == 18
    assert [wide.states[int(s)] for s in kept] == narrow.states[:]
    for mine, theirs in zip(wide.transition, narrow.transition, strict=True):
        np.testing.assert_allclose(mine.toarray()[np.ix_(kept, kept)], theirs.toarray())
    for array in ("reward", "initial", "terminal"):
        np.testing.assert_array_equal(getattr(wide, array)[kept], getattr(narrow, array))


@pytest.mark.parametrize("few", [0.0, 3.0, 1e9])
@pytest.mark.parametrize("seed", range(5))
def test_reachable_states_are_the_same_followed_one_by_one_or_spread(seed, few, monkeypatch):
    monkeypatch.setattr("missmdp.model.factors._FEW_FOLLOWED", few)
    mdp = random_model(seed, terminal=seed % 2 == 0)().mdp
    start = np.arange(mdp.n_states) == seed
    reached = start.copy()
    for _ in range(mdp.n_states):
        leaving = (reached & ~mdp.terminal).astype(np.float64)
        for matrix in mdp.transition:
            reached |= matrix.T @ leaving > 0.0
    np.testing.assert_array_equal(mdp.factors.reach(start, mdp.terminal), reached)


def test_long_ways_through_wide_models_are_followed_state_by_state(monkeypatch):
    """Spreading all that was reached at every step took more than 20 s with a thousand values."""

    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr(Factors, "_spread", never)
    values = np.arange(100)
    move = np.zeros((100, 1, 100))
    move[values, 0, values] = 0.5
    move[values, 0, np.minimum(values + 1, 99)] += 0.5
    mdp = mm.FactoredMDP.from_factors(
        {"a": values, "b": values}, ["on"], {"a": ("a", move), "b": ("b", move)}, 0.0, {"a": 50, "b": 0}
    )
    assert mdp.reachable.sum() == 50 * 100
    assert mdp.reachable.reshape(100, 100)[50:].all()


def test_a_model_that_would_not_fit_into_memory_says_so(monkeypatch):
    names = [f"f{i}" for i in range(12)]
    fair = ([], [[0.5, 0.5]])
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 1e5)
    with pytest.raises(
        mm.ModelError, match=r"a model of 4,096 states and 1 actions? would take about 0\.5 MB"
    ):
        mm.FactoredMDP.from_factors(
            dict.fromkeys(names, (0, 1)), ["a"], dict.fromkeys(names, fair), 0.0, dict.fromkeys(names, 0)
        )


def test_states_are_made_in_the_smallest_type():
    features = FeatureSpace({"a": range(3), "b": range(2), "c": range(4)})
    codes = _all_codes(features)
    assert codes.dtype == np.int8
    np.testing.assert_array_equal(codes, np.stack(np.unravel_index(np.arange(24), (3, 2, 4)), axis=1))

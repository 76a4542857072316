"""Missingness functions: the ways to write one agree, and probabilities are what the definitions say."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import missmdp as mm
from missmdp.model.missingness import same_patterns
from missmdp.model.space import MISSING
from oracles.definitions import admits
from strategies import KINDS, mdps, missmdps, random_missingness, rows, seeds

FAILURE = 1e-6
"""Probability with which a statistical test here fails by chance; seeds are fixed, so it fails always or never."""


@pytest.fixture(scope="module")
def clinic() -> mm.FactoredMDP:
    """Twelve states, all of them reachable."""
    features = {"ward": ["north", "south"], "level": [0, 1, 2], "drip": [False, True]}
    return mm.FactoredMDP(
        features,
        ["wait"],
        lambda s, a: dict.fromkeys(product(*features.values()), 1 / 12),
        lambda s, a: 0.0,
        {("north", 0, False): 1.0},
    )


def seen_as(state, pattern):
    return tuple(value if seen else None for value, seen in zip(state, pattern, strict=True))


def level_missing(state):
    return 0.25 * state.level if state.drip else 0.125


@settings(max_examples=30)
@given(missmdps())
def test_probabilities_are_those_of_patterns_on_states_that_admit(model):
    """M(z | s) = 1[z ⪯ s] P(R(z) | s), for every state and every observation there is."""
    M = model.missingness
    table = {tuple(p): M.probabilities[:, k] for k, p in enumerate(M.patterns.tolist())}
    everything = {
        seen_as(s, p) for s in model.states for p in product((True, False), repeat=len(model.features))
    }
    zero = np.zeros(model.n_states)
    for z in everything:
        pattern = tuple(value is not None for value in z)
        expected = np.array([admits(z, s) for s in model.states]) * table.get(pattern, zero)
        np.testing.assert_array_equal(M.likelihood(z), expected)
        assert M.pattern_of(z) == (list(table).index(pattern) if pattern in table else -1)
    for s, state in enumerate(model.states):
        found = M.distribution(state)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
        assert all(admits(z, state) and p > 0.0 for z, p in found.items())
        for pattern, probabilities in table.items():
            z = seen_as(state, pattern)
            assert found.get(z, 0.0) == probabilities[s] == M.probability(z, state)


@settings(max_examples=30)
@given(missmdps())
def test_rates_and_sets_of_features_are_sums_over_patterns(model):
    M = model.missingness
    distributions = [M.distribution(state) for state in model.states]
    for i, name in enumerate(model.features):
        expected = [sum(p for z, p in found.items() if z[i] is None) for found in distributions]
        np.testing.assert_allclose(M.missing_rate(name), expected, rtol=0, atol=1e-15)
        assert (name in M.always_observed) == (max(expected) == 0.0)
        assert (name in M.can_go_missing) == (max(expected) > 0.0)
    assert (M.probabilities > 0.0).any(axis=0).all()


@settings(max_examples=30)
@given(missmdps())
def test_patterns_are_ordered_by_how_much_is_missing_then_from_the_last_feature(model):
    missing = [tuple(not seen for seen in pattern) for pattern in model.missingness.patterns.tolist()]
    assert missing == sorted(missing, key=lambda holes: (sum(holes), holes))
    assert len(set(missing)) == len(missing)
    assert model.missingness.n_patterns == len(missing)


@settings(max_examples=25)
@given(mdps(), seeds(), st.sampled_from(KINDS))
def test_patterns_as_functions_give_the_same_function_back(mdp, seed, kind):
    M = random_missingness(np.random.default_rng(seed), mdp, kind)

    def patterns(state):
        return {tuple(value is not None for value in z): p for z, p in M.distribution(state).items()}

    assert mm.MissingnessFunction.from_patterns(mdp, patterns) == M
    shuffled = np.random.default_rng(seed).permutation(M.n_patterns)
    again = mm.MissingnessFunction(mdp.space, M.patterns[shuffled], M.probabilities[:, shuffled])
    assert again == M
    np.testing.assert_array_equal(again.patterns, M.patterns)


def test_independent_features_multiply(clinic):
    M = mm.MissingnessFunction.independent(clinic, {"level": level_missing, "ward": 0.5})
    assert M.n_patterns == 4
    for state in clinic.states:
        level = level_missing(state)
        expected = {
            tuple(state): 0.5 * (1 - level),
            (None, *state[1:]): 0.5 * (1 - level),
            (state[0], None, state[2]): 0.5 * level,
            (None, None, state[2]): 0.5 * level,
        }
        assert M.distribution(state) == pytest.approx({z: p for z, p in expected.items() if p > 0})
    assert M.always_observed == ("drip",)
    assert M.can_go_missing == ("ward", "level")
    np.testing.assert_array_equal(M.missing_rate("drip"), np.zeros(12))


def test_the_ways_to_write_a_function_agree(clinic):
    independent = mm.MissingnessFunction.independent(clinic, {"ward": 0.5, "level": level_missing})
    blocks = mm.MissingnessFunction.blocks(clinic, {("level",): level_missing, "ward": lambda s: 0.5})
    by_patterns = mm.MissingnessFunction.from_patterns(
        clinic,
        lambda s: {
            (ward, level, 1): 0.5 * (1 - level_missing(s) if level else level_missing(s))
            for ward, level in product((0, 1), repeat=2)
        },
    )
    assert independent == blocks == by_patterns


def test_blocks_go_missing_as_a_whole(clinic):
    M = mm.MissingnessFunction.blocks(clinic, {("drip", "ward"): 0.25, "level": level_missing})
    state = ("south", 2, True)
    assert M.distribution(state) == pytest.approx(
        {
            ("south", 2, True): 0.75 * 0.5,
            ("south", None, True): 0.75 * 0.5,
            (None, 2, None): 0.25 * 0.5,
            (None, None, None): 0.25 * 0.5,
        }
    )
    assert M.pattern_of((None, 2, True)) == -1
    assert M.probability((None, 2, True), state) == 0.0
    one_block = mm.MissingnessFunction.blocks(clinic, {("ward", "level", "drip"): 0.5})
    assert one_block.patterns.tolist() == [[True] * 3, [False] * 3]


def test_fully_observed_shows_everything(clinic):
    M = mm.MissingnessFunction.fully_observed(clinic)
    assert M.patterns.tolist() == [[True, True, True]]
    assert M.always_observed == ("ward", "level", "drip")
    assert M.can_go_missing == ()
    assert all(M.distribution(state) == {tuple(state): 1.0} for state in clinic.states)
    assert mm.MissingnessFunction.independent(clinic, {}) == M
    assert mm.MissingnessFunction.independent(clinic, {"level": 0.0}) == M
    assert mm.MissingnessFunction.from_patterns(clinic, lambda s: {(1, 1, 1): 1.0, (0, 0, 0): 0.0}) == M


def test_observations_can_be_written_in_many_ways(clinic):
    M = mm.MissingnessFunction.independent(clinic, {"level": 0.5})
    expected = [0.5 if state.ward == "north" and state.drip else 0.0 for state in clinic.states]
    for z in (
        ("north", None, True),
        ["north", float("nan"), True],
        {"drip": True, "level": None, "ward": "north"},
        np.array(["north", None, True], dtype=object),
    ):
        assert M.likelihood(z).tolist() == expected


def test_functions_are_equal_when_states_patterns_and_probabilities_are(clinic):
    M = mm.MissingnessFunction.independent(clinic, {"level": 0.5})
    assert mm.MissingnessFunction.independent(clinic, {"level": lambda s: 0.5}) == M
    assert mm.MissingnessFunction.independent(clinic, {"level": 0.5 + 1e-12}) != M
    assert mm.MissingnessFunction.independent(clinic, {"drip": 0.5}) != M
    other = mm.FactoredMDP(
        clinic.features, ["wait"], lambda s, a: {s: 1.0}, lambda s, a: 0.0, {("south", 1, True): 1.0}
    )
    assert mm.MissingnessFunction.independent(other, {"level": 0.5}) != M
    assert M != "M"
    assert pickle.loads(pickle.dumps(M)) == M


def test_functions_cannot_be_changed_and_keep_nothing_of_the_user(clinic):
    patterns = np.array([[True] * 3, [False] * 3])
    table = np.full((12, 2), 0.5)
    M = mm.MissingnessFunction(clinic.space, patterns, table)
    patterns[:], table[:] = True, 0.0
    assert M.patterns.tolist() == [[True] * 3, [False] * 3]
    assert (M.probabilities == 0.5).all()
    for array in (M.patterns, M.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_sums_close_to_one_are_scaled_and_scaling_twice_changes_no_bit(clinic):
    table = np.random.default_rng(5).dirichlet(np.ones(2), size=12) * (1 + 3e-7)
    once = mm.MissingnessFunction(clinic.space, [[1, 1, 1], [0, 0, 0]], table)
    np.testing.assert_allclose(once.probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    twice = mm.MissingnessFunction(clinic.space, once.patterns, once.probabilities)
    np.testing.assert_array_equal(once.probabilities, twice.probabilities)


@settings(max_examples=25)
@given(missmdps(), st.data())
def test_what_is_drawn_could_have_been_seen(model, data):
    M = model.missingness
    index = data.draw(st.lists(st.integers(0, model.n_states - 1), max_size=20))
    seed = data.draw(st.integers(0, 100))
    states = [model.states[s] for s in index]
    drawn = M.sample(states, seed)
    assert len(drawn) == len(states)
    assert all(M.probability(z, state) > 0.0 for z, state in zip(drawn, states, strict=True))
    codes = M.sample_codes(np.array(index, dtype=int), seed)
    assert [model.space.features.decode_observation(row) for row in codes] == drawn


def test_draws_have_the_frequencies_that_the_function_says(clinic):
    """Chi-square per state, at a failure probability of `FAILURE` for all states together."""
    M = mm.MissingnessFunction.from_patterns(
        clinic,
        lambda s: {
            (1, 1, 1): 0.1 + 0.1 * s.level,
            (0, 1, 0): 0.0 if s.drip else 0.3,
            (1, 0, 1): 0.05,
            (0, 0, 0): (0.55 if not s.drip else 0.85) - 0.1 * s.level,
        },
    )
    per_state = 50_000
    states = np.tile(np.arange(12), per_state)
    drawn = M.sample_codes(states, seed=20240229)
    patterns = drawn != MISSING
    np.testing.assert_array_equal(drawn[patterns], clinic.space.codes[states][patterns])
    for s in range(12):
        counts = np.array([(patterns[states == s] == pattern).all(axis=1).sum() for pattern in M.patterns])
        assert counts.sum() == per_state
        possible = M.probabilities[s] > 0.0
        assert (counts[~possible] == 0).all()
        found = stats.chisquare(counts[possible], per_state * M.probabilities[s, possible])
        assert found.pvalue > FAILURE / 12


def test_draws_follow_the_seed(clinic):
    M = mm.MissingnessFunction.independent(clinic, {"level": 0.5, "ward": 0.5})
    states = [("north", 2, False), {"drip": True, "ward": "south", "level": 1}] * 20
    assert M.sample(states, seed=1) == M.sample(iter(states), np.random.default_rng(1))
    assert M.sample(states, seed=1) != M.sample(states, seed=2)
    with pytest.raises(mm.ModelError, match="'ward' cannot be 'west'"):
        M.sample([("west", 2, False)], seed=1)


def test_observe_pokes_holes(clinic):
    M = mm.MissingnessFunction.blocks(clinic, {("ward", "drip"): 0.5})
    index = clinic.space.index(("south", 2, True))
    seen = M.observe(np.array([[index, index], [0, 0]]), np.array([[0, 1], [0, 1]]))
    assert seen.tolist() == [[[1, 2, 1], [-1, 2, -1]], [[0, 0, 0], [-1, 0, -1]]]
    assert seen.dtype == clinic.space.codes.dtype


@settings(max_examples=30)
@given(missmdps(), st.data())
def test_observations_that_no_state_admits_have_likelihood_zero(model, data):
    z = data.draw(rows(model.space.features, missing=True))
    likelihood = model.missingness.likelihood(z)
    for s, state in enumerate(model.states):
        assert likelihood[s] == model.missingness.distribution(state).get(z, 0.0)


def test_equal_patterns_are_found_in_either_way(monkeypatch):
    """One by one, or through their bytes where there are many."""
    rng = np.random.default_rng(0)
    one, other = (rng.random((rows, 9)) < 0.5 for rows in (40, 30))
    other[:20] = one[5:25]
    compared = same_patterns(one, other)
    monkeypatch.setattr("missmdp.model.missingness._MANY_PAIRS", 0)
    assert np.array_equal(same_patterns(one, other).toarray(), compared)
    assert same_patterns(one, ~one[:3]).shape == (40, 3)

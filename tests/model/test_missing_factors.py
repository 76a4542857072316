"""Missingness by factors: products against the whole table, and what is found in a table against what made it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import missmdp as mm
from large_models import random_model, treat_all_as_large
from missmdp.model import missingness as module
from missmdp.model.missing_factors import MissingFactor, Part, distinct_patterns


def random_mdp(random: np.random.Generator) -> mm.FactoredMDP:
    sizes = random.integers(1, 4, size=random.integers(2, 5))
    names = [f"f{i}" for i in range(len(sizes))]
    return mm.FactoredMDP.from_factors(
        {name: range(size) for name, size in zip(names, sizes, strict=True)},
        ["a"],
        {name: ([], lambda action: {0: 1.0}) for name in names},
        0.0,
        dict.fromkeys(names, 0),
    )


def random_blocks(mdp: mm.FactoredMDP, random: np.random.Generator) -> dict[Any, Any]:
    """Some features in blocks, each with a table over some parents."""
    names, sizes = list(mdp.features), mdp.space.features.sizes
    order = [names[i] for i in random.permutation(len(names))]
    blocks: dict[Any, Any] = {}
    while order and random.random() < 0.8:
        block = tuple(order[: random.integers(1, 3)])
        del order[: len(block)]
        parents = random.permutation(len(names))[: random.integers(0, len(names) + 1)]
        rates = random.choice([0.0, 0.25, 0.5, 1.0, random.random()], size=sizes[parents])
        blocks[block] = ([names[p] for p in parents], rates)
    return blocks


def as_functions(blocks: dict[Any, Any], mdp: mm.FactoredMDP) -> dict[Any, Any]:
    """The same as functions of the state."""
    names = list(mdp.features)

    def function(parents: list[str], rates: np.ndarray):
        return lambda state: rates[tuple(state[names.index(p)] for p in parents)]

    return {block: function(*pair) for block, pair in blocks.items()}


def probabilities(factors: tuple[MissingFactor, ...], state: tuple[int, ...], n: int) -> dict[Any, float]:
    """Pattern → probability in one state, multiplied out from factors."""
    found: dict[Any, float] = {}
    for choice in product(*(range(len(factor.patterns)) for factor in factors)):
        pattern, weight = [True] * n, 1.0
        for factor, k in zip(factors, choice, strict=True):
            weight *= factor.table[(*(state[p] for p in factor.parents), k)]
            for feature, seen in zip(factor.features, factor.patterns[k], strict=True):
                pattern[feature] = bool(seen)
        if weight > 0.0:
            found[tuple(pattern)] = weight
    return found


@pytest.fixture
def nothing_is_small(monkeypatch):
    """Every missingness function works from its parts."""
    monkeypatch.setattr(module, "_SMALL", 0)


@pytest.mark.parametrize("seed", range(40))
def test_tables_with_parents_are_functions_of_the_state(seed):
    random = np.random.default_rng(seed)
    mdp = random_mdp(random)
    blocks = random_blocks(mdp, random)
    M = mm.MissingnessFunction.blocks(mdp, blocks)
    whole = mm.MissingnessFunction.blocks(mdp, as_functions(blocks, mdp))
    np.testing.assert_array_equal(M.patterns, whole.patterns)
    np.testing.assert_array_equal(M.probabilities, whole.probabilities)
    assert whole == M


@pytest.mark.parametrize("seed", range(40))
def test_factors_multiply_to_the_table(seed):
    random = np.random.default_rng(seed)
    mdp = random_mdp(random)
    blocks = random_blocks(mdp, random)
    M = mm.MissingnessFunction.blocks(mdp, blocks)
    shuffled = random.permutation(M.n_patterns)
    table = mm.MissingnessFunction(mdp.space, M.patterns[shuffled], M.probabilities[:, shuffled])
    for one in (M, mm.MissingnessFunction.blocks(mdp, as_functions(blocks, mdp)), table):
        assert one.factors is not None
        assert sorted(i for factor in one.factors for i in factor.features) == [
            mdp.space.features.position(name) for name in M.can_go_missing
        ]
        for s, state in enumerate(mdp.space.codes):
            expected = {
                tuple(p): w
                for p, w in zip(M.patterns.tolist(), M.probabilities[s].tolist(), strict=True)
                if w > 0.0
            }
            found = probabilities(one.factors, tuple(state), len(mdp.features))
            assert found == pytest.approx(expected, abs=1e-11)
    names = list(mdp.features)
    for factor in M.factors or ():
        block = next(b for b in blocks if names[factor.features[0]] in b)
        assert {names[p] for p in factor.parents} <= set(blocks[block][0])


@pytest.mark.parametrize("seed", range(20))
def test_dependent_indicators_stay_together(seed):
    """A random table over two features, times an independent third: two factors, with the parents that were used."""
    random = np.random.default_rng(seed)
    features = {"a": range(2), "b": range(3), "c": range(2)}
    mdp = mm.FactoredMDP.from_factors(
        features, ["x"], {n: ([], lambda action: {0: 1.0}) for n in features}, 0.0, dict.fromkeys(features, 0)
    )
    joint, rate = random.dirichlet(np.ones(4), size=3), random.random(2)

    def patterns(state):
        return {
            (a, b, c): joint[state.b, 2 * a + b] * (rate[state.a] if c else 1.0 - rate[state.a])
            for a, b, c in product((0, 1), repeat=3)
        }

    factors = mm.MissingnessFunction.from_patterns(mdp, patterns).factors
    assert factors is not None
    assert [(f.features, f.parents) for f in factors] == [((0, 1), (1,)), ((2,), (0,))]
    np.testing.assert_allclose(factors[0].table.sum(axis=-1), 1.0)
    for k, (a, b) in enumerate(factors[0].patterns.tolist()):
        np.testing.assert_allclose(factors[0].table[:, k], joint[:, 2 * a + b], atol=1e-12)
    np.testing.assert_allclose(factors[1].table[:, 0], rate, atol=1e-12)


@pytest.mark.parametrize("rates", [[0.0, 1e-13], [1e-13, 0.0], [1.0, 1.0 - 1e-13], [1e-13, 2e-13]])
def test_what_hardly_ever_goes_missing_is_not_lost(rates):
    """Features with a factor are those that can go missing, however rarely."""
    features = {"a": range(2), "b": range(3)}
    mdp = mm.FactoredMDP.from_factors(
        features, ["x"], {n: ([], lambda action: {0: 1.0}) for n in features}, 0.0, dict.fromkeys(features, 0)
    )
    M = mm.MissingnessFunction.independent(mdp, {"a": ("a", rates), "b": 0.5})
    whole = mm.MissingnessFunction(mdp.space, M.patterns, M.probabilities)
    for one in (M, whole):
        assert one.can_go_missing == ("a", "b")
        assert one.factors is not None
        assert [factor.features for factor in one.factors] == [(0,), (1,)]
        # Only where nothing that is possible changes is a difference this small rounding.
        is_rounding = min(rates) > 0.0 and max(rates) < 1.0
        assert one.factors[0].parents == (() if is_rounding else (0,))


def test_a_dependence_of_three_is_one_factor():
    """Any two indicators are independent, the three are not: all three belong together."""
    features = {name: range(2) for name in "abcd"}
    mdp = mm.FactoredMDP.from_factors(
        features, ["x"], {n: ([], lambda action: {0: 1.0}) for n in features}, 0.0, dict.fromkeys(features, 0)
    )
    M = mm.MissingnessFunction.from_patterns(
        mdp, lambda s: {(a, b, a ^ b, d): 0.125 for a, b, d in product((0, 1), repeat=3)}
    )
    assert M.factors is not None
    assert [factor.features for factor in M.factors] == [(0, 1, 2), (3,)]
    assert all(factor.parents == () for factor in M.factors)


def test_states_that_are_no_product_have_no_factors():
    model = mm.load_benchmark("example-1")
    if not model.space.is_product:
        assert model.missingness.factors is None
    states = mm.FactoredMDP(
        {"a": range(2), "b": range(2)},
        ["x"],
        lambda s, a: {(1, 1): 1.0},
        lambda s, a: 0.0,
        {(0, 0): 1.0},
    )
    assert mm.MissingnessFunction.independent(states, {"a": 0.5}).factors is None


def test_states_in_another_order():
    features = {"a": range(2), "b": range(3)}
    states = [(1, 2), (0, 1), (1, 0), (0, 0), (1, 1), (0, 2)]
    matrix = np.full((6, 6), 1 / 6)
    mdp = mm.FactoredMDP(features, ["x"], [matrix], 0.0, np.full(6, 1 / 6), states=states)
    M = mm.MissingnessFunction.independent(mdp, {"a": lambda s: 0.1 + 0.2 * s.b, "b": 0.5})
    assert M.factors is not None
    assert [(f.features, f.parents) for f in M.factors] == [((0,), (1,)), ((1,), ())]
    np.testing.assert_allclose(M.factors[0].table[:, 1], [0.1, 0.3, 0.5])


@pytest.mark.parametrize("seed", range(25))
def test_parts_answer_as_the_table_does(seed, monkeypatch):
    random = np.random.default_rng(seed)
    mdp = random_mdp(random)
    blocks = random_blocks(mdp, random)
    whole = mm.MissingnessFunction.blocks(mdp, blocks)
    monkeypatch.setattr(module, "_SMALL", 0)
    M = mm.MissingnessFunction.blocks(mdp, blocks)
    assert whole.is_small
    assert M.is_small == (not blocks)
    np.testing.assert_array_equal(M.patterns, whole.patterns)
    assert M.can_go_missing == whole.can_go_missing
    assert M.always_observed == whole.always_observed
    assert M.rate_texts() == whole.rate_texts()
    for name in mdp.features:
        np.testing.assert_allclose(M.missing_rate(name), whole.missing_rate(name), atol=1e-15)
    for z in whole.occurring().observations:
        np.testing.assert_allclose(M.likelihood(z), whole.likelihood(z), atol=1e-15)
    for state in mdp.states:
        assert M.distribution(state) == pytest.approx(whole.distribution(state))
    n = len(mdp.features)
    for seen in product((True, False), repeat=n):
        z = tuple(0 if one else None for one in seen)
        assert M.pattern_of(z) == whole.pattern_of(z)
        np.testing.assert_allclose(M.likelihood(z), whole.likelihood(z), atol=1e-15)
    np.testing.assert_array_equal(M.probabilities, whole.probabilities)
    assert mm.MissingnessFunction.blocks(mdp, blocks) == M


def test_samples_by_parts_have_the_right_rates(nothing_is_small):
    mdp = random_mdp(np.random.default_rng(3))
    first, second = list(mdp.features)[:2]
    M = mm.MissingnessFunction.independent(
        mdp, {first: 0.3, second: (first, [0.2, 0.6, 0.6][: len(mdp.features[first])])}
    )
    codes = M.sample_codes(np.zeros(20_000, dtype=np.int64), seed=0)
    assert not M.is_small
    # Six standard errors.
    assert (codes[:, 0] < 0).mean() == pytest.approx(0.3, abs=0.02)
    assert (codes[:, 1] < 0).mean() == pytest.approx(0.2, abs=0.02)
    assert (codes[:, 2:] == mdp.space.codes[0, 2:]).all()


def test_wrong_tables_are_named():
    features = {"load": (0, 1), "wear": range(3)}
    mdp = mm.FactoredMDP.from_factors(
        features, ["x"], {n: ([], lambda action: {0: 1.0}) for n in features}, 0.0, dict.fromkeys(features, 0)
    )
    for given, match in [
        (
            ("load", lambda load: 0.5 + load),
            r"P\(wear missing\) is 1.5 where load = 1; it must be in \[0, 1\]",
        ),
        (("load", [0.1, 0.2, 0.3]), r"its array has shape \(3,\), expected \(2,\)"),
        (("lod", 0.5), "there is no feature 'lod'"),
        (("load", "wear", 3), "expected a pair"),
        ((("load", "load"), np.zeros((2, 2))), "named twice"),
        ((3, np.zeros(2)), "expected names of features"),
    ]:
        with pytest.raises(mm.ModelError, match=match):
            mm.MissingnessFunction.independent(mdp, {"wear": given})


def test_a_million_states_need_no_table():
    features = {"load": (0, 1)} | {f"wear{i}": range(3) for i in range(12)}
    space = mm.FactoredMDP.from_factors(
        features, ["x"], {n: ([], lambda action: {0: 1.0}) for n in features}, 0.0, dict.fromkeys(features, 0)
    )
    calls = []

    def rate(load):
        calls.append(load)
        return 0.5 + 0.3 * load

    M = mm.MissingnessFunction.independent(space, {f"wear{i}": ("load", rate) for i in range(12)})
    assert len(calls) == 24
    assert M.n_patterns == 4096
    assert M.always_observed == ("load",)
    assert np.unique(M.missing_rate("wear3")).tolist() == [0.5, 0.8]
    assert [(f.features, f.parents) for f in M.factors or ()] == [((i,), (0,)) for i in range(1, 13)]
    z = (1, *[None] * 12)
    assert M.likelihood(z).max() == pytest.approx(0.8**12)
    assert np.count_nonzero(M.likelihood(z)) == 3**12
    with pytest.raises(mm.ModelError, match="4,096 patterns by 1,062,882 states would take about 139 GB"):
        _ = M.probabilities


@pytest.mark.parametrize("seed", range(6))
def test_observations_that_occur_are_counted_without_listing_them(seed, monkeypatch):
    small = random_model(seed)()
    everywhere = np.ones(small.n_states, dtype=np.bool_)
    expected = [
        len(small.missingness.occurring(states).observations) for states in (None, small.mdp.reachable)
    ]
    treat_all_as_large(monkeypatch)
    large = random_model(seed)().missingness
    assert [large.count_occurring(states) for states in (None, small.mdp.reachable)] == expected
    assert large.count_occurring(everywhere) == expected[0]
    # Every way to leave values out, one by one.
    assert small.n_observations == len(small.observations)


def test_listing_what_occurs_is_refused_before_it_begins(monkeypatch):
    model = mm.load_benchmark("fleet-8")
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 1e8)
    with pytest.raises(mm.ModelError, match=r"listing what can be seen.* would take about .* MB"):
        model.missingness.occurring()
    assert model.missingness.count_occurring() == 2 * 4**8
    assert model.n_observations == 3 * 4**8


def all_patterns(n_features: int) -> np.ndarray:
    return ~np.array(np.unravel_index(np.arange(2**n_features), (2,) * n_features), dtype=np.bool_).T


@pytest.mark.parametrize("tied", [False, True])
def test_many_patterns_are_taken_apart(tied):
    """A table of patterns by patterns would take 128 GB."""
    names = [f"f{i}" for i in range(17)]
    mdp = mm.FactoredMDP.from_factors(
        {name: (0, 1) if name == "f0" else (0,) for name in names},
        ["a"],
        {name: ([], [[1.0, 0.0] if name == "f0" else [1.0]]) for name in names},
        0.0,
        dict.fromkeys(names, 0),
    )
    patterns = all_patterns(17)
    rates = np.linspace(0.2, 0.8, 17)
    weights = np.where(patterns, 1.0 - rates, rates).prod(axis=1)
    if tied:
        weights *= 1.0 + 0.5 * (patterns[:, 0] == patterns[:, 1:].all(axis=1))
    part = Part(tuple(range(17)), patterns, (weights / weights.sum())[None], ())
    M = mm.MissingnessFunction.from_parts(mdp.space, [part])
    assert [factor.features for factor in M.factors] == (
        [tuple(range(17))] if tied else [(i,) for i in range(17)]
    )
    assert len(M.patterns) == 2**17
    one = mm.MissingnessFunction.independent(mdp, dict(zip(names, rates.tolist(), strict=True)))
    assert (mm.total_variation(M, one).worst > 0.01) == tied


@pytest.mark.parametrize("n_features", [3, 70])
def test_distinct_patterns_are_in_order(n_features):
    patterns = np.random.default_rng(0).random((200, n_features)) < 0.5
    distinct, place = distinct_patterns(patterns)
    np.testing.assert_array_equal(distinct, np.unique(patterns, axis=0))
    np.testing.assert_array_equal(distinct[place], patterns)


def test_a_table_by_states_that_would_not_fit_is_not_taken_apart(monkeypatch):
    mdp = random_mdp(np.random.default_rng(0))
    names = list(mdp.features)
    M = mm.MissingnessFunction.independent(mdp, {names[0]: lambda state: 0.5})
    monkeypatch.setattr("missmdp.memory.free_memory", lambda: 8.0)
    with pytest.raises(mm.ModelError, match="taking apart a table of 2 patterns"):
        _ = M.factors

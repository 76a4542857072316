"""ICIN against what defines it: it fits every observation's probability, and no feature drives its own indicator."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import missmdp as mm
from contracts.test_learners import (
    check_constructor,
    check_parameters_round_trip,
    check_refusals,
    check_what_is_learned,
)
from missmdp.data.counts import ObservationCounts
from missmdp.learn.icin import Shown, pattern_probabilities, pattern_weights
from oracles.logs import counts_of, dataset_of
from strategies import missmdps, seeds


def random_icin(rng, sizes):
    """Return P(s) and M(m | s) = exp Σ_{m′ ⊆ m} η_m′(s_−m′) / Σ, by loops; m is a tuple of 0 (seen) and 1 (missing)."""
    n = len(sizes)
    states = list(product(*map(range, sizes)))
    sets = list(product((0, 1), repeat=n))
    prior = dict(zip(states, rng.dirichlet(np.ones(len(states))), strict=True))
    eta = {}
    for m in sets:
        for s in states:
            eta.setdefault((m, hidden(s, m)), rng.normal(0.0, 1.0) if any(m) else 0.0)
    missing = {}
    for s in states:
        weight = {
            m: np.exp(
                sum(eta[k, hidden(s, k)] for k in sets if all(a <= b for a, b in zip(k, m, strict=True)))
            )
            for m in sets
        }
        total = sum(weight.values())
        missing[s] = {m: w / total for m, w in weight.items()}
    return prior, missing


def hidden(s, m):
    return tuple(None if lacks else value for value, lacks in zip(s, m, strict=True))


def tables_of(states, sets, probability):
    """Return what the closed form takes, from {observation: probability}."""
    shown = []
    for m in sets:
        seen = sorted({hidden(s, m) for s in states}, key=repr)
        label = np.array([seen.index(hidden(s, m)) for s in states])
        shown.append(Shown(label, np.array([probability[z] for z in seen])))
    return shown


def by_bits(n):
    """Return missing sets in the order of the closed form: bit i for feature i."""
    return [tuple(m >> i & 1 for i in range(n)) for m in range(2**n)]


def learned_from(states, sets, probability, **choices):
    table = pattern_probabilities(pattern_weights(tables_of(states, sets, probability), **choices))
    return {s: dict(zip(sets, row, strict=True)) for s, row in zip(states, table, strict=True)}


SIZES = [(2, 3), (3, 2), (2, 3, 2), (3, 2, 3), (2, 2, 3, 2)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_exact_from_exact_probabilities(sizes, seed):
    prior, missing = random_icin(np.random.default_rng(seed), sizes)
    states, sets = list(prior), by_bits(len(sizes))
    law = {}
    for s in states:
        for m in sets:
            law[hidden(s, m)] = law.get(hidden(s, m), 0.0) + prior[s] * missing[s][m]
    learned = learned_from(states, sets, law)
    for s in states:
        assert learned[s] == pytest.approx(missing[s], rel=0.0, abs=1e-12)


@given(st.sampled_from(SIZES), seeds())
def test_fits_any_law_exactly_without_self_censoring(sizes, seed):
    """Any positive law of observations has exactly one explanation of this kind; these two properties are it."""
    rng = np.random.default_rng(seed)
    n = len(sizes)
    states, sets = list(product(*map(range, sizes))), by_bits(n)
    seen = sorted({hidden(s, m) for s in states for m in sets}, key=repr)
    law = dict(zip(seen, rng.dirichlet(np.full(len(seen), 2.0)) + 1e-4, strict=True))
    learned = learned_from(states, sets, law)
    joint = {(s, m): law[s] * learned[s][m] / learned[s][(0,) * n] for s in states for m in sets}
    for m in sets:
        for z in {hidden(s, m) for s in states}:
            assert sum(joint[s, m] for s in states if hidden(s, m) == z) == pytest.approx(law[z], rel=1e-9)
    for i in range(n):
        for s in states:
            other = (*s[:i], (s[i] + 1) % sizes[i], *s[i + 1 :])
            for m in sets:
                lacks = (*m[:i], 1, *m[i + 1 :])
                shows = (*m[:i], 0, *m[i + 1 :])
                odds = joint[s, lacks] / joint[s, shows]
                assert odds == pytest.approx(joint[other, lacks] / joint[other, shows], rel=1e-9)


@given(missmdps(["independent", "blocks", "mcar"]), seeds(), st.sampled_from([0.0, 1e-3, 2.0]), st.booleans())
def test_with_one_block_it_is_aimi(model, seed, smoothing, pooled):
    """One indicator has nothing to depend on; also without data, and without smoothing."""
    name = model.space.features.names[0]
    rate = mm.MissingnessFunction.independent(model.mdp, {name: 0.4})
    rng = np.random.default_rng(seed)
    states = rng.integers(len(model.states), size=int(rng.integers(1, 40)))
    log = dataset_of(model.mdp, rate.sample([model.states[s] for s in states], rng))
    choices = {"smoothing": smoothing, "unseen": "pooled" if pooled else "uniform"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.AssumptionWarning)
        icin, aimi = (learner(**choices).fit(log) for learner in (mm.ICIN, mm.AIMI))
    assert mm.total_variation(icin.missingness_, aimi.missingness_).worst == pytest.approx(0.0, abs=1e-12)
    assert [(u.features, u.given, u.gets) for u in icin.unseen_] == [
        (u.features, u.given, u.gets) for u in aimi.unseen_
    ]


def ward(values=3):
    """Return an MDP with states that follow each other as if drawn from a hat, without equal chances."""
    weights = np.arange(1.0, values**2 * 2 + 1) ** 0.5
    weights /= weights.sum()
    return mm.FactoredMDP(
        {"a": range(values), "b": range(values), "c": range(2)},
        ["wait"],
        [np.tile(weights, (len(weights), 1))],
        0.0,
        weights,
    )


def dependent(state):
    """Return M where a and b tend to be missing together, each by the values of the others."""
    one, other = 0.3 + 0.2 * state.b, 0.2 + 0.5 * state.c + 0.3 * state.a
    odds = {(1, 1, 1): 1.0, (0, 1, 1): one, (1, 0, 1): other, (0, 0, 1): 4.0 * one * other}
    return {pattern: weight / sum(odds.values()) for pattern, weight in odds.items()}


def test_independent_indicators_have_the_same_limit_as_aimi():
    """Expected counts as data: both are exact up to rounding of counts."""
    mdp = ward()
    truth = mm.MissingnessFunction.independent(
        mdp, {"a": lambda s: 0.2 + 0.2 * s.b, "b": lambda s: 0.7 - 0.3 * s.c - 0.1 * s.a}
    )
    counts = expected_counts(mdp, truth, 10**13)
    for learner in (mm.ICIN(), mm.AIMI()):
        assert mm.total_variation(learner.fit(counts).missingness_, truth).worst < 1e-9


def expected_counts(mdp, missingness, n):
    law = {}
    for s, probability in zip(mdp.states, mdp.initial, strict=True):
        for z, chance in missingness.distribution(s).items():
            law[z] = law.get(z, 0.0) + probability * chance
    return counts_of(mdp, {z: round(n * p) for z, p in law.items()})


def test_dependent_indicators_where_aimi_is_wrong():
    mdp = ward()
    truth = mm.MissingnessFunction.from_patterns(mdp, dependent)
    counts = expected_counts(mdp, truth, 10**13)
    assert mm.total_variation(mm.ICIN().fit(counts).missingness_, truth).worst < 1e-9
    with pytest.warns(mm.AssumptionWarning):
        assert mm.total_variation(mm.AIMI().fit(counts).missingness_, truth).worst > 0.1


def test_error_falls_with_data():
    """ATV about 1/√n: over 100 times the data it falls at least fivefold."""
    mdp = ward()
    model = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, dependent))
    error = [
        mm.total_variation(
            mm.ICIN().fit(mm.collect(model, n, seed=3)).missingness_, model.missingness
        ).average
        for n in (2_000, 200_000)
    ]
    assert error[1] < 0.02
    assert error[1] < error[0] / 5.0


@pytest.mark.parametrize(
    "make",
    [mm.ICIN, partial(mm.ICIN, unseen="pooled"), partial(mm.ICIN, blocks=[("infection", "heart_rate")])],
)
@pytest.mark.filterwarnings("ignore::missmdp.errors.AssumptionWarning")
def test_the_contract_of_learners(make):
    data = mm.collect(mm.load_benchmark("icu-mnar-id"), 2000, seed=4)
    check_constructor(make)
    check_parameters_round_trip(make)
    if "blocks" not in getattr(make, "keywords", ()):
        check_what_is_learned(make, data)
        check_refusals(make, data)
        first, again = make().fit(data), make().fit(ObservationCounts.from_dataset(data))
        assert first.missingness_ == again.missingness_
        assert first.always_observed_ == ("test", "temperature")
        assert first.assumed_ == first.assumes
        assert first.unseen_
    else:
        with pytest.raises(mm.DataError, match="given as a block, but some observations show it in part"):
            make().fit(data)


def test_features_that_go_missing_together_are_a_block():
    mdp = ward()
    together = mm.MissingnessFunction.blocks(mdp, {("a", "b"): lambda s: 0.3 + 0.4 * s.c})
    log = mm.collect(mm.MissMDP(mdp, together), 5000, seed=0)
    learner = mm.ICIN().fit(log)
    assert learner.blocks_ == (("a", "b"),)
    assert len(learner.missingness_.patterns) == 2
    assert mm.total_variation(learner.missingness_, together).worst < 0.1
    assert mm.ICIN(blocks=[("b", "a")]).fit(log).missingness_ == learner.missingness_
    apart = mm.ICIN(blocks=[("a",), ("b",)])
    with pytest.warns(mm.AssumptionWarning, match="a; b: only missing together with more"):
        apart.fit(log)
    assert apart.blocks_ == (("a",), ("b",))
    assert len(apart.missingness_.patterns) == 4


def test_patterns_that_never_occur_are_told():
    """Smoothing keeps possible that a and b are missing at once, and a warning says so."""
    mdp = ward()
    either = mm.MissingnessFunction.from_patterns(
        mdp, lambda s: {(1, 1, 1): 0.4, (0, 1, 1): 0.3, (1, 0, 1): 0.3}
    )
    log = mm.collect(mm.MissMDP(mdp, either), 20_000, seed=1)
    learner = mm.ICIN()
    with pytest.warns(mm.AssumptionWarning, match=r"a \+ b: never missing at once"):
        learner.fit(log)
    assert mm.total_variation(learner.missingness_, either).worst < 0.1
    joint = learner.missingness_.probabilities[:, learner.missingness_.pattern_of((None, None, 0))]
    assert 0.0 < joint.max() < 1e-4


def test_values_without_complete_cases_are_told():
    mdp = ward()
    rows = {(0, 0, 0): 60, (None, 0, 0): 20, (0, None, 0): 30, (None, None, 0): 10, (None, None, 1): 5}
    learner = mm.ICIN().fit(counts_of(mdp, rows))
    alone = [u for u in learner.unseen_ if u.features == ("a", "b")]
    assert [u.given for u in alone] == [{"c": 1}]
    assert len(alone[0].states) == 9
    assert alone[0].gets == "uniform"
    # By hand: odds ⅓ and ½; 10 seen where 60 · ⅓ · ½ = 10 are expected.
    weights = np.array([1.0, 1 / 3, 1 / 2, 1 / 6])
    got = [learner.missingness_.probability(z, (0, 0, 0)) for z in list(rows)[:4]]
    assert got == pytest.approx(weights / weights.sum(), abs=1e-3)
    # Without complete cases nothing says how indicators depend on each other: all patterns are alike.
    assert learner.missingness_.distribution((2, 1, 1)) == pytest.approx(
        {(2, 1, 1): 0.25, (None, 1, 1): 0.25, (2, None, 1): 0.25, (None, None, 1): 0.25}
    )
    with pytest.warns(mm.AssumptionWarning, match="no observation shows every feature"):
        mm.ICIN().fit(counts_of(mdp, {(None, 0, 0): 20, (0, None, 0): 30}))


def test_without_smoothing_impossible_rows_are_told():
    complete = {(a, b, 1): 9 for a in range(3) for b in range(3)}
    rows = {**complete, (0, 0, 0): 9, (None, 0, 0): 2, (0, None, 0): 2, (None, None, 1): 3}
    learner = mm.ICIN(smoothing=0.0)
    with pytest.warns(mm.AssumptionWarning, match="3 observations are impossible under M̂"):
        learner.fit(counts_of(ward(), rows))
    assert np.isfinite(learner.missingness_.probabilities).all()


def test_foreign_rows_are_left_out():
    mdp = mm.FactoredMDP(
        {"a": range(2), "b": range(2)},
        ["wait"],
        lambda s, _: {(0, 0): 0.5, (1, 1): 0.5},
        lambda s, a: 0.0,
        {(0, 0): 1.0},
    )
    inside = {(0, 0): 8, (1, 1): 6, (None, 0): 3}
    with pytest.warns(mm.AssumptionWarning, match="7 of 24 observations have values that no state"):
        learner = mm.ICIN().fit(counts_of(mdp, {**inside, (0, 1): 7}))
    assert learner.missingness_ == mm.ICIN().fit(counts_of(mdp, inside)).missingness_


def test_there_is_no_bound_but_a_bootstrap():
    """Intervals are those of logs drawn anew, group by group, and say that they are no guarantee."""
    truth = mm.load_benchmark("predator-smar")
    learner = mm.ICIN().fit(mm.collect(truth, 500, seed=0))
    assert not learner.has_bound
    with pytest.raises(mm.DataError, match="no finite-sample bound.*AIMI has bounds"):
        learner.bound(0.9, "okamoto")
    bound = learner.bound(0.9, draws=20, seed=1)
    assert not bound.guaranteed
    assert bound.method == "bootstrap"
    assert 0.0 < bound.worst <= bound.tv < 1.0
    assert "They are not guaranteed" in bound.describe()
    states = [state for group in bound.per_group for state in _states_of(group, truth.mdp)]
    assert sorted(states) == np.flatnonzero(truth.mdp.reachable).tolist()
    for group in bound.per_group:
        assert ((group.lower <= group.estimate) & (group.estimate <= group.upper)).all()
        for state in _states_of(group, truth.mdp):
            assert np.array_equal(learner.missingness_.probabilities[state], group.estimate)


def _states_of(group, mdp):
    features = mdp.space.features
    chosen = mdp.reachable.copy()
    for name, value in group.given.items():
        place = features.position(name)
        chosen &= mdp.space.codes[:, place] == features.values[place].index(value)
    return np.flatnonzero(chosen).tolist()


def test_a_bootstrap_of_counts_draws_observations():
    """From counts alone, and from few episodes, single observations are drawn; each draw is as large as the log."""
    truth = mm.load_benchmark("predator-smar")
    log = mm.collect(truth, 400, seed=0, horizon=100)
    counts = mm.ObservationCounts.from_dataset(log)
    spreads = [mm.ICIN().fit(data).bound(draws=50).tv for data in (log, counts)]
    assert spreads[0] == spreads[1]
    many = mm.ICIN().fit(mm.collect(truth, 400, seed=0, horizon=4))
    assert 0.0 < many.bound(draws=50).tv < 1.0


WRONG = [
    ({"smoothing": -1}, "smoothing must be a number"),
    ({"unseen": "ignored"}, "unseen must be"),
    ({"always_observed": "test"}, "always_observed must be a list"),
    ({"always_observed": ["infection"]}, "'infection' is declared always observed, but it goes missing, in "),
    ({"blocks": "test"}, "blocks must be a list of lists"),
    ({"blocks": [("pulse",)]}, "no feature 'pulse'"),
    ({"blocks": [("test", "infection"), ("test",)]}, "in two blocks"),
]


@pytest.mark.parametrize(("choices", "message"), WRONG)
def test_wrong_parameters_are_refused(choices, message):
    log = mm.collect(mm.load_benchmark("icu-mnar-id"), 100, seed=0)
    with pytest.raises(mm.DataError, match=message):
        mm.ICIN(**choices).fit(log)


@pytest.mark.slow
def test_how_often_bootstrap_intervals_hold():
    """The figure in docs/learning.md: intervals for 95 % held for 91 to 93 % of the entries of M, over 60 logs each."""
    mdp = mm.FactoredMDP(
        features={"a": range(2), "b": range(2), "c": range(2)},
        actions=["wait"],
        transition=lambda s, _: {
            (a, b, c): (0.6 if a == s.a else 0.4) * (0.7 if b == a else 0.3) * (0.3 if c else 0.7)
            for a, b, c in product(range(2), repeat=3)
        },
        reward=lambda s, a: 0.0,
        initial={(0, 0, 0): 1.0},
        discount=0.9,
    )

    def patterns(state):
        """Odds of either gap depend on the other value, and double where the other is missing too."""
        rates = 0.25 + 0.2 * state.b + 0.1 * state.c, 0.2 + 0.3 * state.a
        odds = [rate / (1 - rate) for rate in rates]
        weights = {(1, 1, 1): 1.0, (0, 1, 1): odds[0], (1, 0, 1): odds[1], (0, 0, 1): 2.0 * odds[0] * odds[1]}
        total = sum(weights.values())
        return {tuple(map(bool, pattern)): weight / total for pattern, weight in weights.items()}

    truth = mm.MissMDP(mdp, mm.MissingnessFunction.from_patterns(mdp, patterns))
    order = [
        truth.missingness.patterns.tolist().index(p)
        for p in mm.ICIN().fit(log_of(truth, 500, 0)).missingness_.patterns.tolist()
    ]
    for steps in (500, 2000):
        inside = []
        for run in range(60):
            drawn = mm.ICIN().fit(log_of(truth, steps, run)).bootstrap(100, seed=run)
            low, high = np.quantile([one.probabilities for one in drawn], [0.025, 0.975], axis=0)
            known = truth.missingness.probabilities[:, order]
            inside.append((low <= known) & (known <= high))
        assert 0.90 < np.mean(inside) < 0.94


def log_of(truth, steps, run):
    return mm.collect(truth, steps, seed=50_000 + run, progress=False)


def test_few_rows_are_never_certain():
    truth = mm.load_benchmark("predator-smar")
    learner = mm.ICIN().fit(mm.collect(truth, 4, seed=0))
    with pytest.warns(mm.AssumptionWarning, match="4 observations are too few for a bootstrap"):
        bound = learner.bound(draws=5)
    assert bound.tv == 1.0
    assert all((group.upper == 1.0).all() for group in bound.per_group)

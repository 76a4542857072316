"""Tests of what learners assume: they keep their level where it holds, and find what is wrong where it does not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import missmdp as mm
from missmdp.data.counts import ObservationCounts
from missmdp.learn import assumptions
from missmdp.learn.assumptions import _chi_square, _log_p_of_pair, few_samples
from oracles.logs import counts_of

FAILURE = 1e-6
"""Probability with which a simulation here fails by chance, per test, if the level is kept; seeds are fixed."""

LEVEL = 0.02
"""The level at which false alarms are counted; reports ask for 1e-4, too few to count."""


# The p-values


@st.composite
def dense_tables(draw):
    shape = (draw(st.integers(1, 4)), draw(st.integers(2, 4)), draw(st.integers(2, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(60, 200, size=shape)


@given(dense_tables())
def test_chi_square_is_scipys_added_over_strata(table):
    """With the factor (n − 1)/n in each stratum."""
    statistic = degrees = 0.0
    for stratum in table:
        result = stats.chi2_contingency(stratum, correction=False)
        statistic += result.statistic * (1 - 1 / stratum.sum())
        degrees += result.dof
    assert _chi_square(table) == pytest.approx(stats.chi2.sf(statistic, degrees), rel=1e-9, abs=1e-300)


def test_sparse_rows_columns_and_strata_are_left_out():
    dense = np.array([[120, 80], [100, 130]])
    p = _chi_square(dense[None])
    assert p == pytest.approx(_chi_square(np.stack([dense, [[3, 0], [0, 3]]])))
    assert p == pytest.approx(_chi_square(np.vstack([dense, [[1, 0]]])[None]), rel=0.05)
    assert p == pytest.approx(_chi_square(np.array([[[120, 80, 0], [100, 130, 2]]])), rel=0.05)
    for nothing in ([[[0, 0], [0, 0]]], [[[500, 0], [300, 0]]], [[[500, 400], [0, 0]]], [[[5, 1], [0, 4]]]):
        assert _chi_square(np.array(nothing)) == 1.0


def test_the_statistic_has_its_mean_whatever_the_margins():
    """Given the margins the mean is the degrees of freedom, exactly: else many strata would add up to an alarm."""
    for n1, n2, m in ((200, 200, 180), (300, 150, 200), (400, 900, 300)):
        k = np.arange(max(0, m - n2), min(n1, m) + 1)
        weight = stats.hypergeom.pmf(k, n1 + n2, m, n1)
        values = [stats.chi2.isf(_chi_square(np.array([[[x, n1 - x], [m - x, n2 - m + x]]])), 1) for x in k]
        some = weight > 1e-12
        assert float(weight[some] @ np.array(values)[some]) == pytest.approx(1.0, abs=1e-6)


def test_many_small_strata_do_not_add_up_to_an_alarm():
    """40,000 strata of 50 rows each; p-values below 0.01 have probability 0.01 each of 20 times."""
    rng = np.random.default_rng(0)
    low = 0
    for _ in range(20):
        a, b = rng.binomial(25, 0.5, size=(2, 40_000))
        low += _chi_square(np.stack([np.stack([a, 25 - a], 1), np.stack([b, 25 - b], 1)], 1)) < 0.01
    assert stats.binomtest(low, 20, 0.01, alternative="greater").pvalue > FAILURE


@pytest.mark.parametrize(
    ("n1", "n2", "m"), [(110, 10_000, 500), (60, 2000, 200), (30, 200, 40), (25, 25, 25)]
)
def test_the_exact_level_of_one_table_is_near_the_nominal_one(n1, n2, m):
    """One stratum, smallest expected count 5: at a level of 1e-4, the chi-square distribution errs by a factor < 5."""
    k = np.arange(max(0, m - n2), min(n1, m) + 1)
    weight = stats.hypergeom.pmf(k, n1 + n2, m, n1)
    p = np.array([_chi_square(np.array([[[x, n1 - x], [m - x, n2 - m + x]]])) for x in k])
    assert weight[p < 1e-2].sum() < 1.5e-2
    assert weight[p < 1e-4].sum() < 5e-4


# The level


def sticky(features):
    """Return an MDP whose state mostly stays: successive rows are anything but independent."""
    states = list(product(*features.values()))
    n = len(states)
    drift = np.roll(np.eye(n), 1, axis=1)
    return mm.FactoredMDP(
        features,
        ["go"],
        [0.9 * np.eye(n) + 0.07 * drift + 0.03 / n],
        np.zeros((n, 1)),
        np.eye(n)[0],
        np.zeros(n, bool),
        0.98,
    )


def mcar(mdp):
    """Patterns that depend on each other, but on no value."""
    return mm.MissingnessFunction.from_patterns(
        mdp, lambda s: {(1, 1, 1): 0.3, (1, 0, 0): 0.3, (1, 1, 0): 0.15, (1, 0, 1): 0.25}
    )


def simple_mar(mdp):
    """Patterns of b and c that depend on each other and on a, which is always shown."""
    tables = (
        {(1, 1, 1): 0.5, (1, 0, 0): 0.4, (1, 0, 1): 0.1},
        {(1, 1, 1): 0.1, (1, 0, 0): 0.2, (1, 1, 0): 0.7},
        {(1, 1, 1): 0.4, (1, 0, 1): 0.6},
    )
    return mm.MissingnessFunction.from_patterns(mdp, lambda s: tables[s.a])


def by_each_others_values(mdp):
    """Whether b is missing depends on the value of c and the other way round, given which they are independent."""
    return mm.MissingnessFunction.independent(
        mdp,
        {
            "a": 0.1,
            "b": lambda s: 0.1 + 0.7 * s.c * (s.a != 1),
            "c": lambda s: (0.2, 0.4, 0.8)[s.b] if s.a else 0.5,
        },
    )


def by_parents(mdp):
    """Missing b by the value of c, and c by a, as the m-graph says."""
    return mm.MissingnessFunction.independent(
        mdp, {"b": lambda s: 0.1 + 0.6 * s.c, "c": lambda s: (0.2, 0.4, 0.8)[s.a]}
    )


FEATURES = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1]}
GRAPH = mm.MissingnessGraph([("c", "b"), ("a", "c")], features=FEATURES)
NULLS = {
    "MCAR, AMCAR": (mcar, mm.AMCAR),
    "MCAR, AsMAR": (mcar, mm.AsMAR),
    "simple MAR, AsMAR": (simple_mar, mm.AsMAR),
    "each other's values, AIMI": (by_each_others_values, mm.AIMI),
    "parents, AIMI with the m-graph": (by_parents, lambda: mm.AIMI(graph=GRAPH)),
    "parents, AIMI": (by_parents, mm.AIMI),
}


@pytest.mark.parametrize("steps", [300, 3000])
@pytest.mark.parametrize("null", NULLS)
def test_alarms_are_false_as_seldom_as_they_say(null, steps, monkeypatch):
    """150 logs of a model in which the assumption holds: alarms of each kind at a rate of at most LEVEL.

    A binomial test against LEVEL fails by chance with probability FAILURE at most.
    """
    monkeypatch.setattr(assumptions, "_CLEAR", LEVEL)
    make_missingness, make = NULLS[null]
    mdp = sticky(FEATURES)
    model = mm.MissMDP(mdp, make_missingness(mdp))
    alarms = {"value": 0, "independently": 0}
    repeats = 150
    for seed in range(repeats):
        data = mm.collect(model, steps, seed=seed, horizon=1000, threads=1)
        for kind in alarms:
            alarms[kind] += any(kind in str(f) and f.p_value is not None for f in findings(make(), data))
    for count in alarms.values():
        assert stats.binomtest(count, repeats, LEVEL, alternative="greater").pvalue > FAILURE


def findings(learner, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("missmdp.learn.base.warnings.warn", lambda *a, **k: None)
        return learner.fit(data).warnings_


def test_reports_ask_for_clear_evidence():
    assert assumptions._CLEAR == 1e-4


# The power


def benchmark_findings(learner, name, steps, seed=0):
    with pytest.warns(mm.AssumptionWarning):
        return learner.fit(mm.collect(mm.load_benchmark(name), steps, seed=seed)).warnings_


@pytest.mark.parametrize(("name", "steps"), [("predator-smar", 20_000), ("predator-mcar", 100_000)])
def test_aimi_finds_that_the_predators_coordinates_go_missing_together(name, steps):
    found = [f for f in benchmark_findings(mm.AIMI(), name, steps) if f.p_value is not None]
    assert [f.features for f in found] == [("x", "y")]
    assert found[0].p_value < 1e-20
    assert "blocks=[('x', 'y')]" in str(found[0])


def test_blocks_settle_it():
    data = mm.collect(mm.load_benchmark("predator-smar"), 20_000, seed=0)
    assert mm.AIMI(blocks=[("x", "y")]).fit(data).warnings_ == ()
    assert mm.AIMI(blocks=[("x", "y")], assume="simple MAR").fit(data).warnings_ == ()


def test_asmar_finds_what_depends_on_values_that_go_missing():
    found = benchmark_findings(mm.AsMAR(), "icu-mnar-id", 20_000)
    assert found
    assert all("simple MAR rules out" in str(f) and f.p_value < 1e-4 for f in found)
    truth = mm.load_benchmark("icu-mnar-id").mgraph()
    always = truth.always_observed
    drivers = {parent for parent, _ in truth.edges if parent not in always}
    assert {f.features[-1] for f in found} & drivers


def test_amcar_finds_what_depends_on_values():
    found = benchmark_findings(mm.AMCAR(), "icu-smar", 20_000)
    drivers = {parent for parent, _ in mm.load_benchmark("icu-smar").mgraph().edges}
    assert drivers <= {f.features[-1] for f in found}
    assert all("MCAR rules out" in str(f) for f in found)


@pytest.mark.parametrize("name", ["icu-smar", "predator-smar", "predator-mcar"])
def test_asmar_has_nothing_to_say_where_its_assumption_holds(name):
    """Seeds are fixed; each log raises a false alarm with probability 1e-4 or so."""
    for seed in range(5):
        assert findings(mm.AsMAR(), mm.collect(mm.load_benchmark(name), 20_000, seed=seed)) == ()


def test_an_m_graph_without_an_edge_that_is_there_is_found():
    mdp = sticky(FEATURES)
    data = mm.collect(mm.MissMDP(mdp, by_parents(mdp)), 5000, seed=0)
    wrong = mm.MissingnessGraph([("c", "b")], features=FEATURES, can_go_missing=["b", "c"])
    with pytest.warns(mm.AssumptionWarning, match="c: what is missing depends on the value of a"):
        found = mm.AIMI(graph=wrong).fit(data).warnings_
    assert [f.features for f in found] == [("c", "a")]
    with pytest.warns(mm.AssumptionWarning, match="which MCAR rules out"):
        mm.AIMI(assume="MCAR").fit(data)


def test_dependent_indicators_are_found_in_either_order():
    """Missing b and c come together more often than each on its own."""
    mdp = sticky(FEATURES)
    data = mm.collect(mm.MissMDP(mdp, mcar(mdp)), 5000, seed=0)
    with pytest.warns(mm.AssumptionWarning, match="b and c: taken to go missing independently"):
        learner = mm.AIMI().fit(data)
    b, c = learner.counts_
    counts = ObservationCounts.from_dataset(data)
    assert _log_p_of_pair(counts, b, c) < -20
    assert _log_p_of_pair(counts, c, b) < -20


def p_of_pair(rows, rest_values, j_values):
    """Return the p-value that b is missing, where c is missing too, as often as at some value of c, by a.

    Fisher's exact test against every value of c in both directions, the largest p-value of each, Fisher's method
    over the values of a, and twice the smaller one.
    """
    both = []
    for more in (True, False):
        chosen = []
        for a in rest_values:
            hidden = [b is None for (x, b, c), n in rows.items() for _ in range(n) if x == a and c is None]
            if not hidden:
                continue
            each = []
            for v in j_values:
                shown = [b is None for (x, b, c), n in rows.items() for _ in range(n) if x == a and c == v]
                table = [[sum(s), len(s) - sum(s)] for s in (hidden, shown)]
                ahead = (sum(hidden) * len(shown) - sum(shown) * len(hidden)) * (1 if more else -1)
                test = stats.fisher_exact(table, alternative="greater" if more else "less")
                each.append(test.pvalue if ahead > 0 else 1.0)
            chosen.append(max(each))
        both.append(stats.combine_pvalues(chosen, method="fisher").pvalue)
    return 2 * min(both)


@given(st.integers(0, 2**32 - 1))
def test_the_test_of_a_pair_is_what_it_says(seed):
    """Random tables of a shown, b and c shown or not, with and without dependence."""
    rng = np.random.default_rng(seed)
    mdp = sticky(FEATURES)
    rows = {
        (a, b, c): int(rng.integers(0, 25) * (4 if b is None and c is None else 1))
        for a, b, c in product([0, 1, 2], [0, None], [0, 1, None])
    }
    rows = {z: n for z, n in rows.items() if n}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("missmdp.learn.base.warnings.warn", lambda *a, **k: None)
        learner = mm.AIMI().fit(counts_of(mdp, rows))
    parts = {part.features: part for part in learner.counts_}
    if (("b",) not in parts) or (("c",) not in parts):
        return
    got = _log_p_of_pair(counts_of(mdp, rows), parts["b",], parts["c",])
    assert math.exp(got) == pytest.approx(p_of_pair(rows, [0, 1, 2], [0, 1]), rel=1e-6)


def test_p_values_are_multiplied_by_the_number_of_tests(monkeypatch):
    """Three features for AMCAR to depend on, three pairs for AIMI: 1e-4 is split over them."""
    mdp = sticky(FEATURES)
    rows = counts_of(mdp, {(0, 0, 0): 500, (None, 0, 0): 300, (0, None, 0): 200, (0, 0, None): 100})
    for p_value, said in ((3.2e-5, 3), (3.5e-5, 0)):
        monkeypatch.setattr(assumptions, "_chi_square", lambda table, p=p_value: p)
        # The smaller of two directions counts twice.
        monkeypatch.setattr(assumptions, "_log_p_of_pair", lambda counts, i, j, p=p_value: math.log(p / 2))
        assert len(findings(mm.AMCAR(), rows)) == said
        assert len(findings(mm.AIMI(), rows)) == said


# What needs no test


def test_few_samples_are_mentioned():
    mdp = sticky(FEATURES)
    rows = {(0, 0, None): 30, (0, 0, 1): 28}
    with pytest.warns(mm.AssumptionWarning, match="a, b: taken as always observed on 58 observations only"):
        mm.AsMAR().fit(counts_of(mdp, rows))
    with pytest.warns(mm.AssumptionWarning, match="^b: taken"):
        mm.AsMAR(always_observed=["a"]).fit(counts_of(mdp, rows))
    assert mm.AsMAR(always_observed=["a", "b"]).fit(counts_of(mdp, rows)).warnings_ == ()
    assert mm.AIMI().fit(counts_of(mdp, rows)).warnings_ == ()
    with pytest.warns(mm.AssumptionWarning, match="58 observations only"):
        mm.AIMI(assume="simple MAR").fit(counts_of(mdp, rows))


def test_few_means_that_one_in_twenty_could_still_be_missing():
    """59 rows without a missing one exclude a rate of 5 % with 95 % confidence, 58 do not."""
    mdp = sticky(FEATURES)
    for n, said in ((58, True), (59, False)):
        assert bool(list(few_samples(counts_of(mdp, {(0, 0, 0): n}), declared=()))) is said
        assert (0.95**n > 0.05) is said


def test_never_observed_features_are_mentioned():
    mdp = sticky(FEATURES)
    with pytest.warns(mm.AssumptionWarning, match="c: missing in every observation"):
        learner = mm.AIMI().fit(counts_of(mdp, {(0, 0, None): 500, (1, 0, None): 300}))
    assert [f.features for f in learner.warnings_] == [("c",)]
    assert learner.warnings_[0].p_value is None


def test_broken_blocks_are_mentioned_and_left_out():
    mdp = sticky(FEATURES)
    rows = {(0, 0, 0): 60, (0, None, None): 40, (0, None, 1): 7, (1, 2, None): 5}
    with pytest.warns(mm.AssumptionWarning, match="b, c: given as a block, but seen in part in 12 of 112"):
        learner = mm.AIMI(blocks=[("b", "c")], smoothing=0).fit(counts_of(mdp, rows))
    assert learner.missingness_.distribution((0, 1, 1)) == {(0, 1, 1): 0.6, (0, None, None): 0.4}
    assert learner.counts_[0].left_out == 12


def test_rows_outside_the_model_are_mentioned_once():
    mdp = mm.FactoredMDP(
        {"a": [0, 1], "b": [0, 1]},
        ["go"],
        [np.eye(2)],
        np.zeros((2, 1)),
        np.full(2, 0.5),
        np.zeros(2, bool),
        0.5,
        states=[(0, 0), (0, 1)],
    )
    counts = counts_of(mdp, {(0, 0): 300, (0, None): 200, (1, 0): 4, (1, None): 3})
    with pytest.warns(mm.AssumptionWarning, match="7 of 507 observations have values that no state"):
        learner = mm.AIMI().fit(counts)
    assert len(learner.warnings_) == 1
    assert str(learner.warnings_[0]) == learner.warnings_[0].message


def test_what_is_assumed_sharpens_the_test_of_independence():
    """Under simple MAR the value of y cannot explain that x goes missing with it: few rows show that (seed 0)."""
    data = mm.collect(mm.load_benchmark("predator-smar"), 500, seed=0)
    with pytest.warns(mm.AssumptionWarning, match="x and y: taken to go missing independently"):
        mm.AIMI(assume="simple MAR").fit(data)
    assert mm.AIMI(assume="simple MAR", blocks=[("x", "y")]).fit(data).warnings_ == ()


def test_ignoring_what_goes_missing_is_mentioned():
    data = mm.collect(mm.load_benchmark("icu-smar"), 5_000, seed=0)
    with pytest.warns(mm.AssumptionWarning, match="^infection: goes missing"):
        mm.AsMAR(ignore=["infection"]).fit(data)


def test_a_block_that_is_no_list_is_refused():
    data = mm.collect(mm.load_benchmark("predator-smar"), 500, seed=0)
    with pytest.raises(mm.DataError, match=r"such as \[\('x', 'y'\)\]; 'x' is no list"):
        mm.AIMI(blocks=("x", "y")).fit(data)

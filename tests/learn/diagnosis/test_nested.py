"""Likelihood-ratio tests against closed forms, brute force and their level."""

import numpy as np
import pytest
from scipy import optimize, stats

import missmdp as mm
from learn.diagnosis.wards import models, ward
from missmdp.learn.blocks import Blocks
from missmdp.learn.diagnosis import nested_tests
from missmdp.learn.diagnosis.classes import ALL, MCAR, NO_SELF, SIMPLE, Best
from missmdp.learn.diagnosis.nested_tests import chain_tests, own_tests
from missmdp.learn.em.histories import prepare_histories
from missmdp.learn.em.iterate import asmar_table
from missmdp.learn.em.search import Searcher

MDP = ward()
TRUTHS = models(MDP)


def test_mcar_against_simple_mar_is_the_g_test():
    """With one block and one reason that is always seen: a contingency table, with or without the dynamics."""
    log = mm.collect(TRUTHS["block"], 700, seed=2, horizon=40)
    missing = log.observations[:, 1] == mm.MISSING
    table = [[(missing[log.observations[:, 0] == w] == m).sum() for m in (True, False)] for w in (0, 1)]
    expected = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    for mdp in (MDP, None):
        test = mm.diagnose(log, mdp, draws=0).tests[0]
        assert (test.null, test.alternative, test.freedom) == ("MCAR", "simple MAR", expected.dof)
        assert test.statistic == pytest.approx(expected.statistic, abs=0.02)
        assert test.p_value == pytest.approx(expected.pvalue, abs=0.01)


def test_dependent_blocks_add_up_as_conditional_tables():
    """Two blocks: the second is tested within each state of the first, which the chain rule allows."""
    log = mm.collect(TRUTHS["dependent"], 900, seed=5, horizon=40)
    ward_, fever, pulse = (log.observations[:, 0], *(log.observations[:, i] == mm.MISSING for i in (1, 2)))

    def fit(columns, outcome):
        def loss(effects):
            odds = columns @ effects
            return float(np.logaddexp(0.0, odds).sum() - outcome @ odds)

        return -optimize.minimize(loss, np.zeros(columns.shape[1]), method="BFGS").fun

    one = np.ones(log.n_steps)
    narrow = fit(np.stack([one], 1), fever) + fit(np.stack([one, fever], 1), pulse)
    wide = fit(np.stack([one, ward_], 1), fever) + fit(np.stack([one, fever, ward_], 1), pulse)
    test = mm.diagnose(log, MDP, draws=0).tests[0]
    assert test.freedom == 2
    assert test.statistic == pytest.approx(2.0 * (wide - narrow), abs=0.02)


@pytest.mark.parametrize("rates", [(0.4, 0.55), (0.9, 0.95)])
@pytest.mark.parametrize("plain", [15, 2])
def test_self_censoring_is_tested_by_the_likelihood_of_histories(monkeypatch, rates, plain):
    """One feature that is the whole state: the likelihood by brute force, maximised numerically.

    With few plain iterations leaps have to do the rest.
    """
    monkeypatch.setattr("missmdp.learn.diagnosis.nested_tests._FIRST", plain)
    leaps = []
    leap = nested_tests._squarem_step
    monkeypatch.setattr(
        "missmdp.learn.diagnosis.nested_tests._squarem_step", lambda *a: leaps.append(a) or leap(*a)
    )
    mdp = mm.FactoredMDP(
        features={"x": [0, 1]},
        actions=["wait"],
        transition=lambda s, a: {(s.x,): 0.8, (1 - s.x,): 0.2},
        reward=0.0,
        initial={(0,): 0.3, (1,): 0.7},
        discount=0.9,
    )
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": lambda s: rates[s.x]}))
    log = mm.collect(truth, 600, seed=1, horizon=15)
    moves = np.array([[0.8, 0.2], [0.2, 0.8]])

    def log_likelihood(missing):
        total = 0.0
        for first, last in zip(log.offsets[:-1], log.offsets[1:], strict=True):
            belief = np.array([0.3, 0.7])
            for seen in log.observations[first:last, 0]:
                chance = missing if seen == mm.MISSING else (1.0 - missing) * (np.arange(2) == seen)
                joint = belief * chance
                total += np.log(joint.sum())
                belief = joint / joint.sum() @ moves
        return total

    wide = optimize.minimize(
        lambda r: -log_likelihood(r), [0.5, 0.5], bounds=[(0.001, 0.999)] * 2, method="L-BFGS-B"
    )
    narrow = optimize.minimize_scalar(
        lambda r: -log_likelihood(np.array([r, r])), bounds=(0.001, 0.999), method="bounded"
    )
    found = mm.diagnose(log, mdp, draws=0)
    assert bool(leaps) == (plain == 2)
    (chain,), (own,) = found.tests, found.own_tests
    assert (chain.null, chain.alternative) == ("MCAR", "all parents")
    assert chain.statistic == pytest.approx(2.0 * (narrow.fun - wide.fun), abs=0.03)
    assert chain.p_value == pytest.approx(stats.chi2.sf(chain.statistic, 1))
    assert (own.features, own.statistic) == (("x",), chain.statistic)


def test_values_that_hardly_occur_are_not_tested():
    """A reason with one rare value has no degree of freedom for it."""
    mdp = mm.FactoredMDP(
        features={"site": ["n", "s", "rare"], "x": [0, 1]},
        actions=["wait"],
        transition=lambda s, a: {
            (site, x): p / 2 for site, p in (("n", 0.6), ("s", 0.395), ("rare", 0.005)) for x in (0, 1)
        },
        reward=0.0,
        initial={("n", 0): 1.0},
        discount=0.9,
    )
    truth = mm.MissMDP(mdp, mm.MissingnessFunction.independent(mdp, {"x": 0.3}))
    few, many = (mm.diagnose(mm.collect(truth, n, seed=0), draws=0).tests[0] for n in (1000, 40_000))
    assert (few.freedom, many.freedom) == (1, 2)


def rows_of(log):
    """Return the tests of a log whose classes have all found what MCAR has; the search would take longer."""
    counts = mm.ObservationCounts.from_dataset(log)
    blocks = Blocks.seen_in(MDP, counts.observed)
    prior = asmar_table(counts, blocks)
    searcher = Searcher(MDP, blocks, prepare_histories(log, blocks), prior, 1.0)
    order = tuple(range(len(blocks.names)))
    nothing = searcher.from_table([((), tuple(range(i))) for i in order], prior)
    names = (MCAR, SIMPLE, NO_SELF, ALL) if len(order) > 1 else (MCAR, SIMPLE, ALL)
    classes = [Best(name, order, nothing) for name in names]
    chain = list(chain_tests(searcher, classes, 0.01))
    return [*chain, *own_tests(searcher, classes, classes[0], chain, 0.01)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "dependent", "block"])
def test_under_mcar_tests_reject_at_their_level(name):
    """A binomial test at 1e-3 for each test and level, over logs that are all MCAR."""
    p_values: dict[tuple[str, ...], list[float]] = {}
    for seed in range(250):
        log = mm.collect(TRUTHS[name], 600, seed=10_000 + seed, horizon=40)
        for test in rows_of(log):
            p_values.setdefault((test.null, test.alternative, *test.features), []).append(test.p_value)
    assert len(p_values) == (3 if name == "block" else 5)
    for listed in p_values.values():
        assert len(listed) == 250
        for level in (0.01, 0.1, 0.5):
            rejected = sum(p < level for p in listed)
            assert stats.binomtest(rejected, len(listed), level).pvalue > 1e-3, (level, rejected)


@pytest.mark.slow
def test_under_mcar_a_whole_diagnosis_rejects_at_its_level():
    """The same with the search, which may find reasons by chance."""
    found = [
        mm.diagnose(mm.collect(TRUTHS["dependent"], 600, seed=20_000 + seed, horizon=40), MDP, draws=0)
        for seed in range(40)
    ]
    assert sum(one.type == "MCAR" for one in found) >= 36
    p_values = np.array([[test.p_value for test in one.tests] for one in found])
    for level in (0.01, 0.1):
        for rejected in (p_values < level).sum(axis=0):
            assert stats.binomtest(int(rejected), len(found), level, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", mm.list_benchmarks())
def test_benchmarks_are_diagnosed(name):
    truth = mm.load_benchmark(name)
    found = mm.diagnose(mm.collect(truth, 20_000, seed=11), truth.mdp, draws=0)
    assert found.type == truth.types().name
    assert found.self_censoring == truth.types().self_censoring

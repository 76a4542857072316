"""Lumps, trees and searches: against all partitions, and on data whose structure is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import missmdp as mm
from missmdp.data.counts import as_counts
from missmdp.learn.blocks import Blocks
from missmdp.learn.em.histories import prepare_histories
from missmdp.learn.em.trees import best_lumps, block_cells, entropy_gain, grow, log_partitions


def partitions(values: list[int]):
    if not values:
        yield []
        return
    first, rest = values[0], values[1:]
    for smaller in partitions(rest):
        for i, group in enumerate(smaller):
            yield [*smaller[:i], [first, *group], *smaller[i + 1 :]]
        yield [[first], *smaller]


@pytest.mark.parametrize("seed", range(40))
def test_the_best_of_all_partitions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    rates = rng.choice([0.1, 0.5, 0.8, 0.81], size=n)
    size = rng.integers(1, 200, size=n)
    missing = rng.binomial(size, rates)
    counts = np.stack([size - missing, missing], axis=1).astype(float)
    log_n, extra = 7.0, 1.3
    found = best_lumps(counts, log_n, extra)

    def score(groups):
        if len(groups) == 1:
            return 0.0
        gain = sum(float(entropy_gain(counts[group].sum(axis=0))) for group in groups)
        gain -= float(entropy_gain(counts.sum(axis=0)))
        cost = 0.5 * (len(groups) - 1) * log_n + log_partitions(n, len(groups)) + math.log(n) + extra
        return gain - cost

    best = max(partitions(list(range(n))), key=score)
    assert found.gain == pytest.approx(max(0.0, score(best)), abs=1e-9)
    own = [np.flatnonzero(found.label == lump).tolist() for lump in range(found.count)]
    assert score(own) == pytest.approx(found.gain, abs=1e-9)


def test_numbers_of_partitions():
    for n, m in itertools.product(range(1, 8), repeat=2):
        if m <= n:
            count = sum(len(one) == m for one in partitions(list(range(n))))
            assert log_partitions(n, m) == pytest.approx(math.log(count))
    # The approximation for many values goes on where the exact count ends.
    assert log_partitions(61, 3) == pytest.approx(log_partitions(60, 3) + math.log(3.0), abs=1e-3)


def test_a_tree_finds_the_reasons():
    """The second feature matters only where the first is 1."""
    mdp = mm.FactoredMDP(
        features={"a": range(2), "b": range(4), "c": range(3), "d": range(2)},
        actions=["go"],
        transition=lambda s, act: {s: 1.0},
        reward=lambda s, act: 0.0,
        initial=dict.fromkeys(itertools.product(range(2), range(4), range(3), range(2)), 1.0 / 48),
        discount=0.9,
    )
    blocks = Blocks.of(mdp.space.features, [("d",)])
    cells = block_cells(mdp, blocks, 0, ("a", "b", "c", "d"), ())
    rng = np.random.default_rng(0)
    rate = np.array([0.2 if a == 0 else (0.4, 0.4, 0.9, 0.9)[b] for a, b, c, d in mdp.space.codes])
    size = rng.integers(150, 250, size=mdp.n_states)
    missing = rng.binomial(size, rate)
    expected = np.stack([size - missing, missing]).astype(float)
    tree = grow(cells, cells.factor.counts(expected), int(size.sum()))
    assert tree.asked == ("a", "b")
    assert tree.count == 3
    groups = {tuple(sorted(set(rate[tree.leaf[cells.factor.label[0]] == leaf]))) for leaf in range(3)}
    assert groups == {(0.2,), (0.4,), (0.9,)}


def test_dependent_indicators():
    """Whether the second is seen depends on whether the first is, and on nothing else."""
    truth = mm.load_benchmark("icu-smar")
    both = mm.MissingnessFunction.from_patterns(
        truth.mdp,
        lambda s: {(1, 1, 1, 1): 0.5, (0, 1, 1, 0): 0.3, (0, 1, 1, 1): 0.1, (1, 1, 1, 0): 0.1},
    )
    learner = mm.DynamicsEM(truth.mdp).fit(mm.collect(mm.MissMDP(truth.mdp, both), 5000, seed=1))
    assert learner.graph_.edges == ()
    assert learner.graph_.dependent == (("infection", "heart_rate"),)
    assert mm.total_variation(learner.missingness_, both).worst < 0.03


def test_some_of_the_histories():
    truth = mm.load_benchmark("predator-mnar-unid")
    log = mm.collect(truth, 20_000, seed=2)
    blocks = Blocks.seen_in(truth.mdp, as_counts(log).observed)
    histories = prepare_histories(log, blocks)
    assert histories.thinned(20_000) is histories
    some = histories.thinned(5000)
    assert abs(some.n_steps - 5000) < 1000
    table = np.full((2, truth.n_states), 0.5)
    assert some.expect(table).counts.sum() == pytest.approx(some.n_steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["icu-mnar-unid", "predator-mnar-unid"])
def test_a_quarter_of_the_error_of_the_paper_s_learners(name):
    """10⁵ steps: with the m-graph at most a quarter of the best of the others, with nothing given still less."""
    truth = mm.load_benchmark(name)
    for seed in range(3):
        log = mm.collect(truth, 100_000, seed=seed)

        def distance(learner, log=log):
            return mm.total_variation(learner.fit(log).missingness_, truth).average

        best = min(distance(learner) for learner in (mm.AMCAR(), mm.AsMAR(), mm.AIMI()))
        assert distance(mm.DynamicsEM(truth.mdp, truth.mgraph())) <= best / 4
        assert distance(mm.DynamicsEM(truth.mdp)) <= best / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("icu-smar", mm.AsMAR()),
        ("icu-mnar-id", mm.AIMI()),
        ("predator-smar", mm.AsMAR()),
        ("predator-mcar", mm.AMCAR()),
    ],
)
def test_no_worse_where_the_paper_s_learners_are_right(name, best):
    """10⁴ steps, structure found: on average no farther from M than the right learner, but for two errors."""
    truth = mm.load_benchmark(name)
    gaps = []
    for seed in range(8):
        log = mm.collect(truth, 10_000, seed=100 + seed)
        ours = mm.total_variation(mm.DynamicsEM(truth.mdp).fit(log).missingness_, truth).average
        gaps.append(ours - mm.total_variation(best.fit(log).missingness_, truth).average)
    assert np.mean(gaps) <= 2.0 * np.std(gaps, ddof=1) / math.sqrt(len(gaps)) + 1e-4

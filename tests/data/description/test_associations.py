"""Which differences `describe` lists: those of the widest gaps that chance does not explain."""

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binomtest, hypergeom

import missmdp as mm
from oracles import missing_tables as oracle
from random_logs import random_table, table_of
from strategies import seeds


@given(seeds())
def test_the_strongest_are_the_widest_gaps_between_intervals_that_are_clear_among_all_comparisons(seed):
    table = random_table(seed, [3, 4, 15], [True, False, True], 400, 30)
    found = mm.describe(table)
    candidates, comparisons = {}, 0
    for by in found.by_value:
        for i, feature in enumerate(found.features):
            if by.what == feature or not found.missing[i]:
                continue
            counts = [(int(k), int(n)) for k, n in zip(by.missing[:, i], by.rows, strict=True) if n >= 30]
            ends = [(count, binomtest(*count).proportion_ci(method="wilson")) for count in counts]
            pairs = [(low.low - high.high, a, b) for a, low in ends for b, high in ends if a is not b]
            comparisons += len(pairs) // 2
            gap, (k, n), (k2, n2) = max(pairs, default=(0.0, (0, 1), (0, 1)))
            if gap > 0.0:
                at_least = range(k, min(n, k + k2) + 1)
                candidates[feature, by.what] = gap, 2 * hypergeom.pmf(at_least, n + n2, k + k2, n).sum()
    expected = {pair: gap for pair, (gap, p) in candidates.items() if p * comparisons < 0.01}
    listed = found.strongest()
    assert {(a.feature, a.given): a.clear for a in listed} == pytest.approx(expected)
    assert [a.clear for a in listed] == pytest.approx(sorted(expected.values(), reverse=True))
    assert found.strongest(1) == listed[:1]
    for a in listed:
        assert a.p_value == pytest.approx(candidates[a.feature, a.given][1] * comparisons, rel=1e-6)
        rows, missing = oracle.missing_by(table, a.given, lambda v, a=a: str(v))
        if a.highest != "other":
            assert a.highest_rate == missing[a.highest, a.feature] / rows[a.highest]
        assert a.spread >= a.clear


def noise(seed, n_rows=1000, n_features=40):
    rng = np.random.default_rng(seed)
    columns = {}
    for i in range(n_features):
        # Rare gaps and rare values as well, where approximations by a normal distribution would fail.
        values = (rng.random(n_rows) ** 2 * rng.integers(2, 9)).astype(int).tolist()
        gaps = (rng.random(n_rows) < rng.choice([0.005, 0.05, 0.3, 0.7])).tolist()
        columns[f"f{i}"] = [None if gap else value for gap, value in zip(gaps, values, strict=True)]
    return table_of(**columns)


def test_noise_is_not_listed():
    """Each log lists something with probability 1 % at most, three of 20 with one of about 0.001."""
    assert sum(len(mm.describe(noise(seed)).strongest()) > 0 for seed in range(20)) <= 2
    assert sum(len(mm.describe(noise(seed)).strongest()) for seed in range(20)) <= 2


def test_what_depends_on_a_feature_is_found_among_noise():
    table = noise(0)
    rng = np.random.default_rng(1)
    table["late"] = [None if value == 0 and rng.random() < 0.6 else 1 for value in table["f0"]]
    assert [(a.feature, a.given, a.highest) for a in mm.describe(table).strongest()] == [("late", "f0", "0")]


def test_real_associations_are_found():
    model = mm.load_benchmark("icu-smar")
    found = mm.describe(mm.collect(model, 10_000, seed=0)).strongest()
    pairs = {(a.feature, a.given) for a in found}
    # The edges of its m-graph; see docs/benchmarks.md.
    assert {("infection", "test"), ("infection", "temperature"), ("heart_rate", "temperature")} <= pairs
    assert all(a.p_value < 0.01 for a in found)

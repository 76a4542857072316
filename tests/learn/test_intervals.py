"""Intervals and radii against independent computations, and their coverage by exact enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from missmdp.learn.limits import (
    clopper_pearson,
    divergence_interval,
    divergence_tv,
    mcdiarmid_radius,
    mixture_divergence,
    okamoto_radius,
    weissman_radius,
)

FAILURES = (0.3, 0.05, 0.003)
GRID = np.concatenate([[0.0, 1e-4, 1e-3], np.linspace(0.01, 0.99, 99), [0.999, 0.9999, 1.0]])
"""True probabilities of a binary event."""


def test_figures_at_a_thousand_samples_and_sixteen_patterns():
    """Okamoto for each of 16 cells adds up to .45; Weissman bounds the whole distribution by .084."""
    okamoto = okamoto_radius(1000, 0.05 / 16)
    weissman = weissman_radius(1000, 16, 0.05)
    assert 16 * okamoto / 2 == pytest.approx(0.45, abs=0.005)
    assert weissman == pytest.approx(0.084, abs=0.0005)


@given(st.integers(1, 10**7), st.floats(1e-12, 0.5))
def test_okamoto_solves_the_papers_inequality(n, failure):
    """2 exp(−2 n ε²) = 1 − δ (eq:okamoto)."""
    radius = float(okamoto_radius(n, failure))
    assert 2 * math.exp(-2 * n * radius**2) == pytest.approx(failure, rel=1e-9)


def test_tiny_budgets_give_finite_radii():
    """Budgets far below the rounding of 1, as adaptive behaviour leaves them after many samples."""
    assert okamoto_radius(10**6, 1e-30) == pytest.approx(math.sqrt((math.log(2) + 30 * math.log(10)) / 2e6))
    lower, upper = clopper_pearson(600_000, 10**6, 1e-30)
    assert 0.59 < lower < 0.6 < upper < 0.61


@pytest.mark.parametrize("radius", [okamoto_radius, lambda n, a: weissman_radius(n, 4, a)])
def test_no_samples_say_nothing(radius):
    assert radius(0, 0.05) == np.inf
    assert mcdiarmid_radius(0, 4, 0.05) == np.inf
    assert [float(end) for end in clopper_pearson(0, 0, 0.05)] == [0.0, 1.0]
    assert mixture_divergence(np.zeros((1, 3), dtype=np.int64), 3, 0.05).tolist() == [np.inf]


@given(st.integers(1, 400), st.data(), st.floats(1e-6, 0.5))
def test_clopper_pearson_is_scipys(n, data, failure):
    k = data.draw(st.integers(0, n))
    expected = stats.binomtest(k, n).proportion_ci(1 - failure, method="exact")
    assert [float(x) for x in clopper_pearson(k, n, failure)] == pytest.approx(list(expected), abs=1e-9)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 21, 30])
def test_binary_intervals_cover_every_probability(n, failure):
    """Exact coverage, summed over all outcomes: never below nominal."""
    k = np.arange(n + 1)
    weight = stats.binom.pmf(k, n, GRID[:, None])
    exact = clopper_pearson(k, n, failure)
    radius = okamoto_radius(n, failure)
    for lower, upper in (exact, (k / n - radius, k / n + radius)):
        covered = (lower <= GRID[:, None]) & (GRID[:, None] <= upper)
        assert (weight * covered).sum(axis=1).min() >= 1 - failure - 1e-12
    # Not vacuous: the exact interval is never wider than Okamoto's, as soon as there are a few samples.
    if n >= 8:
        assert (exact[1] - exact[0]).max() <= 2 * radius


def compositions(n, k):
    """Return every way to spread n samples over k categories, shape (…, k)."""
    if k == 1:
        return np.array([[n]])
    return np.concatenate(
        [
            np.column_stack([np.full(len(rest), first), rest])
            for first in range(n + 1)
            for rest in [compositions(n - first, k - 1)]
        ]
    )


SIMPLEX = np.array([p for p in product(np.linspace(0, 1, 13), repeat=3) if abs(sum(p) - 1) < 1e-9])
"""Distributions over three categories, corners included."""


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("n", [1, 2, 4, 7, 12])
def test_radii_cover_every_distribution_over_three_categories(n, failure):
    """Exact coverage of TV balls, summed over all multinomial outcomes: never below nominal."""
    counts = compositions(n, 3)
    weight = np.array([stats.multinomial.pmf(counts, n, p) for p in SIMPLEX])
    assert weight.sum(axis=1) == pytest.approx(np.ones(len(SIMPLEX)))
    tv = 0.5 * np.abs(counts[None] / n - SIMPLEX[:, None]).sum(axis=2)
    kl = mixture_divergence(counts, 3, failure)
    for radius in (
        weissman_radius(n, 3, failure),
        mcdiarmid_radius(n, 3, failure),
        divergence_tv(counts / n, kl),
    ):
        assert (weight * (tv <= radius + 1e-12)).sum(axis=1).min() >= 1 - failure - 1e-12


def test_weissman_over_many_categories_does_not_overflow():
    steps = [float(weissman_radius(1000, k, 0.05)) for k in (48, 49, 50, 51)]
    assert np.diff(steps) == pytest.approx(np.full(3, np.diff(steps)[0]), rel=0.05)
    assert np.isfinite(weissman_radius(1000, 2**20, 0.05))


def test_mcdiarmid_is_smaller_than_weissman_where_categories_are_many():
    assert mcdiarmid_radius(1000, 4, 0.001) > weissman_radius(1000, 4, 0.001)
    assert mcdiarmid_radius(1000, 1024, 0.001) < weissman_radius(1000, 1024, 0.001)


# The mixture


def log_likelihood_ratio(counts, p, n_categories):
    """Return ln of the Dirichlet(½) mixture over p, as a product of one-step predictions."""
    total, seen = 0.0, np.zeros(n_categories)
    for k, count in enumerate(counts):
        for _ in range(count):
            total += math.log((seen[k] + 0.5) / (seen.sum() + 0.5 * n_categories) / p[k])
            seen[k] += 1
    return total


@given(st.lists(st.integers(0, 9), min_size=2, max_size=4), st.integers(0, 2), st.floats(1e-6, 0.5))
def test_the_mixture_is_a_product_of_predictions(counts, extra, failure):
    """KL(p̂ ‖ p) ≤ divergence exactly where the likelihood ratio is at most 1/failure."""
    n = sum(counts)
    if n == 0:
        return
    p = np.arange(1, len(counts) + 1.0)
    p = 0.9 * p / p.sum() if extra else p / p.sum()
    kl = sum(c / n * math.log(c / n / q) for c, q in zip(counts, p, strict=True) if c)
    divergence = mixture_divergence(np.array([counts]), len(counts) + extra, failure)[0]
    slack = log_likelihood_ratio(counts, p, len(counts) + extra) + math.log(failure)
    assert n * (kl - divergence) == pytest.approx(slack, abs=1e-9)


def ever_outside(p, horizon, failure):
    """Return P(kl(p̂_n ‖ p) > divergence for some n ≤ horizon), by going through all counts that stayed inside."""
    inside = {0: 1.0}
    lost = 0.0
    for n in range(1, horizon + 1):
        reached: dict[int, float] = {}
        for k, weight in inside.items():
            reached[k] = reached.get(k, 0.0) + weight * (1 - p)
            reached[k + 1] = reached.get(k + 1, 0.0) + weight * p
        ks = np.array(sorted(reached))
        divergence = mixture_divergence(np.column_stack([ks, n - ks]), 2, failure)
        lower, upper = divergence_interval(ks / n, divergence)
        out = (p < lower - 1e-12) | (p > upper + 1e-12)
        lost += sum(reached[int(k)] for k in ks[out])
        inside = {int(k): reached[int(k)] for k in ks[~out]}
    assert lost + sum(inside.values()) == pytest.approx(1.0)
    return lost


def ever_outside_fixed(p, horizon, failure):
    """The same for Clopper–Pearson at every n, which does not promise it."""
    inside, lost = {0: 1.0}, 0.0
    for n in range(1, horizon + 1):
        reached: dict[int, float] = {}
        for k, weight in inside.items():
            reached[k] = reached.get(k, 0.0) + weight * (1 - p)
            reached[k + 1] = reached.get(k + 1, 0.0) + weight * p
        inside = {}
        for k, weight in reached.items():
            lower, upper = clopper_pearson(k, n, failure)
            if lower <= p <= upper:
                inside[k] = weight
            else:
                lost += weight
    return lost


@pytest.mark.parametrize("failure", [0.2, 0.05])
@pytest.mark.parametrize("p", [0.02, 0.17, 0.5, 0.8, 0.97])
def test_the_mixture_holds_at_every_time_at_once(p, failure):
    """Exact, over all paths of 60 binary outcomes."""
    assert ever_outside(p, 60, failure) <= failure


def test_looking_at_fixed_intervals_all_the_time_does_not_hold():
    """Why adaptive behaviour needs the mixture: the best moment to stop makes fixed intervals fail."""
    assert ever_outside_fixed(0.5, 60, 0.2) > 0.2


@given(st.floats(0.0, 1.0), st.floats(1e-6, 3.0))
def test_divergence_intervals_solve_for_the_divergence(frequency, divergence):
    lower, upper = divergence_interval(np.array([frequency]), np.array([divergence]))

    def kl(q):
        return sum(
            a * math.log(a / b) if a > 0 else 0.0
            for a, b in ((frequency, q), (1 - frequency, 1 - q))
            if b > 0 or a > 0
        )

    assert 0.0 <= lower[0] <= frequency <= upper[0] <= 1.0
    if 1e-9 < frequency < 1 - 1e-9:
        ends = (
            optimize.brentq(lambda q: kl(q) - divergence, frequency, 1 - 1e-16)
            if kl(1 - 1e-16) > divergence
            else 1.0,
            optimize.brentq(lambda q: kl(q) - divergence, 1e-300, frequency)
            if kl(1e-300) > divergence
            else 0.0,
        )
        assert (upper[0], lower[0]) == pytest.approx(ends, abs=1e-9)
    elif frequency == 0.0:
        assert upper[0] == pytest.approx(1 - math.exp(-divergence))
        assert lower[0] == pytest.approx(0.0, abs=1e-15)


FINE = np.array([(i, j, 400 - i - j) for i in range(401) for j in range(401 - i)]) / 400


@pytest.mark.parametrize("divergence", [0.003, 0.05, 0.4, 1.5])
@pytest.mark.parametrize(
    "frequency", [(0.2, 0.3, 0.5), (0.0, 0.1, 0.9), (1.0, 0.0, 0.0), (1 / 3, 1 / 3, 1 / 3)]
)
def test_divergence_tv_is_the_largest_on_the_simplex(frequency, divergence):
    """Brute force over a grid of the simplex: never exceeded, and attained up to the grid."""
    p_hat = np.array(frequency)
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(p_hat > 0, p_hat * np.log(p_hat / FINE), 0.0).sum(axis=1)
    tv = 0.5 * np.abs(FINE - p_hat).sum(axis=1)
    largest = tv[kl <= divergence].max()
    bound = divergence_tv(p_hat[None], np.array([divergence]))[0]
    assert largest <= bound + 1e-12
    assert bound <= max(largest + 0.012, 0.0)


@pytest.mark.parametrize("divergence", [0.003, 0.05, 0.4, 1.5])
def test_divergence_tv_with_a_category_that_is_not_listed(divergence):
    """Leaving a category of frequency 0 out of the list does not change the answer."""
    for frequency in [(0.2, 0.8), (0.5, 0.5), (1.0, 0.0)]:
        listed = divergence_tv(np.array([frequency]), np.array([divergence]), unlisted=True)
        full = divergence_tv(np.array([(*frequency, 0.0)]), np.array([divergence]))
        assert listed == pytest.approx(full, abs=1e-12)


def test_beyond_a_million_sets_pinskers_inequality_is_used():
    frequency = np.full((1, 21), 1 / 21)
    assert divergence_tv(frequency, np.array([0.08]))[0] == pytest.approx(0.2)
    few = np.array([[0.9, 0.1]])
    assert divergence_tv(few, np.array([0.08]))[0] < 0.19
    many = divergence_tv(np.repeat(few, 300_000, axis=0), np.full(300_000, 0.08))
    assert many == pytest.approx(0.2)


@pytest.mark.parametrize("n_features", [9, 10, 16, 40, 62])
def test_the_mixture_is_exact_for_any_number_of_patterns(n_features):
    """Against exact fractions: the mixture's probability is Π (½)_c / (K/2)_n, with rising factorials."""
    n_categories = 2**n_features
    counts = [7, 0, 3, 1, 12]
    mixture = Fraction(1)
    for times in counts:
        mixture *= math.prod((Fraction(1, 2) + i for i in range(times)), start=Fraction(1))
    mixture /= math.prod((Fraction(n_categories, 2) + i for i in range(sum(counts))), start=Fraction(1))
    best = math.prod((Fraction(times, sum(counts)) ** times for times in counts), start=Fraction(1))
    ratio = best / mixture / Fraction(0.05)
    expected = (math.log(ratio.numerator) - math.log(ratio.denominator)) / sum(counts)
    found = mixture_divergence(np.array([counts]), n_categories, 0.05)
    assert found[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_categories", [19, 20, 1023, 1024, 2**16])
def test_many_categories_take_pinskers_inequality(n_categories):
    """Sets of categories are tried up to a million; beyond, nothing overflows."""
    frequency = np.full((1, n_categories), 1.0 / n_categories)
    found = divergence_tv(frequency, np.array([0.02]))
    pinsker = math.sqrt(0.02 / 2.0)
    assert found[0] <= pinsker
    assert n_categories < 20 or found[0] == pinsker

"""Normalised values: errors of a ratio against resampling, intervals against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import missmdp as mm

QUIET = {"progress": False}
MEANS = np.array([3.0, 4.0, 1.0])
"""Value, optimal and prior: the normalised value is 2/3."""
TRUTH = 2.0 / 3.0
MODEL = mm.load_benchmark("example-1")


def evaluation(returns, seed=0):
    """Return a made-up evaluation; those with one seed share their luck."""
    returns = np.asarray(returns, dtype=float)
    n = len(returns)
    return mm.Evaluation(
        returns, np.ones(n, int), np.zeros(n, bool), {}, 5, 0.0, seed, "episodes", 0.0, None, MODEL
    )


def samples(rng, count, spread=1.0, shared=0.9):
    """Return returns of three policies in the same episodes, correlated and skewed, with known means."""
    common = rng.exponential(size=count) - 1.0
    own = rng.normal(size=(3, count))
    noise = math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own * np.array([[1.0], [1.5], [0.5]])
    return MEANS[:, None] + spread * noise


def test_the_value_is_a_ratio_of_differences():
    found = mm.normalised_value(evaluation([3.0, 5.0]), evaluation([6.0, 8.0]), evaluation([1.0, 3.0]))
    assert found.mean == pytest.approx((4.0 - 2.0) / (7.0 - 2.0))
    assert float(found) == found.mean
    assert (found.numerator, found.denominator) == pytest.approx((2.0, 5.0))
    assert found.stderr == pytest.approx(0.0, abs=1e-12), "the luck is the same in all three"
    assert found.interval() == pytest.approx((0.4, 0.4), abs=1e-7)


def test_numbers_have_no_error():
    found = mm.normalised_value(3.0, 4, np.float64(1.0))
    assert (found.mean, found.stderr) == (pytest.approx(TRUTH), 0.0)
    assert found.interval() == pytest.approx((TRUTH, TRUTH))
    returns = np.array([2.0, 5.0, 3.0, 4.0])
    mixed = mm.normalised_value(evaluation(returns), 4.0, 1.0)
    assert mixed.mean == pytest.approx(2.5 / 3.0)
    assert mixed.stderr == pytest.approx(returns.std(ddof=1) / 2.0 / 3.0)
    t = 3.182446  # Student's, of three degrees of freedom
    assert mixed.interval() == pytest.approx((mixed.mean - t * mixed.stderr, mixed.mean + t * mixed.stderr))


def test_the_ends_of_the_scale():
    value, optimal, prior = map(evaluation, samples(np.random.default_rng(0), 100))
    top, bottom = (mm.normalised_value(end, optimal, prior) for end in (optimal, prior))
    assert (top.mean, bottom.mean) == (1.0, 0.0)
    assert top.stderr == pytest.approx(0.0, abs=1e-9)
    assert bottom.stderr == pytest.approx(0.0, abs=1e-9)
    assert mm.normalised_value(value, optimal, prior).stderr > 0.0


def test_the_error_is_that_of_resampled_episodes():
    """The delta method against 4,000 bootstrap samples, which know the standard error to 1.1 %."""
    rng = np.random.default_rng(1)
    returns = samples(rng, 400)
    found = mm.normalised_value(*map(evaluation, returns))
    picks = rng.integers(400, size=(4000, 400))
    means = returns[:, picks].mean(axis=2)
    ratios = (means[0] - means[2]) / (means[1] - means[2])
    assert found.stderr == pytest.approx(ratios.std(ddof=1), rel=0.08)
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert found.interval() == pytest.approx((low, high), abs=0.25 * found.stderr)


def test_the_error_of_luck_of_their_own_is_that_of_separate_samples():
    rng = np.random.default_rng(2)
    returns = samples(rng, 400)
    paired = mm.normalised_value(*map(evaluation, returns))
    apart = mm.normalised_value(*(evaluation(r, seed) for seed, r in enumerate(returns)))
    assert apart.mean == paired.mean
    picks = rng.integers(400, size=(3, 4000, 400))
    means = np.stack([r[p].mean(axis=1) for r, p in zip(returns, picks, strict=True)])
    ratios = (means[0] - means[2]) / (means[1] - means[2])
    assert apart.stderr == pytest.approx(ratios.std(ddof=1), rel=0.08)
    assert apart.stderr > 2 * paired.stderr, "pairing matters"
    # Two of three share their luck: only their covariance counts.
    (vn, cov), (_, vd) = mm.normalised_value(
        evaluation(returns[0], 1), evaluation(returns[1], 2), evaluation(returns[2], 1)
    ).covariance
    each = np.cov(returns) / 400
    assert vn == pytest.approx(each[0, 0] + each[2, 2] - 2 * each[0, 2])
    assert vd == pytest.approx(each[1, 1] + each[2, 2])
    assert cov == pytest.approx(each[2, 2] - each[0, 2])


@pytest.mark.parametrize(("spread", "paired"), [(1.0, True), (1.0, False), (6.0, True)])
def test_intervals_cover_the_truth_as_often_as_they_say(spread, paired):
    """400 data sets each: coverage within 4.5 binomial standard errors of 95 % (7e-6), 1 % for skewness."""
    rng = np.random.default_rng([int(spread), paired])
    covered = 0
    for _ in range(400):
        returns = samples(rng, 150, spread)
        if not paired:
            returns = np.stack([samples(rng, 150, spread)[i] for i in range(3)])
        three = [evaluation(r, 0 if paired else seed) for seed, r in enumerate(returns)]
        low, high = mm.normalised_value(*three).interval(0.95)
        covered += low <= TRUTH <= high
    assert abs(covered / 400 - 0.95) <= 4.5 * math.sqrt(0.95 * 0.05 / 400) + 0.01


def test_fiellers_interval_solves_its_equation():
    found = mm.NormalisedValue(2.0, 3.0, ((0.09, 0.02), (0.02, 0.16)))
    z = 1.959963985
    for theta in found.interval():
        assert (2.0 - theta * 3.0) ** 2 == pytest.approx(
            z**2 * (0.09 - 2 * theta * 0.02 + theta**2 * 0.16), rel=1e-6
        )
    narrow = found.interval(0.5)
    assert found.interval()[0] < narrow[0] < found.mean < narrow[1] < found.interval()[1]
    assert found.stderr == pytest.approx(math.sqrt(0.09 - 2 * (2 / 3) * 0.02 + (2 / 3) ** 2 * 0.16) / 3.0)


def test_without_a_scale_that_is_known_the_interval_is_unbounded():
    vague = mm.NormalisedValue(2.0, 3.0, ((0.1, 0.0), (0.0, 4.0)))
    assert vague.interval() == (-math.inf, math.inf)
    assert math.isfinite(vague.interval(0.5)[0]), "with less confidence it is bounded"
    assert "[−∞, ∞]" in str(vague)


@pytest.mark.parametrize(("optimal", "prior"), [(1.0, 1.0), (1.0, 2.0), (math.nan, 0.0)])
def test_without_a_scale_there_is_no_normalised_value(optimal, prior):
    with pytest.raises(mm.DataError, match="no scale|finite"):
        mm.normalised_value(1.0, optimal, prior)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("bad", ["1.0", None, math.nan, math.inf, True, [1.0]])
def test_what_is_no_value_is_named(place, bad):
    given = [3.0, 4.0, 1.0]
    given[place] = bad
    with pytest.raises(mm.DataError, match="an Evaluation or a finite number"):
        mm.normalised_value(*given)


def test_one_episode_has_no_error():
    with pytest.raises(mm.DataError, match="at least two"):
        mm.normalised_value(evaluation([1.0]), 4.0, 1.0)


def test_only_the_episodes_that_all_have_are_used():
    returns = samples(np.random.default_rng(3), 100)
    long = mm.normalised_value(evaluation(returns[0]), evaluation(returns[1]), evaluation(returns[2][:40]))
    short = mm.normalised_value(*(evaluation(r[:40]) for r in returns))
    assert (long.mean, long.stderr) == (short.mean, short.stderr)


def test_one_value_may_have_fewer_episodes():
    """The scale is taken from all episodes, and what is above it from those that are shared."""
    rng = np.random.default_rng(4)

    def drawn():
        returns = samples(rng, 400)
        return mm.normalised_value(
            evaluation(returns[0][:40]), evaluation(returns[1]), evaluation(returns[2])
        ), returns

    found, returns = drawn()
    above = (returns[0] - returns[2])[:40].mean()
    assert found.mean == pytest.approx(above / (returns[1] - returns[2]).mean())
    assert found.episodes == 40
    many = [drawn()[0] for _ in range(1500)]
    spread = np.std([value.mean for value in many], ddof=1)
    # The standard error of a standard deviation of 1,500 values is 2 %.
    assert np.mean([value.stderr for value in many]) == pytest.approx(spread, rel=0.1)
    covered = np.mean([low <= TRUTH <= high for low, high in (value.interval() for value in many)])
    assert covered == pytest.approx(0.95, abs=0.03)


def test_estimates_of_two_kinds_are_not_mixed():
    plain, controlled = (
        mm.evaluate(None, MODEL, 20, 0, control_variate=control, **QUIET) for control in (False, True)
    )
    with pytest.raises(mm.DataError, match="control_variate"):
        mm.normalised_value(controlled, 100.0, plain)


def test_on_real_evaluations():
    """In Example 1 the optimal policy is worth more than the prior's; the learned one lies between or at the top."""
    optimal = mm.Sarsop(max_trials=20, progress=False).solve(MODEL).policy
    found = mm.compare({"optimal": optimal, "prior": None}, MODEL, 500, 0, **QUIET)
    value = mm.normalised_value(found["optimal"], found["optimal"], found["prior"])
    assert value.mean == 1.0
    assert str(value) == "1.0000 ± 0.0000 (95 % interval [1.0000, 1.0000])"
    with pytest.raises(mm.DataError, match="right way round"):
        mm.normalised_value(found["optimal"], found["prior"], found["optimal"])

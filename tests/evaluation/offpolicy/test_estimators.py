"""Estimators against their formulas, one episode and one step at a time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import missmdp as mm
from missmdp.evaluation.offpolicy.decisions import decisions_of
from missmdp.evaluation.offpolicy.estimators import weighted_terms
from missmdp.evaluation.offpolicy.weights import Weights
from missmdp.model.space import NO_ACTION
from oracles.off_policy import effective, estimate
from strategies import seeds

METHODS = ("is", "pdis", "wis", "wpdis")


def log_of(lengths, terminated=None):
    """Return a log of that many decisions per episode, in which nothing else matters."""
    mdp = mm.FactoredMDP({"a": (0, 1)}, ["x", "y"], [np.eye(2)] * 2, 0.0, [0.5, 0.5])
    actions = np.concatenate([[*([0] * n), NO_ACTION] for n in lengths])
    ends = np.zeros(len(lengths), bool) if terminated is None else np.array(terminated)
    return mm.Dataset(
        mdp, np.zeros((len(actions), 1), int), actions, np.cumsum([0, *(n + 1 for n in lengths)]), ends
    )


def drawn(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, size=rng.integers(2, 7))
    lengths[0] = max(lengths[0], 1)
    total = int(lengths.sum())
    ratios = np.where(rng.random(total) < 0.3, 0.0, rng.exponential(size=total))
    return lengths, ratios, rng.normal(size=total), float(rng.choice([0.0, 0.5, 0.9, 1.0]))


def split(values, lengths):
    return [part.tolist() for part in np.split(values, np.cumsum(lengths)[:-1])]


@settings(max_examples=200, deadline=None)
@given(seeds())
def test_estimates_weights_and_effective_sizes(seed):
    lengths, ratios, rewards, discount = drawn(seed)
    weights = Weights(decisions_of(log_of(lengths), None), ratios)
    apart, earned = split(ratios, lengths), split(rewards, lengths)
    assert weights.last == pytest.approx([math.prod(own) for own in apart])
    assert weights.effective == pytest.approx(effective([math.prod(own) for own in apart]))
    by_step = [effective([math.prod(own[: t + 1]) for own in apart]) for t in range(max(lengths))]
    assert weights.effective_by_step == pytest.approx(by_step)
    assert weights.now == pytest.approx([math.prod(own[: t + 1]) for own in apart for t in range(len(own))])
    assert weights.before == pytest.approx([math.prod(own[:t]) for own in apart for t in range(len(own))])
    for method in METHODS:
        if method == "wis" and not weights.last.any():
            assert np.isnan(weighted_terms(method, weights, rewards, discount)).all()
            continue
        terms = weighted_terms(method, weights, rewards, discount)
        assert terms.mean() == pytest.approx(estimate(method, earned, apart, discount), abs=1e-12), method


@settings(max_examples=100, deadline=None)
@given(seeds())
def test_terms_are_influences(seed):
    """Counting one episode a little more often moves the estimate by its term, less the mean, over their number."""
    lengths, ratios, rewards, discount = drawn(seed)
    ratios = ratios + 0.1
    weights = Weights(decisions_of(log_of(lengths), None), ratios)
    apart, earned, n = split(ratios, lengths), split(rewards, lengths), len(lengths)
    for method in METHODS:
        terms = weighted_terms(method, weights, rewards, discount)
        for e in range(n):
            times, step = np.ones(n), 1e-5
            times[e] += step
            more = estimate(method, earned, apart, discount, times)
            times[e] -= 2 * step
            less = estimate(method, earned, apart, discount, times)
            slope = (more - less) / (2 * step)
            assert slope == pytest.approx((terms[e] - terms.mean()) / n, abs=1e-6, rel=1e-5), method


def test_two_episodes_by_hand():
    """Ratios (2, 1) and (1/2); rewards (1, 4) and (3), discount 1/2."""
    weights = Weights(decisions_of(log_of([2, 1], [True, True]), None), np.array([2.0, 1.0, 0.5]))
    rewards = np.array([1.0, 4.0, 3.0])
    means = {m: weighted_terms(m, weights, rewards, 0.5).mean() for m in METHODS}
    assert means["is"] == pytest.approx((2 * 3 + 0.5 * 3) / 2)
    assert means["pdis"] == pytest.approx((2 * 1 + 0.5 * 3 + 0.5 * 2 * 4) / 2)
    assert means["wis"] == pytest.approx((2 * 3 + 0.5 * 3) / 2.5)
    # At step 1 the second episode is over, and has earned 0 with its weight 1/2.
    assert means["wpdis"] == pytest.approx((2 * 1 + 0.5 * 3) / 2.5 + 0.5 * 2 * 4 / 2.5)
    assert weights.effective == pytest.approx(2.5**2 / 4.25)
    assert weights.largest == 2.0


def test_equal_weights_give_the_mean_return_and_all_episodes():
    log = log_of([3, 1, 0, 2])
    weights = Weights(decisions_of(log, None), np.ones(6))
    rewards = np.arange(6.0)
    for method in METHODS:
        terms = weighted_terms(method, weights, rewards, 0.9)
        assert terms.mean() == pytest.approx(weighted_terms("is", weights, rewards, 0.9).mean())
    assert weights.effective == 4.0
    assert weights.effective_by_step.tolist() == [4.0, 4.0, 4.0]

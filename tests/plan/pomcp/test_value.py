"""What planning is worth: more simulations earn more, and both kinds of belief come to the same."""

import numpy as np
import pytest

import missmdp as mm
from random_pomdps import tiger


def returns(model, **options):
    policy = mm.POMCP(max_depth=10, **options).solve(model).policy
    return mm.evaluate(policy, model, 60, seed=0, horizon=60, progress=False).returns


@pytest.mark.slow
def test_more_simulations_earn_more():
    """Tiger: 300 simulations are better than 30, and those better than 5, by more than 4 standard errors, paired.

    If they were not better, each of the two would pass with 3e-5.
    """
    few, some, many = (returns(tiger(), exploration=100.0, tree_queries=q) for q in (5, 30, 300))
    for worse, better in ((few, some), (some, many)):
        gain = better - worse
        assert gain.mean() > 4.0 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.slow
def test_particles_are_worth_what_exact_beliefs_are():
    """Means differ by less than 4 standard errors (fails by chance with 6e-5; the seed is fixed)."""
    gain = returns(tiger(), exploration=100.0, tree_queries=300) - returns(
        tiger(), exploration=100.0, tree_queries=300, belief="exact"
    )
    assert abs(gain.mean()) < 4.0 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.slow
def test_it_hunts():
    """In Predator it earns more than random actions, by more than 5 standard errors, paired."""
    model = mm.load_benchmark("predator-smar")
    policy = mm.POMCP(tree_queries=300).solve(model).policy
    planned = mm.evaluate(policy, model, 100, seed=0, horizon=40, progress=False)
    gain = planned.returns - mm.evaluate(None, model, 100, seed=0, horizon=40, progress=False).returns
    assert gain.mean() > 5.0 * gain.std(ddof=1) / 10.0
    assert planned.impossible == 0

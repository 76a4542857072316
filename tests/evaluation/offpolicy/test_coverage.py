"""Intervals hold about as often as they say, on logs of a model that is small enough for exact values."""

import numpy as np
import pytest
from scipy import stats

import missmdp as mm
from oracles.policy_values import Memoryless, World, outcome

LOGS, EPISODES, DECISIONS = 300, 200, 3
MODEL = mm.load_benchmark("example-3")


def target(seen):
    likely = "y" if seen.second == "y" else "x"
    return {f"guess {likely}": 0.7, f"guess {'x' if likely == 'y' else 'y'}": 0.3}


def rule(seen):
    given = target(MODEL.space.features.Observation(*seen))
    return {MODEL.mdp.action_index(a): p for a, p in given.items()}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["is", "pdis", "wis", "wpdis", "dr"])
@pytest.mark.parametrize("learned", [False, True])
def test_coverage(method, learned):
    """Of 300 intervals, fewer than 270 hold by chance with a probability of 5e-5 if each does in 95 % of logs.

    Seeds are fixed, so a pass stays a pass.
    """
    truth = outcome(World(MODEL), Memoryless(rule), DECISIONS).value
    held = 0
    for seed in range(LOGS):
        rows = EPISODES * (DECISIONS + 1)
        log = mm.collect(MODEL, rows, seed=seed, horizon=DECISIONS + 1, keep_states=True, threads=1)
        found = mm.off_policy_value(
            target, log, discount=MODEL.discount, method=method,
            behaviour=None if learned else mm.UniformPolicy(),
        )  # fmt: skip
        assert found.no_interval is None
        low, high = found.interval(0.95)
        held += bool(low <= truth <= high)
    assert stats.binom.cdf(held, LOGS, 0.95) > 5e-5, held
    assert np.isfinite(truth)

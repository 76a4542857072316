"""Mixtures mix to what was wanted, to the last digit, and cost no more than corners."""

from __future__ import annotations

import numpy as np
import pytest

from missmdp.plan.factored.mixtures import Mixer


@pytest.mark.parametrize("seed", range(40))
def test_mixtures_are_exact(seed):
    rng = np.random.default_rng(seed)
    n_values, n_more = int(rng.integers(1, 9)), int(rng.integers(0, 12))
    more = rng.dirichlet(np.full(n_values, 0.6), size=n_more)
    # Some hold values impossible, some are almost corners, some are there twice but for rounding.
    more[rng.random(more.shape) < 0.3] = 0.0
    more = more[more.sum(axis=1) > 0.0]
    more /= more.sum(axis=1, keepdims=True)
    beliefs = np.vstack([np.eye(n_values), more, *([more[:1] + 1e-15] if len(more) else [])])
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    convex = rng.random() < 0.5
    prices = (beliefs**2).sum(axis=1) if convex else rng.normal(size=len(beliefs))
    wanted = np.vstack(
        [rng.dirichlet(np.ones(n_values), size=30), beliefs, 0.5 * beliefs + 0.5 * beliefs[:1]]
    )
    wanted[:10] = np.where(rng.random((10, n_values)) < 0.4, 0.0, wanted[:10])
    wanted = wanted[wanted.sum(axis=1) > 0.0]
    wanted /= wanted.sum(axis=1, keepdims=True)
    weights = Mixer(beliefs, prices).weights(wanted)
    assert (weights >= 0.0).all()
    np.testing.assert_allclose(weights @ beliefs, wanted, rtol=1e-12, atol=1e-15)
    # Nothing possible is added to what is impossible.
    assert ((weights @ beliefs)[wanted == 0.0] == 0.0).all()
    if convex:
        assert (weights @ prices <= wanted @ prices[:n_values] + 1e-9).all()

"""Terms are not negative and add up to the table that they came from."""

from __future__ import annotations

import numpy as np
import pytest

from missmdp.plan.factored.causes import causes
from missmdp.plan.factored.cores import TooTiedError


@pytest.mark.parametrize("seed", range(60))
def test_terms_add_up(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(1, 5)))
    match seed % 5:
        case 0:
            table = rng.random(shape)
        case 1:
            table = rng.integers(0, 2, size=shape).astype(float)
        case 2:
            table = np.ones(shape)
            for axis, n in enumerate(shape):
                table = table * rng.random(n).reshape([-1 if k == axis else 1 for k in range(len(shape))])
        case 3:
            table = np.zeros(shape)
        case _:
            table = np.broadcast_to(rng.random(shape[0]).reshape(-1, *(1 for _ in shape[1:])), shape)
    terms = causes(table)
    total = np.zeros(shape)
    for term in terms:
        whole = term.own
        for factor in term.others:
            assert (factor >= 0.0).all()
            whole = np.multiply.outer(whole, factor)
        assert (term.own >= 0.0).all()
        total += whole
    np.testing.assert_allclose(total, table, rtol=1e-12, atol=1e-14)
    if seed % 5 in (2, 4):
        assert len(terms) == 1


def test_what_all_other_features_matter_for_is_refused_at_once():
    """More than a thousand rows that have nothing in common; one that does not depend on them is one term."""
    rng = np.random.default_rng(0)
    with pytest.raises(TooTiedError):
        causes(rng.random((3, 4, 4, 4, 4, 5)))
    same = np.broadcast_to(rng.random(3)[:, None, None], (3, 40, 40))
    assert len(causes(same)) == 1

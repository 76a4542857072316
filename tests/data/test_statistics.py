"""Fisher's exact test against scipy, and where scipy's numbers end."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from missmdp.data.statistics import fisher_log_p


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_fisher_is_the_hypergeometric_tail(n0, n, data):
    k0, k = data.draw(st.integers(0, n0)), data.draw(st.integers(0, n))
    got = fisher_log_p(k0, n0, k, n)
    if k0 * n <= k * n0:
        assert got == 0.0
        return
    table = [[k0, n0 - k0], [k, n - k]]
    assert math.exp(got) == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-9)
    assert math.exp(got) == pytest.approx(stats.hypergeom.sf(k0 - 1, n0 + n, k0 + k, n0), rel=1e-9)


def test_fisher_far_out_and_for_large_samples():
    """Where the tail underflows only its logarithm is left; many terms are cut where they no longer matter."""
    assert fisher_log_p(10_000, 10_000, 0, 10_000) == pytest.approx(
        -stats.hypergeom(20_000, 10_000, 10_000).logpmf(0) * -1
    )
    got = fisher_log_p(510_000, 1_000_000, 500_000, 1_000_000)
    z = 0.01 / math.sqrt(0.505 * 0.495 * 2 / 1_000_000)
    assert got == pytest.approx(stats.norm.logsf(z), rel=0.01)
    assert fisher_log_p(3, 5, 0, 0) == fisher_log_p(0, 0, 3, 5) == 0.0

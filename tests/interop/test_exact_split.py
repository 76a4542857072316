"""Splitting probabilities into factors whose products are the same floats again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from missmdp.interop.pomdpx.factorise import split_groups
from strategies import seeds


def joined(totals, shares, starts):
    return np.repeat(totals, np.diff(np.append(starts, len(shares)))) * shares


def units(values, products):
    """Return how many floats lie between values and products."""
    return np.abs(values.view(np.int64) - products.view(np.int64))


@given(seeds(), st.integers(1, 40), st.integers(1, 12))
def test_products_are_exact_or_off_by_one_unit(seed, n_groups, largest):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest + 1, size=n_groups)
    values = rng.dirichlet(np.ones(sizes.sum()))
    values = np.maximum(values, 1e-300)
    starts = np.cumsum(sizes) - sizes
    totals, shares = split_groups(values, starts)
    assert units(values, joined(totals, shares, starts)).max() <= 1
    assert (totals <= 1.0).all()
    assert (shares <= 1.0).all()
    assert np.allclose(np.add.reduceat(shares, starts), 1.0, rtol=0, atol=1e-11)
    assert totals.sum() == pytest.approx(1.0, abs=1e-11)


def test_small_groups_are_exact():
    """Of 20,000 groups of up to four random numbers, the products of all are right to the last bit."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 5, size=20_000)
    starts = np.cumsum(sizes) - sizes
    values = rng.random(sizes.sum()) / 5
    totals, shares = split_groups(values, starts)
    assert np.array_equal(joined(totals, shares, starts), values)


@pytest.mark.parametrize("size", [30, 60, pytest.param(200, marks=pytest.mark.slow)])
def test_what_comes_back_from_a_difficult_group_is_a_fixed_point(size):
    """With so many numbers in a group some product is off, but a second time nothing moves."""
    rng = np.random.default_rng(size)
    starts = np.arange(0, 20 * size, size)
    values = rng.dirichlet(np.ones(20 * size))
    first = joined(*split_groups(values, starts), starts)
    assert 0 < np.count_nonzero(first != values) < 0.5 * len(values) or np.array_equal(first, values)
    assert units(values, first).max() <= 1
    assert np.array_equal(joined(*split_groups(first, starts), starts), first)

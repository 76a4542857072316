"""Functions and masses of multisets, against the same with all orders listed."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from missmdp.plan.factored.alike.multisets import (
    Matrix,
    closed,
    count,
    elements,
    joined,
    opened,
    power,
    ranks,
    spread,
    without,
)

SIZES = [(3, 4, 3), (4, 2, 4), (2, 5, 3), (3, 1, 3), (3, 3, 1), (1, 3, 2)]


def in_all_orders(values: np.ndarray, n: int, m: int) -> np.ndarray:
    """Return functions of multisets as tensors with one axis per thing."""
    whole = np.empty((len(values), *(n,) * m))
    for things in product(range(n), repeat=m):
        whole[(slice(None), *things)] = values[:, ranks(np.array(sorted(things)), n)]
    return whole


@pytest.mark.parametrize(("n", "m"), [(1, 3), (3, 1), (4, 3), (3, 5), (2, 0)])
def test_all_multisets_in_order(n, m):
    found = elements(n, m)
    expected = sorted(combinations_with_replacement(range(n), m), key=lambda things: things[::-1])
    assert [tuple(things) for things in found.tolist()] == expected
    assert len(found) == count(n, m)
    assert ranks(found, n).tolist() == list(range(len(found)))


@pytest.mark.parametrize(("n", "m"), [(4, 3), (2, 4), (3, 1)])
def test_one_more_and_one_less(n, m):
    for k, things in enumerate(elements(n, m - 1).tolist()):
        for r in range(n):
            assert elements(n, m)[joined(n, m)[k, r]].tolist() == sorted([*things, r])
    for k, things in enumerate(elements(n, m).tolist()):
        for j in range(m):
            assert elements(n, m - 1)[without(n, m)[k, j]].tolist() == things[:j] + things[j + 1 :]


@pytest.mark.parametrize(("n_in", "n_out", "m"), SIZES)
def test_power_is_one_product_per_thing(n_in, n_out, m):
    rng = np.random.default_rng(m)
    values, matrix = rng.normal(size=(2, count(n_in, m))), rng.random((n_out, n_in))
    matrix[rng.random(matrix.shape) < 0.3] = 0.0
    whole = in_all_orders(values, n_in, m)
    for axis in range(1, m + 1):
        whole = np.moveaxis(np.tensordot(matrix, whole, axes=(1, axis)), 0, axis)
    expected = whole[(slice(None), *elements(n_out, m).T)]
    np.testing.assert_allclose(power(values, Matrix.of(matrix), m), expected, atol=1e-12)


@pytest.mark.parametrize(("n_in", "n_out", "m"), SIZES)
def test_spread_is_power_the_other_way(n_in, n_out, m):
    rng = np.random.default_rng(m)
    values, mass = rng.normal(size=(2, count(n_in, m))), rng.random((2, count(n_out, m)))
    matrix = Matrix.of(rng.random((n_out, n_in)))
    there, back = (mass * power(values, matrix, m)).sum(), (spread(mass, matrix, m) * values).sum()
    assert there == pytest.approx(back, rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(4, 3), (3, 2), (2, 4)])
def test_one_apart_and_together_again(n, m):
    rng = np.random.default_rng(n)
    values, mass = rng.normal(size=count(n, m)), rng.random((n, count(n, m - 1)))
    apart = opened(values, n, m)
    for k, things in enumerate(elements(n, m).tolist()):
        for j, thing in enumerate(things):
            assert apart[thing, without(n, m)[k, j]] == values[k]
    assert closed(mass, n, m) @ values == pytest.approx((mass * apart).sum(), rel=1e-12)

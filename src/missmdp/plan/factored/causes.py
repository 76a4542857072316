"""Products instead of tables: what ties several hidden features together, as a mixture of products.

A table f(own, others…) ≥ 0 is written as a sum of terms, each a product with one factor per axis. The number of the
term is a *cause* that the upper bound lets the agent know. Given the cause, beliefs about features that were
independent stay independent, and knowing more can only help: bounds from above stay bounds.

The less a cause says, the tighter the bound. Where the table depends on one axis only, or is a product already, there
is one cause and nothing is told. Otherwise the first cause is what all values of the others have in common, and only
what is left over tells them: f(own, u) = Π_p w_p(u_p) f(own, u⁰) + the rest, with weights as large as they can be.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.cores import TooTiedError

_EXACT = 1e-14
"""Relative differences up to this are rounding."""
_MOST_ROWS = 1024
"""Combinations of values of others above which too much is tied together."""


class Term(NamedTuple):
    """A product with one factor per axis of a table."""

    own: NDArray[np.float64]
    others: tuple[NDArray[np.float64], ...]


def causes(table: NDArray[np.float64]) -> list[Term]:
    """Return terms that add up to a table; its first axis is the own one.

    Raises
    ------
    TooTiedError
        If there would be too many.
    """
    shape = table.shape[1:]
    rows = table.reshape(len(table), -1).T
    ones = tuple(np.ones(size) for size in shape)
    if not shape or (rows == rows[0]).all():
        return [Term(rows[0].copy(), ones)]
    single = _product(table)
    if single is not None:
        return [single]
    if len(rows) > _MOST_ROWS:
        raise TooTiedError
    least = _EXACT * rows.max()
    told = [_told(_left_over(rows, shape, base)[1], least) for base in range(len(rows))]
    return _with_base(rows, shape, int(np.argmin(told)))


def _product(table: NDArray[np.float64]) -> Term | None:
    """Return a table as one term, if it is a product."""
    top = np.unravel_index(int(np.argmax(table)), table.shape)
    peak = table[top]
    if peak <= 0.0:
        return None
    factors = [
        table[tuple(slice(None) if axis == k else top[axis] for axis in range(table.ndim))] / peak
        for k in range(table.ndim)
    ]
    whole = peak * math.prod(
        factor.reshape([-1 if axis == k else 1 for axis in range(table.ndim)])
        for k, factor in enumerate(factors)
    )
    if np.abs(whole - table).max() > _EXACT * peak:
        return None
    return Term(peak * factors[0], tuple(factors[1:]))


def _told(rest: NDArray[np.float64], least: float) -> float:
    """Return how much is told if this is left over; what is less than some number in all columns is rounding."""
    return float(rest[rest.max(axis=1) > least].sum())


def _left_over(
    rows: NDArray[np.float64], shape: tuple[int, ...], base: int
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Return how much of one row all have, as one factor per axis, and what is left over of them."""
    there = rows[base] > 0.0
    common = np.min(rows[:, there] / rows[base, there], axis=1) if there.any() else np.zeros(len(rows))
    common = np.minimum(common, 1.0).reshape(shape)
    weights: list[NDArray[np.float64]] = []
    for axis in range(len(shape)):
        least = common.min(axis=tuple(k for k in range(len(shape)) if k != axis))
        weights.append(least if len(shape) == 1 else least ** (1.0 / len(shape)))
    shares = math.prod(
        weight.reshape([-1 if axis == k else 1 for axis in range(len(shape))])
        for k, weight in enumerate(weights)
    )
    return weights, np.maximum(rows - np.ravel(shares)[:, None] * rows[base], 0.0)


def _with_base(rows: NDArray[np.float64], shape: tuple[int, ...], base: int) -> list[Term]:
    """Return terms with one row as what all have in common."""
    weights, rest = _left_over(rows, shape, base)
    terms = [Term(rows[base].copy(), tuple(weights))]
    for place, left in zip(product(*map(range, shape)), rest, strict=True):
        if left.max() > _EXACT * rows.max():
            marks = tuple(
                (np.arange(size) == k).astype(np.float64) for size, k in zip(shape, place, strict=True)
            )
            terms.append(Term(left, marks))
    return _merged(terms)


def _merged(terms: list[Term]) -> list[Term]:
    """Return the terms with those of one other feature joined where what is left over is the same up to a factor."""
    base, *rest = terms
    if len(base.others) != 1:
        return terms
    joined: list[Term] = []
    for term in rest:
        size = term.own.max()
        for k, other in enumerate(joined):
            if np.abs(term.own / size - other.own).max() <= _EXACT:
                joined[k] = Term(other.own, (other.others[0] + size * term.others[0],))
                break
        else:
            joined.append(Term(term.own / size, (size * term.others[0],)))
    return [base, *joined]

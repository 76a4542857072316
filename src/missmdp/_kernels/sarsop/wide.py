"""Mixtures for beliefs with many classes: a basis of corners and few other points."""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner
from missmdp._kernels.sarsop.arrays import WORK, Compiled, Points, Scratch

_TOLERANCE = 1e-10


@inner
def _cheapest(points: Points, component: int, scratch: Scratch, tolerance: float, counters: Any) -> int:
    """Return the point inside the belief with the lowest reduced cost, or −1 if none is below −tolerance."""
    start, support, prob, upper = points.start, points.support, points.prob, points.upper
    following, price, row_of = points.next_in_component, scratch.price, scratch.row_of
    best, lowest = -1, -tolerance
    work = 0
    point = points.first_in_component[component]
    while point >= 0:
        cost = upper[point]
        for k in range(start[point], start[point + 1]):
            if row_of[support[k]] < 0:
                cost = np.inf
                break
            cost -= price[support[k]] * prob[k]
            work += 1
        if cost < lowest:
            best, lowest = point, cost
        point = following[point]
    counters[WORK] += work
    return best


@inner
def mix_wide(
    model: Compiled, points: Points, scratch: Scratch, n: int, max_steps: int, counters: Any
) -> None:
    """Find a basis for a belief with many classes, as long as few points are in the mixture besides corners.

    Only points inside the belief are used, so nothing is left over.

    A basis of corners and m other points takes the inverse of an m × m matrix only: that of the points at the rows
    (classes) where they have replaced the corners.
    """
    support, prob, level, price = scratch.support, scratch.prob, scratch.level, scratch.price
    direction, basis, rows = scratch.direction, scratch.basis, scratch.rows
    component = model.component_of[support[0]]
    scale = 0.0
    for r in range(n):
        c = support[r]
        scratch.row_of[c] = r
        basis[r] = c
        level[r] = prob[r]
        price[c] = points.upper[c]
        scale = max(scale, abs(points.upper[c]))
    m = 0
    for _ in range(max_steps):
        point = _cheapest(points, component, scratch, _TOLERANCE * scale, counters)
        if point < 0:
            break
        _direct(points, scratch, point, n, m)
        leaving, step = -1, np.inf
        for r in range(n):
            if direction[r] > 1e-11 and level[r] < step * direction[r]:
                leaving, step = r, level[r] / direction[r]
        if leaving < 0:
            break
        place = m
        for i in range(m):
            if rows[i] == leaving:
                place = i
        if place == len(scratch.inverse):
            break
        for r in range(n):
            if r != leaving and direction[r] != 0.0:
                level[r] = max(level[r] - step * direction[r], 0.0)
        level[leaving] = step
        if place < m:
            _exchange(scratch, m, place)
        else:
            _border(points, scratch, m, leaving)
            rows[m] = leaving
            m += 1
        basis[leaving] = point
        _set_prices(points, scratch, n, m)
        counters[WORK] += 3 * n * m


@inner
def _direct(points: Points, scratch: Scratch, point: int, n: int, m: int) -> None:
    """Fill scratch.direction with a point in terms of the basis: by rows, as the levels."""
    direction, rows, inverse = scratch.direction, scratch.rows, scratch.inverse
    for r in range(n):
        direction[r] = 0.0
    for k in range(points.start[point], points.start[point + 1]):
        direction[scratch.row_of[points.support[k]]] = points.prob[k]
    for i in range(m):
        value = 0.0
        for j in range(m):
            value += inverse[i, j] * direction[rows[j]]
        scratch.share[i] = value
    for i in range(m):
        other = scratch.basis[rows[i]]
        for k in range(points.start[other], points.start[other + 1]):
            direction[scratch.row_of[points.support[k]]] -= scratch.share[i] * points.prob[k]
    for i in range(m):
        direction[rows[i]] = scratch.share[i]


@inner
def _exchange(scratch: Scratch, m: int, place: int) -> None:
    """Update the inverse where a point takes the place of another one; scratch.share is it in terms of the old ones."""
    inverse, share = scratch.inverse, scratch.share
    for j in range(m):
        inverse[place, j] /= share[place]
    for i in range(m):
        if i != place:
            for j in range(m):
                inverse[i, j] -= share[i] * inverse[place, j]


@inner
def _border(points: Points, scratch: Scratch, m: int, leaving: int) -> None:
    """Update the inverse where a point takes the place of the corner of row `leaving`."""
    inverse, share, rows = scratch.inverse, scratch.share, scratch.rows
    pivot = scratch.direction[leaving]
    for j in range(m):
        scratch.rest[j] = 0.0
    for i in range(m):
        other = scratch.basis[rows[i]]
        at = 0.0
        for k in range(points.start[other], points.start[other + 1]):
            if scratch.row_of[points.support[k]] == leaving:
                at = points.prob[k]
        if at != 0.0:
            for j in range(m):
                scratch.rest[j] += at * inverse[i, j]
    for i in range(m):
        for j in range(m):
            inverse[i, j] += share[i] * scratch.rest[j] / pivot
        inverse[i, m] = -share[i] / pivot
    for j in range(m):
        inverse[m, j] = -scratch.rest[j] / pivot
    inverse[m, m] = 1.0 / pivot


@inner
def _set_prices(points: Points, scratch: Scratch, n: int, m: int) -> None:
    """Set the prices at which every point of the basis costs its upper bound."""
    price, rows, support = scratch.price, scratch.rows, scratch.support
    for r in range(n):
        price[support[r]] = points.upper[support[r]]
    for i in range(m):
        price[support[rows[i]]] = 0.0
    for i in range(m):
        point = scratch.basis[rows[i]]
        cost = points.upper[point]
        for k in range(points.start[point], points.start[point + 1]):
            cost -= price[points.support[k]] * points.prob[k]
        scratch.rest[i] = cost
    for j in range(m):
        value = 0.0
        for i in range(m):
            value += scratch.rest[i] * scratch.inverse[i, j]
        price[support[rows[j]]] = value

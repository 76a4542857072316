"""What can follow a belief and an action, and beliefs written as mixtures of points.

V* is convex, so Σ w_j U(b_j) bounds V*(Σ w_j b_j) from above. The best mixture solves the linear program
min Σ w_j U(b_j) subject to Σ w_j b_j = b, w ≥ 0. It is solved by the primal simplex method from the basis of corners;
every basis on the way is a valid mixture, so that it may stop early.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import WORK, Compiled, Points, Scratch

_GRAIN = float(2**42)


@inner
def spread(model: Compiled, points: Points, point: int, action: int, scratch: Scratch) -> int:
    """Add γ P(node, class | b, a) to scratch.joint; return how many nodes scratch.touched lists."""
    n_actions = model.reward.shape[1]
    n_touched = 0
    for k in range(points.start[point], points.start[point + 1]):
        row = np.int64(points.support[k]) * n_actions + action
        p = points.prob[k]
        for j in range(model.start[row], model.start[row + 1]):
            scratch.joint[model.pair[j]] += p * model.prob[j]
            node = model.node[j]
            if not scratch.mark[node]:
                scratch.mark[node] = True
                scratch.touched[n_touched] = node
                n_touched += 1
    return n_touched


@inner
def clear(model: Compiled, scratch: Scratch, n_touched: int) -> None:
    for t in range(n_touched):
        node = scratch.touched[t]
        scratch.mark[node] = False
        for pair in range(model.node_start[node], model.node_start[node + 1]):
            scratch.joint[pair] = 0.0


@inner
def gather(model: Compiled, scratch: Scratch, node: int) -> tuple[int, float]:
    """Fill scratch.support and scratch.prob with the belief after a node; return its size and probability."""
    n = 0
    total = 0.0
    for pair in range(model.node_start[node], model.node_start[node + 1]):
        p = scratch.joint[pair]
        if p > 0.0:
            scratch.support[n] = model.pair_class[pair]
            scratch.prob[n] = p
            total += p
            n += 1
    for k in range(n):
        scratch.prob[k] /= total
    return n, total


@inner
def hash_belief(support: Any, prob: Any, n: int) -> Any:
    """Return a hash that beliefs share if they agree to about twelve digits (nearly always)."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for k in range(n):
        grains = np.uint64(np.int64(prob[k] * _GRAIN + 0.5))
        if grains > np.uint64(0):
            x = (np.uint64(support[k]) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9) ^ grains
            x = (x ^ (x >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
            mixed = (mixed ^ (x >> np.uint64(29)) ^ x) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(mixed >> np.uint64(1))


@inner
def nearly(one: float, other: float) -> bool:
    """Return whether two probabilities of a class are the same but for rounding."""
    return abs(one - other) <= 1e-12 * other + 1e-15


@inner
def find_point(points: Points, support: Any, prob: Any, n: int, key: int) -> int:
    """Return the point that equals a belief, or −1 if there is none."""
    mask = len(points.slots) - 1
    slot = key & mask
    while points.slots[slot] >= 0:
        point = points.slots[slot]
        first = points.start[point]
        if points.hash[point] == key and points.start[point + 1] - first == n:
            same = True
            for k in range(n):
                same &= points.support[first + k] == support[k]
                same &= nearly(points.prob[first + k], prob[k])
            if same:
                return point
        slot = (slot + 1) & mask
    return -1


@kernel
def fill_slots(points: Points, n_points: int) -> None:
    """Fill an empty hash table with all points that are no corners."""
    mask = len(points.slots) - 1
    for point in range(n_points):
        if points.start[point + 1] - points.start[point] > 1:
            slot = points.hash[point] & mask
            while points.slots[slot] >= 0:
                slot = (slot + 1) & mask
            points.slots[slot] = point


_TOLERANCE = 1e-10
_ROUNDING = 1e-15
"""Relative errors below this are those of the arithmetic."""


@inner
def _entering(points: Points, component: int, price: Any, tolerance: float, counters: Any) -> int:
    """Return the point with the lowest reduced cost, or −1 if none is below −tolerance."""
    best, lowest = -1, -tolerance
    work = 0
    point = points.first_in_component[component]
    while point >= 0:
        cost = points.upper[point]
        for k in range(points.start[point], points.start[point + 1]):
            cost -= price[points.support[k]] * points.prob[k]
            work += 1
        if cost < lowest:
            best, lowest = point, cost
        point = points.next_in_component[point]
    counters[WORK] += work
    return best


@inner
def mix(model: Compiled, points: Points, scratch: Scratch, n: int, max_steps: int, counters: Any) -> int:
    """Fill scratch.mixed and scratch.weight with a mixture for the belief in scratch.support, scratch.prob.

    Returns how many points it has. The corner of class c is point c.
    """
    if n > len(scratch.inverse):
        return _mix_wide(model, points, scratch, n, max_steps, counters)
    support, prob = scratch.support, scratch.prob
    inverse, level, price = scratch.inverse, scratch.level, scratch.price
    direction, basis = scratch.direction, scratch.basis
    component = model.component_of[support[0]]
    scale = 0.0
    for r in range(n):
        c = support[r]
        scratch.row_of[c] = r
        basis[r] = c
        level[r] = prob[r]
        price[c] = points.upper[c]
        scale = max(scale, abs(points.upper[c]))
        for k in range(n):
            inverse[r, k] = 0.0
        inverse[r, r] = 1.0
    for _ in range(max_steps):
        point = _entering(points, component, price, _TOLERANCE * scale, counters)
        if point < 0:
            break
        cost = points.upper[point]
        for r in range(n):
            direction[r] = 0.0
        for k in range(points.start[point], points.start[point + 1]):
            c = points.support[k]
            cost -= price[c] * points.prob[k]
            row = scratch.row_of[c]
            for r in range(n):
                direction[r] += inverse[r, row] * points.prob[k]
        leaving, step = -1, np.inf
        for r in range(n):
            if direction[r] > 1e-11 and level[r] < step * direction[r]:
                leaving, step = r, level[r] / direction[r]
        if leaving < 0:
            break
        pivot = direction[leaving]
        for r in range(n):
            if r != leaving and direction[r] != 0.0:
                level[r] = max(level[r] - step * direction[r], 0.0)
                factor = direction[r] / pivot
                for k in range(n):
                    inverse[r, k] -= factor * inverse[leaving, k]
        level[leaving] = step
        basis[leaving] = point
        for k in range(n):
            inverse[leaving, k] /= pivot
            price[support[k]] += cost * inverse[leaving, k]
        counters[WORK] += n * n
    return _settle(points, scratch, n)


@inner
def _mix_wide(
    model: Compiled, points: Points, scratch: Scratch, n: int, max_steps: int, counters: Any
) -> int:
    """Do what `mix` does for a belief with many classes, as long as few points are in the mixture besides corners.

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
        point = _entering(points, component, price, _TOLERANCE * scale, counters)
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
    return _settle(points, scratch, n)


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


@inner
def _settle(points: Points, scratch: Scratch, n: int) -> int:
    """Turn the basis into weights that make up the belief exactly, what is left going to the corners."""
    support, prob, level, basis = scratch.support, scratch.prob, scratch.level, scratch.basis
    rest = scratch.rest
    shrink = 0.0
    for attempt in range(2):
        for r in range(n):
            rest[r] = prob[r]
        for r in range(n):
            point = basis[r]
            w = level[r] * (1.0 - shrink)
            for k in range(points.start[point], points.start[point + 1]):
                rest[scratch.row_of[points.support[k]]] -= w * points.prob[k]
        if attempt == 0:
            # Rounding may overshoot in some class; then all weights give way a little.
            for r in range(n):
                if rest[r] < -_ROUNDING * prob[r]:
                    shrink = max(shrink, -rest[r] / prob[r])
            shrink = min(1.0, shrink + 4e-16) if shrink > 0.0 else 0.0
            if shrink == 0.0:
                break
    count = 0
    for r in range(n):
        w = level[r] * (1.0 - shrink)
        if w > 0.0:
            scratch.mixed[count] = basis[r]
            scratch.weight[count] = w
            count += 1
    for r in range(n):
        if rest[r] > _ROUNDING * prob[r]:
            scratch.mixed[count] = support[r]
            scratch.weight[count] = rest[r]
            count += 1
    for r in range(n):
        scratch.row_of[support[r]] = -1
        scratch.price[support[r]] = -np.inf
    return count

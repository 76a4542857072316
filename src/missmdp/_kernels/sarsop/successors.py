"""What can follow a belief and an action, and beliefs written as mixtures of points.

V* is convex, so Σ w_j U(b_j) bounds V*(Σ w_j b_j) from above. The mixture may have more of a class than the belief b:
every plan is worth at least ℓ there, so V*(b + y) ≥ V*(b) + ℓ·y for y ≥ 0. The best mixture solves the linear program
min Σ w_j U(b_j) − ℓ·y subject to Σ w_j b_j = b + y, w ≥ 0, y ≥ 0. It is solved by the primal simplex method from the
basis of corners; every basis on the way is a valid mixture, so that it may stop early.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import WORK, Compiled, Points, Scratch
from missmdp._kernels.sarsop.wide import mix_wide

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
def _list_candidates(
    points: Points, component: int, scratch: Scratch, inside: bool, tolerance: float, counters: Any
) -> int:
    """Fill scratch.candidate with the points of the lowest reduced costs below −tolerance; return how many.

    With `inside`, those that begin or end outside the belief are left out.
    """
    start, support, prob, upper, following = (
        points.start,
        points.support,
        points.prob,
        points.upper,
        points.next_in_component,
    )
    price, candidate, saving, row_of = scratch.price, scratch.candidate, scratch.saving, scratch.row_of
    room = len(candidate)
    count, work = 0, 0
    least, where = tolerance, 0
    point = points.first_in_component[component]
    while point >= 0:
        first, last = start[point], start[point + 1]
        if inside and (row_of[support[first]] < 0 or row_of[support[last - 1]] < 0):
            work += 1
            point = following[point]
            continue
        gain, more = -upper[point], 0.0
        # Two sums at a time: one alone would wait for itself.
        for k in range(first, last - 1, 2):
            gain += price[support[k]] * prob[k]
            more += price[support[k + 1]] * prob[k + 1]
        if (last - first) % 2 == 1:
            gain += price[support[last - 1]] * prob[last - 1]
        gain += more
        work += last - first
        if gain > least:
            if count < room:
                where = count
                count += 1
            candidate[where] = point
            saving[where] = gain
            if count == room:
                # The next one takes the place of the least of them.
                least = saving[0]
                where = 0
                for i in range(1, room):
                    if saving[i] < least:
                        least, where = saving[i], i
        point = following[point]
    counters[WORK] += work
    return count


@inner
def _list_candidates_near(points: Points, scratch: Scratch, n: int, tolerance: float, counters: Any) -> int:
    """The same with `inside`, by the lists of points by classes: what is inside begins with a class of the belief."""
    start, support, prob, upper, holding = (
        points.start,
        points.support,
        points.prob,
        points.upper,
        points.holding,
    )
    price, candidate, saving, row_of = scratch.price, scratch.candidate, scratch.saving, scratch.row_of
    room = len(candidate)
    count, work = 0, n
    least, where = tolerance, 0
    for r in range(n):
        place = np.int64(scratch.support[r])
        while place >= 0:
            point = holding[place, 0]
            first, last = start[point], start[point + 1]
            begins = place == first
            place = np.int64(holding[place, 1])
            work += 1
            if not begins or row_of[support[last - 1]] < 0:
                continue
            gain, more = -upper[point], 0.0
            for k in range(first, last - 1, 2):
                gain += price[support[k]] * prob[k]
                more += price[support[k + 1]] * prob[k + 1]
            if (last - first) % 2 == 1:
                gain += price[support[last - 1]] * prob[last - 1]
            gain += more
            work += last - first
            if gain > least:
                if count < room:
                    where = count
                    count += 1
                candidate[where] = point
                saving[where] = gain
                if count == room:
                    least = saving[0]
                    where = 0
                    for i in range(1, room):
                        if saving[i] < least:
                            least, where = saving[i], i
    counters[WORK] += work
    return count


@inner
def _entering(
    model: Compiled,
    points: Points,
    scratch: Scratch,
    n: int,
    n_candidates: int,
    tolerance: float,
    counters: Any,
) -> int:
    """Return the column with the lowest reduced cost: a candidate, −2 − row for leaving a class over, −1 for none."""
    start, support, prob, upper = points.start, points.support, points.prob, points.upper
    price, rows, candidate = scratch.price, scratch.support, scratch.candidate
    least = model.least
    best, lowest, work = -1, -tolerance, n
    for r in range(n):
        cost = price[rows[r]] - least[rows[r]]
        if cost < lowest:
            best, lowest = -2 - r, cost
    for i in range(n_candidates):
        point = candidate[i]
        cost = upper[point]
        for k in range(start[point], start[point + 1]):
            cost -= price[support[k]] * prob[k]
            work += 1
        if cost < lowest:
            best, lowest = point, cost
    counters[WORK] += work
    return best


@inner
def _direct(model: Compiled, points: Points, scratch: Scratch, n: int, column: int) -> float:
    """Fill scratch.direction with a column in terms of the basis; return its reduced cost."""
    inverse, direction, price = scratch.inverse, scratch.direction, scratch.price
    if column < 0:
        row = -2 - column
        for r in range(n):
            direction[r] = -inverse[row, r]
        c = scratch.support[row]
        return price[c] - model.least[c]
    cost = points.upper[column]
    for r in range(n):
        direction[r] = 0.0
    for k in range(points.start[column], points.start[column + 1]):
        c = points.support[k]
        cost -= price[c] * points.prob[k]
        row = scratch.row_of[c]
        if row >= 0:
            for r in range(n):
                direction[r] += inverse[row, r] * points.prob[k]
    return cost


@inner
def _exchange(scratch: Scratch, n: int, leaving: int, step: float, cost: float, counters: Any) -> None:
    """Take the column in scratch.direction into the basis, in the place of another one."""
    inverse, level, direction = scratch.inverse, scratch.level, scratch.direction
    pivot = direction[leaving]
    for r in range(n):
        level[r] = max(level[r] - step * direction[r], 0.0)
        direction[r] /= pivot
    level[leaving] = step
    direction[leaving] = 0.0
    work = n
    for k in range(n):
        value = inverse[k, leaving]
        if value != 0.0:
            for r in range(n):
                inverse[k, r] -= direction[r] * value
            inverse[k, leaving] = value / pivot
            scratch.price[scratch.support[k]] += cost * inverse[k, leaving]
            work += n
    counters[WORK] += work


@inner
def mix(
    model: Compiled, points: Points, scratch: Scratch, n: int, max_steps: int, counters: Any
) -> tuple[int, float]:
    """Fill scratch.mixed and scratch.weight with a mixture that covers the belief in scratch.support, scratch.prob.

    Returns how many points it has, and what it has beyond the belief is worth at least. The corner of class c is
    point c.
    """
    if n > len(scratch.inverse):
        mix_wide(model, points, scratch, n, max_steps, counters)
        return _settle(model, points, scratch, n)
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
    tolerance = _TOLERANCE * scale
    n_candidates = 0
    # In a wide component most points have nothing to do with the belief.
    inside = model.component_start[component + 1] - model.component_start[component] > len(inverse)
    for _ in range(max_steps):
        column = _entering(model, points, scratch, n, n_candidates, tolerance, counters)
        if column == -1:
            if inside and len(points.holding) > 0:
                n_candidates = _list_candidates_near(points, scratch, n, tolerance, counters)
            else:
                n_candidates = _list_candidates(points, component, scratch, inside, tolerance, counters)
            if n_candidates == 0:
                break
            column = _entering(model, points, scratch, n, n_candidates, tolerance, counters)
            if column == -1:
                break
        cost = _direct(model, points, scratch, n, column)
        leaving, step = -1, np.inf
        for r in range(n):
            if direction[r] > 1e-11 and level[r] < step * direction[r]:
                leaving, step = r, level[r] / direction[r]
        if leaving < 0:
            break
        _exchange(scratch, n, leaving, step, cost, counters)
        basis[leaving] = column
    return _settle(model, points, scratch, n)


@inner
def _settle(model: Compiled, points: Points, scratch: Scratch, n: int) -> tuple[int, float]:
    """Turn the basis into weights that cover the belief, what is left going to the corners."""
    support, prob, level, basis = scratch.support, scratch.prob, scratch.level, scratch.basis
    rest = scratch.rest
    count = 0
    excess = 0.0
    for r in range(n):
        rest[r] = prob[r]
    for r in range(n):
        point, w = basis[r], level[r]
        if point >= 0 and w > 0.0:
            for k in range(points.start[point], points.start[point + 1]):
                c = points.support[k]
                if scratch.row_of[c] >= 0:
                    rest[scratch.row_of[c]] -= w * points.prob[k]
                else:
                    excess += w * points.prob[k] * model.least[c]
            scratch.mixed[count] = point
            scratch.weight[count] = w
            count += 1
    for r in range(n):
        c = support[r]
        if rest[r] > _ROUNDING * prob[r]:
            scratch.mixed[count] = c
            scratch.weight[count] = rest[r]
            count += 1
        else:
            excess -= rest[r] * model.least[c]
        scratch.row_of[c] = -1
        scratch.price[c] = model.least[c]
    return count, excess

"""What has to do with a belief in a large component: vectors and points that share a class with it.

In a large component most vectors were made for beliefs that have nothing in common with the one in question. For each
class there is a list of the vectors that are best at some point with the class, and one of the points with the class.
To look at these only is sound, since every vector is a lower bound; what it misses is seldom the best one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import NEAR, SUPPORT, WORK, Compiled, Points, Scratch, Vectors


@inner
def first_near(vectors: Vectors, support: Any, prob: Any, n: int) -> int:
    """Return where the list for a belief begins, that of its likeliest class; −1 if there is none."""
    likeliest = 0
    for j in range(1, n):
        if prob[j] > prob[likeliest]:
            likeliest = j
    return int(vectors.near[support[likeliest], 1])


@inner
def best_listed(
    vectors: Vectors, offset: int, support: Any, prob: Any, n: int, entry: int, counters: Any
) -> tuple[int, float]:
    """Return the best vector of the list that begins with an entry, and its value; `offset` is the first class."""
    best, value = -1, -np.inf
    values, start, near = vectors.values, vectors.start, vectors.near
    work = n
    while entry >= 0:
        first = start[near[entry, 0]] - offset
        dot, more = 0.0, 0.0
        for j in range(0, n - 1, 2):
            dot += prob[j] * values[first + support[j]]
            more += prob[j + 1] * values[first + support[j + 1]]
        if n % 2 == 1:
            dot += prob[n - 1] * values[first + support[n - 1]]
        dot += more
        if dot > value:
            best, value = int(near[entry, 0]), dot
        entry = int(near[entry, 1])
        work += n
    counters[WORK] += work
    return best, value


@inner
def _enter(near: Any, c: int, vector: int, counters: Any) -> None:
    entry = counters[NEAR]
    near[entry, 0] = vector
    near[entry, 1] = near[c, 1]
    near[c, 1] = entry
    counters[NEAR] = entry + 1


@inner
def list_vector(vectors: Vectors, support: Any, n: int, vector: int, counters: Any) -> None:
    """Enter a new vector in the lists of the classes of a belief, if there are such lists; there must be room."""
    if len(vectors.near) == 0 or vectors.near[support[0], 1] < 0:
        return
    for k in range(n):
        _enter(vectors.near, support[k], vector, counters)


@kernel
def list_best(
    model: Compiled, points: Points, vectors: Vectors, order: Any, narrow: int, counters: Any, last: Any
) -> None:
    """Make the lists of vectors anew, from what is best at the points; `order` is by that.

    Components with up to `narrow` classes have none. `last` is working space, one entry per class. There is room if
    there are as many entries as places in `support`.
    """
    counters[NEAR] = len(last)
    for c in range(len(last)):
        vectors.near[c, 1] = -1
        last[c] = -1
    for i in range(len(order)):
        point = order[i]
        component = points.component[point]
        if model.component_start[component + 1] - model.component_start[component] <= narrow:
            continue
        best = points.best[point]
        for k in range(points.start[point], points.start[point + 1]):
            c = points.support[k]
            if last[c] != best:
                last[c] = best
                _enter(vectors.near, c, best, counters)


@inner
def hold_classes(points: Points, point: int) -> None:
    """Enter a new point in the lists of points by their classes, if they are kept."""
    if len(points.holding) == 0:
        return
    for k in range(points.start[point], points.start[point + 1]):
        c = points.support[k]
        points.holding[k, 0] = point
        points.holding[k, 1] = -1
        if k != c:
            points.holding[k, 1] = points.holding[c, 1]
            points.holding[c, 1] = k


@inner
def _value_at(support: Any, prob: Any, begin: int, end: int, values: Any, first: int) -> float:
    """Return the value of a vector at a point, from arrays by their own names: whole records cost more than the sum."""
    value, more = 0.0, 0.0
    for k in range(begin, end - 1, 2):
        value += prob[k] * values[first + support[k]]
        more += prob[k + 1] * values[first + support[k + 1]]
    if (end - begin) % 2 == 1:
        value += prob[end - 1] * values[first + support[end - 1]]
    return value + more


@inner
def offer_to_all(
    model: Compiled, points: Points, vectors: Vectors, component: int, vector: int, counters: Any
) -> None:
    """Let all points of a component have a new vector as their best where it is."""
    first = vectors.start[vector] - model.component_start[component]
    start, support, prob, values = points.start, points.support, points.prob, vectors.values
    highest, best, lower, following = points.value, points.best, points.lower, points.next_in_component
    point = points.first_in_component[component]
    work = 0
    while point >= 0:
        begin, end = start[point], start[point + 1]
        work += end - begin
        value = _value_at(support, prob, begin, end, values, first)
        if value > highest[point]:
            highest[point] = value
            best[point] = vector
            lower[point] = max(lower[point], value)
        point = following[point]
    counters[WORK] += work


@inner
def offer_to_near(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    origin: int,
    vector: int,
    counters: Any,
) -> None:
    """Let the points that share a class with a new vector's origin have it as their best where it is."""
    first = vectors.start[vector] - model.component_start[vectors.component[vector]]
    start, support, prob, values = points.start, points.support, points.prob, vectors.values
    highest, best, lower, holding = points.value, points.best, points.lower, points.holding
    row_of = scratch.row_of
    for k in range(start[origin], start[origin + 1]):
        row_of[support[k]] = k
    work = 0
    for k in range(start[origin], start[origin + 1]):
        place = np.int64(support[k])
        while place >= 0:
            point = holding[place, 0]
            begin, end = start[point], start[point + 1]
            # Once per point: at the first class that they share.
            shared = begin
            while row_of[support[shared]] < 0:
                shared += 1
            work += shared + 1 - begin
            if shared == place:
                work += end - begin
                value = _value_at(support, prob, begin, end, values, first)
                if value > highest[point]:
                    highest[point] = value
                    best[point] = vector
                    lower[point] = max(lower[point], value)
            place = np.int64(holding[place, 1])
    for k in range(start[origin], start[origin + 1]):
        row_of[support[k]] = -1
    counters[WORK] += work


@inner
def plan_for(
    model: Compiled, points: Points, origin: int, narrow: int, values: Any, planned: Any, counters: Any
) -> None:
    """Say which classes of its component a new vector plans for, and fill its values elsewhere.

    That is all of them, or, where there are lists of points by classes, those of all small points that share a class
    with its origin: these are the beliefs that it may be of use for. Small is up to `narrow` classes.
    """
    offset = model.component_start[points.component[origin]]
    begin, end = points.start[origin], points.start[origin + 1]
    whole = len(points.holding) == 0 or end - begin > narrow
    for j in range(len(values)):
        values[j] = model.least[offset + j]
        planned[j] = whole
    if whole:
        return
    likeliest = begin
    for k in range(begin, end):
        planned[points.support[k] - offset] = True
        if points.prob[k] > points.prob[likeliest]:
            likeliest = k
    place = np.int64(points.support[likeliest])
    while place >= 0:
        point = points.holding[place, 0]
        first, last = points.start[point], points.start[point + 1]
        counters[WORK] += 1
        if last - first <= narrow:
            counters[WORK] += last - first
            for j in range(first, last):
                planned[points.support[j] - offset] = True
        place = np.int64(points.holding[place, 1])


@kernel
def forget_classes(holding: Any, n_classes: int, counters: Any) -> None:
    """Take the points that are in use no more out of the lists of points by classes."""
    for c in range(n_classes):
        while holding[c, 1] >= counters[SUPPORT]:
            holding[c, 1] = holding[holding[c, 1], 1]

"""What has to do with a belief in a large component: vectors and points that share a class with it.

In a large component most vectors were made for beliefs that have nothing in common with the one in question. For each
class there is a list of the vectors that are best at some point with the class, and one of the points with the class.
To look at these only is sound, since every vector is a lower bound; what it misses is seldom the best one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import BACKUPS, NEAR, SUPPORT, WORK, Compiled, Points, Vectors


@inner
def first_near(vectors: Vectors, support: Any, prob: Any, n: int) -> int:
    """Return where the list for a belief begins, that of its likeliest class; −1 if there is none."""
    if len(vectors.first_near) == 0:
        return -1
    likeliest = 0
    for j in range(1, n):
        if prob[j] > prob[likeliest]:
            likeliest = j
    return int(vectors.first_near[support[likeliest]])


@inner
def best_near(
    vectors: Vectors, offset: int, support: Any, prob: Any, n: int, entry: int, counters: Any
) -> tuple[int, float]:
    """Return the best vector of the list that begins with an entry, and its value; `offset` is the first class."""
    best, value = -1, -np.inf
    values, start, near, following = vectors.values, vectors.start, vectors.near, vectors.next_near
    work = n
    while entry >= 0:
        first = start[near[entry]] - offset
        dot, more = 0.0, 0.0
        for j in range(0, n - 1, 2):
            dot += prob[j] * values[first + support[j]]
            more += prob[j + 1] * values[first + support[j + 1]]
        if n % 2 == 1:
            dot += prob[n - 1] * values[first + support[n - 1]]
        dot += more
        if dot > value:
            best, value = near[entry], dot
        entry = following[entry]
        work += n
    counters[WORK] += work
    return best, value


@inner
def list_vector(vectors: Vectors, support: Any, n: int, vector: int, counters: Any) -> None:
    """Enter a new vector in the lists of the classes of a belief, if there are such lists; there must be room."""
    if len(vectors.first_near) == 0 or vectors.first_near[support[0]] < 0:
        return
    for k in range(n):
        entry = counters[NEAR]
        vectors.near[entry] = vector
        vectors.next_near[entry] = vectors.first_near[support[k]]
        vectors.first_near[support[k]] = entry
        counters[NEAR] = entry + 1


@kernel
def list_best(
    model: Compiled, points: Points, vectors: Vectors, order: Any, narrow: int, counters: Any, last: Any
) -> None:
    """Make the lists of vectors anew, from what is best at the points; `order` is by that.

    Components with up to `narrow` classes have none. `last` is working space, one entry per class. There is room if
    `near` is as long as `support`.
    """
    counters[NEAR] = 0
    for c in range(len(last)):
        vectors.first_near[c] = -1
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
                entry = counters[NEAR]
                vectors.near[entry] = best
                vectors.next_near[entry] = vectors.first_near[c]
                vectors.first_near[c] = entry
                counters[NEAR] = entry + 1


@inner
def link_classes(points: Points, point: int) -> None:
    """Enter a new point, whose classes are known, in the lists of points by their classes."""
    first = points.start[point]
    points.next_at[point] = points.first_at[points.support[first]]
    points.first_at[points.support[first]] = point
    points.asked[point] = -1
    if len(points.first_holding) > 0:
        for k in range(first, points.start[point + 1]):
            c = points.support[k]
            points.holder[k] = point
            points.next_holding[k] = points.first_holding[c]
            points.first_holding[c] = k


@inner
def _offer(points: Points, point: int, vector: int, first: int, values: Any) -> None:
    """Let a point have a vector as its best if it is; its values begin at first + the component's first class."""
    begin, end = points.start[point], points.start[point + 1]
    support, prob = points.support, points.prob
    value, more = 0.0, 0.0
    for k in range(begin, end - 1, 2):
        value += prob[k] * values[first + support[k]]
        more += prob[k + 1] * values[first + support[k + 1]]
    if (end - begin) % 2 == 1:
        value += prob[end - 1] * values[first + support[end - 1]]
    value += more
    if value > points.value[point]:
        points.value[point] = value
        points.best[point] = vector
        points.lower[point] = max(points.lower[point], value)


@inner
def offer_vector(
    model: Compiled, points: Points, vectors: Vectors, origin: int, vector: int, narrow: int, counters: Any
) -> None:
    """Let all points have a new vector as their best where it is, or those that share a class with its origin.

    That is where there are lists of points by classes, and the origin has up to `narrow` of them.
    """
    component = vectors.component[vector]
    first = vectors.start[vector] - model.component_start[component]
    values = vectors.values
    begin, end = points.start[origin], points.start[origin + 1]
    work = 0
    if len(points.first_holding) == 0 or end - begin > narrow:
        point = points.first_in_component[component]
        while point >= 0:
            _offer(points, point, vector, first, values)
            work += points.start[point + 1] - points.start[point]
            point = points.next_in_component[point]
    else:
        now = counters[BACKUPS]
        for k in range(begin, end):
            place = points.first_holding[points.support[k]]
            while place >= 0:
                point = points.holder[place]
                work += 1
                if points.asked[point] != now:
                    points.asked[point] = now
                    _offer(points, point, vector, first, values)
                    work += points.start[point + 1] - points.start[point]
                place = points.next_holding[place]
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
    whole = len(points.first_holding) == 0 or end - begin > narrow
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
    place = points.first_holding[points.support[likeliest]]
    while place >= 0:
        point = points.holder[place]
        first, last = points.start[point], points.start[point + 1]
        counters[WORK] += 1
        if last - first <= narrow:
            counters[WORK] += last - first
            for j in range(first, last):
                planned[points.support[j] - offset] = True
        place = points.next_holding[place]


@kernel
def forget_classes(points: Points, n_points: int, counters: Any) -> None:
    """Take the points from a number on out of the lists of points by classes."""
    for c in range(len(points.first_at)):
        while points.first_at[c] >= n_points:
            points.first_at[c] = points.next_at[points.first_at[c]]
    for c in range(len(points.first_holding)):
        while points.first_holding[c] >= counters[SUPPORT]:
            points.first_holding[c] = points.next_holding[points.first_holding[c]]

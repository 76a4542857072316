"""The best question to split a leaf of a decision tree with, by the Dirichlet-multinomial score."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel


class Askable(NamedTuple):
    """What can be asked of a context."""

    sizes: NDArray[np.int64]
    """How many values each variable has, shape (variables,)."""
    ordered: NDArray[np.bool_]
    """Whether they have an order, shape (variables,)."""
    pairs: NDArray[np.int64]
    """Variables that can be compared with each other, shape (pairs, 2)."""


class Prior(NamedTuple):
    """What a leaf's distribution is expected to be before its counts are seen.

    Outcomes can be told in several ways, such as by value or by change. Each way has columns of its own, which count
    the same steps; the way that suits a leaf best is its own.
    """

    pseudo: NDArray[np.float64]
    """Pseudo-counts of each column, shape (W,)."""
    block: NDArray[np.int64]
    """Columns of one block share a distribution; others have one of their own, shape (W,)."""
    total: NDArray[np.float64]
    """The pseudo-counts of each block added up, shape (blocks,)."""
    way: NDArray[np.int64]
    """The way of telling that a block belongs to, shape (blocks,)."""
    share: NDArray[np.float64]
    """The log of the share of each of the values that a column stands for, shape (W,)."""


@kernel
def leaf_score(prior: Prior, counts: NDArray[np.float64]) -> tuple[float, int]:
    """Return the log of the Dirichlet-multinomial probability of counts, shape (W,), and how they are best told."""
    score = np.zeros(prior.way.max() + 1)
    best = _score(prior, counts, np.zeros(len(prior.total)), score)
    return best, int(np.argmax(score))


@inner
def _score(
    prior: Prior, counts: NDArray[np.float64], sums: NDArray[np.float64], score: NDArray[np.float64]
) -> float:
    sums[:] = 0.0
    score[:] = 0.0
    for w in range(len(counts)):
        n = counts[w]
        if n > 1e-9:
            b = prior.block[w]
            added = math.lgamma(prior.pseudo[w] + n) - math.lgamma(prior.pseudo[w])
            score[prior.way[b]] += added + n * prior.share[w]
            sums[b] += n
    for b in range(len(sums)):
        if sums[b] > 0.0:
            score[prior.way[b]] += math.lgamma(prior.total[b]) - math.lgamma(prior.total[b] + sums[b])
    return score.max()


@inner
def _gain(
    prior: Prior,
    total: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    sums: NDArray[np.float64],
    ways: NDArray[np.float64],
) -> float:
    for w in range(len(total)):
        right[w] = max(total[w] - left[w], 0.0)
    return _score(prior, left, sums, ways) + _score(prior, right, sums, ways)


@inner
def _by_key(key: NDArray[np.float64], seen: NDArray[np.bool_], order: NDArray[np.int64]) -> int:
    """Fill `order` with the answers that occur, by rising key, and return how many there are."""
    count = 0
    for answer in range(len(seen)):
        if seen[answer]:
            place = count
            while place > 0 and key[order[place - 1]] > key[answer]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = answer
            count += 1
    return count


@kernel
def best_question(
    codes: NDArray[np.int16],
    counts: NDArray[np.float64],
    members: NDArray[np.int64],
    askable: Askable,
    prior: Prior,
    position: NDArray[np.float64],
    out: NDArray[np.bool_],
) -> tuple[float, float, int, int]:
    """Return by how much the best question raises the score, what it costs, and which it is; fill `out`.

    `out` says which answers are on its left. A question is about the value of one variable (the last number is −1), or
    compares two: the answers are less, equal and greater. It costs the log of the number of such questions: which
    variables, and which value, threshold or set of values. The cost is taken off already.

    Parameters
    ----------
    codes
        The value of each variable in each context, shape (contexts, variables).
    counts
        How often each outcome came in each context, told in every way, shape (contexts, W).
    members
        The contexts of the leaf.
    position
        A number for each outcome as the first way tells it, by which answers are put in order.
    out
        Shape (answers,), with room for the variable with most values, and for three at least.
    """
    n_variables, n_pairs, width = len(askable.sizes), len(askable.pairs), counts.shape[1]
    first = np.zeros(n_variables + 1, dtype=np.int64)
    for v in range(n_variables):
        first[v + 1] = first[v] + askable.sizes[v]
    table = np.zeros((first[n_variables] + 3 * n_pairs, width))
    for i in range(len(members)):
        c = members[i]
        for w in range(width):
            n = counts[c, w]
            if n <= 0.0:
                continue
            for v in range(n_variables):
                table[first[v] + codes[c, v], w] += n
            for p in range(n_pairs):
                one, other = codes[c, askable.pairs[p, 0]], codes[c, askable.pairs[p, 1]]
                table[first[n_variables] + 3 * p + (1 if one == other else 0 if one < other else 2), w] += n
    total = np.zeros(width)
    for i in range(len(members)):
        total += counts[members[i]]
    sums, left, right = np.zeros(len(prior.total)), np.zeros(width), np.zeros(width)
    ways = np.zeros(prior.way.max() + 1)
    whole = _score(prior, total, sums, ways)
    # Answers are put in order by outcomes as they are told in the first way.
    n_values = len(position)
    common = np.argmax(total[:n_values])
    best, best_cost, best_variable, best_other = 0.0, 0.0, -1, -1
    # Which variables, and whether it is a value, a threshold or a set.
    words = math.log(n_variables + n_pairs + 0.0) + math.log(3.0)
    for q in range(n_variables + n_pairs):
        if q < n_variables:
            begin, n_answers, ordered = first[q], askable.sizes[q], askable.ordered[q]
            variable, other = q, -1
        else:
            begin, n_answers, ordered = first[n_variables] + 3 * (q - n_variables), 3, False
            variable, other = askable.pairs[q - n_variables, 0], askable.pairs[q - n_variables, 1]
        seen, natural = np.zeros(n_answers, dtype=np.bool_), np.zeros(n_answers)
        mass, middle, often = np.zeros(n_answers), np.zeros(n_answers), np.zeros(n_answers)
        n_seen = 0
        for answer in range(n_answers):
            natural[answer] = answer
            for w in range(n_values):
                n = table[begin + answer, w]
                mass[answer] += n
                middle[answer] += n * position[w]
            if mass[answer] > 1e-9:
                seen[answer] = True
                n_seen += 1
                middle[answer] /= mass[answer]
                often[answer] = table[begin + answer, common] / mass[answer]
        if n_seen < 2:
            continue
        for answer in range(n_answers):
            if not seen[answer]:
                continue
            for w in range(width):
                left[w] = table[begin + answer, w]
            cost = words + math.log(n_seen + 0.0)
            gain = _gain(prior, total, left, right, sums, ways) - whole - cost
            if gain > best + 1e-9:
                best, best_cost, best_variable, best_other = gain, cost, variable, other
                out[:] = False
                out[answer] = True
        if other >= 0 or n_seen < 3:
            continue
        order = np.zeros(n_answers, dtype=np.int64)
        for kind in range(3):
            if kind == 0 and not ordered:
                continue
            if kind == 0:
                count = _by_key(natural, seen, order)
            elif kind == 1:
                count = _by_key(middle, seen, order)
            else:
                count = _by_key(often, seen, order)
            left[:] = 0.0
            for place in range(count - 1):
                for w in range(width):
                    left[w] += table[begin + order[place], w]
                cost = words + math.log(count - 1.0)
                if kind > 0:
                    k = place + 1.0
                    cost += math.lgamma(count + 1.0) - math.lgamma(k + 1.0) - math.lgamma(count - k + 1.0)
                gain = _gain(prior, total, left, right, sums, ways) - whole - cost
                if gain > best + 1e-9:
                    best, best_cost, best_variable, best_other = gain, cost, variable, other
                    out[:] = False
                    for k in range(place + 1):
                        out[order[k]] = True
                    if kind == 0:
                        # Values that do not occur here go to the side on which they lie.
                        for answer in range(order[place]):
                            out[answer] = True
    return best, best_cost, best_variable, best_other


@inner
def _potential(counts: NDArray[np.float64], members: NDArray[np.int64], n_values: int) -> float:
    """Return by how much the likelihood rises if every context is told apart, more than it would by chance."""
    total = np.zeros(n_values)
    gain, freedom = 0.0, 1
    for i in range(len(members)):
        n, n_kinds = 0.0, 0
        for w in range(n_values):
            m = counts[members[i], w]
            if m > 0.0:
                gain += m * math.log(m)
                total[w] += m
                n += m
                n_kinds += 1
        if n > 0.0:
            gain -= n * math.log(n)
            freedom += n_kinds - 1
    n = total.sum()
    for w in range(n_values):
        if total[w] > 0.0:
            gain -= total[w] * math.log(total[w] / n)
            freedom -= 1
    return gain - 0.5 * freedom


@inner
def _surplus(
    codes: NDArray[np.int16],
    steps: NDArray[np.int64],
    counted: NDArray[np.float64],
    first: int,
    second: int,
    joint: NDArray[np.float64],
) -> float:
    """Return by how much the likelihood rises if two variables tell steps apart, more than it would by chance.

    Parameters
    ----------
    steps, counted
        Contexts and values that occur, shape (entries, 2), and how often, shape (entries,).
    joint
        Room for counts by both variables and value.
    """
    joint[:] = 0.0
    for i in range(len(steps)):
        c = steps[i, 0]
        joint[codes[c, first], codes[c, second], steps[i, 1]] += counted[i]
    total = joint.sum(axis=0).sum(axis=0)
    gain, freedom = 0.0, 0
    for a in range(joint.shape[0]):
        for b in range(joint.shape[1]):
            n = joint[a, b].sum()
            if n <= 0.0:
                continue
            freedom -= 1
            for w in range(joint.shape[2]):
                m = joint[a, b, w]
                if m > 0.0:
                    gain += m * math.log(m / n)
                    freedom += 1
    n = total.sum()
    for w in range(len(total)):
        if total[w] > 0.0:
            gain -= total[w] * math.log(total[w] / n)
            freedom -= 1
    return gain - 0.5 * (freedom + 1)


@inner
def _told_apart(
    prior: Prior,
    rows: NDArray[np.float64],
    sums: NDArray[np.float64],
    ways: NDArray[np.float64],
    words: float,
) -> float:
    """Return the score of rows of counts with a leaf each, less the cost of telling them apart."""
    score, n_leaves = 0.0, 0
    for row in range(len(rows)):
        if rows[row].sum() > 1e-9:
            score += _score(prior, rows[row], sums, ways)
            n_leaves += 1
    return score - words * max(n_leaves - 1, 0)


@kernel
def best_first_of_two(
    codes: NDArray[np.int16],
    counts: NDArray[np.float64],
    members: NDArray[np.int64],
    askable: Askable,
    prior: Prior,
    n_values: int,
    least: float,
    out: NDArray[np.bool_],
) -> tuple[float, float, float, int]:
    """Return the question that pays most together with a second one; fill `out`.

    Some variables say nothing alone, and much together: whether a switch is on, and whether somebody pressed it. The
    second question tells the values of another variable apart, on both sides. The numbers are by how much both raise
    the score, by how much the first one alone does (perhaps less than nothing), what that one costs, and its variable:
    −1 if no two questions raise the score by `least`.
    """
    n_variables, n_pairs, width = len(askable.sizes), len(askable.pairs), counts.shape[1]
    words = math.log(n_variables + n_pairs + 0.0) + math.log(3.0)
    if _potential(counts, members, n_values) < max(3.0 * words, least):
        return 0.0, 0.0, 0.0, -1
    total = np.zeros(width)
    for i in range(len(members)):
        total += counts[members[i]]
    sums, right = np.zeros(len(prior.total)), np.zeros(width)
    ways = np.zeros(prior.way.max() + 1)
    whole = _score(prior, total, sums, ways)
    best, best_gain, best_cost, best_variable = least, 0.0, 0.0, -1
    n_steps = (counts[members, :n_values] > 0.0).sum()
    steps, counted = np.empty((n_steps, 2), dtype=np.int64), np.empty(n_steps)
    at = 0
    for i in range(len(members)):
        for w in range(n_values):
            if counts[members[i], w] > 0.0:
                steps[at, 0], steps[at, 1], counted[at] = members[i], w, counts[members[i], w]
                at += 1
    surplus = np.zeros((n_variables, n_variables))
    for first in range(n_variables):
        for second in range(first):
            room = np.empty((askable.sizes[first], askable.sizes[second], n_values))
            surplus[first, second] = _surplus(codes, steps, counted, first, second, room)
            surplus[second, first] = surplus[first, second]
    for first in range(n_variables):
        for second in range(n_variables):
            n_first, n_second = askable.sizes[first], askable.sizes[second]
            if surplus[first, second] < 3.0 * words:
                continue
            joint = np.zeros((n_first, n_second, width))
            for i in range(len(members)):
                c = members[i]
                joint[codes[c, first], codes[c, second]] += counts[c]
            every = joint.sum(axis=0)
            seen = joint.sum(axis=2).sum(axis=1) > 1e-9
            n_seen = seen.sum()
            if n_seen < 2:
                continue
            apart = words + math.log(n_second + 0.0)
            for kind in range(2):
                # One value, or all up to one.
                if kind == 1 and (not askable.ordered[first] or n_seen < 3):
                    continue
                cost = words + math.log(n_seen + 0.0)
                left = np.zeros((n_second, width))
                for answer in range(n_first):
                    if not seen[answer]:
                        continue
                    left = left + joint[answer] if kind == 1 else joint[answer]
                    other = np.maximum(every - left, 0.0)
                    if other.sum() < 1e-9:
                        continue
                    gain = _told_apart(prior, left, sums, ways, apart) - whole - cost
                    gain += _told_apart(prior, other, sums, ways, apart)
                    if gain > best + 1e-9:
                        best, best_cost, best_variable = gain, cost, first
                        own = left.sum(axis=0)
                        best_gain = _gain(prior, total, own, right, sums, ways) - whole - cost
                        out[:] = False
                        out[answer] = True
                        if kind == 1:
                            out[:answer] = True
    return best, best_gain, best_cost, best_variable

"""The lower bound: α-vectors, which is best where, what their plans are worth, and backups.

A vector remembers its plan: an action and, for each node that can follow, a vector to go on with. So it can be
evaluated again when those it leads to have changed: that is a sparse product instead of a search.

A backup at a belief chooses an action and, for each node that can follow, the best vector there; the new vector is
the value of that plan in every class of the component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import (
    BACKUPS,
    CHOICES,
    NEAR,
    VALUES,
    VECTORS,
    WORK,
    Compiled,
    Points,
    Scratch,
    Vectors,
)
from missmdp._kernels.sarsop.near import (
    best_listed,
    first_near,
    list_vector,
    offer_to_all,
    offer_to_near,
    plan_for,
)
from missmdp._kernels.sarsop.successors import clear, gather, spread


@inner
def best_of_all(
    model: Compiled, vectors: Vectors, component: int, support: Any, prob: Any, n: int, counters: Any
) -> tuple[int, float]:
    """Return the vector with the largest value at a belief inside a component, and that value."""
    best, value = -1, -np.inf
    values, start, following = vectors.values, vectors.start, vectors.next_in_component
    offset = model.component_start[component]
    k = vectors.first_in_component[component]
    work = 0
    whole = n - n % 4
    while k >= 0:
        first = start[k] - offset
        # Four sums at a time: one alone would wait for itself.
        dot, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 4):
            dot += prob[j] * values[first + support[j]]
            second += prob[j + 1] * values[first + support[j + 1]]
            third += prob[j + 2] * values[first + support[j + 2]]
            fourth += prob[j + 3] * values[first + support[j + 3]]
        for j in range(whole, n):
            dot += prob[j] * values[first + support[j]]
        dot += second + (third + fourth)
        if dot > value:
            best, value = k, dot
        k = following[k]
        work += n
    counters[WORK] += work
    return best, value


@inner
def best_vector(
    model: Compiled, vectors: Vectors, component: int, support: Any, prob: Any, n: int, counters: Any
) -> tuple[int, float]:
    """Return the best vector at a belief and its value: of those near to it where there are lists of these, or of all.

    Where that is called often, the two cases are apart: together they take longer.
    """
    if len(vectors.near) > 0:
        return best_of_near(model, vectors, component, support, prob, n, counters)
    return best_of_all(model, vectors, component, support, prob, n, counters)


@inner
def best_of_near(
    model: Compiled, vectors: Vectors, component: int, support: Any, prob: Any, n: int, counters: Any
) -> tuple[int, float]:
    """Return the best vector of those near to a belief, or of all in a component that has no lists, and its value."""
    entry = first_near(vectors, support, prob, n)
    if entry < 0:
        return best_of_all(model, vectors, component, support, prob, n, counters)
    return best_listed(vectors, model.component_start[component], support, prob, n, entry, counters)


@inner
def _best_on_average(model: Compiled, vectors: Vectors, component: int, counters: Any) -> int:
    """Return the vector of a component whose values have the largest sum."""
    size = model.component_start[component + 1] - model.component_start[component]
    best, highest = -1, -np.inf
    k = vectors.first_in_component[component]
    while k >= 0:
        total = 0.0
        for j in range(vectors.start[k], vectors.start[k] + size):
            total += vectors.values[j]
        if total > highest:
            best, highest = k, total
        k = vectors.next_in_component[k]
        counters[WORK] += size
    return best


@kernel
def choose_defaults(model: Compiled, vectors: Vectors, scratch: Scratch, counters: Any) -> None:
    """Choose the vector for nodes that a point holds impossible: the best where all classes are equally likely.

    In a wide component that is all classes of the component, whatever the node: one vector for all nodes. Where
    there are lists of vectors by classes, that holds for nodes with many classes.
    """
    previous, wide = -1, -1
    for node in range(len(model.node_component)):
        component = model.node_component[node]
        is_wide = model.component_start[component + 1] - model.component_start[component] > len(
            scratch.inverse
        )
        if is_wide and component != previous:
            wide = _best_on_average(model, vectors, component, counters)
            previous = component
        n = model.node_start[node + 1] - model.node_start[node]
        if is_wide and (len(vectors.near) == 0 or n > len(scratch.inverse)):
            vectors.default[node] = wide
            continue
        for k in range(n):
            scratch.support[k] = model.pair_class[model.node_start[node] + k]
            scratch.prob[k] = 1.0
        vectors.default[node], _ = best_vector(
            model, vectors, component, scratch.support, scratch.prob, n, counters
        )


@kernel
def start_blind(model: Compiled, vectors: Vectors, lowest: Any, counters: Any) -> None:
    """Make one vector per component and action, for taking that action for ever, worth lowest[action] everywhere."""
    n_actions = model.reward.shape[1]
    for component in range(len(model.component_start) - 1):
        size = model.component_start[component + 1] - model.component_start[component]
        for a in range(n_actions):
            k = counters[VECTORS]
            vectors.start[k] = counters[VALUES]
            vectors.component[k] = component
            vectors.action[k] = a
            vectors.choice_start[k] = counters[CHOICES]
            vectors.origin[k] = -1
            vectors.needed[k] = True
            for j in range(size):
                value = lowest[a]
                if len(vectors.near) > 0:
                    # Vectors have this where they do not plan, so none may be below it.
                    value = max(value, model.least[model.component_start[component] + j])
                vectors.values[counters[VALUES] + j] = value
                vectors.planned[counters[VALUES] + j] = True
            for j in range(
                model.next_start[component * n_actions + a], model.next_start[component * n_actions + a + 1]
            ):
                vectors.choice[counters[CHOICES]] = model.node_component[model.next_node[j]] * n_actions + a
                counters[CHOICES] += 1
            vectors.next_in_component[k] = vectors.first_in_component[component]
            vectors.first_in_component[component] = k
            counters[VALUES] += size
            counters[VECTORS] += 1


@kernel
def search_values(model: Compiled, points: Points, vectors: Vectors, n_points: int, counters: Any) -> None:
    """Find the best vector of each point among all."""
    for point in range(n_points):
        first, last = points.start[point], points.start[point + 1]
        points.best[point], points.value[point] = best_vector(
            model,
            vectors,
            points.component[point],
            points.support[first:last],
            points.prob[first:last],
            last - first,
            counters,
        )
        points.lower[point] = max(points.lower[point], points.value[point])


@kernel
def refresh_values(model: Compiled, points: Points, vectors: Vectors, n_points: int) -> None:
    """Set the value of each point to that of its best vector now."""
    for point in range(n_points):
        k = points.best[point]
        first = vectors.start[k] - model.component_start[points.component[point]]
        value = 0.0
        for j in range(points.start[point], points.start[point + 1]):
            value += points.prob[j] * vectors.values[first + points.support[j]]
        points.value[point] = value
        points.lower[point] = max(points.lower[point], value)


@inner
def evaluate_plan(
    model: Compiled,
    vectors: Vectors,
    scratch: Scratch,
    component: int,
    action: int,
    choice: Any,
    planned: Any,
    out: Any,
) -> int:
    """Fill out with the value, class by class of a component, of an action and then one vector per node.

    Those vectors are in `choice`, in the order of the nodes that can follow. Classes that are not planned for keep
    what is in `out`. Returns what it took, in multiplications of a search for the best vector: those run through
    memory in order; here each one looks up a value somewhere else.
    """
    n_actions = model.reward.shape[1]
    begin, end = (
        model.next_start[component * n_actions + action],
        model.next_start[component * n_actions + action + 1],
    )
    for j in range(begin, end):
        node = model.next_node[j]
        scratch.base[node] = (
            vectors.start[choice[j - begin]] - model.component_start[model.node_component[node]]
        )
    offset = model.component_start[component]
    start, prob, nodes, target = model.start, model.prob, model.node, model.target
    values, base = vectors.values, scratch.base
    work = 0
    for c in range(offset, model.component_start[component + 1]):
        if not planned[c - offset]:
            continue
        row = c * n_actions + action
        value, more = model.reward[c, action], 0.0
        first, last = start[row], start[row + 1]
        for j in range(first, last - 1, 2):
            value += prob[j] * values[base[nodes[j]] + target[j]]
            more += prob[j + 1] * values[base[nodes[j + 1]] + target[j + 1]]
        if (last - first) % 2 == 1:
            value += prob[last - 1] * values[base[nodes[last - 1]] + target[last - 1]]
        out[c - offset] = value + more
        work += 4 * (last - first)
    return work


@kernel
def evaluate_vectors(
    model: Compiled,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    only_needed: bool,
    place: int,
    budget: int,
) -> tuple[float, float, int]:
    """Evaluate the plans of vectors place − 1, place − 2, …, or of those that the start needs, within the budget.

    Returns the largest rise, the largest fall of those that the start needs, and the place reached: 0 if all are done.
    """
    rise, largest = 0.0, 0.0
    n_actions = model.reward.shape[1]
    stop = counters[WORK] + budget
    while place > 0 and counters[WORK] < stop:
        place -= 1
        k = place
        if only_needed and not vectors.needed[k]:
            continue
        component, action = vectors.component[k], vectors.action[k]
        row = component * n_actions + action
        first = vectors.choice_start[k]
        choice = vectors.choice[first : first + model.next_start[row + 1] - model.next_start[row]]
        size = model.component_start[component + 1] - model.component_start[component]
        values = vectors.values[vectors.start[k] : vectors.start[k] + size]
        planned = vectors.planned[vectors.start[k] : vectors.start[k] + size]
        counters[WORK] += evaluate_plan(
            model, vectors, scratch, component, action, choice, planned, scratch.level
        )
        most = 0.0
        for c in range(size):
            if planned[c]:
                change = scratch.level[c] - values[c]
                rise = max(rise, change)
                most = max(most, -change)
                values[c] = scratch.level[c]
        vectors.fall[k] = most
        if vectors.needed[k]:
            largest = max(largest, most)
    return rise, largest, place


@inner
def _new_vector(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    component: int,
    action: int,
    origin: int,
    counters: Any,
) -> int:
    """Return a new vector for an action and then the vectors scratch.best_choice[node]; −1 if there is no room."""
    row = component * model.reward.shape[1] + action
    begin, end = model.next_start[row], model.next_start[row + 1]
    size = model.component_start[component + 1] - model.component_start[component]
    new, first, first_choice = counters[VECTORS], counters[VALUES], counters[CHOICES]
    if (
        new >= len(vectors.component)
        or first + size > len(vectors.values)
        or first_choice + end - begin > len(vectors.choice)
        or (len(vectors.near) > 0 and counters[NEAR] + size > len(vectors.near))
    ):
        return -1
    for j in range(begin, end):
        vectors.choice[first_choice + j - begin] = scratch.best_choice[model.next_node[j]]
    choice = vectors.choice[first_choice : first_choice + end - begin]
    values, planned = vectors.values[first : first + size], vectors.planned[first : first + size]
    plan_for(model, points, origin, len(scratch.inverse), values, planned, counters)
    counters[WORK] += evaluate_plan(model, vectors, scratch, component, action, choice, planned, values)
    vectors.start[new] = first
    vectors.component[new] = component
    vectors.action[new] = action
    vectors.choice_start[new] = first_choice
    vectors.origin[new] = origin
    vectors.next_in_component[new] = vectors.first_in_component[component]
    vectors.first_in_component[component] = new
    counters[VECTORS] = new + 1
    counters[VALUES] = first + size
    counters[CHOICES] = first_choice + end - begin
    return new


@inner
def _backup(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    point: int,
    tolerance: float,
) -> bool:
    """Back up the lower bound at a point, if that raises it by the tolerance; return whether there was room."""
    n_actions = model.reward.shape[1]
    component = points.component[point]
    best_action, best_value = -1, points.value[point] + tolerance
    counters[BACKUPS] += 1
    promise, near = scratch.per_action, len(vectors.near) > 0
    for a in range(n_actions):
        promise[a] = points.q[point, a]
    for _ in range(n_actions):
        # The most promising first: what cannot be better than the best so far need not be worked out.
        a = int(np.argmax(promise))
        if promise[a] <= best_value:
            break
        promise[a] = -np.inf
        n_touched = spread(model, points, point, a, scratch)
        value = points.reward[point, a]
        for t in range(n_touched):
            node = scratch.touched[t]
            n, total = gather(model, scratch, node)
            if n == 0:
                scratch.choice[node] = vectors.default[node]
            elif n == 1:
                corner = scratch.support[0]
                scratch.choice[node] = points.best[corner]
                value += total * points.value[corner]
            elif near:
                scratch.choice[node], v = best_of_near(
                    model, vectors, model.node_component[node], scratch.support, scratch.prob, n, counters
                )
                value += total * v
            else:
                scratch.choice[node], v = best_of_all(
                    model, vectors, model.node_component[node], scratch.support, scratch.prob, n, counters
                )
                value += total * v
        if value > best_value:
            best_action, best_value = a, value
            row = component * n_actions + a
            for j in range(model.next_start[row], model.next_start[row + 1]):
                node = model.next_node[j]
                chosen = scratch.choice[node] if scratch.mark[node] else vectors.default[node]
                scratch.best_choice[node] = chosen
        clear(model, scratch, n_touched)
    if best_action < 0:
        return True
    new = _new_vector(model, points, vectors, scratch, component, best_action, point, counters)
    if new < 0:
        return False
    first, last = points.start[point], points.start[point + 1]
    if len(points.holding) > 0 and last - first <= len(scratch.inverse):
        offer_to_near(model, points, vectors, scratch, point, new, counters)
    else:
        offer_to_all(model, points, vectors, component, new, counters)
    list_vector(vectors, points.support[first:last], last - first, new, counters)
    return True


@kernel
def backup_points(
    model: Compiled,
    points: Points,
    vectors: Vectors,
    scratch: Scratch,
    counters: Any,
    todo: Any,
    place: int,
    share: float,
    budget: int,
) -> int:
    """Back up the lower bounds at todo[place], todo[place + 1], … as far as the budget goes.

    A backup counts where it closes at least a share of the point's gap. Returns the next place, or −1 − place if
    there is no room.
    """
    stop = counters[WORK] + budget
    while place < len(todo) and counters[WORK] < stop:
        point = todo[place]
        tolerance = share * max(points.upper[point] - points.lower[point], 0.0)
        if not _backup(model, points, vectors, scratch, counters, point, tolerance):
            return -1 - place
        counters[WORK] += 1
        place += 1
    return place

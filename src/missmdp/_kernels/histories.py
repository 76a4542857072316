"""Likelihoods of logged histories: the forward filter, and forward–backward over a tree of distinct prefixes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel


class HistoryTree(NamedTuple):
    """Some nodes of the tree, parents before children; a node is a root, or a token after its parent."""

    parent: NDArray[np.int64]
    """Place among these nodes, −1 after a root, shape (nodes,)."""
    first: NDArray[np.int64]
    """Where the node's values begin, shape (nodes + 1,); one value per class that is possible there."""
    rows: NDArray[np.int64]
    """Where the rows of its token begin in `row`, one per class of the parent, shape (nodes,)."""
    n_rows: NDArray[np.int64]
    """How many classes the parent has, shape (nodes,)."""
    ends: NDArray[np.float64]
    """How many pieces of history end here, shape (nodes,)."""
    through: NDArray[np.float64]
    """How many pieces come through here or end here, shape (nodes,)."""


class TokenWeights(NamedTuple):
    """What follows a class and an action, observation by observation."""

    row: NDArray[np.int64]
    """Which row of weights belongs to a class of a parent and a token, −1 where nothing can follow."""
    start: NDArray[np.int64]
    """The entries of each row, shape (rows + 1,)."""
    target: NDArray[np.int64]
    """Place of an entry's class among the classes of the observation, shape (entries,)."""


@inner
def _slot(keys: NDArray[np.int64], key: int) -> int:
    """Return where a key is in a hash table, or the free place where it belongs."""
    mask = len(keys) - 1
    # The golden ratio spreads keys that differ little.
    place = ((key * 0x1E3779B97F4A7C15) >> 20) & mask
    while keys[place] != -1 and keys[place] != key:
        place = (place + 1) & mask
    return place


@kernel
def grow_tree(
    tokens: NDArray[np.int64],
    begins: NDArray[np.bool_],
    cut_to: NDArray[np.int64],
    n_roots: int,
    n_tokens: int,
    slots: int,
    parent: NDArray[np.int64],
    token: NDArray[np.int64],
    end_of: NDArray[np.int64],
) -> int:
    """Fill the tree that rows form, and return how many nodes it has; nodes 0 .. n_roots − 1 are roots.

    Parameters
    ----------
    tokens
        The token (action and observation) of each row.
    begins
        Whether a row is the first of an episode; it then follows the last root.
    cut_to
        The root that goes on after a token which leaves no doubt, −1 for other tokens.
    slots
        Size of the hash table, a power of two above the number of nodes.
    parent, token
        Of each node, filled from n_roots on.
    end_of
        The node at which a piece of history ends with this row, −1 where it goes on, shape (N,).
    """
    keys = np.full(slots, -1, dtype=np.int64)
    value = np.empty(slots, dtype=np.int64)
    count = n_roots
    node = n_roots - 1
    for row in range(len(tokens)):
        if begins[row]:
            node = n_roots - 1
        key = node * n_tokens + tokens[row]
        place = _slot(keys, key)
        if keys[place] == -1:
            keys[place] = key
            value[place] = count
            parent[count] = node
            token[count] = tokens[row]
            count += 1
        node = value[place]
        end_of[row] = -1
        last = row + 1 == len(tokens) or begins[row + 1]
        root = cut_to[tokens[row]]
        if last or root >= 0:
            end_of[row] = node
        if root >= 0:
            node = root
    return count


@kernel
def first_nodes(parent: NDArray[np.int64], n_roots: int) -> NDArray[np.int64]:
    """Return the node below a root under which each node is, roots themselves for roots, shape (nodes,)."""
    top = np.arange(len(parent))
    for node in range(n_roots, len(parent)):
        if parent[node] >= n_roots:
            top[node] = top[parent[node]]
    return top


@kernel
def passing(parent: NDArray[np.int64], ends: NDArray[np.float64], n_roots: int) -> NDArray[np.float64]:
    """Return how many pieces of history come through each node or end there, shape (nodes,)."""
    through = ends.copy()
    for node in range(len(parent) - 1, n_roots - 1, -1):
        through[parent[node]] += through[node]
    return through


@kernel
def forward_backward(
    tree: HistoryTree,
    weights: TokenWeights,
    weight: NDArray[np.float64],
    expected: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> float:
    """Add to expected[entries] how often each entry is used, fill scale[nodes], and return the log-likelihood.

    scale is P(observation | what came before); a node where it is 0 is impossible, and so is all after it: those
    contribute nothing. Nodes through which nothing comes are left out, with a scale of 0.
    """
    n_nodes = len(tree.parent)
    ahead = np.zeros(tree.first[n_nodes])
    behind = np.zeros(tree.first[n_nodes])
    total_log = 0.0
    for node in range(n_nodes):
        scale[node] = 0.0
        if tree.through[node] == 0.0:
            continue
        begin, end = tree.first[node], tree.first[node + 1]
        up = tree.parent[node]
        for i in range(tree.n_rows[node]):
            mass = 1.0
            if up >= 0:
                mass = ahead[tree.first[up] + i]
            row = weights.row[tree.rows[node] + i]
            if row < 0 or mass == 0.0:
                continue
            for e in range(weights.start[row], weights.start[row + 1]):
                ahead[begin + weights.target[e]] += mass * weight[e]
        total = 0.0
        for j in range(begin, end):
            total += ahead[j]
        scale[node] = total
        if total > 0.0:
            for j in range(begin, end):
                ahead[j] /= total
            total_log += tree.through[node] * np.log(total)
    for node in range(n_nodes - 1, -1, -1):
        if scale[node] == 0.0:
            continue
        begin, end = tree.first[node], tree.first[node + 1]
        for j in range(begin, end):
            behind[j] = (behind[j] + tree.ends[node]) / scale[node]
        up = tree.parent[node]
        for i in range(tree.n_rows[node]):
            mass = 1.0
            if up >= 0:
                mass = ahead[tree.first[up] + i]
            row = weights.row[tree.rows[node] + i]
            if row < 0:
                continue
            future = 0.0
            for e in range(weights.start[row], weights.start[row + 1]):
                part = weight[e] * behind[begin + weights.target[e]]
                future += part
                expected[e] += mass * part
            if up >= 0:
                behind[tree.first[up] + i] += future
    return total_log


class FilterModel(NamedTuple):
    """The model under which histories are judged."""

    initial: NDArray[np.float64]
    """b₀, shape (S,)."""
    start: NDArray[np.int64]
    """T(· | s, a) has its targets at start[a · S + s] …"""
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    codes: NDArray[np.int64]
    """The values of each state, shape (S, n)."""
    missingness: NDArray[np.float64]
    """P(pattern | s), shape (S, K)."""


@kernel
def filter_episodes(
    model: FilterModel,
    observations: NDArray[np.int64],
    patterns: NDArray[np.int64],
    actions: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Fill out[N] with log P(z_t | z_0, a_0, …, a_{t−1}), −∞ from an impossible observation to its episode's end.

    `patterns` has the column of `missingness` that belongs to each observation, −1 if there is none.
    """
    n_states = len(model.initial)
    n_features = model.codes.shape[1]
    # The belief is weight[:size] on the states state[:size]; predicted is dense, touched lists where it is not 0.
    state = np.empty(n_states, dtype=np.int32)
    weight = np.empty(n_states)
    predicted = np.zeros(n_states)
    touched = np.empty(n_states, dtype=np.int32)
    size = 0
    for e in range(len(offsets) - 1):
        first, end = offsets[e], offsets[e + 1]
        for row in range(first, end):
            count = 0
            if row == first:
                for s in range(n_states):
                    if model.initial[s] > 0.0:
                        predicted[s] = model.initial[s]
                        touched[count] = s
                        count += 1
            else:
                base = actions[row - 1] * n_states
                for i in range(size):
                    for j in range(model.start[base + state[i]], model.start[base + state[i] + 1]):
                        mass = weight[i] * model.probability[j]
                        if mass > 0.0:
                            s = model.target[j]
                            if predicted[s] == 0.0:
                                touched[count] = s
                                count += 1
                            predicted[s] += mass
            total = 0.0
            size = 0
            for i in range(count):
                s = touched[i]
                mass = predicted[s]
                predicted[s] = 0.0
                fits = patterns[row] >= 0
                for f in range(n_features):
                    z = observations[row, f]
                    fits &= z < 0 or z == model.codes[s, f]
                if fits:
                    mass *= model.missingness[s, patterns[row]]
                    if mass > 0.0:
                        state[size] = s
                        weight[size] = mass
                        size += 1
                        total += mass
            if total == 0.0:
                out[row:end] = -np.inf
                break
            out[row] = np.log(total)
            for i in range(size):
                weight[i] /= total

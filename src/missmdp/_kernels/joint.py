"""Forward–backward over a tree of distinct prefixes where T and b₀ are being learned too.

A state has a part that is always seen and a hidden part, one of H. For every always-seen part, action and next
always-seen part that occur, T is a *block* of shape (H, H). So messages, weights and expected counts are small dense
arrays, whatever T is at the moment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.jit import inner, kernel


class PrefixTree(NamedTuple):
    """Some nodes of the tree, parents before children; a node is an observation after its parent."""

    parent: NDArray[np.int64]
    """Place among these nodes, −1 after a root, shape (nodes,)."""
    above: NDArray[np.int64]
    """The observation of the parent, −1 at the start of an episode, shape (nodes,)."""
    seen: NDArray[np.int64]
    """The observation, shape (nodes,)."""
    block: NDArray[np.int64]
    """The block of T through which the parent leads here; at the start the row of b₀, shape (nodes,)."""
    first: NDArray[np.int64]
    """Where the node's values begin, shape (nodes + 1,); one value per hidden part that is possible there."""
    ends: NDArray[np.float64]
    """How many pieces of history end here, shape (nodes,)."""
    through: NDArray[np.float64]
    """How many pieces come through here or end here, shape (nodes,)."""


class Shown(NamedTuple):
    """The hidden parts that each observation leaves possible."""

    start: NDArray[np.int64]
    """Shape (observations + 1,)."""
    hidden: NDArray[np.int64]
    """From 0 to H − 1, shape (entries,)."""


@inner
def _filtered(
    tree: PrefixTree,
    shown: Shown,
    transition: NDArray[np.float64],
    initial: NDArray[np.float64],
    emission: NDArray[np.float64],
    ahead: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> float:
    """Fill in the beliefs after each node and its probability, and return the log-likelihood."""
    n_nodes = len(tree.parent)
    total_log = 0.0
    for node in range(n_nodes):
        scale[node] = 0.0
        if tree.through[node] == 0.0:
            continue
        begin, entry = tree.first[node], shown.start[tree.seen[node]]
        width = tree.first[node + 1] - begin
        block, above, up = tree.block[node], tree.above[node], tree.parent[node]
        if above < 0:
            for j in range(width):
                ahead[begin + j] = initial[block, shown.hidden[entry + j]]
        else:
            source = shown.start[above]
            for i in range(shown.start[above + 1] - source):
                mass = 1.0 if up < 0 else ahead[tree.first[up] + i]
                if mass > 0.0:
                    row = transition[block, shown.hidden[source + i]]
                    for j in range(width):
                        ahead[begin + j] += mass * row[shown.hidden[entry + j]]
        total = 0.0
        for j in range(width):
            ahead[begin + j] *= emission[entry + j]
            total += ahead[begin + j]
        scale[node] = total
        if total > 0.0:
            for j in range(width):
                ahead[begin + j] /= total
            total_log += tree.through[node] * np.log(total)
    return total_log


@kernel
def joint_forward_backward(
    tree: PrefixTree,
    shown: Shown,
    transition: NDArray[np.float64],
    initial: NDArray[np.float64],
    emission: NDArray[np.float64],
    moved: NDArray[np.float64],
    began: NDArray[np.float64],
    visited: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> float:
    """Add expected counts to moved, began and visited, fill scale, and return the log-likelihood.

    Parameters
    ----------
    tree, shown
        The histories.
    transition
        T by blocks, shape (B, H, H).
    initial
        b₀, shape (O, H).
    emission
        P(pattern of the observation | state) of each entry of `shown`.
    moved, began, visited
        How often each entry of `transition`, `initial` and `emission` is used; same shapes.
    scale
        P(observation | what came before), shape (nodes,). A node where it is 0 is impossible, and so is all after it:
        those contribute nothing. Nodes through which nothing comes are left out, with a scale of 0.
    """
    n_nodes = len(tree.parent)
    ahead = np.zeros(tree.first[n_nodes])
    behind = np.zeros(tree.first[n_nodes])
    total_log = _filtered(tree, shown, transition, initial, emission, ahead, scale)
    for node in range(n_nodes - 1, -1, -1):
        if scale[node] == 0.0:
            continue
        begin, entry = tree.first[node], shown.start[tree.seen[node]]
        width = tree.first[node + 1] - begin
        block, above, up = tree.block[node], tree.above[node], tree.parent[node]
        for j in range(width):
            after = behind[begin + j] + tree.ends[node]
            visited[entry + j] += ahead[begin + j] * after
            behind[begin + j] = after * emission[entry + j] / scale[node]
        if above < 0:
            for j in range(width):
                h = shown.hidden[entry + j]
                began[block, h] += initial[block, h] * behind[begin + j]
            continue
        source = shown.start[above]
        for i in range(shown.start[above + 1] - source):
            mass = 1.0 if up < 0 else ahead[tree.first[up] + i]
            h = shown.hidden[source + i]
            row, used = transition[block, h], moved[block, h]
            future = 0.0
            for j in range(width):
                k = shown.hidden[entry + j]
                part = row[k] * behind[begin + j]
                future += part
                used[k] += mass * part
            if up >= 0:
                behind[tree.first[up] + i] += future
    return total_log


@kernel
def posterior_features(
    tree: PrefixTree,
    shown: Shown,
    transition: NDArray[np.float64],
    initial: NDArray[np.float64],
    emission: NDArray[np.float64],
    label: NDArray[np.int32],
    place: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Add to out[places, labels] how likely the step to each node was one with each label, given its whole history.

    Every row of the log is a node of its own here. `label` has a number for each entry of T, shape (B, H, H), and
    `place` says where each node is added, −1 for nowhere, shape (nodes,).
    """
    n_nodes = len(tree.parent)
    ahead = np.zeros(tree.first[n_nodes])
    behind = np.zeros(tree.first[n_nodes])
    scale = np.zeros(n_nodes)
    _filtered(tree, shown, transition, initial, emission, ahead, scale)
    for node in range(n_nodes - 1, -1, -1):
        if scale[node] == 0.0:
            continue
        begin, entry = tree.first[node], shown.start[tree.seen[node]]
        width = tree.first[node + 1] - begin
        block, above, up = tree.block[node], tree.above[node], tree.parent[node]
        for j in range(width):
            behind[begin + j] = (behind[begin + j] + tree.ends[node]) * emission[entry + j] / scale[node]
        if above < 0:
            continue
        source = shown.start[above]
        for i in range(shown.start[above + 1] - source):
            mass = 1.0 if up < 0 else ahead[tree.first[up] + i]
            h = shown.hidden[source + i]
            row, labels = transition[block, h], label[block, h]
            future = 0.0
            for j in range(width):
                k = shown.hidden[entry + j]
                part = row[k] * behind[begin + j]
                future += part
                if place[node] >= 0:
                    out[place[node], labels[k]] += mass * part
            if up >= 0:
                behind[tree.first[up] + i] += future

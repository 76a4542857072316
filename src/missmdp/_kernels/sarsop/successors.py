"""What can follow a belief and an action."""

from __future__ import annotations

from typing import Any

import numpy as np

from missmdp._kernels.jit import inner, kernel
from missmdp._kernels.sarsop.arrays import Compiled, Points, Scratch

__all__ = ["clear", "fill_slots", "find_point", "gather", "hash_belief", "nearly", "spread"]

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

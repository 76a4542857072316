"""The tree of histories in parts that can be worked on side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.histories import HistoryTree, first_nodes

__all__ = ["Part", "tree_parts"]

_PARTS = 16
"""Into how many parts the tree is cut, whatever the number of threads, so that sums come out the same."""


class Part(NamedTuple):
    nodes: NDArray[np.int64]
    """Which nodes of the whole tree these are."""
    tree: HistoryTree


def tree_parts(
    parent: NDArray[np.int64],
    n_roots: int,
    width: NDArray[np.int64],
    rows: NDArray[np.int64],
    n_rows: NDArray[np.int64],
) -> tuple[Part, ...]:
    """Return the tree in parts of about the same size: everything below a first token is in one part."""
    n_nodes = len(parent)
    top = first_nodes(parent, n_roots)
    load = np.bincount(top[n_roots:], width[n_roots:], minlength=n_nodes)
    home = np.zeros(n_nodes, dtype=np.int64)
    loads = np.zeros(_PARTS)
    for node in np.argsort(-load, kind="stable")[: int((load > 0).sum())]:
        home[node] = lightest = int(np.argmin(loads))
        loads[lightest] += load[node]
    found: list[Part] = []
    local = np.full(n_nodes, -1, dtype=np.int64)
    for part in range(_PARTS):
        nodes = n_roots + np.flatnonzero(home[top[n_roots:]] == part)
        if len(nodes) == 0:
            continue
        local[nodes] = np.arange(len(nodes))
        above = parent[nodes]
        found.append(
            Part(
                nodes,
                HistoryTree(
                    np.where(above < n_roots, -1, local[above]),
                    np.concatenate([[0], np.cumsum(width[nodes])]).astype(np.int64),
                    rows[nodes - n_roots].astype(np.int64),
                    n_rows[nodes - n_roots].astype(np.int64),
                    np.zeros(len(nodes)),
                    np.zeros(len(nodes)),
                ),
            )
        )
    return tuple(found)

"""Observations as nodes, and the pairs of a node and a class that it leaves possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.model.pomdp import POMDP

__all__ = ["Nodes", "what_can_be_seen"]


def what_can_be_seen(pomdp: POMDP, live: NDArray[np.int64], observe_initial: bool) -> list[sparse.csr_array]:
    """Return O with the rows of states that are terminal, or never entered by the action, left empty."""
    n_matrices = len(pomdp.observation)
    found: list[sparse.csr_array] = []
    for m in range(n_matrices):
        entered = np.zeros(pomdp.n_states, dtype=bool)
        for a in range(pomdp.n_actions) if n_matrices == 1 else (m,):
            entered[pomdp.transition[a].indices[pomdp.transition[a].data > 0.0]] = True
        if observe_initial and m == 0:
            entered |= pomdp.initial > 0.0
        keep = np.zeros(pomdp.n_states)
        keep[live] = entered[live]
        kept = sparse.csr_array(sparse.diags_array(keep) @ pomdp.observation[m])
        kept.eliminate_zeros()
        found.append(kept)
    return found


class Nodes:
    """Nodes as they are found: corners first, one per class, then observations that leave several classes possible.

    Attributes
    ----------
    of_observation : list of numpy.ndarray
        The node of each observation, −1 for those that no state in question gives, shape (Z,) for each matrix added.
    """

    def __init__(self, n_classes: int, class_of: NDArray[np.int64]) -> None:
        self._class_of = class_of
        self._n_classes = n_classes
        self._node: list[NDArray[np.int64]] = [np.arange(n_classes)]
        self._class: list[NDArray[np.int64]] = [np.arange(n_classes)]
        self._n_nodes = n_classes
        self._n_pairs = n_classes
        self.of_observation: list[NDArray[np.int64]] = []

    def add(self, seen: sparse.csr_array) -> sparse.csr_array:
        """Return O(z | s′) as a matrix from states to pairs (provisional numbers)."""
        entries = seen.tocoo()
        classes = self._class_of[entries.row]
        size = max(self._n_classes, 1)
        keys, pair = np.unique(entries.col * size + classes, return_inverse=True)
        column, pair_class = keys // size, keys % size
        n_columns = seen.shape[1]
        per_column = np.bincount(column, minlength=n_columns)
        node = np.full(n_columns, -1, dtype=np.int64)
        node_of_column = self._distinct(entries, per_column)
        several = np.flatnonzero((per_column > 1) & (node_of_column == np.arange(n_columns)))
        node[several] = self._n_nodes + np.arange(len(several))
        node = np.where(per_column > 1, node[node_of_column], node)
        target = np.full(len(keys), -1, dtype=np.int64)
        corner = per_column[column] == 1
        target[corner] = pair_class[corner]
        seen_as = node.copy()
        seen_as[column[corner]] = pair_class[corner]
        self.of_observation.append(seen_as)
        new = ~corner & (node_of_column[column] == column)
        target[new] = self._n_pairs + np.arange(int(new.sum()))
        # Columns that are multiples of an earlier one share its pairs, class by class and in the same order.
        place = {
            (int(n), int(c)): int(t)
            for n, c, t in zip(node[column[new]], pair_class[new], target[new], strict=True)
        }
        for i in np.flatnonzero(~corner & ~new).tolist():
            target[i] = place[int(node[column[i]]), int(pair_class[i])]
        self._node.append(node[column[new]])
        self._class.append(pair_class[new])
        self._n_nodes += len(several)
        self._n_pairs += int(new.sum())
        return sparse.csr_array(
            sparse.coo_array(
                (entries.data, (entries.row, target[pair])), shape=(seen.shape[0], self._n_pairs)
            )
        )

    def _distinct(self, entries: Any, per_column: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each column the first one with the same likelihoods up to a factor (itself, mostly)."""
        columns = sparse.csc_array(entries)
        columns.sort_indices()
        first: dict[bytes, int] = {}
        same = np.arange(columns.shape[1])
        for z in np.flatnonzero(per_column > 1).tolist():
            part = slice(columns.indptr[z], columns.indptr[z + 1])
            shape = columns.data[part] / columns.data[part].max()
            same[z] = first.setdefault(columns.indices[part].tobytes() + shape.tobytes(), z)
        return same

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the class of each pair, where the pairs of each node begin, and the provisional numbers in order."""
        node, classes = np.concatenate(self._node), np.concatenate(self._class)
        order = np.lexsort((classes, node))
        starts = np.searchsorted(node[order], np.arange(self._n_nodes + 1))
        return classes[order], starts, order

"""The vectors of a search as they were at one time, and the policy that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp._kernels.sarsop.arrays import CHOICES, VALUES, VECTORS, Vectors
from missmdp._kernels.sarsop.pruning import mark_certified
from missmdp.plan.alpha import BlockVectors
from missmdp.plan.sarsop.compile import Compilation

__all__ = ["Controller"]


@dataclass(frozen=True, eq=False)
class Controller:
    """Vectors, each with an action and a vector to go on with for each observation."""

    vectors: Vectors
    fall: float
    """How much the vectors that the start needs fell in the last sweep, at most."""

    @classmethod
    def copy(cls, vectors: Vectors, counters: NDArray[np.int64], fall: float) -> Controller:
        """Return a copy of the vectors in use."""
        ends = {"values": counters[VALUES], "choice": counters[CHOICES], "default": 0, "first_in_block": 0}
        parts = {
            name: array[: ends.get(name, counters[VECTORS])].copy()
            for name, array in zip(Vectors._fields, vectors, strict=True)
        }
        return cls(Vectors(**parts), fall)

    def policy_vectors(self, compiled: Compilation) -> list[BlockVectors]:
        """Return the vectors over states, block by block, each at most the value of its plan.

        Vectors that are above their plans by more than `fall`, or lead to such, are left out; the others are all
        lowered by γ fall/(1 − γ), which makes up for it. A block without any gets a vector that holds everywhere.
        """
        vectors = self.vectors
        kept = np.empty(len(vectors.block), dtype=np.bool_)
        mark_certified(compiled.arrays, vectors, len(kept), self.fall, kept)
        order = np.flatnonzero(kept)
        order = order[np.argsort(vectors.block[order], kind="stable")]
        ends = np.searchsorted(vectors.block[order], np.arange(len(compiled.block_states) + 1))
        margin = compiled.discount * self.fall / (1.0 - compiled.discount)
        found: list[BlockVectors] = []
        for b, states in enumerate(compiled.block_states):
            places = compiled.class_of[states] - compiled.arrays.block_start[b]
            ours = order[ends[b] : ends[b + 1]]
            values = vectors.values[vectors.start[ours][:, None] + places[None, :]]
            actions = vectors.action[ours].astype(np.int64)
            if not len(ours):
                values, actions = np.full((1, len(states)), compiled.lowest), np.zeros(1, dtype=np.int64)
            found.append(BlockVectors(states, values - margin, actions))
        return found

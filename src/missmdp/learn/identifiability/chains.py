"""What histories of several steps say of M beyond single steps, exactly.

A history of the observations z₀ … z_h under known actions has the forward vector f(s) = P(z₀ … z_h, s_h = s), a
function on the states of z_h. Along with its derivatives Df in some directions it goes on linearly: after the action a
and the observation z′, f′ = (f T_a) M(z′ | ·) and Df′ = (Df T_a) M(z′ | ·) + (f T_a) DM(z′ | ·), and Σ_s Df(s) is the
derivative of the history's probability. So of all histories that end in an observation only a basis of
the pairs (f, Df) is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.spans import TOLERANCE, row_span, triangle
from missmdp.learn.identifiability.tangent import Tangent
from missmdp.model.mdp import FactoredMDP

_MOST_ENTRIES = 40_000_000
"""Numbers in the forward vectors of one step, above which histories are not followed."""

Vectors = dict[int, NDArray[np.float64]]
"""For observations, pairs (f, Df) of the histories that end in them, shape (vectors, states, 1 + directions)."""


class Chains:
    """Follows histories from observation to observation, with derivatives in some directions.

    Parameters
    ----------
    mdp, seen
        The MDP, and what can be seen in it.
    rows
        b₀ first, then the rows of T that are known now and then, shape (rows, S).
    tangent
        M, and how it changes.
    directions
        Directions in the space of parameters, shape (P, directions).
    """

    def __init__(
        self,
        mdp: FactoredMDP,
        seen: PossibleObservations,
        rows: sparse.csc_array,
        tangent: Tangent,
        directions: NDArray[np.float64],
    ) -> None:
        self._mdp = mdp
        self._seen = seen
        self._n_directions = directions.shape[1]
        self._table = tangent.table
        self._change = np.asarray(tangent.jacobian @ directions).reshape(*tangent.table.shape, -1)
        self._start = self._first(sparse.csc_array(sparse.csr_array(rows)[:1]))
        self._restart = self._first(rows)
        self._label = np.full(tangent.table.shape, -1, dtype=np.int64)
        self._place = np.full(tangent.table.shape, -1, dtype=np.int64)
        for z, states in enumerate(seen.members):
            self._label[seen.pattern[z], states] = z
            self._place[seen.pattern[z], states] = np.arange(len(states))

    @property
    def affordable(self) -> bool:
        """Whether following histories is a matter of moderate memory."""
        sizes = [len(states) for z, states in enumerate(self._seen.members) if self._seen.branches(z)]
        return sum(n * min(n, 64) for n in sizes) * (1 + self._n_directions) <= _MOST_ENTRIES

    def unseen_directions(self, horizon: int) -> NDArray[np.float64]:
        """Return the directions in which no law of z₀ … z_h changes for h ≤ horizon, shape (directions, left).

        Histories begin with b₀, or with any state that was fully observed.
        """
        summary = np.zeros((0, self._n_directions))
        vectors = self._start
        for _ in range(horizon):
            vectors, seen = self._go_on(vectors)
            summary = _condensed(np.concatenate([summary, seen]))
            for z, more in self._restart.items():
                vectors[z] = self._basis(np.concatenate([vectors[z], more]) if z in vectors else more)
        if not len(summary):
            return np.eye(self._n_directions)
        _, size, basis = np.linalg.svd(summary, full_matrices=True)
        # Vectors have length 1, so this is no share of the largest: all may be rounding.
        return basis[int((size > TOLERANCE).sum()) :].T

    def _first(self, rows: sparse.csc_array) -> Vectors:
        """Return the vectors of histories with one observation, for those after which it matters how one came there."""
        vectors: Vectors = {}
        for z, states in enumerate(self._seen.members):
            if self._seen.branches(z):
                span = row_span(rows[:, states].toarray()).basis
                if len(span):
                    vectors[z] = self._with_observation(z, span[:, :, None], np.arange(len(states)))
        return vectors

    def _with_observation(
        self, z: int, reached: NDArray[np.float64], where: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return (f, Df) after the observation, from (f, Df), or f alone, at some of its states before it."""
        states, k = self._seen.members[z][where], self._seen.pattern[z]
        after = np.zeros((len(reached), len(self._seen.members[z]), 1 + self._n_directions))
        after[:, where, : reached.shape[2]] = reached * self._table[k, states][None, :, None]
        after[:, where, 1:] += reached[:, :, :1] * self._change[k, states][None]
        return after

    def _go_on(self, vectors: Vectors) -> tuple[Vectors, NDArray[np.float64]]:
        """Return the vectors one step on, and the derivatives of all their probabilities, shape (rows, directions)."""
        further: dict[int, list[NDArray[np.float64]]] = {}
        seen: list[NDArray[np.float64]] = [np.zeros((0, self._n_directions))]
        for z, before in vectors.items():
            for a in np.flatnonzero(self._seen.allowed[z]):
                moved = self._mdp.transition[a][self._seen.members[z]]
                states = np.unique(moved.indices).astype(np.int64)
                reached = np.einsum("vsd,st->vtd", before, moved[:, states].toarray())
                for k in range(len(self._table)):
                    self._see(k, states, reached, further, seen)
            seen = [_condensed(np.concatenate(seen))]
        return {z: self._basis(np.concatenate(parts)) for z, parts in further.items()}, seen[0]

    def _see(
        self,
        k: int,
        states: NDArray[np.int64],
        reached: NDArray[np.float64],
        further: dict[int, list[NDArray[np.float64]]],
        seen: list[NDArray[np.float64]],
    ) -> None:
        """Add what is seen under a pattern: derivatives of probabilities, and vectors where it goes on."""
        label = self._label[k, states]
        for z in np.unique(label[label >= 0]):
            mine = np.flatnonzero(label == z)
            after = self._with_observation(int(z), reached[:, mine], self._place[k, states[mine]])
            seen.append(after[:, :, 1:].sum(axis=1))
            if self._seen.branches(int(z)):
                further.setdefault(int(z), []).append(after)

    def _basis(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return fewer vectors with the same span."""
        n, states, width = vectors.shape
        basis = row_span(vectors.reshape(n, -1)).basis
        return basis.reshape(len(basis), states, width)


def _condensed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most as many rows as columns, with the same null space and singular values."""
    return triangle(rows) if len(rows) > rows.shape[1] else rows

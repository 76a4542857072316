"""What histories of several steps say beyond single steps, exactly.

A history of the observations z₀ … z_h under known actions has the forward vector f(s) = P(z₀ … z_h, s_h = s), a
function on the states of z_h. Along with its derivatives Df in some directions it goes on linearly: after the action a
and the observation z′, f′ = (f T_a) M(z′ | ·) and Df′ = (Df T_a + f DT_a) M(z′ | ·) + (f T_a) DM(z′ | ·), and Σ_s Df(s)
is the derivative of the history's probability. So of all histories that end in an observation only a basis of
the pairs (f, Df) is needed, and once longer histories add nothing to any basis, no history ever will.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.identifiability.possible_observations import PossibleObservations
from missmdp.learn.identifiability.spans import TOLERANCE, row_span, triangle
from missmdp.learn.identifiability.tangent import Tangent
from missmdp.model.mdp import FactoredMDP

_MOST_ENTRIES = 40_000_000
"""Numbers in the forward vectors of one step, above which histories are not followed."""

_SURELY_NOTHING = 1e-3
"""Of what is too little to count, the share that is surely rounding."""

Vectors = dict[int, NDArray[np.float64]]
"""For observations, pairs (f, Df) of the histories that end in them, shape (vectors, states, 1 + directions)."""


class Rows(NamedTuple):
    """Weights on states, and their derivatives in D directions."""

    row: NDArray[np.int64]
    """The row of each entry, shape (entries,)."""
    state: NDArray[np.int64]
    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    """Shape (entries, D), or (entries, 0) if rows are known."""

    def over(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the rows that have an entry in some states, shape (rows, states, 1 + D)."""
        kept = np.flatnonzero(np.isin(self.state, states))
        _, row = np.unique(self.row[kept], return_inverse=True)
        row = row.reshape(-1)
        found = np.zeros((int(row.max(initial=-1)) + 1, len(states), 1 + self.slope.shape[1]))
        place = np.searchsorted(states, self.state[kept])
        found[row, place, 0] = self.value[kept]
        found[row, place, 1:] = self.slope[kept]
        return found

    def only(self, kept: NDArray[np.bool_]) -> Rows:
        """Return some of the entries."""
        return Rows(self.row[kept], self.state[kept], self.value[kept], self.slope[kept])


class Flow(NamedTuple):
    """T and b₀, for histories that begin with b₀ or where the state is known."""

    transition: tuple[sparse.csr_array, ...]
    """One matrix per action, shape (S, S)."""
    slopes: tuple[NDArray[np.float64], ...] | None
    """The derivatives of their entries, shape (entries, D) each; None if T is known."""
    rows: Rows
    """b₀ as row 0, then rows of T whose state and action are known now and then."""
    branches: NDArray[np.bool_]
    """Whether an observation leaves open what happens next, beyond chance, shape (Z,)."""

    @classmethod
    def known(cls, mdp: FactoredMDP, seen: PossibleObservations, rows: sparse.csc_array) -> Flow:
        """Return the flow of known dynamics, with their rows, shape (rows, S)."""
        entries = sparse.coo_array(rows)
        row, state = (place.astype(np.int64) for place in entries.coords)
        made = Rows(row, state, entries.data, np.zeros((len(row), 0)))
        branches = np.array([seen.branches(z) for z in range(len(seen.members))])
        return cls(mdp.transition, None, made, branches)


class Chains:
    """Follows histories from observation to observation, with derivatives in some directions.

    Parameters
    ----------
    seen
        What can be seen.
    flow
        T and b₀.
    tangent
        M, and how it changes.
    directions
        Directions in the space of M's parameters, shape (P, D).
    most
        How many numbers may be kept; with more, random histories stand for all.

    Attributes
    ----------
    closed : bool
        Whether longer histories add nothing.
    complete : bool
        Whether all histories were followed, not random ones.
    margin : float
        The smallest singular value that counted.
    noise : float
        The largest that did not.
    """

    def __init__(
        self,
        seen: PossibleObservations,
        flow: Flow,
        tangent: Tangent,
        directions: NDArray[np.float64],
        *,
        most: int | None = None,
    ) -> None:
        self._seen, self._flow = seen, flow
        self._n_directions = directions.shape[1]
        self._table = tangent.table
        self._change = np.asarray(tangent.jacobian @ directions).reshape(*tangent.table.shape, -1)
        self._label = np.full(tangent.table.shape, -1, dtype=np.int64)
        self._place = np.full(tangent.table.shape, -1, dtype=np.int64)
        for z, states in enumerate(seen.members):
            self._label[seen.pattern[z], states] = z
            self._place[seen.pattern[z], states] = np.arange(len(states))
        self._most = most
        self._held: dict[int, NDArray[np.float64]] = {}
        self._clear = True
        self.closed, self.complete, self.margin, self.noise = False, True, 1.0, 0.0

    @property
    def affordable(self) -> bool:
        """Whether following all histories is a matter of moderate memory."""
        sizes = [len(self._seen.members[z]) for z in np.flatnonzero(self._flow.branches)]
        return sum(n * min(n, 64) for n in sizes) * (1 + self._n_directions) <= _MOST_ENTRIES

    def unseen_directions(self, horizon: int) -> NDArray[np.float64]:
        """Return the directions in which no law of z₀ … z_h changes for h ≤ horizon, shape (D, left).

        Histories begin with b₀, or with any state that was fully observed.
        """
        rows = self._flow.rows
        summary = np.zeros((0, self._n_directions))
        fresh = self._added(self._first(rows.only(rows.row == 0)))
        for step in range(horizon):
            vectors, seen = self._go_on(fresh)
            summary = _condensed(np.concatenate([summary, seen]))
            for z, more in self._first(rows).items() if step == 0 else ():
                vectors[z] = np.concatenate([vectors[z], more]) if z in vectors else more
            fresh = self._added(vectors)
            if not fresh:
                self.closed = self._clear
                break
        if not len(summary):
            return np.eye(self._n_directions)
        _, size, basis = np.linalg.svd(summary, full_matrices=True)
        # Vectors have length 1, so this is no share of the largest: all may be rounding.
        rank = int((size > TOLERANCE).sum())
        self.margin = float(size[rank - 1]) if rank else 1.0
        self.noise = float(size[rank]) if rank < len(size) else 0.0
        return basis[rank:].T

    def _first(self, rows: Rows) -> Vectors:
        """Return the vectors of histories with one observation, for those after which it matters how one came there."""
        vectors: Vectors = {}
        for z in np.flatnonzero(self._flow.branches).tolist():
            states = self._seen.members[z]
            reached = rows.over(states)
            if len(reached):
                vectors[z] = self._with_observation(z, self._basis(reached), np.arange(len(states)))
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
        """Return the vectors one step on, and the derivatives of all their probabilities, shape (rows, D)."""
        further: dict[int, list[NDArray[np.float64]]] = {}
        seen: list[NDArray[np.float64]] = [np.zeros((0, self._n_directions))]
        for z, before in vectors.items():
            for a in np.flatnonzero(self._seen.allowed[z]):
                states, reached = self._moved(before, self._seen.members[z], int(a))
                for k in range(len(self._table)):
                    self._see(k, states, reached, further, seen)
            seen = [_condensed(np.concatenate(seen))]
        return {z: np.concatenate(parts) for z, parts in further.items()}, seen[0]

    def _moved(
        self, before: NDArray[np.float64], members: NDArray[np.int64], a: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the next states after an action, and the vectors before they are observed."""
        matrix = self._flow.transition[a]
        moved = matrix[members]
        states = np.unique(moved.indices).astype(np.int64)
        reached = np.einsum("vsd,st->vtd", before, moved[:, states].toarray())
        if self._flow.slopes is not None:
            numbers = sparse.csr_array(
                (np.arange(1, matrix.nnz + 1), matrix.indices, matrix.indptr), shape=matrix.shape
            )
            entry = numbers[members][:, states].tocoo()
            slope = np.zeros((*entry.shape, self._n_directions))
            slope[entry.coords] = self._flow.slopes[a][entry.data - 1]
            reached[:, :, 1:] += np.einsum("vs,std->vtd", before[:, :, 0], slope)
        return states, reached

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
            if self._flow.branches[z]:
                further.setdefault(int(z), []).append(after)

    def _added(self, vectors: Vectors) -> Vectors:
        """Keep what vectors add to those that were met before, and return that, orthonormal."""
        fresh: Vectors = {}
        for z, more in vectors.items():
            flat = more.reshape(len(more), -1)
            held = self._held.get(z, np.zeros((0, flat.shape[1])))
            least = TOLERANCE * float(np.linalg.norm(flat, axis=1).max(initial=0.0))
            rest = flat
            for _ in range(2):
                rest = rest - (rest @ held.T) @ held
            _, size, basis = np.linalg.svd(
                triangle(rest) if len(rest) > rest.shape[1] else rest, full_matrices=False
            )
            own = basis[size > least]
            self._clear &= not ((size <= least) & (size > _SURELY_NOTHING * least)).any()
            own = self._within_limits(own, held)
            if len(own):
                self._held[z] = np.concatenate([held, own])
                fresh[z] = own.reshape(len(own), *more.shape[1:])
        return fresh

    def _within_limits(self, own: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return as many of the vectors as there is room for: mixtures of all of them, if not all."""
        if self._most is None:
            return own
        room = max(self._most // max(own.shape[1] * int(self._flow.branches.sum()), 1), 1) - len(held)
        if room >= len(own):
            return own
        self.complete = False
        mixed = np.random.default_rng(len(held)).normal(size=(max(room, 0), len(own))) @ own
        return np.linalg.qr(mixed.T)[0].T if len(mixed) else mixed

    def _basis(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return fewer vectors with the same span."""
        n, states, width = vectors.shape
        basis = row_span(vectors.reshape(n, -1)).basis
        return basis.reshape(len(basis), states, width)


def _condensed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most as many rows as columns, with the same null space and singular values."""
    return triangle(rows) if len(rows) > rows.shape[1] else rows

"""Read `.pomdpx` files, the XML format of the APPL toolkit: factored states, observations and rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.interop.incoming import MAX_COUNT, pomdp_from_file, row_means
from missmdp.interop.pomdpx.document import Document, damage_of, read_document
from missmdp.interop.pomdpx.tables import Table, counted, expanded
from missmdp.interop.pomdpx.variables import Codes, Variables
from missmdp.memory import check_fits
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import checked_distribution, checked_rows

_CHUNK = 200_000
"""Pairs of state and action that are looked at at once."""


_EXPANDED = 2_000_000
"""Probabilities that are multiplied out at once, roughly."""


_BYTES_PER_MOVE, _BYTES_HELD = 130.0, 32.0
"""Memory that a probability of a next state takes on the way to the matrices, measured; and until then."""


_BYTES_PER_SIGHT = 100.0
"""Memory that a probability of an observation takes."""


_INSTEAD = (
    "read it by features (read_miss_mdp) if it is a miss-MDP, or give the model by features: FactoredMDP.from_factors "
    "and MissingnessFunction.independent"
)


_MASK = 100_000_000
"""Numbers below this are told apart by a flag for each, others by sorting."""


_REWARD_CHUNK = 500_000
"""Triples of state, next state and observation that are looked up at once, roughly."""


def read_pomdpx(path: str | Path) -> POMDP:
    """Return the model in a `.pomdpx` file.

    The factors of several variables are multiplied. With several state variables, states are the combinations
    that can be reached from the initial ones, as named tuples; with one, they are all its values. Fully observed
    state variables are part of the observation. Several rewards are added, and their expectation over next states
    and observations is taken. States that every action leaves where they are, with reward 0, are terminal. The
    file acts first, so `observe_initial` is False. A miss-MDP with many features is better read with `read_miss_mdp`,
    which multiplies nothing.

    Raises
    ------
    FormatError
        If the file is no XML, has elements or names that it should not have, or probabilities that do not sum to
        one. The message starts with path:line:column.
    """
    document = read_document(path)
    with damage_of(path):
        return flat(document)


def flat(document: Document) -> POMDP:
    """Return the model in a file whose tables are multiplied out; see `read_pomdpx`."""
    return _Reader(document).read()


class _Moves(NamedTuple):
    """Steps that are possible: from states by actions to next states, all given by their numbers."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    next_state: NDArray[np.int64]
    weight: NDArray[np.float64]


class _Reader:
    """One file on its way to a POMDP."""

    def __init__(self, document: Document) -> None:
        self.path = document.path
        self.discount = document.discount
        self.variables = document.variables
        self.initial, self.transition = document.initial, document.transition
        self.observation, self.rewards = document.observation, document.rewards
        self._n_moves = self._n_held = 0.0

    def read(self) -> POMDP:
        """Return the model."""
        start, weights = self._initial()
        ranks, moves = self._states(start)
        transition = self._transition_matrices(ranks, moves)
        seen, observation = self._observation_matrices(ranks)
        initial = np.zeros(len(ranks))
        initial[np.searchsorted(ranks, start)] = weights
        n_actions = len(transition)
        # One matrix for all actions is repeated, not copied.
        per_action = observation if len(observation) > 1 else observation * n_actions
        variables = self.variables
        labels = variables.state.labels(ranks)
        return pomdp_from_file(
            self.path,
            states=labels,
            actions=variables.action.labels(np.arange(n_actions)),
            observations=variables.seen.labels(seen, observations=True)
            if variables.seen.variables
            else ["none"],
            transition=transition,
            reward=_expected_rewards(self.rewards, variables, ranks, seen, transition, per_action),
            observation=observation,
            initial=checked_distribution(initial, "the initial belief", labels.__getitem__),
            discount=self.discount,
        )

    def _initial(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        codes, weights = expanded(self.initial, {}, np.ones(1))
        ranks = self.variables.state.rank([codes[v.previous] for v in self.variables.states], len(weights))
        return ranks, weights

    def _states(self, start: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[_Moves]]:
        """Return the states in order, and the moves between them as (state, action, next state, probability)."""
        moves: list[_Moves] = []
        if len(self.variables.states) == 1:
            ranks = np.arange(self.variables.state.count)
            return ranks, list(self._moves(ranks))
        count = self.variables.state.count
        known = frontier = np.unique(start)
        while frontier.size:
            reached: list[NDArray[np.int64]] = []
            for move in self._moves(frontier):
                moves.append(move)
                reached.append(_distinct(move.next_state, count))
            frontier = np.setdiff1d(_distinct(np.concatenate(reached), count), known, assume_unique=True)
            known = _distinct(np.concatenate([known, frontier]), count)
            if known.size > MAX_COUNT:
                raise ModelError(f"more than {MAX_COUNT:,} states can be reached")
        return known, moves

    def _moves(self, ranks: NDArray[np.int64]) -> Iterator[_Moves]:
        """Yield the moves from some states, if all of them fit into memory."""
        n_actions = self.variables.action.count
        step = max(1, _CHUNK // n_actions)
        chunks = [ranks[first : first + step] for first in range(0, len(ranks), step)]
        for some in chunks:
            self._n_moves += float(counted(self.transition, self._pairs(some)).sum())
            check_fits(
                f"multiplying out the tables of this file, with {self._n_moves:.2g} transition probabilities or more,",
                _BYTES_PER_MOVE * self._n_moves - _BYTES_HELD * self._n_held,
                _INSTEAD,
            )
        for some in chunks:
            codes = self._pairs(some)
            for part in _pieces(counted(self.transition, codes)):
                own = {name: code[part] for name, code in codes.items()}
                extended, weights = expanded(self.transition, own, np.ones(len(own["."])))
                to = self.variables.state.rank(
                    [extended[v.current] for v in self.variables.states], len(weights)
                )
                origin, action = np.divmod(extended["."], n_actions)
                self._n_held += len(weights)
                yield _Moves(some[origin], action, to, weights)

    def _pairs(self, ranks: NDArray[np.int64]) -> Codes:
        """Return all pairs of some states and all actions, as codes; "." numbers them."""
        n_actions = self.variables.action.count
        codes = self.variables.codes(
            np.repeat(ranks, n_actions), np.tile(np.arange(n_actions), len(ranks)), "previous"
        )
        codes["."] = np.arange(len(ranks) * n_actions)
        return codes

    def _transition_matrices(self, ranks: NDArray[np.int64], moves: list[_Moves]) -> list[sparse.csr_array]:
        action, weights = np.concatenate([m.action for m in moves]), np.concatenate([m.weight for m in moves])
        row = np.searchsorted(ranks, np.concatenate([m.state for m in moves]))
        column = np.searchsorted(ranks, np.concatenate([m.next_state for m in moves]))
        labels, names = (
            self.variables.state.labels(ranks),
            self.variables.action.labels(np.arange(self.variables.action.count)),
        )
        matrices: list[sparse.csr_array] = []
        for a in range(self.variables.action.count):
            own = action == a
            matrix = sparse.csr_array((weights[own], (row[own], column[own])), shape=(len(ranks), len(ranks)))
            matrices.append(
                checked_rows(matrix, lambda s, a=a: f"transition of state {labels[s]!r}, action {names[a]!r}")
            )
        return matrices

    def _observation_matrices(
        self, ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[sparse.csr_array]]:
        """Return the observations that are kept, and O(z | s′) once, or once per action."""
        acting = {v.current for v in self.variables.actions}
        n_actions = (
            self.variables.action.count if any(acting & set(t.parents) for t in self.observation) else 1
        )
        n_states = len(ranks)
        found: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
        n_sights = 0.0
        for a in range(n_actions):
            codes = self.variables.codes(ranks, a, "current")
            codes["."] = np.arange(n_states)
            counts = counted(self.observation, codes)
            n_sights += float(counts.sum())
            check_fits(
                f"multiplying out the tables of this file, with {n_sights:.2g} observation probabilities or more,",
                _BYTES_PER_SIGHT * n_sights,
                _INSTEAD,
            )
            for part in _pieces(counts):
                own = {name: code[part] for name, code in codes.items()}
                extended, weights = expanded(self.observation, own, np.ones(len(own["."])))
                seen = self.variables.seen.rank(
                    [extended[v.current] for v in self.variables.seen.variables], len(weights)
                )
                found.append((a, extended["."], seen, weights))
        kept = (
            np.arange(self.variables.seen.count)
            if len(self.variables.seen.variables) <= 1
            else np.unique(
                np.concatenate([_distinct(seen, self.variables.seen.count) for _, _, seen, _ in found])
            )
        )
        labels = self.variables.state.labels(ranks)
        matrices: list[sparse.csr_array] = []
        for a in range(n_actions):
            own = [part for part in found if part[0] == a]
            state, seen = (np.concatenate([part[k] for part in own]) for k in (1, 2))
            weights = np.concatenate([part[3] for part in own])
            matrix = sparse.csr_array(
                (weights, (state, np.searchsorted(kept, seen))), shape=(n_states, len(kept))
            )
            matrices.append(checked_rows(matrix, lambda s: f"observation of {labels[s]!r}"))
        return kept, matrices


def _distinct(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the different numbers in order; all are below `size`."""
    if size > _MASK or size > 50 * len(numbers):
        return np.unique(numbers)
    found = np.zeros(size, dtype=np.bool_)
    found[numbers] = True
    return np.flatnonzero(found)


def _pieces(counts: NDArray[np.float64]) -> Iterator[slice]:
    """Yield assignments in pieces that together have not too many extensions, one at least."""
    groups = np.cumsum(counts) // _EXPANDED
    ends = [*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(counts)]
    yield from (slice(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True))


def _expected_rewards(
    tables: Sequence[Table],
    variables: Variables,
    ranks: NDArray[np.int64],
    seen: NDArray[np.int64],
    transition: Sequence[sparse.csr_array],
    observation: Sequence[sparse.csr_array],
) -> NDArray[np.float64]:
    """Return ρ(s, a), the sum of the expected rewards, shape (S, A).

    Parameters
    ----------
    tables
        The rewards as functions of their parents.
    variables
        What the parents are.
    ranks, seen
        The states and the observations by their numbers among all combinations.
    transition, observation
        T(s′ | s, a) and O(z | s′, a), one matrix per action each.
    """
    reward = np.zeros((len(ranks), len(transition)))
    now = {v.current for v in variables.states}
    signals = {v.current for v in variables.observations}
    for a, (moves, shows) in enumerate(zip(transition, observation, strict=True)):
        origin = np.repeat(np.arange(len(ranks)), np.diff(moves.indptr))
        for table in tables:
            parents = set(table.parents)
            if not parents & (now | signals):
                reward[:, a] += table.look_up(variables.codes(ranks, a, "previous"), len(ranks))
                continue
            codes = variables.codes(ranks[origin], a, "previous")
            codes |= variables.codes(ranks[moves.indices], a, "current")
            if parents & signals:
                values = _over_observations(table, codes, moves, shows, variables, seen)
            else:
                values = table.look_up(codes, len(origin))
            reward[:, a] += row_means(values, moves.data, moves.indptr[:-1])
    return reward


def _over_observations(
    table: Table,
    codes: Codes,
    moves: sparse.csr_array,
    shows: sparse.csr_array,
    variables: Variables,
    seen: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the expectation over observations for every move, shape (moves,)."""
    counts = np.diff(shows.indptr)[moves.indices]
    values = np.empty(len(counts))
    chunk = np.cumsum(counts, dtype=np.int64) // _REWARD_CHUNK
    for part in np.split(np.arange(len(counts)), np.flatnonzero(np.diff(chunk)) + 1):
        own = counts[part]
        first = np.cumsum(own) - own
        entries = np.repeat(shows.indptr[moves.indices[part]] - first, own) + np.arange(int(own.sum()))
        owner = np.repeat(part, own)
        extended = {name: code[owner] for name, code in codes.items()}
        for variable, code in zip(variables.seen.variables, variables.seen.codes(seen), strict=True):
            extended[variable.current] = code[shows.indices[entries]]
        values[part] = row_means(table.look_up(extended, len(owner)), shows.data[entries], first)
    return values

"""Read `.pomdpx` files, the XML format of the APPL toolkit: factored states, observations and rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, MissMDPError, ModelError
from missmdp.interop.incoming import MAX_COUNT, pomdp_from_file, row_means
from missmdp.interop.pomdpx.positioned_xml import Element, read_xml
from missmdp.interop.pomdpx.tables import Table, read_table
from missmdp.interop.pomdpx.variables import Codes, Variables
from missmdp.memory import check_fits
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import checked_discount, checked_distribution, checked_rows

_CHUNK = 200_000
"""Pairs of state and action that are looked at at once."""


_EXPANDED = 2_000_000
"""Probabilities that are multiplied out at once, roughly."""


_BYTES_PER_MOVE, _BYTES_HELD = 130.0, 32.0
"""Memory that a probability of a next state takes on the way to the matrices, measured; and until then."""


_BYTES_PER_SIGHT = 100.0
"""Memory that a probability of an observation takes."""


_INSTEAD = "give the model by features: FactoredMDP.from_factors and MissingnessFunction.independent"


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
    file acts first, so `observe_initial` is False.

    Raises
    ------
    FormatError
        If the file is no XML, has elements or names that it should not have, or probabilities that do not sum to
        one. The message starts with path:line:column.
    """
    root = read_xml(path)
    if root.tag != "pomdpx":
        raise root.error(f"expected <pomdpx>, found <{root.tag}>")
    try:
        return _Reader(root).read()
    except FormatError:
        raise
    except MissMDPError as error:
        raise FormatError(f"{path}: {error}") from error


class _Moves(NamedTuple):
    """Steps that are possible: from states by actions to next states, all given by their numbers."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    next_state: NDArray[np.int64]
    weight: NDArray[np.float64]


class _Reader:
    """One file on its way to a POMDP."""

    def __init__(self, root: Element) -> None:
        self.root = root
        sections = ("InitialStateBelief", "StateTransitionFunction", "ObsFunction", "RewardFunction")
        list(root.all("Description", "Discount", "Variable", *sections))
        self.discount = _discount(root.one("Discount"))
        self.variables = variables = Variables(root.one("Variable"))
        previous = [v.previous for v in variables.states]
        current = [v.current for v in variables.states]
        action = [v.current for v in variables.actions]
        observed = [v.current for v in variables.observations]
        self.initial = self._tables("InitialStateBelief", previous, previous)
        self.transition = self._tables("StateTransitionFunction", current, [*previous, *current, *action])
        self.observation = (
            self._tables("ObsFunction", observed, [*current, *action, *observed]) if observed else []
        )
        self.rewards = self._rewards([*previous, *current, *action, *observed])
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
            self.root.path,
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

    def _tables(self, section: str, children: Sequence[str], allowed: Sequence[str]) -> list[Table]:
        """Return the tables of a section, one per child, each after the tables of its parents."""
        element = self.root.one(section)
        tables: dict[str, Table] = {}
        for item in element.all("CondProb"):
            child = _variable(item.one("Var"), children, section)
            if child in tables:
                raise item.error(f"<{section}> has {child!r} twice")
            parents = _parents(item, allowed, child)
            tables[child] = read_table(item, child, parents, self.variables, reward=False)
        for child in children:
            if child not in tables:
                raise element.error(f"<{section}> has no <CondProb> for {child!r}")
        return list(_in_order(tables))

    def _rewards(self, allowed: Sequence[str]) -> list[Table]:
        if not self.variables.rewards:
            return []
        element = self.root.one("RewardFunction")
        found: dict[str, Table] = {}
        for item in element.all("Func"):
            name = _variable(item.one("Var"), self.variables.rewards, "RewardFunction")
            if name in found:
                raise item.error(f"<RewardFunction> has {name!r} twice")
            found[name] = read_table(item, name, _parents(item, allowed, name), self.variables, reward=True)
        for name in self.variables.rewards:
            if name not in found:
                raise element.error(f"<RewardFunction> has no <Func> for {name!r}")
        return list(found.values())

    def _initial(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        codes, weights = _expanded(self.initial, {}, np.ones(1))
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
            self._n_moves += float(_counted(self.transition, self._pairs(some)).sum())
            check_fits(
                f"multiplying out the tables of this file, with {self._n_moves:.2g} transition probabilities or more,",
                _BYTES_PER_MOVE * self._n_moves - _BYTES_HELD * self._n_held,
                _INSTEAD,
            )
        for some in chunks:
            codes = self._pairs(some)
            for part in _pieces(_counted(self.transition, codes)):
                own = {name: code[part] for name, code in codes.items()}
                extended, weights = _expanded(self.transition, own, np.ones(len(own["."])))
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
            counts = _counted(self.observation, codes)
            n_sights += float(counts.sum())
            check_fits(
                f"multiplying out the tables of this file, with {n_sights:.2g} observation probabilities or more,",
                _BYTES_PER_SIGHT * n_sights,
                _INSTEAD,
            )
            for part in _pieces(counts):
                own = {name: code[part] for name, code in codes.items()}
                extended, weights = _expanded(self.observation, own, np.ones(len(own["."])))
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


def _discount(element: Element) -> float:
    word = element.word()
    try:
        return checked_discount(float(word))
    except (ValueError, ModelError):
        hint = "; without discounting use one close to 1, such as 0.999" if word in ("1", "1.0") else ""
        raise element.error(f"the discount must be a number in [0, 1), not {word!r}{hint}") from None


def _variable(element: Element, known: Sequence[str], section: str) -> str:
    name = element.word()
    if name not in known:
        raise element.error(f"{name!r} has no place in <{section}>; expected one of {', '.join(known)}")
    return name


def _parents(item: Element, allowed: Sequence[str], child: str) -> list[str]:
    element = item.one("Parent")
    parents = [] if element.words == ["null"] else element.words
    for parent in parents:
        if parent not in allowed or parent == child:
            raise element.error(
                f"{parent!r} cannot be a parent of {child!r}; expected null, or some of "
                f"{', '.join(name for name in allowed if name != child)}"
            )
    if len(set(parents)) < len(parents):
        raise element.error("a parent is named twice")
    return parents


def _in_order(tables: dict[str, Table]) -> Iterator[Table]:
    """Yield tables in the order of the file, except that parents come before their children."""
    waiting = dict(tables)
    while waiting:
        ready = next(
            (t for t in waiting.values() if not any(parent in waiting for parent in t.parents)), None
        )
        if ready is None:
            names = ", ".join(waiting)
            raise next(iter(waiting.values())).element.error(f"these variables depend on each other: {names}")
        del waiting[ready.child]
        yield ready


def _expanded(
    tables: Sequence[Table], codes: Codes, weights: NDArray[np.float64]
) -> tuple[Codes, NDArray[np.float64]]:
    for table in tables:
        codes, weights = table.expand(codes, weights)
    return codes, weights


def _counted(tables: Sequence[Table], codes: Codes) -> NDArray[np.float64]:
    """Return how many extensions each assignment has, at least."""
    length = len(codes["."])
    counts = np.ones(length)
    for table in tables:
        counts *= table.count(codes, length)
    return counts


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

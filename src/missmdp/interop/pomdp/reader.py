"""Read `.pomdp` files, the format of Cassandra's pomdp-solve.

The whole grammar is read: names or counts, numbers in place of names, `*`, `uniform`, `identity`, `reset`, single
entries, rows and matrices, where later entries cover earlier ones, and all forms of `start`.

Rewards are kept as the rules of the file, with their wildcards. A rule for all s′ and z makes everything before it
void. Most states have no rules of their own, so the expectation over z, and then the one over s′, is computed once for
all of them; the others are done one by one over their own successors. An expectation of equal values is that value,
with no rounding, so rewards written as ρ(s, a) come back bit for bit.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, ModelError
from missmdp.interop.incoming import Layers, as_index, pomdp_from_file, row_means
from missmdp.interop.pomdp.header import ALL, DeclaredNames, Header, Source, Statement, Tokens
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import SUM_TOLERANCE, checked_rows

_FIRST = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RewardRule:
    """A reward for one next state or all of them (−1), and one observation or all."""

    stamp: int
    next_state: int
    observation: int
    values: NDArray[np.float64]
    """One number, shape (), numbers by observation, shape (Z,), or by next state and observation, shape (S, Z)."""

    @property
    def covers_all(self) -> bool:
        """Whether nothing written before can matter for the same state and action."""
        return self.next_state == ALL and self.observation == ALL

    @property
    def by_observation(self) -> bool:
        """Whether the reward depends on the observation."""
        return self.observation != ALL or self.values.ndim > 0


class RewardRules:
    """The rules in the order of the file, by action and state.

    Parameters
    ----------
    n_actions
        How many actions there are.
    """

    def __init__(self, n_actions: int) -> None:
        self._n_actions = n_actions
        self._for_all: list[list[RewardRule]] = [[] for _ in range(n_actions)]
        self._for_one: list[dict[int, list[RewardRule]]] = [{} for _ in range(n_actions)]

    def add(self, action: int, state: int, rule: RewardRule) -> None:
        """Add a rule for one action or all (−1), and one state or all."""
        for a in range(self._n_actions) if action == ALL else (action,):
            if state == ALL:
                if rule.covers_all:
                    self._for_all[a].clear()
                    self._for_one[a].clear()
                self._for_all[a].append(rule)
            else:
                rules = self._for_one[a].setdefault(state, [])
                if rule.covers_all:
                    rules.clear()
                rules.append(rule)

    def fold(
        self, action: int, transition: sparse.csr_array, observation: sparse.csr_array
    ) -> NDArray[np.float64]:
        """Return ρ(·, a) for one action, shape (S,), from its T(s′ | s, a) and O(z | s′, a)."""
        everywhere = np.arange(transition.shape[0])
        common = self._for_all[action]
        rewards = _rewards(common, everywhere, observation)
        value = row_means(rewards[transition.indices], transition.data, transition.indptr[:-1])
        for state, own in self._for_one[action].items():
            # A rule for everything makes older rules for all states void too.
            since = own[0].stamp if own[0].covers_all else -1
            later = common[bisect_right(common, since, key=lambda rule: rule.stamp) :]
            if len(own) == 1 and not later and own[0].values.ndim == 0 and own[0].covers_all:
                value[state] = own[0].values
                continue
            rules = sorted([*own, *later], key=lambda rule: rule.stamp)
            start, stop = transition.indptr[state], transition.indptr[state + 1]
            successors = transition.indices[start:stop]
            rewards = _rewards(rules, successors, observation)
            value[state] = row_means(rewards, transition.data[start:stop], _FIRST)[0]
        return value


def _rewards(
    rules: list[RewardRule], next_states: NDArray[np.integer], observation: sparse.csr_array
) -> NDArray[np.float64]:
    """Return Σ_z O(z | s′) R(s′, z) for some next states, by rules of which later ones count."""
    if not any(rule.by_observation for rule in rules):
        rewards = np.zeros(len(next_states))
        for rule in rules:
            rewards[... if rule.next_state == ALL else next_states == rule.next_state] = rule.values
        return rewards
    chosen = observation[next_states]
    seen = chosen.indices
    owner = np.repeat(next_states, np.diff(chosen.indptr))
    rewards = np.zeros(len(seen))
    for rule in rules:
        applies = np.ones(len(seen), dtype=np.bool_)
        if rule.next_state != ALL:
            applies &= owner == rule.next_state
        if rule.observation != ALL:
            applies &= seen == rule.observation
        if rule.values.ndim == 0:
            rewards[applies] = rule.values
        elif rule.values.ndim == 1:
            rewards[applies] = rule.values[seen[applies]]
        else:
            rewards[applies] = rule.values[owner[applies], seen[applies]]
    return row_means(rewards, chosen.data, chosen.indptr[:-1])


def read_pomdp(path: str | Path) -> POMDP:
    """Return the model in a `.pomdp` file.

    DeclaredNames are the names in the file, or 0, 1, 2, … where it gives a count. The rewards R(a, s, s′, z) become
    ρ(s, a), their expectation; costs become negative rewards. States that every action leaves where they are,
    with reward 0, are terminal. The file acts first, so `observe_initial` is False.

    Raises
    ------
    FormatError
        If the file breaks the grammar, names what it has not declared, has probabilities that do not sum to one,
        or a discount of one. The message starts with path:line:column.
    """
    source = Source(path)
    ends = source.ends()
    if len(ends) > 1:
        try:
            return _Reader(source, ends).read()
        except _HeadElsewhere:
            pass
    return _Reader(source, ends[-1:]).read()


class _HeadElsewhere(Exception):  # noqa: N818, it is no error
    """Something of the head of a file comes after tables, so it has to be read as a whole."""


class _Reader:
    """One file on its way to a POMDP, piece by piece."""

    def __init__(self, source: Source, ends: list[int]) -> None:
        self.source = source
        self.tokens = source.piece(0, ends[0])
        self._ends = ends
        self._pieces = [self.tokens]
        try:
            self.header = header = Header(self.tokens)
        except FormatError:
            if len(ends) > 1:
                raise _HeadElsewhere from None
            raise
        self.states, self.actions, self.observations = header.states, header.actions, header.observations
        self._layers, self._rules = self._nothing()

    def read(self) -> POMDP:
        """Return the model."""
        self._write(self.header.body)
        before = len(self.tokens.words)
        for i, begin in enumerate(self._ends[:-1]):
            piece = self.source.piece(begin, self._ends[i + 1], before)
            before += self._single_entries(piece) or self._statements(piece, begin, self._ends[i + 2 : i + 3])
            self._pieces.append(piece)
        transition = self._matrices("transition", self._layers["T"])
        observation = self._matrices("observation", self._layers["O"])
        n_states, n_actions = len(self.states), len(self.actions)
        reward = np.empty((n_states, n_actions))
        for a in range(n_actions):
            reward[:, a] = self._rules.fold(a, transition[a], observation[a])
        return pomdp_from_file(
            self.source.path,
            states=self.states.labels,
            actions=self.actions.labels,
            observations=self.observations.labels,
            transition=transition,
            reward=reward,
            observation=observation,
            initial=self.header.initial,
            discount=self.header.discount,
        )

    def _statements(self, piece: Tokens, begin: int, next_end: list[int]) -> int:
        """Write what the statements of a piece say; return how many words it has."""
        self.tokens = self.header.tokens = piece
        statements = piece.statements()
        if any(statement.keyword not in ("T", "O", "R") for statement in statements):
            raise _HeadElsewhere
        try:
            self._write(statements)
        except FormatError:
            if next_end:
                # Errors name the word after a statement, which may be in the next piece.
                self._layers, self._rules = self._nothing()
                self._statements(self.source.piece(begin, next_end[0], piece.before), begin, [])
            raise
        count = len(piece.words)
        del piece.words
        return count

    def _nothing(self) -> tuple[dict[str, Layers], RewardRules]:
        """Return tables without entries."""
        n_states, n_actions = len(self.states), len(self.actions)
        pairs = n_states * n_actions
        layers = {"T": Layers(pairs, n_states), "O": Layers(pairs, len(self.observations))}
        return layers, RewardRules(n_actions)

    def _single_entries(self, piece: Tokens) -> int:
        """Write a piece of single entries of T or O only, all at once.

        Returns how many words it has, or 0 if it has anything else, in which case nothing is written.
        """
        words = piece.text.split()
        n, left_over = divmod(len(words), 7)
        letter = words[0][0]
        columns = {"T": self.states, "O": self.observations}.get(letter)
        shape = {*words[0::7]} == {f"{letter}:"} and {*words[2::7], *words[4::7]} == {":"}
        if left_over or columns is None or not shape:
            return 0
        found = [
            names.find_all(words[k::7]) for k, names in ((1, self.actions), (3, self.states), (5, columns))
        ]
        try:
            values = np.fromiter(map(float, words[6::7]), np.float64, n)
        except ValueError:
            return 0
        if not ((values >= 0.0) & (values <= 1.0)).all() or "_" in "".join(words[6::7]):
            return 0
        action, state, column = found
        if action is None or state is None or column is None:
            return 0
        # A word ends at a colon, so a statement has eight words here.
        stamps = piece.before + 8 * np.arange(n)
        self._layers[letter].write_entries(action * len(self.states) + state, column, values, stamps)
        return 8 * n

    def _write(self, statements: Sequence[Statement]) -> None:
        """Write what statements of the piece at hand say."""
        for statement in statements:
            if statement.keyword == "R":
                self._reward(statement, self._rules)
            elif not self._single_entry(statement, self._layers[statement.keyword]):
                try:
                    self._probabilities(statement, self._layers[statement.keyword])
                except ModelError as error:
                    raise self.tokens.error(statement.place, str(error)) from None

    def _fields(self, statement: Statement, kinds: Sequence[DeclaredNames]) -> tuple[list[int], int]:
        """Return the indices between the colons, and where the numbers start."""
        words, place = self.tokens.words, statement.first
        fields = [self.header.index_at(place, kinds[0])]
        while place + 1 < statement.stop and words[place + 1] == ":":
            place += 2
            if len(fields) == len(kinds):
                raise self.tokens.error(place, f"`{statement.keyword}:` takes at most {len(kinds)} fields")
            fields.append(self.header.index_at(place, kinds[len(fields)]))
        return fields, place + 1

    def _single_entry(self, statement: Statement, layers: Layers) -> bool:
        """Write an entry without wildcards, of which large files mostly consist; return whether it was one."""
        words, first = self.tokens.words, statement.first
        if statement.stop - first != 6 or words[first + 1] != ":" or words[first + 3] != ":":
            return False
        columns = self.states if statement.keyword == "T" else self.observations
        action, state = self.actions.find(words[first]), self.states.find(words[first + 2])
        column = columns.find(words[first + 4])
        if action is None or state is None or column is None or min(action, state, column) == ALL:
            return False
        value = self.tokens.number(first + 5)
        if not 0.0 <= value <= 1.0:
            return False
        layers.write_cell(
            action * len(self.states) + state, column, value, self.tokens.before + statement.place
        )
        return True

    def _probabilities(self, statement: Statement, layers: Layers) -> None:
        """Write what a statement `T:` or `O:` says."""
        columns = self.states if statement.keyword == "T" else self.observations
        fields, first = self._fields(statement, (self.actions, self.states, columns))
        what, stamp = f"`{statement.keyword}:`", self.tokens.before + statement.place
        n_states, width = len(self.states), len(columns)
        if len(fields) == 3:
            value = float(self.header.weights(first, statement.stop, 1, what)[0])
            rows, column = self._rows(fields[0], fields[1]), fields[2]
            if column == ALL:
                layers.write_rows(rows, np.full(width, value), stamp)
            else:
                layers.write_cells(rows, np.full(len(rows), column), np.full(len(rows), value), stamp)
            return
        state = fields[1] if len(fields) == 2 else ALL
        word = self.tokens.words[first] if first + 1 == statement.stop else ""
        if word == "identity" and len(fields) == 1:
            if width != n_states:
                raise self.tokens.error(
                    first, f"identity needs as many observations as states, not {width:,} and {n_states:,}"
                )
            for action in range(len(self.actions)) if fields[0] == ALL else (fields[0],):
                layers.write_identity(self._rows(action, ALL), stamp)
        elif word == "uniform":
            layers.write_rows(self._rows(fields[0], state), np.full(width, 1.0 / width), stamp)
        elif word == "reset" and statement.keyword == "T":
            layers.write_rows(self._rows(fields[0], state), self.header.initial, stamp)
        elif len(fields) == 2:
            row = self.header.weights(first, statement.stop, width, what)
            layers.write_rows(self._rows(fields[0], state), row, stamp)
        else:
            matrix = self.header.weights(first, statement.stop, n_states * width, what).reshape(
                n_states, width
            )
            for s, row in enumerate(matrix):
                layers.write_rows(self._rows(fields[0], s), row, stamp)

    def _rows(self, action: int, state: int) -> NDArray[np.int64]:
        """Return the rows of the tables over (action, state) that one or all actions and states have."""
        n_states = len(self.states)
        actions = np.arange(len(self.actions)) if action == ALL else as_index(action)
        states = np.arange(n_states) if state == ALL else as_index(state)
        return (actions[:, None] * n_states + states).reshape(-1)

    def _reward(self, statement: Statement, rules: RewardRules) -> None:
        kinds = (self.actions, self.states, self.states, self.observations)
        fields, first = self._fields(statement, kinds)
        n_states, n_observations = len(self.states), len(self.observations)
        if len(fields) == 1:
            raise self.tokens.error(
                first, "`R:` needs at least an action and a state, as in `R: listen : * : * : * -1`"
            )
        shape = {4: (), 3: (n_observations,), 2: (n_states, n_observations)}[len(fields)]
        numbers = self.header.sign * self.tokens.numbers(first, statement.stop, math.prod(shape), "`R:`")
        action, state, next_state, observation = [*fields, ALL, ALL][:4]
        stamp = self.tokens.before + statement.place
        rules.add(action, state, RewardRule(stamp, next_state, observation, numbers.reshape(shape)))

    def _matrices(self, kind: str, layers: Layers) -> list[sparse.csr_array]:
        """Return one matrix per action; rows that do not sum to one are named with the line that wrote them last."""
        n_states = len(self.states)
        resolved = layers.resolve()
        totals = np.asarray(resolved.sum(axis=1)).reshape(-1)
        off = np.flatnonzero(np.abs(totals - 1.0) > SUM_TOLERANCE)
        if off.size:
            # Rows that are nowhere given are a mistake of another kind; the ones with numbers say more.
            row = int(off[np.argmax(layers.written[off] >= 0)])
            action, state = divmod(row, n_states)
            pair = f"state {self.states.labels[state]!r}, action {self.actions.labels[action]!r}"
            more = f" (and {off.size - 1:,} more rows)" if off.size > 1 else ""
            written = int(layers.written[row])
            if written < 0:
                letter = "T" if kind == "transition" else "O"
                last = self._pieces[-1]
                raise last.error(len(last.words), f"{kind} of {pair}: no `{letter}:` gives this row{more}")
            piece = self._pieces[bisect_right(self._pieces, written, key=lambda piece: piece.before) - 1]
            raise piece.error(
                written - piece.before,
                f"{kind} of {pair}: the probabilities sum to {totals[row]:.10g}, not 1{more}; "
                "this is where the row was written last",
            )
        return [
            checked_rows(resolved[a * n_states : (a + 1) * n_states], lambda row: f"{kind} of row {row}")
            for a in range(len(self.actions))
        ]

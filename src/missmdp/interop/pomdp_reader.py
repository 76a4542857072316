"""Read `.pomdp` files, the format of Cassandra's pomdp-solve.

The whole grammar is read: names or counts, numbers in place of names, `*`, `uniform`, `identity`, `reset`, single
entries, rows and matrices, where later entries cover earlier ones, and all forms of `start`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.interop.assemble import pomdp_from_file
from missmdp.interop.layers import Layers, as_index
from missmdp.interop.pomdp_header import Header, Labels
from missmdp.interop.pomdp_rewards import ALL, RewardRule, RewardRules
from missmdp.interop.pomdp_tokens import Statement, Tokens
from missmdp.model.pomdp import POMDP
from missmdp.model.probabilities import SUM_TOLERANCE, checked_rows

__all__ = ["read_pomdp"]


def read_pomdp(path: str | Path) -> POMDP:
    """Return the model in a `.pomdp` file.

    Labels are the names in the file, or 0, 1, 2, … where it gives a count. The rewards R(a, s, s′, z) become
    ρ(s, a), their expectation; costs become negative rewards. States that every action leaves where they are,
    with reward 0, are terminal. The file acts first, so `observe_initial` is False.

    Raises
    ------
    FormatError
        If the file breaks the grammar, names what it has not declared, has probabilities that do not sum to one,
        or a discount of one. The message starts with path:line:column.
    """
    return _Reader(Tokens(path)).read()


class _Reader:
    """One file on its way to a POMDP."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.header = header = Header(tokens)
        self.states, self.actions, self.observations = header.states, header.actions, header.observations

    def read(self) -> POMDP:
        """Return the model."""
        n_states, n_actions = len(self.states), len(self.actions)
        pairs = n_states * n_actions
        layers = {"T": Layers(pairs, n_states), "O": Layers(pairs, len(self.observations))}
        rules = RewardRules(n_actions)
        for statement in self.header.body:
            if statement.keyword == "R":
                self._reward(statement, rules)
            elif not self._single_entry(statement, layers[statement.keyword]):
                try:
                    self._probabilities(statement, layers[statement.keyword])
                except ModelError as error:
                    raise self.tokens.error(statement.place, str(error)) from None
        transition = self._matrices("transition", layers["T"])
        observation = self._matrices("observation", layers["O"])
        reward = np.empty((n_states, n_actions))
        for a in range(n_actions):
            reward[:, a] = rules.fold(a, transition[a], observation[a])
        return pomdp_from_file(
            self.tokens.path,
            states=self.states.labels,
            actions=self.actions.labels,
            observations=self.observations.labels,
            transition=transition,
            reward=reward,
            observation=observation,
            initial=self.header.initial,
            discount=self.header.discount,
        )

    def _fields(self, statement: Statement, kinds: Sequence[Labels]) -> tuple[list[int], int]:
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
        layers.write_cell(action * len(self.states) + state, column, value, statement.place)
        return True

    def _probabilities(self, statement: Statement, layers: Layers) -> None:
        """Write what a statement `T:` or `O:` says."""
        columns = self.states if statement.keyword == "T" else self.observations
        fields, first = self._fields(statement, (self.actions, self.states, columns))
        what, stamp = f"`{statement.keyword}:`", statement.place
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
        rules.add(action, state, RewardRule(statement.place, next_state, observation, numbers.reshape(shape)))

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
                raise self.tokens.error(
                    len(self.tokens.words), f"{kind} of {pair}: no `{letter}:` gives this row{more}"
                )
            raise self.tokens.error(
                written,
                f"{kind} of {pair}: the probabilities sum to {totals[row]:.10g}, not 1{more}; "
                "this is where the row was written last",
            )
        return [
            checked_rows(resolved[a * n_states : (a + 1) * n_states], lambda row: f"{kind} of row {row}")
            for a in range(len(self.actions))
        ]

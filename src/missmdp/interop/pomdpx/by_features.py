"""A `.pomdpx` file as a miss-MDP: one table per feature, as it is written, and nothing multiplied out.

State variables are the features. Their next values must be independent given the state and the action, and
observations must show values or that they are missing (see `shown`). A table becomes an array over the parents that
matter. A file may have rows that do not sum to one if nothing leads to them. Such rows are filled in first, and refused
if it turns out that a reachable state needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.interop.incoming import row_means
from missmdp.interop.pomdpx.document import Document, damage_of, read_document
from missmdp.interop.pomdpx.shown import what_is_shown
from missmdp.interop.pomdpx.tables import Table
from missmdp.interop.pomdpx.variables import Codes
from missmdp.memory import check_fits
from missmdp.model.factors import Scope
from missmdp.model.mdp import FactoredMDP
from missmdp.model.missing_factors import Part, checked_parts
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.missmdp import MissMDP
from missmdp.model.space import FeatureSpace

_BYTES_PER_CODE = 16.0
"""Memory for one value in a list of combinations, with what is needed to make it."""


MOST_STATES = 20_000_000
"""Combinations of values above which a model is refused."""


_BYTES_PER_CELL = 40.0
"""Memory for one number of a table while it becomes an array."""


_MOST_INITIAL = 2_000_000
"""States that may be possible at first if initial values depend on each other."""


def read_miss_mdp(path: str | Path) -> MissMDP:
    """Return the miss-MDP in a `.pomdpx` file, feature by feature: no table is multiplied out.

    State variables become features. Fully observed ones are never missing. For each of the others, an observation
    variable shows its value or that it is missing; without such a variable, it is always missing. One observation
    variable may show several features. Rewards are added; if they depend on next values or observations, their
    expectation is taken. States that every action leaves where they are, with reward 0, are terminal.

    The file acts first, and other solvers compute values accordingly. In the miss-MDP that is returned, as in every
    miss-MDP, an observation comes before the first action; `Sarsop(observe_initial=False)` acts first.

    Raises
    ------
    FormatError
        If the file is damaged, or is not of the form of a miss-MDP; `read_pomdpx` may still read it as a POMDP. The
        message names the place.
    """
    document = read_document(path)
    with damage_of(path):
        return by_features(document)


def by_features(document: Document) -> MissMDP:
    """Return the miss-MDP in a file; see `read_miss_mdp`."""
    return _Model(document).read()


class _Rows(NamedTuple):
    """A table as an array over the features that matter."""

    scope: Scope
    """Its last axis is the value; the one before may be the action."""
    wrong: NDArray[np.bool_]
    """Which rows do not sum to one."""
    table: Table


class _Model:
    """One file on its way to a miss-MDP."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.variables = document.variables
        states = self.variables.states
        n_states = self.variables.state.count
        if n_states > MOST_STATES:
            raise document.root.error(
                f"the state variables have {n_states:.3g} combinations of values, more than {MOST_STATES:,}; leave "
                "out variables, or give them fewer values"
            )
        names = [v.label for v in states]
        if len(set(names)) < len(names):
            names = [v.current for v in states]
        self.features = FeatureSpace({n: v.labels for n, v in zip(names, states, strict=True)})
        _ = self.features.weights  # raises where variables with one value are too many
        self.n_actions = self.variables.action.count
        self._place = {v.previous: i for i, v in enumerate(states)}
        self._next = {v.current: i for i, v in enumerate(states)}
        self._acting = {v.current for v in self.variables.actions}

    def read(self) -> MissMDP:
        """Return the model."""
        moves = [self._moves(table) for table in self._in_order(self.document.transition)]
        sights = [self._observed(table) for table in self.document.observation]
        shown = what_is_shown(self.document, sights)
        rewards = [self._reward(table) for table in self.document.rewards]
        mdp = self._mdp(moves, rewards)
        self._check_reached(mdp, moves, sights)
        parts = shown + self._never_shown(shown)
        gaps = MissingnessFunction.from_parts(mdp.space, checked_parts(mdp.space, parts))
        return MissMDP(mdp, gaps)

    def _mdp(self, moves: Sequence[_Rows], rewards: Sequence[Scope]) -> FactoredMDP:
        names = self.features.names
        actions = self.variables.action.labels(np.arange(self.n_actions))
        return FactoredMDP.from_factors(
            self.features,
            list(actions),
            {
                name: ([names[p] for p in rows.scope.parents], rows.scope.table)
                for name, rows in zip(names, moves, strict=True)
            },
            [([names[p] for p in scope.parents], scope.table) for scope in rewards] or 0.0,
            self._initial(),
            self._terminal(moves, rewards),
            self.document.discount,
            max_states=MOST_STATES,
        )

    def _in_order(self, tables: Sequence[Table]) -> list[Table]:
        """Return tables in the order of the features."""
        by_child = {table.child: table for table in tables}
        return [by_child[v.current] for v in self.variables.states]

    # Tables as arrays.

    def _combinations(self, positions: Sequence[int], time: str, *, acting: bool) -> tuple[Codes, list[int]]:
        """Return all combinations of values of some features, and of actions, and how many there are of each."""
        states = [self.variables.states[p] for p in positions]
        sizes = [len(v) for v in states] + ([self.n_actions] if acting else [])
        count = math.prod(sizes)
        places = list(np.unravel_index(np.arange(count), sizes)) if sizes else []
        codes: Codes = {
            (v.previous if time == "previous" else v.current): place.astype(np.int64)
            for v, place in zip(states, places, strict=False)
        }
        if acting:
            chosen = self.variables.action.codes(places[-1].astype(np.int64))
            codes |= {v.current: c for v, c in zip(self.variables.actions, chosen, strict=True)}
        return codes, sizes

    def _moves(self, table: Table) -> _Rows:
        """Return P(next value of a feature | values of some, action)."""
        for parent in self._varying(table):
            if parent in self._next:
                raise table.element.error(
                    f"the next value {table.child!r} depends on the next value {parent!r}; in a miss-MDP by features "
                    "the next values are independent given the state and the action"
                )
        parents = tuple(sorted(self._place[p] for p in table.matters if p in self._place))
        self._check_fits(table, parents, len(self.variables.slots[table.child]), acting=True)
        codes, sizes = self._combinations(parents, "previous", acting=True)
        rows, wrong = table.dense(codes, math.prod(sizes))
        return _without_idle(parents, rows.reshape(*sizes, -1), wrong.reshape(sizes), table)

    def _observed(self, table: Table) -> _Rows:
        """Return P(what a variable says | values of some features)."""
        for parent in self._varying(table):
            if parent in self._acting:
                raise table.element.error(
                    f"{table.child!r} depends on the action; in a miss-MDP what is seen depends on the state only"
                )
            if parent not in self._next:
                raise table.element.error(
                    f"{table.child!r} depends on another observation, {parent!r}; let one observation variable show "
                    "what goes missing together"
                )
        parents = tuple(sorted(self._next[p] for p in table.matters if p in self._next))
        self._check_fits(table, parents, len(self.variables.slots[table.child]), acting=False)
        codes, sizes = self._combinations(parents, "current", acting=False)
        rows, wrong = table.dense(codes, math.prod(sizes))
        rows[wrong] = 0.0
        return _Rows(Scope(parents, rows.reshape(*sizes, -1)), wrong.reshape(sizes), table)

    def _varying(self, table: Table) -> list[str]:
        """Return the parents that a table really depends on: those that matter and have several values."""
        return [parent for parent in table.matters if len(self.variables.slots[parent]) > 1]

    def _check_fits(self, table: Table, parents: Sequence[int], width: int, *, acting: bool) -> None:
        rows = math.prod(float(len(self.variables.states[p])) for p in parents)
        rows *= self.n_actions if acting else 1
        codes = len(parents) + (len(self.variables.actions) if acting else 0) + 1
        names = ", ".join(self.features.names[p] for p in parents)
        check_fits(
            f"the table of {table.child!r} over {names or 'no parents'}, with {rows * width:.2g} numbers,",
            rows * (_BYTES_PER_CELL * width + _BYTES_PER_CODE * codes),
            "give it fewer parents",
        )

    # Rewards, the beginning, the end.

    def _reward(self, table: Table) -> Scope:
        """Return a reward as the expectation given the state and the action."""
        later = {p for p in table.matters if p not in self._place and p not in self._acting}
        signals = [t for t in self.document.observation if t.child in later]
        for signal in signals:
            self._observed(signal)  # it must not depend on the action or on other observations
        later |= {p for signal in signals for p in signal.matters}
        moving = [t for t in self.document.transition if t.child in later]
        needed = {p for t in (table, *moving) for p in t.matters}
        parents = tuple(sorted(self._place[p] for p in needed if p in self._place))
        self._check_fits(table, parents, 1, acting=True)
        codes, sizes = self._combinations(parents, "previous", acting=True)
        length = math.prod(sizes)
        if not moving and not signals:
            return Scope(parents, table.look_up(_filled(codes, table, length), length).reshape(sizes))
        for one in (*moving, *signals):
            codes = {p: c for p, c in _filled(codes, one, length).items() if p not in later}
        codes["."] = np.arange(length)
        return Scope(parents, _expectation(table, [*moving, *signals], codes, length).reshape(sizes))

    def _initial(self) -> NDArray[np.float64]:
        tables = {table.child: table for table in self.document.initial}
        if not any(table.matters and table.parents for table in tables.values()):
            belief = np.ones(1)
            for variable in self.variables.states:
                table = tables[variable.previous]
                codes = {parent: np.zeros(1, dtype=np.int64) for parent in table.parents}
                table.check(codes, 1)
                belief = np.multiply.outer(belief, table.dense(codes, 1)[0][0]).ravel()
            return belief
        codes: Codes = {}
        weights = np.ones(1)
        for table in self.document.initial:
            support = float(table.count(codes, len(weights)).sum())
            if support > _MOST_INITIAL:
                raise self.document.root.error(
                    f"initial values depend on each other, and at least {support:.2g} states are possible at first; "
                    f"at most {_MOST_INITIAL:,} can be"
                )
            codes, weights = table.expand(codes, weights)
        ranks = self.variables.state.rank([codes[v.previous] for v in self.variables.states], len(weights))
        belief = np.zeros(self.variables.state.count)
        np.add.at(belief, ranks, weights)
        return belief

    def _terminal(self, moves: Sequence[_Rows], rewards: Sequence[Scope]) -> NDArray[np.bool_]:
        """Return which states every action leaves where they are, with reward 0."""
        sizes = tuple(map(int, self.features.sizes))
        stays = np.ones(sizes, dtype=np.bool_)
        for feature, rows in enumerate(moves):
            stays &= _staying(feature, rows, sizes[feature]).over_states(sizes) > 0.0
        for a in range(self.n_actions if stays.any() else 0):
            total = np.zeros(sizes)
            for scope in rewards:
                total += scope.over_states(sizes)[..., a]
            stays &= total == 0.0
        return stays.reshape(-1)

    def _never_shown(self, shown: Sequence[Part]) -> list[Part]:
        """Return the missingness of features that are neither fully observed nor shown."""
        known = {feature for part in shown for feature in part.features}
        return [
            Part((i,), np.zeros((1, 1), dtype=np.bool_), np.ones((1, 1)), ())
            for i, variable in enumerate(self.variables.states)
            if not variable.fully_observed and i not in known
        ]

    def _check_reached(self, mdp: FactoredMDP, moves: Sequence[_Rows], sights: Sequence[_Rows]) -> None:
        """Raise `FormatError` if a reachable state needs a row that does not sum to one."""
        sizes = tuple(map(int, self.features.sizes))
        reached = mdp.reachable.reshape(sizes)
        tables = [(rows, "previous") for rows in moves] + [(rows, "current") for rows in sights]
        for rows, time in tables:
            if not rows.wrong.any():
                continue
            acting = time == "previous"
            by_action = rows.wrong if acting else rows.wrong[..., None]
            for a in range(by_action.shape[-1]):
                wrong = Scope(rows.scope.parents, by_action[..., a].astype(np.float64)).over_states(sizes)
                bad = np.argwhere((wrong > 0.0) & reached)
                if len(bad):
                    codes = self.variables.codes(
                        np.array([np.ravel_multi_index(tuple(bad[0]), sizes)]), a, time
                    )
                    rows.table.check(codes, 1)


def _filled(codes: Codes, table: Table, length: int) -> Codes:
    """Return codes for all parents of a table; those that do not matter get zeros."""
    nothing = np.zeros(length, dtype=np.int64)
    return dict.fromkeys(table.parents, nothing) | codes


def _expectation(table: Table, later: Sequence[Table], codes: Codes, length: int) -> NDArray[np.float64]:
    """Return the expectation of a reward over what comes next; rows that do not sum to one are taken as they are."""
    extended, weights = codes, np.ones(length)
    for one in later:
        extended = _filled(extended, one, len(weights))
        ways = float(one.count(extended, len(weights)).sum())
        check_fits(
            f"the expectation of {table.child!r} over what comes next, with {ways:.2g} cases or more,",
            _BYTES_PER_CODE * ways * (len(extended) + 2),
            "let it depend on fewer variables",
        )
        extended, weights = one.expand(extended, weights, checked=False)
    values = table.look_up(_filled(extended, table, len(weights)), len(weights))
    there, starts = np.unique(extended["."], return_index=True)
    means = np.zeros(length)
    means[there] = row_means(values, weights, starts)
    return means


def _without_idle(
    parents: tuple[int, ...], array: NDArray[np.float64], wrong: NDArray[np.bool_], table: Table
) -> _Rows:
    """Return a table without features that make no difference; wrong rows are made to lead to the first value."""
    array[wrong] = 0.0
    array[wrong, 0] = 1.0
    for axis in reversed(range(len(parents))):
        same = (array == array.take([0], axis=axis)).all() and (wrong == wrong.take([0], axis=axis)).all()
        if same:
            array = np.asarray(array.take(0, axis=axis), dtype=np.float64)
            wrong = np.asarray(wrong.take(0, axis=axis), dtype=np.bool_)
            parents = parents[:axis] + parents[axis + 1 :]
    return _Rows(Scope(parents, np.ascontiguousarray(array)), wrong, table)


def _staying(feature: int, rows: _Rows, size: int) -> Scope:
    """Return 1 where a feature is certain to keep its value, whatever the action, and 0 elsewhere."""
    parents, table = rows.scope
    stays = ((table == 1.0) & ~rows.wrong[..., None]).all(axis=len(parents))
    if feature in parents:
        axis = parents.index(feature)
        kept = np.moveaxis(np.diagonal(stays, axis1=axis, axis2=-1), -1, axis)
        return Scope(parents, kept.astype(np.float64))
    return Scope((*parents, feature), stays.astype(np.float64))

"""The MDP that was learned: T over all combinations of values, whether they occurred in the log or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.learn.joint.dynamics import Dynamics, Family, Point, Variables
from missmdp.learn.joint.layout import Layout
from missmdp.memory import check_fits


@dataclass(frozen=True, eq=False)
class Rows:
    """Values of variables in rows: a state, an action, and some of the next values."""

    variables: Variables
    codes: NDArray[np.integer[Any]]
    """The values of all states, shape (S, n)."""
    state_index: NDArray[np.int64]
    """The state before, shape (rows,)."""
    action: int
    after: dict[int, NDArray[np.int64]]
    came_from: NDArray[np.int64]
    """The row that each goes on from, shape (rows,)."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.state_index)

    def column(self, variable: int) -> NDArray[np.int64]:
        """Return the values of a variable, shape (rows,)."""
        if variable == self.variables.action:
            return np.full(self.count, self.action, dtype=np.int64)
        if variable in self.after:
            return self.after[variable]
        return self.codes[self.state_index, variable].astype(np.int64)


def distributions(
    family: Family, theta: NDArray[np.float64], rows: Rows, variables: Variables
) -> NDArray[np.float64]:
    """Return the distribution of a family's target in each row, shape (rows, V)."""
    leaf = family.partition.leaf(rows.column, rows.count)
    table, way = family.outcomes.column, family.way[leaf]
    before = rows.column(variables.feature(family.target)) if table.shape[1] > 1 else 0
    column = table[way, before]
    found = (theta * family.outcomes.share)[leaf[:, None], column]
    if family.known is not None:
        row = family.known.row[rows.state_index, rows.action]
        found[row >= 0] = family.known.rows[row[row >= 0]]
    return found


def expanded(
    families: Sequence[Family], thetas: Sequence[NDArray[np.float64]], rows: Rows, variables: Variables
) -> tuple[Rows, NDArray[np.float64]]:
    """Return all ways to go on from some rows, and how likely each is."""
    weight = np.ones(rows.count)
    for family, theta in zip(families, thetas, strict=True):
        found = distributions(family, theta, rows, variables)
        place, value = np.nonzero(found)
        check_fits(
            f"a learned transition matrix with {len(place):,} entries",
            200.0 * len(place),
            "leave out features, or give them fewer values or bins",
        )
        weight = weight[place] * found[place, value]
        after = {v: column[place] for v, column in rows.after.items()}
        after[family.target] = value.astype(np.int64)
        rows = Rows(variables, rows.codes, rows.state_index[place], rows.action, after, place)
    return rows, weight


def start_rows(layout: Layout, variables: Variables, action: int) -> Rows:
    """Return a row for each state."""
    every = np.arange(layout.states.n_states)
    return Rows(variables, layout.states.space.codes, every, action, {}, every)


def _state_numbers(rows: Rows, layout: Layout, variables: Variables) -> NDArray[np.int64]:
    number = np.zeros(rows.count, dtype=np.int64)
    for feature, size in enumerate(layout.features.sizes.tolist()):
        number = number * size + rows.after[variables.next(feature)]
    return number


def matrices(dynamics: Dynamics, point: Point) -> list[sparse.csr_array]:
    """Return T̂ as one matrix per action over all combinations of values."""
    layout = dynamics.layout
    variables = Variables(layout.features, layout.n_actions)
    n_states = layout.states.n_states
    families, thetas = dynamics.steps.families, point.steps
    found: list[sparse.csr_array] = []
    for action in range(layout.n_actions):
        rows, weight = expanded(families, thetas, start_rows(layout, variables, action), variables)
        target = _state_numbers(rows, layout, variables)
        matrix = sparse.csr_array((weight, (rows.state_index, target)), shape=(n_states, n_states))
        total = np.asarray(matrix.sum(axis=1)).reshape(-1)
        found.append(sparse.csr_array(sparse.diags_array(1.0 / total) @ matrix))
    return found


def initial_distribution(dynamics: Dynamics, point: Point) -> NDArray[np.float64]:
    """Return b̂₀ over all combinations of values, shape (S,)."""
    if dynamics.initial_given is not None:
        return dynamics.initial_given
    layout = dynamics.layout
    variables = Variables(layout.features, layout.n_actions)
    alone = np.zeros(1, dtype=np.int64)
    start = Rows(variables, layout.states.space.codes, alone, 0, {}, alone)
    rows, weight = expanded(dynamics.start.families, point.start, start, variables)
    found = np.bincount(
        _state_numbers(rows, layout, variables), weight, minlength=layout.states.n_states
    ).astype(np.float64)
    return found / found.sum()


def ending_chance(dynamics: Dynamics, point: Point) -> NDArray[np.float64]:
    """Return how likely an episode ends in each state, shape (S,)."""
    layout, n = dynamics.layout, len(dynamics.layout.features)
    if dynamics.ending is None or point.ending is None:
        return np.zeros(layout.states.n_states)
    variables = Variables(layout.features, layout.n_actions)
    codes = layout.states.space.codes
    after = {variables.next(i): codes[:, i].astype(np.int64) for i in range(n)}
    rows = replace(start_rows(layout, variables, 0), after=after)
    return distributions(dynamics.ending.family, point.ending, rows, variables)[:, 1]

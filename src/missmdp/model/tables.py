"""MDPs from tables: CSV, Parquet, or any frame that speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import FormatError, ModelError
from missmdp.model.checks import call
from missmdp.model.enumeration import truth
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace, is_missing
from missmdp.model.states import StateSpace

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["mdp_from_tables", "read_table"]

ACTION, PROBABILITY, REWARD, NEXT = "action", "probability", "reward", "next_"


def read_table(source: Any, what: str) -> pa.Table:
    """Return a table from a CSV or Parquet file, a pandas, polars or pyarrow frame, or a mapping of columns."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    if isinstance(source, str | Path):
        try:
            match Path(source).suffix.lower():
                case ".csv":
                    return csv.read_csv(source)
                case ".parquet" | ".pq":
                    return parquet.read_table(source)  # pyright: ignore[reportUnknownMemberType]
                case suffix:
                    raise FormatError(f"{what}: {source} ends in {suffix!r}; expected .csv or .parquet")
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{what}: {source} cannot be read ({error})") from error
    try:
        if isinstance(source, Mapping):
            return pa.table({str(k): list(v) for k, v in cast("Mapping[Any, Any]", source).items()})
        if type(source).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False)
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            f"{what}: expected a CSV or Parquet file or a pandas, polars or pyarrow frame, "
            f"got {type(cast('object', source)).__name__} ({error})"
        ) from error


class _Table:
    """Columns of a table as Python values, with errors that name the table and the row."""

    def __init__(self, source: Any, what: str) -> None:
        table = read_table(source, what)
        self.what = what
        self.names: list[str] = list(table.column_names)
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise ModelError(f"{what}: the column {twice[0]!r} occurs twice")
        self._columns: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in self.names}
        self.n_rows = int(table.num_rows)
        if self.n_rows == 0:
            raise ModelError(f"{what}: the table has no rows")

    def column(self, name: str) -> list[Any]:
        if name not in self._columns:
            raise ModelError(
                f"{self.what}: there is no column {name!r}; the columns are {', '.join(self.names)}"
            )
        values = self._columns[name]
        for row, value in enumerate(values):
            if is_missing(value):
                raise ModelError(f"{self.what}, row {row + 1}: {name!r} is empty")
        return values

    def numbers(self, name: str) -> NDArray[np.float64]:
        values = self.column(name)
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ModelError(f"{self.what}, row {row + 1}: {name!r} is {value!r}, not a number")
        return np.array(values, dtype=np.float64)

    def codes(self, space: FeatureSpace, prefix: str = "") -> NDArray[np.int64]:
        columns = [self.column(prefix + name) for name in space.names]
        codes = np.empty((self.n_rows, len(space)), dtype=np.int64)
        for row, state in enumerate(zip(*columns, strict=True)):
            try:
                codes[row] = space.encode(state)
            except ModelError as error:
                raise ModelError(f"{self.what}, row {row + 1}: {error}") from None
        return codes

    def positions(self, name: str, known: Sequence[Any]) -> NDArray[np.int64]:
        place = {value: position for position, value in enumerate(known)}
        values = self.column(name)
        for row, value in enumerate(values):
            if value not in place:
                raise ModelError(
                    f"{self.what}, row {row + 1}: {name} {value!r} does not occur in transitions"
                )
        return np.array([place[value] for value in values], dtype=np.int64)


def mdp_from_tables(
    transitions: Any,
    rewards: Any,
    initial: Any,
    *,
    discount: float,
    terminal: Any,
    features: Mapping[str, Iterable[Any]] | None,
) -> FactoredMDP:
    """Return the MDP of three tables; see `FactoredMDP.from_tables`."""
    steps, pay, start = (
        _Table(transitions, "transitions"),
        _Table(rewards, "rewards"),
        _Table(initial, "initial"),
    )
    ends = None if terminal is None or callable(terminal) else _Table(terminal, "terminal")
    space = _feature_space(steps, start, features)
    actions = list(dict.fromkeys(steps.column(ACTION)))

    before, after, first = steps.codes(space), steps.codes(space, NEXT), start.codes(space)
    listed = [before, after, first] + ([] if ends is None else [ends.codes(space)])
    ranks = np.unique(space.rank(np.concatenate(listed)))
    states = StateSpace(space, space.unrank(ranks))
    is_terminal = _terminal(states, terminal, ends)

    source, target = states.find(before), states.find(after)
    action = steps.positions(ACTION, actions)
    _check_rows(steps, states, actions, source, action, target, is_terminal)
    probability = steps.numbers(PROBABILITY)
    n = len(states)
    matrices: list[sparse.csr_array] = []
    for a in range(len(actions)):
        rows = action == a
        coordinates = (source[rows], target[rows])
        matrices.append(sparse.csr_array(sparse.coo_array((probability[rows], coordinates), shape=(n, n))))
    return FactoredMDP(
        space,
        actions,
        matrices,
        _rewards(pay, states, actions),
        _initial(start, states, states.find(first)),
        is_terminal,
        discount,
        states=states,
    )


def _feature_space(
    steps: _Table, start: _Table, features: Mapping[str, Iterable[Any]] | None
) -> FeatureSpace:
    special = {ACTION, PROBABILITY}
    named = [
        n
        for n in steps.names
        if n not in special and not (n.startswith(NEXT) and n[len(NEXT) :] in steps.names)
    ]
    if features is not None:
        return FeatureSpace(features)
    if not named:
        raise ModelError(f"transitions: no feature columns among {', '.join(steps.names)}")
    values: dict[str, list[Any]] = {}
    for name in named:
        seen = dict.fromkeys([*steps.column(name), *steps.column(NEXT + name), *start.column(name)])
        try:
            values[name] = sorted(seen)
        except TypeError:
            values[name] = list(seen)
    return FeatureSpace(values)


def _terminal(states: StateSpace, terminal: Any, ends: _Table | None) -> NDArray[np.bool_]:
    if ends is None:
        if terminal is None:
            return np.zeros(len(states), dtype=np.bool_)
        return np.array([truth(call(terminal, "terminal", state), state) for state in states.states])
    mask = np.zeros(len(states), dtype=np.bool_)
    mask[states.find(ends.codes(states.features))] = True
    return mask


def _check_rows(
    steps: _Table,
    states: StateSpace,
    actions: Sequence[Any],
    source: NDArray[np.int64],
    action: NDArray[np.int64],
    target: NDArray[np.int64],
    terminal: NDArray[np.bool_],
) -> None:
    key = (source * len(actions) + action) * len(states) + target
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise ModelError(
            f"transitions, rows {first + 1} and {second + 1}: the same state, action and next state twice"
        )
    listed = np.zeros((len(states), len(actions)), dtype=np.bool_)
    listed[source, action] = True
    absent = np.argwhere(~listed & ~terminal[:, None])
    if absent.size:
        s, a = absent[0]
        raise ModelError(
            f"transitions: there is no row for the state {states.state(int(s))!r} and the action {actions[a]!r}; "
            "add it, or list the state as terminal"
        )


def _rewards(pay: _Table, states: StateSpace, actions: Sequence[Any]) -> NDArray[np.float64]:
    where, action = states.find(pay.codes(states.features)), pay.positions(ACTION, actions)
    values = pay.numbers(REWARD)
    array = np.zeros((len(states), len(actions)))
    seen: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(where.tolist(), action.tolist(), strict=True)):
        if pair[0] < 0:
            raise ModelError(f"rewards, row {row + 1}: this state does not occur in transitions or initial")
        if pair in seen:
            raise ModelError(f"rewards, rows {seen[pair] + 1} and {row + 1}: the same state and action twice")
        seen[pair] = row
        array[pair] = values[row]
    return array


def _initial(start: _Table, states: StateSpace, where: NDArray[np.int64]) -> NDArray[np.float64]:
    array = np.zeros(len(states))
    np.add.at(array, where, start.numbers(PROBABILITY))
    return array

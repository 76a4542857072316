"""MDPs from three tables: transitions, rewards and the initial distribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError
from missmdp.model.columns import Columns, settle_types
from missmdp.model.given import given_terminal
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace
from missmdp.model.states import StateSpace

__all__ = ["mdp_from_tables"]

ACTION, PROBABILITY, REWARD, NEXT = "action", "probability", "reward", "next_"


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
        Columns(transitions, "transitions"),
        Columns(rewards, "rewards", may_be_empty=True),
        Columns(initial, "initial"),
    )
    ends = None if terminal is None or callable(terminal) else Columns(terminal, "terminal")
    # First of all, since a column with a name that is a little wrong would be taken for a feature.
    steps.require(ACTION, PROBABILITY)
    start.require(PROBABILITY)
    pay.require(ACTION, REWARD)
    tables = [steps, pay, start, *([] if ends is None else [ends])]
    known = {} if features is None else FeatureSpace(features).as_dict()
    names = tuple(known) or _feature_names(steps)
    for name in names:
        if name in steps and NEXT + name not in steps:
            raise ModelError(
                f"transitions: there is no column {NEXT + name!r}; the features are {', '.join(names)}, and each has "
                f"a column and another one that is called {NEXT}…"
            )
    for name in names:
        settle_types(tables, (name, NEXT + name), known.get(name, ()))
    settle_types(tables, (ACTION,))
    space = FeatureSpace(known or _values(names, steps, start))
    actions = list(dict.fromkeys(steps[ACTION]))

    before, after, first = _codes(steps, space), _codes(steps, space, NEXT), _codes(start, space)
    last = np.empty((0, len(space)), dtype=np.int64) if ends is None else _codes(ends, space)
    states = StateSpace(
        space, space.unrank(np.unique(space.rank(np.concatenate([before, after, first, last]))))
    )
    is_terminal = given_terminal(states, terminal if ends is None else None)
    is_terminal[states.find(last)] = True

    source, target = states.find(before), states.find(after)
    action = _positions(steps, ACTION, actions)
    _refuse_repeats(steps, np.column_stack([source, action, target]), "state, action and next state")
    _refuse_gaps(states, actions, source, action, is_terminal)
    probability = steps.numbers(PROBABILITY)
    shape = (len(states), len(states))
    matrices = [
        sparse.csr_array(sparse.coo_array((probability[rows], (source[rows], target[rows])), shape=shape))
        for rows in (action == a for a in range(len(actions)))
    ]
    _refuse_repeats(start, first, "state")
    initial_array = np.zeros(len(states))
    initial_array[states.find(first)] = start.numbers(PROBABILITY)
    return FactoredMDP(
        space,
        actions,
        matrices,
        _rewards(pay, states, actions),
        initial_array,
        is_terminal,
        discount,
        states=states,
    )


def _feature_names(steps: Columns) -> tuple[str, ...]:
    special = {ACTION, PROBABILITY}
    named = tuple(
        name
        for name in steps.names
        if name not in special and not (name.startswith(NEXT) and name.removeprefix(NEXT) in steps.names)
    )
    if not named:
        raise ModelError(f"transitions: no feature columns among {', '.join(steps.names)}")
    return named


def _values(names: Iterable[str], steps: Columns, start: Columns) -> dict[str, list[Any]]:
    """Return the values that occur, sorted where they can be, or as ordered categories have them."""
    values: dict[str, list[Any]] = {}
    for name in names:
        seen = dict.fromkeys([*steps[name], *steps[NEXT + name], *start[name]])
        order = steps.orders.get(name) or start.orders.get(name)
        if order is not None and set(order).issuperset(seen):
            values[name] = order
            continue
        words = {value for value in seen if isinstance(value, str)}
        alike = [value for value in seen if not isinstance(value, str) and str(value) in words]
        if alike:
            raise ModelError(
                f"transitions: feature {name!r} has the values {alike[0]!r} and {str(alike[0])!r}, a number and a "
                "word; give its columns one type"
            )
        try:
            values[name] = sorted(seen)
        except TypeError:
            values[name] = list(seen)
    return values


def _codes(table: Columns, space: FeatureSpace, prefix: str = "") -> NDArray[np.int64]:
    columns = [table[prefix + name] for name in space.names]
    codes = np.empty((table.n_rows, len(space)), dtype=np.int64)
    for row, state in enumerate(zip(*columns, strict=True)):
        try:
            codes[row] = space.encode(state)
        except ModelError as error:
            raise ModelError(f"{table.what}, row {row + 1}: {error}") from None
    return codes


def _positions(table: Columns, name: str, known: Sequence[Any]) -> NDArray[np.int64]:
    place = {value: position for position, value in enumerate(known)}
    values = table[name]
    for row, value in enumerate(values):
        if value not in place:
            raise ModelError(f"{table.what}, row {row + 1}: {name} {value!r} does not occur in transitions")
    return np.array([place[value] for value in values], dtype=np.int64)


def _refuse_repeats(table: Columns, keys: NDArray[np.int64], what: str) -> None:
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(keys)))
    if again.size:
        row = int(again[0])
        raise ModelError(
            f"{table.what}, rows {first[inverse.reshape(-1)[row]] + 1} and {row + 1}: the same {what} twice"
        )


def _refuse_gaps(
    states: StateSpace,
    actions: Sequence[Any],
    source: NDArray[np.int64],
    action: NDArray[np.int64],
    terminal: NDArray[np.bool_],
) -> None:
    listed = np.zeros((len(states), len(actions)), dtype=np.bool_)
    listed[source, action] = True
    absent = np.argwhere(~listed & ~terminal[:, None])
    if absent.size:
        s, a = absent[0]
        raise ModelError(
            f"transitions: there is no row for the state {states.state(int(s))!r} and the action "
            f"{actions[a]!r}; add it, or list the state as terminal"
        )


def _rewards(pay: Columns, states: StateSpace, actions: Sequence[Any]) -> NDArray[np.float64]:
    where, action = states.find(_codes(pay, states.features)), _positions(pay, ACTION, actions)
    unknown = np.flatnonzero(where < 0)
    if unknown.size:
        raise ModelError(
            f"rewards, row {unknown[0] + 1}: this state does not occur in transitions or initial"
        )
    _refuse_repeats(pay, np.column_stack([where, action]), "state and action")
    array = np.zeros((len(states), len(actions)))
    array[where, action] = pay.numbers(REWARD)
    return array

"""What the user knows of T and b₀, as rules over the states of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from missmdp.checks import checked_choice
from missmdp.errors import DataError, ParameterError
from missmdp.learn.joint.dynamics import Known, Variables
from missmdp.learn.joint.structure import Rules
from missmdp.model.factors import given_factor_initial, given_factor_terminal
from missmdp.model.given import given_initial, given_terminal, probability_pairs
from missmdp.model.mdp import FactoredMDP
from missmdp.model.probabilities import call, checked_distribution
from missmdp.model.space import StateSpace
from missmdp.words import did_you_mean, preview

Transitions = str | Mapping[str, Any] | FactoredMDP

_NEXT = "next_"


def rules_of(
    space: StateSpace,
    actions: tuple[Any, ...],
    *,
    transitions: Transitions,
    known: Mapping[str, Callable[[Any, Any], Any]] | None,
    initial: Any,
    terminal: Any,
    ends: bool,
) -> Rules:
    """Return the rules that a user gives; raise `ParameterError` where they make no sense.

    Parameters
    ----------
    space
        All combinations of values.
    transitions
        "trees", "saturated", or feature → the features that its next value depends on.
    known
        Feature → a function of state and action that returns {next value: probability}, or None where it is not known.
    ends
        Whether the log has marks of where episodes ended.
    """
    variables = Variables(space.features, len(actions))
    parents = None
    if isinstance(transitions, Mapping):
        parents = _parents(cast("Mapping[Any, Any]", transitions), variables)
    else:
        checked_choice("transitions", transitions, ("trees", "saturated"))
    flags = None
    if terminal is not None:
        given = given_factor_terminal(terminal, space.features)
        flags = given_terminal(space, given)
    start = None
    if initial is not None:
        given = given_factor_initial(initial, space.features)
        start = checked_distribution(given_initial(space, given), "the initial distribution", space.state)
    return Rules(
        saturated=transitions == "saturated",
        parents=parents,
        known=_known(known, space, actions, variables),
        terminal=flags,
        initial=start,
        ends=ends,
    )


def _parents(given: Mapping[Any, Any], variables: Variables) -> dict[int, tuple[int, ...]]:
    names = variables.features.names
    found: dict[int, tuple[int, ...]] = {}
    for name, listed in given.items():
        if name not in names:
            problem = f"there is no feature {name!r}{did_you_mean(name, names)}"
            raise ParameterError("transitions", list(given), "one entry per feature", problem)
        if not isinstance(listed, Iterable):
            raise ParameterError("transitions", listed, "a list of features for each feature")
        wanted = [listed] if isinstance(listed, str) else list(cast("Iterable[Any]", listed))
        found[names.index(name)] = (
            *(_variable(one, name, variables) for one in wanted),
            variables.action,
        )
    absent = [name for name in names if name not in given]
    if absent:
        problem = f"the feature {absent[0]!r} has no list of what its next value depends on"
        raise ParameterError("transitions", list(given), "one entry per feature", problem)
    return found


def _variable(one: Any, feature: Any, variables: Variables) -> int:
    names = variables.features.names
    if one in names:
        return names.index(one)
    if isinstance(one, str) and one.startswith(_NEXT) and one.removeprefix(_NEXT) in names:
        return variables.next(names.index(one.removeprefix(_NEXT)))
    problem = (
        f"the next value of {feature!r} cannot depend on {one!r}: give features, such as {names[0]!r}, or features of "
        f"the same next state that come before it in order, such as '{_NEXT}{names[0]}'"
    )
    raise ParameterError("transitions", one, "a feature", problem)


def order_of(rules: Rules, variables: Variables) -> list[int]:
    """Return the features in an order in which each comes after the next values that it depends on."""
    features = list(range(len(variables.features)))
    if rules.parents is None:
        return features
    order: list[int] = []
    while len(order) < len(features):
        free = [
            i
            for i in features
            if i not in order
            and all(v <= variables.action or variables.feature(v) in order for v in rules.parents[i])
        ]
        if not free:
            left = [variables.features.names[i] for i in features if i not in order]
            problem = f"the next values of {', '.join(left)} depend on each other in a circle"
            raise ParameterError("transitions", left, "no circle", problem)
        order.append(free[0])
    return order


def _known(
    given: Mapping[str, Callable[[Any, Any], Any]] | None,
    space: StateSpace,
    actions: tuple[Any, ...],
    variables: Variables,
) -> dict[int, Known]:
    if given is None:
        return {}
    expected = "{feature: function of state and action}"
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError("known", given, expected)
    found: dict[int, Known] = {}
    for name, function in given.items():
        if name not in space.features.names or not callable(function):
            problem = (
                f"there is no feature {name!r}{did_you_mean(name, space.features.names)}"
                if name not in space.features.names
                else f"what is known of {name!r} must be a function of state and action"
            )
            raise ParameterError("known", name, expected, problem)
        feature = space.features.position(name)
        found[feature] = _evaluated(function, feature, space, actions, variables)
    return found


def _evaluated(
    function: Callable[[Any, Any], Any],
    feature: int,
    space: StateSpace,
    actions: tuple[Any, ...],
    variables: Variables,
) -> Known:
    name, values = space.features.names[feature], space.features.values[feature]
    codes = {value: code for code, value in enumerate(values)}
    row = np.full((len(space), len(actions)), -1, dtype=np.int64)
    rows: dict[bytes, int] = {}
    tables: list[NDArray[np.float64]] = []
    for s, state in enumerate(space.states):
        for a, action in enumerate(actions):
            said = call(function, f"what is known of {name!r}", state, action)
            if said is None:
                continue
            where = f"what is known of {name!r} after {tuple(state)!r} and {action!r}"
            array = np.zeros(variables.size(feature))
            pairs = probability_pairs(said, where, "value") if _is_distribution(said) else [(said, 1.0)]
            for value, weight in pairs:
                if value not in codes:
                    raise DataError(f"{where}: it cannot be {value!r}; its values are {preview(values)}")
                array[codes[value]] += weight
            array = checked_distribution(array, where, lambda code: values[code])
            key = array.tobytes()
            if key not in rows:
                rows[key] = len(tables)
                tables.append(array)
            row[s, a] = rows[key]
    width = variables.size(feature)
    return Known(row, np.array(tables, dtype=np.float64).reshape(len(tables), width))


def _is_distribution(said: Any) -> bool:
    return isinstance(said, Mapping | list)

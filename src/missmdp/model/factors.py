"""Dynamics by factors: for each feature, the distribution of its next value given some features and the action.

Given the state and the action, the next values of all features are independent. So T needs one small table per feature
instead of one number per pair of states, and what follows from it is worked out feature by feature: expectations,
beliefs and reachable states of a million states take fractions of a second. Matrices are multiplied out only where
somebody asks for them.

States are all combinations of values, the last feature changing fastest, so an array over states is also a tensor
with one axis per feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from missmdp.errors import ModelError, ParameterError
from missmdp.model.given import probability_pairs, truth
from missmdp.model.probabilities import as_floats, call, checked_distribution, checked_table, number
from missmdp.model.space import FeatureSpace
from missmdp.words import did_you_mean, preview, shown

Table = Callable[..., Any] | Sequence[Any] | NDArray[Any]
"""A function of the parents' values and the action, or an array with one axis for each."""


_FEW_FOLLOWED = 2_000_000.0
"""Ways to a next state up to which states that were just reached are followed one by one."""


class Scope(NamedTuple):
    """Something that depends on a few features only."""

    parents: tuple[int, ...]
    """Positions of the features, in the order of the axes."""
    table: NDArray[np.float64]
    """One axis per parent, then those of what depends on them."""

    def over_states(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Return the table with one axis for every feature, of length 1 where it does not matter."""
        n = len(self.parents)
        order = np.argsort(self.parents)
        table = self.table.transpose([*order, *range(n, self.table.ndim)])
        shape = [size if i in self.parents else 1 for i, size in enumerate(sizes)]
        return table.reshape([*shape, *self.table.shape[n:]])


class _Listed(NamedTuple):
    """The entries of a feature's table for one action that are not 0, with parents folded into one axis."""

    begins: NDArray[np.int64]
    """Where the entries of each row begin, and where the last ones end."""
    value: NDArray[np.int64]
    """The next value."""
    probability: NDArray[np.float64]


def parents_of(given: Any, what: str, features: FeatureSpace) -> tuple[tuple[int, ...], Any]:
    """Return the positions of the parents and the table from a pair (names of features, table)."""
    pair = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else ()
    if len(pair) != 2:
        expected = "a pair (names of the features that it depends on, function or array)"
        raise ModelError(f"{what}: expected {expected}, got {shown(cast('object', given))}")
    names, table = pair
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Iterable) or not all(
        isinstance(name, str) for name in cast("Iterable[Any]", listed)
    ):
        raise ModelError(f"{what}: expected names of features, got {shown(names)}")
    listed = list(cast("Iterable[str]", listed))
    for name in listed:
        if name not in features.names:
            known = f"the features are {', '.join(features.names)}{did_you_mean(name, features.names)}"
            raise ModelError(f"{what}: there is no feature {name!r}; {known}")
    parents = tuple(map(features.position, listed))
    if len(set(parents)) < len(parents):
        raise ModelError(f"{what}: a feature is named twice in {shown(names)}")
    return parents, table


def evaluated(
    table: Any, parents: tuple[int, ...], features: FeatureSpace, actions: Sequence[Any], what: str
) -> NDArray[np.float64]:
    """Return numbers that depend on parents and the action, shape (*sizes of the parents, A)."""
    shape = (*(len(features.values[p]) for p in parents), len(actions))
    if not callable(table):
        return _checked_array(table, shape, what)
    cells = [
        number(call(table, what, *arguments), "{}{}", what, arguments)
        for arguments in product(*(features.values[p] for p in parents), actions)
    ]
    return np.array(cells, dtype=np.float64).reshape(shape)


def _checked_array(table: Any, shape: tuple[int, ...], what: str) -> NDArray[np.float64]:
    array = as_floats(table, what)
    if array.shape != shape:
        raise ModelError(
            f"{what}: its array has shape {array.shape}, expected {shape}: one axis per feature that it depends on, "
            "then the actions, then the next values of the feature, if it has any"
        )
    return array


def _distributions(
    table: Any, parents: tuple[int, ...], feature: int, features: FeatureSpace, actions: Sequence[Any]
) -> NDArray[np.float64]:
    """Return the distribution of a feature's next value, shape (*sizes of the parents, A, values)."""
    name, values = features.names[feature], features.values[feature]
    what = f"the transitions of {name!r}"
    shape = (*(len(features.values[p]) for p in parents), len(actions), len(values))
    if callable(table):
        rows = [
            _one_distribution(call(table, what, *arguments), values, f"{what} after {arguments!r}")
            for arguments in product(*(features.values[p] for p in parents), actions)
        ]
        return np.array(rows).reshape(shape)
    array = _checked_array(table, shape, what).reshape(-1, len(values))

    def where(row: int) -> str:
        place = np.unravel_index(row, shape[:-1])
        given = [features.values[p][int(code)] for p, code in zip(parents, place[:-1], strict=True)]
        return f"{what} after {(*given, actions[int(place[-1])])!r}"

    return checked_table(array, where).reshape(shape)


def sum_of_parts(reward: Any, features: FeatureSpace, actions: Sequence[Any]) -> NDArray[np.float64]:
    """Return rewards that are added up from parts, shape (S, A)."""
    sizes = tuple(map(int, features.sizes))
    total = np.zeros((*sizes, len(actions)))
    parts: list[Any]
    match reward:
        case Mapping():
            parts = list(cast("Mapping[Any, Any]", reward).items())
        case list():
            parts = cast("list[Any]", reward)
        case tuple():
            parts = [reward]
        case bool() | int() | float() | np.number():
            return np.full((math.prod(sizes), len(actions)), number(reward, "reward"))
        case _:
            kind = "a function" if callable(reward) else f"{type(reward).__name__}"
            raise ParameterError(
                "reward",
                reward,
                "a list of pairs (features, table), a mapping from features to tables, or a number",
                "expected a list of pairs (features, function or array), a mapping from features to these, or one "
                f"number; got {kind}. A reward for whole states is one pair that names all features",
            )
    for k, part in enumerate(parts):
        what = f"part {k + 1} of the reward"
        parents, table = parents_of(part, what, features)
        total += Scope(parents, evaluated(table, parents, features, actions, what)).over_states(sizes)
    return total.reshape(-1, len(actions))


def given_factor_initial(initial: Any, features: FeatureSpace) -> Any:
    """Return b₀ as an array if it is given feature by feature, shape (S,), and as it is otherwise."""
    if not isinstance(initial, Mapping):
        return initial
    named = cast("Mapping[Any, Any]", initial)
    unknown = [name for name in named if isinstance(name, str) and name not in features.names]
    if unknown:
        problem = f"there is no feature {unknown[0]!r}{did_you_mean(unknown[0], features.names)}"
        raise ParameterError("initial", list(named), "one entry per feature", problem)
    if not all(name in features.names for name in named):
        return named
    absent = [name for name in features.names if name not in named]
    if absent:
        problem = f"the feature {absent[0]!r} has no first value"
        raise ParameterError("initial", list(named), "one entry per feature", problem)
    belief = np.ones(1)
    for name, values in features.as_dict().items():
        given = named[name] if isinstance(named[name], Mapping) else {named[name]: 1.0}
        what = f"the initial distribution of {name!r}"
        belief = np.multiply.outer(belief, _one_distribution(given, values, what)).ravel()
    return belief


def _one_distribution(given: Any, values: Sequence[Any], what: str) -> NDArray[np.float64]:
    codes = {value: code for code, value in enumerate(values)}
    array = np.zeros(len(values))
    for value, weight in probability_pairs(given, what, "value"):
        if value not in codes:
            raise ModelError(f"{what}: it cannot be {value!r}; its values are {preview(values)}")
        array[codes[value]] += weight
    return checked_distribution(array, what, lambda code: values[code])


def given_factor_terminal(terminal: Any, features: FeatureSpace) -> Any:
    """Return which states are terminal as an array if that is given by some features, and as it is otherwise."""
    pair = cast("tuple[Any, ...]", terminal) if isinstance(terminal, tuple) else ()
    if len(pair) != 2 or not callable(pair[1]):
        return cast("Any", terminal)
    parents, function = parents_of(pair, "terminal", features)
    shape = tuple(len(features.values[p]) for p in parents)
    flags = [
        truth(call(function, "terminal", *arguments), arguments)
        for arguments in product(*(features.values[p] for p in parents))
    ]
    sizes = tuple(map(int, features.sizes))
    over_states = Scope(parents, np.array(flags, dtype=np.float64).reshape(shape)).over_states(sizes)
    return np.broadcast_to(over_states, sizes).reshape(-1) > 0.0


class Factors:
    """T as one table per feature.

    Parameters
    ----------
    features
        The features; states are all combinations of their values.
    actions
        The names of the actions.
    transitions
        Feature → (the features that its next value depends on, table). A table is a function of their values and the
        action that returns {value: probability}, or an array of shape (*sizes of those features, A, values).

    Attributes
    ----------
    scopes : tuple of Scope
        For each feature, in order, its parents and the table, shape (*sizes, A, values).
    """

    def __init__(
        self, features: FeatureSpace, actions: Sequence[Any], transitions: Mapping[str, Any]
    ) -> None:
        if not isinstance(transitions, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            expected = "{feature: (the features that its next value depends on, table)}"
            problem = f"expected {expected}, got {type(transitions).__name__}"
            raise ParameterError("transitions", transitions, expected, problem)
        unknown = [name for name in transitions if name not in features.names]
        absent = [name for name in features.names if name not in transitions]
        if unknown or absent:
            problem = (
                f"there is no feature {unknown[0]!r}{did_you_mean(unknown[0], features.names)}"
                if unknown
                else f"the feature {absent[0]!r} has no transitions"
            )
            raise ParameterError("transitions", list(transitions), "one entry per feature", problem)
        self.features = features
        self.n_actions = len(actions)
        self.scopes = tuple(
            self._scope(i, transitions[name], actions) for i, name in enumerate(features.names)
        )

    def _scope(self, feature: int, given: Any, actions: Sequence[Any]) -> Scope:
        what = f"the transitions of {self.features.names[feature]!r}"
        parents, table = parents_of(given, what, self.features)
        return Scope(parents, _distributions(table, parents, feature, self.features, actions))

    def same_as(self, other: Factors) -> bool:
        """Return whether other factors have the same parents and the same tables."""
        return self.features == other.features and all(
            mine.parents == theirs.parents and np.array_equal(mine.table, theirs.table)
            for mine, theirs in zip(self.scopes, other.scopes, strict=True)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each feature."""
        return tuple(map(int, self.features.sizes))

    @property
    def n_states(self) -> int:
        """|S|, all combinations of values."""
        return math.prod(self.sizes)

    def count_entries(self) -> int:
        """Return how many entries the matrices of all actions have that are not 0."""
        total = 0
        for a in range(self.n_actions):
            counts = np.ones(self.sizes)
            for scope in self.scopes:
                support = (scope.table[..., a, :] > 0.0).sum(axis=-1).astype(np.float64)
                counts *= Scope(scope.parents, support).over_states(self.sizes)
            total += int(counts.sum())
        return total

    def matrix(self, action: int) -> sparse.csr_array:
        """Return T for one action, multiplied out, shape (S, S); columns are in order."""
        n_states = self.n_states
        row, column, weight = self._entries(np.arange(n_states), self._listed(action))
        pointers = np.searchsorted(row, np.arange(n_states + 1))
        return sparse.csr_array((weight, column, pointers), shape=(n_states, n_states))

    def _listed(self, action: int) -> list[_Listed]:
        """Return the entries of each feature's table for one action."""
        listed: list[_Listed] = []
        for scope, size in zip(self.scopes, self.sizes, strict=True):
            table = scope.table[..., action, :].reshape(-1, size)
            place, value = np.nonzero(table)
            begins = np.searchsorted(place, np.arange(len(table) + 1))
            listed.append(_Listed(begins, value, table[place, value]))
        return listed

    def _entries(
        self, states: NDArray[np.int64], listed: Sequence[_Listed]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return where some states lead, each as its place in the list, the next state, and the probability."""
        row = np.arange(len(states))
        column, weight = np.zeros(len(states), dtype=np.int64), np.ones(len(states))
        codes = np.unravel_index(states, self.sizes)
        for scope, size, (begins, value, probability) in zip(self.scopes, self.sizes, listed, strict=True):
            now = _places(scope, codes)[row]
            count = np.diff(begins)[now]
            first = np.cumsum(count) - count
            entry = np.repeat(begins[now] - first, count) + np.arange(int(count.sum()))
            column = np.repeat(column, count) * size + value[entry]
            weight = np.repeat(weight, count) * probability[entry]
            row = np.repeat(row, count)
        return row, column, weight

    def _count_entries(self, states: NDArray[np.int64], listed: Sequence[_Listed]) -> float:
        """Return how many entries some states have."""
        codes = np.unravel_index(states, self.sizes)
        counts = np.ones(len(states))
        for scope, (begins, _, _) in zip(self.scopes, listed, strict=True):
            counts *= np.diff(begins)[_places(scope, codes)]
        return float(counts.sum())

    def expect(self, values: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return E[values(s′) | s, a] for every state s, shape (S,)."""
        n = len(self.sizes)
        axes = tuple(range(n, 2 * n))
        tensor = values.reshape(self.sizes)
        left = dict(enumerate(self.scopes))
        while left:
            # The one whose product is smallest comes first.
            growth = {i: self._volume(set(scope.parents) - set(axes)) for i, scope in left.items()}
            i = min(growth, key=growth.__getitem__)
            scope = left.pop(i)
            tensor, axes = contracted(
                tensor, axes, scope.table[..., action, :], (*scope.parents, n + i), {n + i}
            )
        return self._in_order(tensor, axes, 0)

    def spread(self, weights: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        """Return Σ_s weights(s) T(s′ | s, a) for every state s′, shape (S,)."""
        return self._spread(weights, [scope.table[..., action, :] for scope in self.scopes])

    def _spread(
        self, weights: NDArray[np.float64], tables: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        n = len(self.sizes)
        axes = tuple(range(n))
        tensor = weights.reshape(self.sizes)
        left = set(range(n))
        while left:
            # The one after which least is left comes first.
            growth = {i: self.sizes[i] / self._volume(self._gone(left - {i}) & set(axes)) for i in left}
            i = min(growth, key=growth.__getitem__)
            left.remove(i)
            scope = (*self.scopes[i].parents, n + i)
            tensor, axes = contracted(tensor, axes, tables[i], scope, self._gone(left))
        return self._in_order(tensor, axes, n)

    def _gone(self, left: set[int]) -> set[int]:
        """Return the features, as they are now, that nothing depends on of what is left to do."""
        needed = {p for i in left for p in self.scopes[i].parents}
        return set(range(len(self.sizes))) - needed

    def _size(self, axis: int) -> int:
        return self.sizes[axis % len(self.sizes)]

    def _volume(self, axes: Iterable[int]) -> int:
        return math.prod(map(self._size, axes))

    def _in_order(
        self, tensor: NDArray[np.float64], axes: tuple[int, ...], first: int
    ) -> NDArray[np.float64]:
        """Return a tensor over some of the axes first, first + 1, … as an array over states."""
        wanted = range(first, first + len(self.sizes))
        there = [axis for axis in wanted if axis in axes]
        tensor = tensor.transpose([axes.index(axis) for axis in there])
        shape = [self._size(axis) if axis in axes else 1 for axis in wanted]
        return np.ascontiguousarray(np.broadcast_to(tensor.reshape(shape), self.sizes)).reshape(-1)

    def reach(self, start: NDArray[np.bool_], terminal: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which states can be reached from some states, themselves included, shape (S,)."""
        supports = [
            [(scope.table[..., a, :] > 0.0).astype(np.float64) for scope in self.scopes]
            for a in range(self.n_actions)
        ]
        listed = [self._listed(a) for a in range(self.n_actions)]
        reached, found = start.copy(), np.flatnonzero(start)
        n_reached = len(found)
        # For each action, the states that it has not been tried in, in pieces as they were found.
        waiting = [[found[~terminal[found]]] for _ in range(self.n_actions)]
        action, tried = 0, 0
        # Each action is repeated while it leads on; it is over when none does, or when nothing is left to reach.
        while tried < self.n_actions and n_reached < len(reached):
            states = np.concatenate(waiting[action])
            waiting[action] = []
            found = self._found(states, listed[action], supports[action], reached, terminal)
            reached[found] = True
            n_reached += len(found)
            for pieces in waiting:
                pieces.append(found[~terminal[found]])
            if len(found):
                tried = 0
            else:
                tried, action = tried + 1, (action + 1) % self.n_actions
        return reached

    def _found(
        self,
        states: NDArray[np.int64],
        listed: Sequence[_Listed],
        supports: Sequence[NDArray[np.float64]],
        reached: NDArray[np.bool_],
        terminal: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Return the states to which an action leads from some states, as far as none of them is reached yet."""
        if len(states) == 0:
            return states
        # Few states are followed one by one; from many, all that was reached is spread at once.
        few = min(_FEW_FOLLOWED, float(len(reached)) * sum(self.sizes) / 8.0)
        if len(states) <= few and self._count_entries(states, listed) <= few:
            after = np.unique(self._entries(states, listed)[1])
            return after[~reached[after]]
        weights = (reached & ~terminal).astype(np.float64)
        return np.flatnonzero((self._spread(weights, supports) > 0.0) & ~reached)


def _places(scope: Scope, codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the row of a scope's table, with parents folded into one axis, for each state of which these are codes."""
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for parent, length in zip(scope.parents, scope.table.shape, strict=False):
        place = place * length + codes[parent]
    return place


def contracted(
    tensor: NDArray[np.float64],
    axes: tuple[int, ...],
    table: NDArray[np.float64],
    scope: tuple[int, ...],
    gone: set[int],
) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Return the product of a tensor and a table, by the names of their axes, summed over those that are gone."""
    unshared = [k for k, axis in enumerate(scope) if axis in gone and axis not in axes]
    if unshared:
        table = table.sum(axis=tuple(unshared))
        scope = tuple(axis for axis in scope if axis not in gone or axis in axes)
    alone = [k for k, axis in enumerate(axes) if axis in gone and axis not in scope]
    if alone:
        tensor = tensor.sum(axis=tuple(alone))
        axes = tuple(axis for axis in axes if axis not in gone or axis in scope)
    both = [axis for axis in axes if axis in scope and axis not in gone]
    summed = [axis for axis in axes if axis in scope and axis in gone]
    ours = [axis for axis in axes if axis not in scope]
    theirs = [axis for axis in scope if axis not in axes]

    def folded(array: NDArray[Any], names: tuple[int, ...], *groups: list[int]) -> NDArray[Any]:
        lengths = dict(zip(names, array.shape, strict=True))
        order = [names.index(axis) for group in groups for axis in group]
        return array.transpose(order).reshape(
            [math.prod(lengths[axis] for axis in group) for group in groups]
        )

    lengths = dict(zip(axes, tensor.shape, strict=True)) | dict(zip(scope, table.shape, strict=True))
    if summed and tensor.flags.c_contiguous:
        first, last = axes.index(summed[0]), axes.index(summed[-1]) + 1
        if axes[first:last] == tuple(summed) and all(axes.index(axis) < first for axis in both):
            # What is summed over stands side by side, after what is kept: nothing needs to be moved.
            names = (*axes[:first], *theirs, *axes[last:])
            out = _side_by_side(
                tensor.reshape([*tensor.shape[:first], math.prod(tensor.shape[first:last]), -1]),
                folded(table, scope, *([axis] for axis in both), theirs, summed),
                [axes.index(axis) for axis in both],
            )
            return out.reshape([lengths[axis] for axis in names]), names
    left, right = folded(tensor, axes, both, ours, summed), folded(table, scope, both, summed, theirs)
    names = (*both, *ours, *theirs)
    return (left @ right).reshape([lengths[axis] for axis in names]), names


def _side_by_side(
    tensor: NDArray[np.float64], table: NDArray[np.float64], both: list[int]
) -> NDArray[np.float64]:
    """Return Σ_y table(both, z, y) tensor(before, y, after), shape (before, z, after); `both` are axes before."""
    *before, _, after = tensor.shape
    shape = [1] * len(before)
    for axis, length in zip(both, table.shape, strict=False):
        shape[axis] = length
    table = table.reshape(*shape, *table.shape[-2:])
    if after > 1:
        return np.matmul(table, tensor)
    # Rows of matrices are a run of axes that the table does not have: the one with the most indices.
    ends = [-1, *both, len(before)]
    runs = [slice(one + 1, two) for one, two in pairwise(ends)]
    run = max(runs, key=lambda run: math.prod(before[run]))
    place, merged = run.start, [*before[: run.start], math.prod(before[run]), *before[run.stop :]]
    out = np.empty((*merged, table.shape[-2]))
    shape = [*shape[: run.start], *shape[run.stop :]]
    np.matmul(
        np.moveaxis(tensor.reshape(*merged, -1), place, -2),
        table.reshape(*shape, *table.shape[-2:]).swapaxes(-1, -2),
        out=np.moveaxis(out, place, -2),
    )
    return out

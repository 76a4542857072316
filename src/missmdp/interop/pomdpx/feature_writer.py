"""Write a miss-MDP to a `.pomdpx` file feature by feature: the file is as large as its tables, not their product.

Every feature is a state variable, fully observed if it is never missing. Features that go missing together share one
observation variable. In terminal states, every feature keeps its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.interop.incoming import MAX_CELLS
from missmdp.interop.outgoing import MISSING_NAME, WrittenNames, is_name, number_text, plain_words
from missmdp.interop.pomdpx.lines import Row, entry, table_lines, value_lines
from missmdp.interop.pomdpx.sums import sum_of_functions
from missmdp.model.factors import Scope
from missmdp.model.missing_factors import MissingFactor
from missmdp.model.missmdp import MissMDP

_ACTION, _REWARD = "action", "reward"

_ROUNDING = 1e-13
"""Relative error up to which the initial distribution is written as a product."""


def why_not_by_features(model: MissMDP) -> str | None:
    """Return why a model cannot be written feature by feature; None if it can."""
    if not model.space.is_product:
        return "its states are not all combinations of the features' values"
    if model.mdp.factors is None:
        return "the next values of its features depend on each other given the state and the action"
    if model.missingness.factors is None:
        return "its missingness function has no factors"
    cells = count_cells(model)
    if cells > MAX_CELLS:
        return f"its tables have {cells:.2g} numbers, and what is read has at most {MAX_CELLS:,}"
    return None


def count_cells(model: MissMDP) -> float:
    """Return how many numbers the tables of dynamics and missingness have."""
    factors, gaps = model.mdp.factors, model.missingness.factors
    assert factors is not None
    assert gaps is not None
    sizes = factors.sizes
    ends = _matters(model.mdp.terminal.reshape(sizes))
    cells = 0.0
    for feature, scope in enumerate(factors.scopes):
        parents = {*scope.parents, feature, *ends} if ends else {*scope.parents}
        cells += float(model.n_actions) * math.prod(float(sizes[p]) for p in (*parents, feature))
    for factor in gaps:
        parents = {*factor.parents, *factor.features}
        own = np.array([sizes[i] for i in factor.features], dtype=np.float64)
        # What can be seen: with each pattern, the values that are not missing.
        kinds = float(np.where(factor.patterns, own, 1.0).prod(axis=1).sum())
        cells += kinds * math.prod(float(sizes[p]) for p in parents)
    return cells


class _Feature(NamedTuple):
    """A state variable and its names in the file."""

    previous: str
    current: str
    names: WrittenNames
    observed: bool


class _Signal(NamedTuple):
    """An observation variable: it shows the features of one factor of M."""

    name: str
    names: WrittenNames
    parents: tuple[int, ...]
    table: NDArray[np.float64]
    """P(value | values of the parents), shape (*sizes, values)."""


class FeatureWriter:
    """One model on its way to a file."""

    def __init__(self, model: MissMDP) -> None:
        factors, gaps = model.mdp.factors, model.missingness.factors
        assert factors is not None
        assert gaps is not None
        self.model = model
        self.sizes = factors.sizes
        self._terminal = model.mdp.terminal.reshape(self.sizes)
        self._ends = _matters(self._terminal)
        self._scopes = factors.scopes
        self.actions = WrittenNames(model.actions, "a", numbers_as_words=True)
        self._taken = {_ACTION}
        hidden = {feature for factor in gaps for feature in factor.features}
        self.features = [
            self._feature(name, values, observed=i not in hidden)
            for i, (name, values) in enumerate(model.features.items())
        ]
        self.signals = [self._signal(factor) for factor in gaps]
        self.rewards = sum_of_functions(model.mdp.reward, self.sizes)
        self._check_cells()

    def _feature(self, name: str, values: Sequence[object], *, observed: bool) -> _Feature:
        base = self._free(name)
        # A value called "missing" would be read as a gap.
        called_missing = {str(value) for value in values if str(value).lower() == MISSING_NAME}
        names = WrittenNames(values, "s", {MISSING_NAME, *called_missing}, numbers_as_words=True)
        return _Feature(f"{base}_0", f"{base}_1", names, observed)

    def _free(self, label: str) -> str:
        """Return a name for a variable that no other one has."""
        base = plain_words(label)[:60].rstrip("_") or "v"
        base = base if is_name(base) else f"state_{base}"
        name, suffix = base, 2
        while {name, f"{name}_0", f"{name}_1"} & self._taken:
            name, suffix = f"{base}_{suffix}", suffix + 1
        self._taken |= {name, f"{name}_0", f"{name}_1"}
        return name

    def _signal(self, factor: MissingFactor) -> _Signal:
        own = sorted(factor.features)
        patterns = factor.patterns[:, [factor.features.index(i) for i in own]]
        parents = tuple(sorted({*factor.parents, *own}))
        shape = [self.sizes[p] for p in parents]
        codes = np.indices(shape).reshape(len(parents), -1).T
        table = self._at(Scope(factor.parents, factor.table), parents, (len(patterns),))
        last = max(self.sizes)  # stands for missing
        seen = np.where(patterns[None], codes[:, None, [parents.index(i) for i in own]], last)
        kinds, place = np.unique(seen.reshape(-1, len(own)), axis=0, return_inverse=True)
        whole = np.zeros((len(codes), len(kinds)))
        rows = np.arange(len(codes))[:, None]
        np.add.at(whole, (rows, place.reshape(len(codes), -1)), table.reshape(len(codes), -1))
        words = [[*self._shown_as(i, between=len(own) > 1), MISSING_NAME] for i in own]
        listed: list[list[int]] = kinds.tolist()
        labels = [
            "-".join(w[min(c, len(w) - 1)] for c, w in zip(kind, words, strict=True)) for kind in listed
        ]
        name = self._free("_".join(self.model.space.features.names[i] for i in own) + "_seen")
        return _Signal(name, WrittenNames(labels, "o"), parents, whole.reshape(*shape, -1))

    def _shown_as(self, feature: int, *, between: bool) -> list[str]:
        """Return the names of values in an observation, without hyphens if hyphens separate several values there."""
        names = self.features[feature].names.names
        if not between:
            return names
        return WrittenNames([name.replace("-", "_") for name in names], "s", {MISSING_NAME}).names

    def _check_cells(self) -> None:
        cells = sum(scope.table.size for scope in self.rewards)
        if cells > MAX_CELLS:
            raise ModelError(
                f"the file would hold {cells:,} rewards, and what is read has at most {MAX_CELLS:,}: they are no sum "
                "of functions of few features; save the model as an .mmdp file instead"
            )

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file after the discount."""
        yield "<Variable>"
        for feature in self.features:
            observed = "true" if feature.observed else "false"
            yield f'<StateVar vnamePrev="{feature.previous}" vnameCurr="{feature.current}" fullyObs="{observed}">'
            yield from value_lines(feature.names)
            yield "</StateVar>"
        for signal in self.signals:
            yield f'<ObsVar vname="{signal.name}">'
            yield from value_lines(signal.names)
            yield "</ObsVar>"
        yield f'<ActionVar vname="{_ACTION}">'
        yield from value_lines(self.actions)
        yield "</ActionVar>"
        rewards = [self._free(f"{_REWARD}_{k + 1}") for k in range(max(len(self.rewards), 1))]
        yield from (f'<RewardVar vname="{name}"/>' for name in rewards)
        yield "</Variable>"
        yield "<InitialStateBelief>"
        yield from self._initial()
        yield "</InitialStateBelief>"
        yield "<StateTransitionFunction>"
        for i in range(len(self.features)):
            yield from self._moves(i)
        yield "</StateTransitionFunction>"
        if self.signals:
            yield "<ObsFunction>"
            for signal in self.signals:
                yield from self._sights(signal)
            yield "</ObsFunction>"
        yield "<RewardFunction>"
        for name, scope in zip(
            rewards, self.rewards or [Scope((), np.zeros(len(self.actions)))], strict=True
        ):
            yield from self._reward(name, scope)
        yield "</RewardFunction>"

    def _initial(self) -> Iterator[str]:
        belief = self.model.mdp.initial.reshape(self.sizes)
        axes = range(belief.ndim)
        singles = [belief.sum(axis=tuple(k for k in axes if k != axis)) for axis in axes]
        # Otherwise the rounding error of the sum would be in every factor, and grow with every reading and writing.
        singles = [own / own.sum() for own in singles]
        product = np.ones(1)
        for own in singles:
            product = np.multiply.outer(product, own).ravel()
        if bool((np.abs(product - belief.ravel()) <= _ROUNDING * belief.ravel()).all()):
            for feature, own in zip(self.features, singles, strict=True):
                yield from table_lines(feature.previous, (), feature.names, [_row((), own)], ())
            return
        yield from self._chain(belief)

    def _chain(self, belief: NDArray[np.float64]) -> Iterator[str]:
        """Yield the tables of each feature's initial value given those of the features before it."""
        states = np.argwhere(belief > 0.0)
        weights = belief[belief > 0.0]
        for i, feature in enumerate(self.features):
            given, row = (
                np.unique(states[:, :i], axis=0, return_inverse=True)
                if i
                else (states[:1, :0], 0 * states[:, 0])
            )
            table = np.zeros((len(given), self.sizes[i]))
            np.add.at(table, (row.reshape(-1), states[:, i]), weights)
            table /= table.sum(axis=1, keepdims=True)
            # A parent with only one possible value tells nothing, and would make the table as large as all states.
            parents = [k for k in range(i) if len(np.unique(states[:, k])) > 1]
            sizes = [self.sizes[k] for k in parents]
            if math.prod(sizes) * self.sizes[i] > MAX_CELLS:
                raise ModelError(
                    "initial values depend on each other, and too many combinations of them are possible for a file; "
                    "save the model as an .mmdp file instead"
                )
            found = {tuple(one): k for k, one in enumerate(given[:, parents].tolist())}
            harmless = np.eye(1, self.sizes[i])[0]
            # Here APPL adds up entries that cover each other, so harmless rows are written one by one.
            rows = [
                _row(self._words(parents, place), table[found[place]] if place in found else harmless)
                for place in np.ndindex(*sizes)
            ]
            names = tuple(self.features[p].previous for p in parents)
            yield from table_lines(feature.previous, names, feature.names, rows, sizes)

    def _moves(self, feature: int) -> Iterator[str]:
        scope = self._scopes[feature]
        parents = tuple(sorted({*scope.parents, feature, *self._ends})) if self._ends else scope.parents
        sizes = [self.sizes[p] for p in parents]
        table = self._at(Scope(scope.parents, scope.table), parents, (len(self.actions), self.sizes[feature]))
        if self._ends:
            ended = self._terminal[
                tuple(slice(None) if i in self._ends else 0 for i in range(len(self.sizes)))
            ]
            over = self._at(Scope(tuple(sorted(self._ends)), ended.astype(np.float64)), parents, ()) > 0.0
            own = np.indices(sizes)[parents.index(feature)]
            kept = np.eye(self.sizes[feature])[own]
            table = np.where(over[..., None, None], kept[..., None, :], table)
        rows = (
            _row((*self._words(parents, place), self.actions[a]), table[(*place, a)])
            for place in np.ndindex(*sizes)
            for a in range(len(self.actions))
        )
        own_names = self.features[feature]
        names = (*(self.features[p].previous for p in parents), _ACTION)
        yield from table_lines(own_names.current, names, own_names.names, rows, (*sizes, len(self.actions)))

    def _at(self, scope: Scope, parents: Sequence[int], more: tuple[int, ...]) -> NDArray[np.float64]:
        """Return a table extended to more features than it depends on."""
        over = scope.over_states(self.sizes)
        whole = np.broadcast_to(over, (*self.sizes, *more))
        return whole[tuple(slice(None) if i in parents else 0 for i in range(len(self.sizes)))].transpose(
            [*np.argsort(np.argsort(parents)), *range(len(parents), len(parents) + len(more))]
        )

    def _sights(self, signal: _Signal) -> Iterator[str]:
        sizes = signal.table.shape[:-1]
        rows = (_row(self._words(signal.parents, place), signal.table[place]) for place in np.ndindex(*sizes))
        names = tuple(self.features[p].current for p in signal.parents)
        yield from table_lines(signal.name, names, signal.names, rows, sizes)

    def _reward(self, name: str, scope: Scope) -> Iterator[str]:
        yield "<Func>"
        yield f"<Var>{name}</Var>"
        yield f"<Parent>{' '.join((*(self.features[p].previous for p in scope.parents), _ACTION))}</Parent>"
        yield '<Parameter type="TBL">'
        # Some readers want at least one entry, also where all rewards are zero.
        yield entry(("*",) * (1 + len(scope.parents)), "0.0", "ValueTable")
        for place in np.argwhere(scope.table != 0.0).tolist():
            words = (*self._words(scope.parents, place[:-1]), self.actions[place[-1]])
            yield entry(words, number_text(scope.table[tuple(place)]), "ValueTable")
        yield "</Parameter>"
        yield "</Func>"

    def _words(self, parents: Sequence[int], place: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.features[p].names[c] for p, c in zip(parents, place, strict=True))


def _row(words: tuple[str, ...], row: NDArray[np.float64]) -> Row:
    there = np.flatnonzero(row)
    return words, there, row[there]


def _matters(flags: NDArray[np.bool_]) -> set[int]:
    """Return the axes along which flags differ."""
    return {k for k in range(flags.ndim) if (flags != flags.take([0], axis=k)).any()}

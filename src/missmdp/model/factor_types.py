"""What a large missingness function depends on, from its factors: the same questions as in `types`, without a table.

Probabilities of patterns are products over factors, so each question is one about single factors, or about those that
share a feature. States that count are taken to be all combinations of the values that reachable states have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import ModelError
from missmdp.model.factors import Scope
from missmdp.model.missing_factors import MissingFactor
from missmdp.model.missingness import MissingnessFunction

_MOST_CELLS = 20_000_000
"""Numbers that factors which share a feature may make together."""


class FactorView:
    """The factors of M over the values that count.

    Parameters
    ----------
    missingness
        The missingness function, over all combinations of values.
    reachable
        Which states count, shape (S,); None for all.
    tolerance
        Probabilities that differ by no more count as equal.
    """

    def __init__(
        self, missingness: MissingnessFunction, reachable: NDArray[np.bool_] | None, tolerance: float
    ) -> None:
        factors = missingness.factors
        if factors is None:
            raise ModelError(
                f"what missingness depends on cannot be found out: there are too many patterns to compare all of them "
                f"across {len(missingness.space):,} states, and the states are not all combinations of values"
            )
        self._space = missingness.space
        self._tolerance = tolerance
        codes = self._space.codes if reachable is None else self._space.codes[reachable]
        self._codes = [np.unique(codes[:, i]) for i in range(codes.shape[1])]
        self._sizes = tuple(map(len, self._codes))
        self.factors = [self._cut(factor) for factor in factors]
        always = np.ones(codes.shape[1], dtype=np.bool_)
        for factor in self.factors:
            occurs = _rows(factor).max(axis=0) > 0.0
            always[list(factor.features)] = factor.patterns[occurs].all(axis=0)
        self.always: NDArray[np.bool_] = always

    def _cut(self, factor: MissingFactor) -> MissingFactor:
        """Return a factor over the values that count."""
        kept = [self._codes[p] for p in factor.parents]
        return factor._replace(table=factor.table[np.ix_(*kept, np.arange(len(factor.patterns)))])

    def _factor_of(self, position: int) -> MissingFactor | None:
        return next((factor for factor in self.factors if position in factor.features), None)

    def _rate(self, position: int) -> Scope:
        """Return P(feature missing | parents)."""
        factor = self._factor_of(position)
        if factor is None:
            return Scope((), np.zeros(()))
        missing = ~factor.patterns[:, factor.features.index(position)]
        return Scope(factor.parents, factor.table[..., missing].sum(axis=-1))

    def _state(self, parents: Sequence[int], place: Sequence[Any]) -> Any:
        """Return a state with these values of the parents, by their places, and the first of all others."""
        codes = np.array([values[0] for values in self._codes])
        for parent, k in zip(parents, place, strict=True):
            codes[parent] = self._codes[parent][int(k)]
        return self._space.features.decode(codes)

    def _differing(self, scope: Scope, fixed: NDArray[np.bool_], what: str) -> str | None:
        """Return a sentence on two states that agree on the fixed features and differ most, or None."""
        held = [k for k, parent in enumerate(scope.parents) if fixed[parent]]
        free = [k for k, parent in enumerate(scope.parents) if not fixed[parent]]
        table = scope.table.transpose([*held, *free])
        shape = table.shape
        rows = table.reshape(math.prod(shape[: len(held)]), -1)
        group = int(np.argmax(np.ptp(rows, axis=1)))
        low, high = int(rows[group].argmin()), int(rows[group].argmax())
        if rows[group, high] - rows[group, low] <= self._tolerance:
            return None
        order = [scope.parents[k] for k in [*held, *free]]
        first, second = (
            self._state(order, np.unravel_index(group * rows.shape[1] + k, shape)) for k in (low, high)
        )
        return f"{what} is {rows[group, low]:.4g} in {first!r} but {rows[group, high]:.4g} in {second!r}"

    def _name(self, factor: MissingFactor, k: int) -> str:
        names = self._space.features.names
        missing = [names[i] for i, seen in zip(factor.features, factor.patterns[k], strict=True) if not seen]
        return (
            f"P({', '.join(missing)} missing)"
            if missing
            else f"P({', '.join(names[i] for i in factor.features)} observed)"
        )

    def _columns(self) -> Iterator[tuple[Scope, str]]:
        """Yield the probability of each pattern of each factor, with a name."""
        for factor in self.factors:
            # What is missing first: it is easier to read.
            for k in reversed(range(len(factor.patterns))):
                yield Scope(factor.parents, factor.table[..., k]), self._name(factor, k)

    def _against(self, fixed: NDArray[np.bool_]) -> str | None:
        found = (self._differing(scope, fixed, name) for scope, name in self._columns())
        return next((reason for reason in found if reason is not None), None)

    def against_mcar(self) -> str | None:
        """Return why patterns depend on the state, or None."""
        return self._against(np.zeros_like(self.always))

    def against_simple_mar(self) -> str | None:
        """Return why patterns depend on more than what is always observed, or None."""
        return self._against(self.always)

    def against_mar(self) -> str | None:
        """Return why the probability of a pattern depends on what it does not show, or None.

        Among states that agree on what a pattern shows, one comes from another by changing hidden features one by
        one. So it is enough that no pattern's probability changes with one feature that it hides.
        """
        for position in np.flatnonzero(~self.always).tolist():
            involved = [f for f in self.factors if position in f.parents]
            if involved:
                reason = self._against_hiding(position, involved)
                if reason is not None:
                    return reason
        return None

    def _against_hiding(self, position: int, involved: list[MissingFactor]) -> str | None:
        """Return why some pattern that hides a feature depends on its value, or None."""
        name, own = self._space.features.names[position], self._factor_of(position)
        assert own is not None
        others = [factor for factor in involved if factor is not own]
        fixed = np.arange(len(self.always)) != position
        if float(self._rate(position).table.min()) > 0.0:
            # Whatever else is missing, it may be hidden: patterns of other factors must not depend on it.
            for factor in others:
                for k in reversed(range(len(factor.patterns))):
                    scope = Scope(factor.parents, factor.table[..., k])
                    reason = self._differing(scope, fixed, self._name(factor, k))
                    if reason is not None:
                        return f"{reason}, also where {name} is missing"
        together = [own, *others]
        parents = sorted({p for factor in together for p in factor.parents})
        cells = math.prod(self._sizes[p] for p in parents) * math.prod(len(f.patterns) for f in together)
        if cells > _MOST_CELLS:
            raise ModelError(
                f"whether missingness is MAR takes {cells:.2g} comparisons, too many: {len(together)} sets of "
                f"indicators depend on {name}, which can be missing itself"
            )
        hidden = np.flatnonzero(~own.patterns[:, own.features.index(position)]).tolist()
        for choice in product(hidden, *(range(len(factor.patterns)) for factor in others)):
            table = np.ones([1] * len(self._sizes))
            for factor, k in zip(together, choice, strict=True):
                table = table * Scope(factor.parents, factor.table[..., k]).over_states(self._sizes)
            scope = Scope(tuple(range(len(self._sizes))), table)
            names = " and ".join(self._name(factor, k) for factor, k in zip(together, choice, strict=True))
            reason = self._differing(scope, fixed, names)
            if reason is not None:
                return reason
        return None

    def against_no_self_censoring(self, feature: str) -> str | None:
        """Return why the own value of a feature changes how often it is missing, or None."""
        position = self._space.features.position(feature)
        fixed = np.arange(len(self.always)) != position
        return self._differing(self._rate(position), fixed, f"P({feature} missing)")

    def against_independence(self) -> str | None:
        """Return why indicators are dependent given the state, or None."""
        for factor in self.factors:
            rows = _rows(factor)
            seen = rows @ factor.patterns.astype(np.float64)
            for k, pattern in enumerate(factor.patterns):
                expected = np.where(pattern, seen, 1.0 - seen).prod(axis=1)
                worst = int(np.argmax(np.abs(expected - rows[:, k])))
                if abs(expected[worst] - rows[worst, k]) > self._tolerance:
                    state = self._state(factor.parents, np.unravel_index(worst, factor.table.shape[:-1]))
                    return (
                        f"{self._name(factor, k)} is {rows[worst, k]:.4g} in {state!r}, "
                        f"but the product over features is {expected[worst]:.4g}"
                    )
        return None

    def against_positivity(self) -> str | None:
        """Return which feature is never seen in which state, or None."""
        for position, feature in enumerate(self._space.features.names):
            factor = self._factor_of(position)
            if factor is None:
                continue
            seen = _rows(factor)[:, factor.patterns[:, factor.features.index(position)]].sum(axis=1)
            never = int(np.argmin(seen))
            if seen[never] <= 0.0:
                state = self._state(factor.parents, np.unravel_index(never, factor.table.shape[:-1]))
                return f"{feature} is never seen in {state!r}"
        return None

    def parents(self, feature: str) -> NDArray[np.bool_]:
        """Return the features with which P(feature missing) changes, shape (n,)."""
        scope = self._rate(self._space.features.position(feature))
        found = np.zeros_like(self.always)
        for axis, parent in enumerate(scope.parents):
            found[parent] = float(np.ptp(scope.table, axis=axis).max()) > self._tolerance
        return found

    def dependent_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of features whose indicators are dependent given the state."""
        names = self._space.features.names
        pairs: list[tuple[str, str]] = []
        for factor in self.factors:
            rows, missing = _rows(factor), (~factor.patterns).astype(np.float64)
            rates = rows @ missing
            for i in range(len(factor.features)):
                for j in range(i + 1, len(factor.features)):
                    both = rows @ (missing[:, i] * missing[:, j])
                    if float(np.abs(both - rates[:, i] * rates[:, j]).max()) > self._tolerance:
                        pairs.append((names[factor.features[i]], names[factor.features[j]]))
        return pairs


def _rows(factor: MissingFactor) -> NDArray[np.float64]:
    return factor.table.reshape(-1, len(factor.patterns))

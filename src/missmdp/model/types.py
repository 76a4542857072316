"""What missingness depends on: the paper's types as predicates, and the parents of each indicator.

Everything is judged over the states that can be reached.

MCAR ⊂ simple MAR ⊂ MAR, and MNAR is whatever is not MAR. Each predicate asks whether probabilities are equal within
groups of states; a violation comes back as a sentence that names two states and their probabilities, so a reader
sees why a type does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.model.factor_types import FactorView
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.space import Groups
from missmdp.progress import show_progress

TOLERANCE = 1e-9
"""Probabilities this close count as equal."""

Edge = tuple[str, str]


@dataclass(frozen=True)
class MissingnessTypes:
    """Which of the paper's types and assumptions a missingness function fulfils."""

    mcar: bool
    """Missing completely at random: the pattern does not depend on the state."""
    simple_mar: bool
    """The pattern depends on always-observed features only."""
    mar: bool
    """The probability of a pattern depends only on what that pattern shows."""
    mnar: bool
    """Not MAR."""
    self_censoring: tuple[str, ...]
    """Features whose own value changes the probability that they are missing."""
    independent: bool
    """Whether indicators are independent given the state."""
    positive: bool
    """Whether every feature can be seen in every state."""
    always_observed: tuple[str, ...]
    can_go_missing: tuple[str, ...]
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    """For each property that fails, two states (or one) that show it."""

    @property
    def name(self) -> str:
        """The narrowest type that holds: "MCAR", "simple MAR", "MAR" or "MNAR"."""
        return self.holds[0]

    @property
    def holds(self) -> tuple[str, ...]:
        """The types that hold, narrowest first."""
        named = {"MCAR": self.mcar, "simple MAR": self.simple_mar, "MAR": self.mar, "MNAR": self.mnar}
        return tuple(name for name, holds in named.items() if holds)

    @property
    def learners(self) -> tuple[str, ...]:
        """The paper's learners whose assumptions hold: AMCAR, AsMAR, AIMI."""
        fits = {
            "AMCAR": self.mcar,
            "AsMAR": self.simple_mar,
            "AIMI": self.independent and not self.self_censoring and self.positive,
        }
        return tuple(name for name, holds in fits.items() if holds)

    def __contains__(self, name: object) -> bool:
        return name in self.holds

    def __str__(self) -> str:
        def listed(names: tuple[str, ...]) -> str:
            return ", ".join(names) or "none"

        rows = [
            (
                "type",
                self.name if len(self.holds) == 1 else f"{self.name} (so also {listed(self.holds[1:])})",
            ),
            ("always observed", listed(self.always_observed)),
            ("can go missing", listed(self.can_go_missing)),
            ("self-censoring", listed(self.self_censoring)),
            ("indicators", "independent given the state" if self.independent else "dependent"),
            ("positivity", "holds" if self.positive else "fails"),
            ("learners that fit", listed(self.learners)),
        ]
        width = max(len(label) for label, _ in rows)
        lines = [f"{label:<{width}}  {text}" for label, text in rows]
        if self.reasons:
            lines += ["", "Why not:"]
            lines += [f"  {name}: {reason}" for name, reason in self.reasons.items()]
        return "\n".join(lines)


def classify(
    missingness: MissingnessFunction,
    reachable: NDArray[np.bool_] | None = None,
    *,
    tolerance: float = TOLERANCE,
) -> MissingnessTypes:
    """Return the types and assumptions that a missingness function fulfils.

    Parameters
    ----------
    missingness
        The missingness function M.
    reachable
        Which states count, shape (S,); by default all.
    tolerance
        Probabilities that differ by no more count as equal.
    """
    view = _view(missingness, reachable, tolerance)
    reasons: dict[str, str] = {}
    holds: dict[str, bool] = {}
    for name, reason in (
        ("MCAR", view.against_mcar()),
        ("simple MAR", view.against_simple_mar()),
        ("MAR", view.against_mar()),
        ("independence", view.against_independence()),
        ("positivity", view.against_positivity()),
    ):
        holds[name] = reason is None
        if reason is not None:
            reasons[name] = reason
    self_censoring: list[str] = []
    for feature in missingness.can_go_missing:
        reason = view.against_no_self_censoring(feature)
        if reason is not None:
            self_censoring.append(feature)
            reasons[f"no self-censoring of {feature}"] = reason
    features = missingness.space.features
    return MissingnessTypes(
        mcar=holds["MCAR"],
        simple_mar=holds["simple MAR"],
        mar=holds["MAR"],
        mnar=not holds["MAR"],
        self_censoring=tuple(self_censoring),
        independent=holds["independence"],
        positive=holds["positivity"],
        always_observed=features.chosen(view.always),
        can_go_missing=features.chosen(~view.always),
        reasons=reasons,
    )


def _view(
    missingness: MissingnessFunction, reachable: NDArray[np.bool_] | None, tolerance: float
) -> _View | FactorView:
    """Return what answers questions about M, from its table or, where it is large, from its factors."""
    if missingness.is_small:
        return _View(missingness, reachable, tolerance)
    return FactorView(missingness, reachable, tolerance)


class _View:
    """M restricted to the states that count."""

    def __init__(
        self, missingness: MissingnessFunction, reachable: NDArray[np.bool_] | None, tolerance: float
    ) -> None:
        self.missingness = missingness
        self.space = missingness.space
        self.tolerance = tolerance
        self.kept = np.arange(len(self.space)) if reachable is None else np.flatnonzero(reachable)
        self.table = missingness.probabilities[self.kept]
        occurs = (self.table > 0.0).any(axis=0)
        self.patterns = missingness.patterns
        self.always: NDArray[np.bool_] = np.all(missingness.patterns[occurs], axis=0)

    def missing_rate(self, position: int) -> NDArray[np.float64]:
        return self.table[:, ~self.patterns[:, position]].sum(axis=1)

    def groups(self, features: NDArray[np.bool_]) -> Groups:
        """Return the kept states grouped by the features that the mask picks."""
        return self.space.groups(features).among(self.kept)

    def differing_pair(self, values: NDArray[np.float64], groups: Groups) -> tuple[int, int] | None:
        """Return two states of one group whose values differ most, or None if all groups are even."""
        spread = groups.spread(values)
        group = int(np.argmax(spread))
        if spread[group] <= self.tolerance:
            return None
        members = np.flatnonzero(groups.label == group)
        return int(members[np.argmin(values[members])]), int(members[np.argmax(values[members])])

    def describe_pair(self, pair: tuple[int, int], values: NDArray[np.float64], what: str) -> str:
        first, second = pair
        return (
            f"{what} is {values[first]:.4g} in {self.state(first)!r} "
            f"but {values[second]:.4g} in {self.state(second)!r}"
        )

    def state(self, row: int) -> Any:
        return self.space.state(int(self.kept[row]))

    def pattern_name(self, k: int) -> str:
        missing = self.space.features.chosen(~self.patterns[k])
        return f"P(only {', '.join(missing)} missing)" if missing else "P(all observed)"

    def _against_patterns(self, features: NDArray[np.bool_] | None) -> str | None:
        """Return why some pattern's probability varies among states that agree on the given features.

        With None, the features are those that the pattern itself shows.
        """
        fixed = None if features is None else self.groups(features)
        with show_progress("Comparing patterns across states", len(self.patterns)) as advance:
            for k, pattern in enumerate(self.patterns):
                values = self.table[:, k]
                pair = self.differing_pair(values, self.groups(pattern) if fixed is None else fixed)
                if pair is not None:
                    return self.describe_pair(pair, values, self.pattern_name(k))
                advance()
        return None

    def against_mcar(self) -> str | None:
        return self._against_patterns(np.zeros(len(self.space.features), dtype=np.bool_))

    def against_simple_mar(self) -> str | None:
        return self._against_patterns(self.always)

    def against_mar(self) -> str | None:
        return self._against_patterns(None)

    def against_no_self_censoring(self, feature: str) -> str | None:
        position = self.space.features.position(feature)
        others = np.arange(len(self.space.features)) != position
        values = self.missing_rate(position)
        pair = self.differing_pair(values, self.groups(others))
        return None if pair is None else self.describe_pair(pair, values, f"P({feature} missing)")

    def against_independence(self) -> str | None:
        """Compare every pattern's probability with the product over features.

        Patterns that do not occur need no look: the listed probabilities sum to one, so if all of them
        equal their products, the products of the others are zero.
        """
        rates = np.stack([self.missing_rate(i) for i in range(len(self.space.features))], axis=1)
        for k, pattern in enumerate(self.patterns):
            product = np.where(pattern, 1.0 - rates, rates).prod(axis=1)
            worst = int(np.argmax(np.abs(product - self.table[:, k])))
            if abs(product[worst] - self.table[worst, k]) > self.tolerance:
                return (
                    f"{self.pattern_name(k)} is {self.table[worst, k]:.4g} in {self.state(worst)!r}, "
                    f"but the product over features is {product[worst]:.4g}"
                )
        return None

    def against_positivity(self) -> str | None:
        for position, feature in enumerate(self.space.features.names):
            seen = self.table[:, self.patterns[:, position]].sum(axis=1)
            never = int(np.argmin(seen))
            if seen[never] <= 0.0:
                return f"{feature} is never seen in {self.state(never)!r}"
        return None


class Dependences(NamedTuple):
    """What the indicators of a missingness function depend on: the content of its m-graph."""

    edges: list[Edge]
    """Pairs (parent, feature that goes missing)."""
    can_go_missing: tuple[str, ...]
    dependent: list[Edge]
    """Pairs of features whose indicators are dependent given the state."""
    notes: list[str]


def dependences(
    missingness: MissingnessFunction, reachable: NDArray[np.bool_] | None, tolerance: float
) -> Dependences:
    """Return what the indicators depend on; see `MissingnessGraph.from_missingness`."""
    features = missingness.space.features
    kept = np.arange(len(missingness.space)) if reachable is None else np.flatnonzero(reachable)
    types = classify(missingness, reachable, tolerance=tolerance)
    edges: list[Edge] = []
    notes: list[str] = []
    large = None if missingness.is_small else FactorView(missingness, reachable, tolerance)
    for name in types.can_go_missing:
        if large is not None:
            edges += [(parent, name) for parent in features.chosen(large.parents(name))]
            continue
        rate = missingness.missing_rate(name)[kept]
        determined = _Determined(missingness, kept, rate, tolerance)
        parents, others = determined.parents(_preference(name, features.names, types.always_observed))
        edges += [(parent, name) for parent in features.chosen(parents)]
        if others:
            notes.append(
                f"The parents of R_{name} are not unique: the features move together, and instead of "
                f"{', '.join(features.chosen(parents))} one could take {' or '.join(others)}."
            )
    dependent = (
        _dependent_pairs(missingness, kept, types.can_go_missing, tolerance)
        if large is None
        else large.dependent_pairs()
    )
    if not types.independent and not dependent:
        notes.append(
            "The indicators are dependent, but no two of them are: the dependence is of higher order."
        )
    if types.mar and not types.simple_mar:
        notes.append(
            "M is MAR but not simple MAR: what drives missingness depends on what is seen, "
            "which no m-graph can show. Read the edges as if M were MNAR."
        )
    return Dependences(edges, types.can_go_missing, dependent, notes)


def _preference(name: str, names: Sequence[str], always: Sequence[str]) -> list[int]:
    """Return features in the order in which they are taken as parents where there is a choice.

    What is always observed comes first and the feature itself last, so the graph shows simple MAR where M is simple
    MAR, and self-censoring only where nothing else explains M.
    """
    return sorted(range(len(names)), key=lambda j: (names[j] == name, names[j] not in always, j))


class _Determined:
    """Which sets of features determine a number per state."""

    def __init__(
        self,
        missingness: MissingnessFunction,
        kept: NDArray[np.int64],
        values: NDArray[np.float64],
        tolerance: float,
    ) -> None:
        self._space = missingness.space
        self._kept = kept
        self._values = values
        self._tolerance = tolerance
        self._n = len(self._space.features)

    def by(self, chosen: NDArray[np.bool_]) -> bool:
        spread = self._space.groups(chosen).among(self._kept).spread(self._values)
        return bool((spread <= self._tolerance).all())

    def parents(self, preference: Sequence[int]) -> tuple[NDArray[np.bool_], list[str]]:
        """Return a smallest-by-elimination set of parents, and other sets where it is not the only one.

        Features that are needed to complete the set are taken in order of preference.
        """
        everything = np.ones(self._n, dtype=np.bool_)
        contrast = np.array([not self.by(everything & (np.arange(self._n) != j)) for j in range(self._n)])
        chosen = self._completed(contrast, preference)
        others: list[str] = []
        for j in np.flatnonzero(chosen & ~contrast):
            # A determining set without j exists, since j has no contrast: find one in the same way.
            without = [i for i in preference if i != j]
            names = ", ".join(self._space.features.chosen(self._completed(contrast, without)))
            if names not in others:
                others.append(names)
        return chosen, others

    def _completed(self, needed: NDArray[np.bool_], allowed: Sequence[int]) -> NDArray[np.bool_]:
        """Return a determining set: what is needed, and as few of the allowed as elimination leaves."""
        chosen = needed.copy()
        for j in allowed:
            if self.by(chosen):
                break
            chosen[j] = True
        for j in [j for j in reversed(allowed) if chosen[j] and not needed[j]]:
            chosen[j] = False
            if not self.by(chosen):
                chosen[j] = True
        return chosen


def _dependent_pairs(
    missingness: MissingnessFunction, kept: NDArray[np.int64], names: Sequence[str], tolerance: float
) -> list[Edge]:
    table = missingness.probabilities[kept]
    missing = ~missingness.patterns[:, [missingness.space.features.position(name) for name in names]]
    rates = table @ missing
    pairs: list[Edge] = []
    for i, a in enumerate(names):
        both = table @ (missing[:, i : i + 1] & missing[:, i + 1 :])
        apart = (np.abs(both - rates[:, i : i + 1] * rates[:, i + 1 :]) > tolerance).max(
            axis=0, initial=False
        )
        pairs += [(a, names[i + 1 + int(j)]) for j in np.flatnonzero(apart)]
    return pairs

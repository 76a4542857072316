"""The m-graph of a missingness function: which features each indicator depends on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from missmdp.model.mgraph import Edge, MissingnessGraph
from missmdp.model.missingness import MissingnessFunction
from missmdp.model.types import classify

__all__ = ["graph_of"]


def graph_of(
    missingness: MissingnessFunction, reachable: NDArray[np.bool_] | None, tolerance: float
) -> MissingnessGraph:
    """Return the m-graph of a missingness function; see `MissingnessGraph.from_missingness`."""
    features = missingness.space.features
    kept = np.arange(len(missingness.space)) if reachable is None else np.flatnonzero(reachable)
    types = classify(missingness, reachable, tolerance=tolerance)
    edges: list[Edge] = []
    notes: list[str] = []
    for name in types.can_go_missing:
        rate = missingness.missing_rate(name)[kept]
        determined = _Determined(missingness, kept, rate, tolerance)
        parents, others = determined.parents(_preference(name, features.names, types.always_observed))
        edges += [(parent, name) for parent in features.chosen(parents)]
        if others:
            notes.append(
                f"The parents of R_{name} are not unique: the features move together, and instead of "
                f"{', '.join(features.chosen(parents))} one could take {' or '.join(others)}."
            )
    dependent = _dependent_pairs(missingness, kept, types.can_go_missing, tolerance)
    if not types.independent and not dependent:
        notes.append(
            "The indicators are dependent, but no two of them are: the dependence is of higher order."
        )
    if types.mar and not types.simple_mar:
        notes.append(
            "M is MAR but not simple MAR: what drives missingness depends on what is seen, "
            "which no m-graph can show. Read the edges as if M were MNAR."
        )
    return MissingnessGraph(
        edges,
        features=features.names,
        can_go_missing=types.can_go_missing,
        dependent=dependent,
        notes=notes,
    )


def _preference(name: str, names: Sequence[str], always: Sequence[str]) -> list[int]:
    """Return features in the order in which they are taken as parents where there is a choice.

    What is always observed comes first and the feature itself last, so that the graph shows simple MAR where M
    is simple MAR, and self-censoring only where nothing else explains M.
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

"""The m-graph of a missingness function: which features each indicator depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
        parents, others = determined.parents()
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

    def parents(self) -> tuple[NDArray[np.bool_], list[str]]:
        """Return a smallest-by-elimination set of parents, and other sets where it is not the only one."""
        everything = np.ones(self._n, dtype=np.bool_)
        contrast = np.array([not self.by(everything & (np.arange(self._n) != j)) for j in range(self._n)])
        chosen = self._completed(contrast, range(self._n), contrast)
        others: list[str] = []
        for j in np.flatnonzero(chosen & ~contrast):
            # A determining set without j exists, since j has no contrast: find one in the same way.
            without = [i for i in range(self._n) if i != j]
            names = ", ".join(self._space.features.chosen(self._completed(contrast, without, contrast)))
            if names not in others:
                others.append(names)
        return chosen, others

    def _completed(
        self, start: NDArray[np.bool_], allowed: Iterable[int], needed: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        chosen = start.copy()
        for j in allowed:
            if self.by(chosen):
                break
            chosen[j] = True
        for j in reversed(np.flatnonzero(chosen & ~needed)):
            chosen[j] = False
            if not self.by(chosen):
                chosen[j] = True
        return chosen


def _dependent_pairs(
    missingness: MissingnessFunction, kept: NDArray[np.int64], names: Sequence[str], tolerance: float
) -> list[Edge]:
    table = missingness.probabilities[kept]
    missing: Mapping[str, NDArray[np.bool_]] = {
        name: ~missingness.patterns[:, missingness.space.features.position(name)] for name in names
    }
    pairs: list[Edge] = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = table[:, missing[a] & missing[b]].sum(axis=1)
            product = table[:, missing[a]].sum(axis=1) * table[:, missing[b]].sum(axis=1)
            if (np.abs(both - product) > tolerance).any():
                pairs.append((a, b))
    return pairs

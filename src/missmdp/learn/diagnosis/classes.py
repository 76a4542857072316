"""The classes of reasons, each within the next, and the best structure in each.

MCAR: nothing matters. Simple MAR: features that are never missing. MAR: also values of features that are seen.
No self-censoring: all features of other blocks, seen or not. All parents: everything. In each class blocks may also
depend on whether others are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks
from missmdp.learn.diagnosis.result import Driver
from missmdp.learn.em.iterate import EMFit, Evidence, Maximised
from missmdp.learn.em.search import Allowed, Found, Searcher
from missmdp.learn.em.trees import Cells, block_cells
from missmdp.model.mdp import FactoredMDP
from missmdp.model.space import FeatureSpace

MCAR, SIMPLE, MAR = "MCAR", "simple MAR", "MAR"

NO_SELF, ALL = "no self-censoring", "all parents"

SHOWN = "shown values"

_CLOSE = 50.0
"""Nats by which a wider class has to be better for its order not to matter."""

_MOST_ORDERED = 3
"""Blocks up to which all orders in which they may depend on each other are tried."""

_ENOUGH = 30.0
"""Expected visits of a value from which it counts as lowest or highest."""

_COMMON = 0.5
"""Share of everything else with which a value must be possible to count as lowest or highest."""


@dataclass(frozen=True, eq=False)
class Best:
    """The best structure of a class."""

    name: str
    order: tuple[int, ...]
    """The order in which blocks may depend on each other."""
    found: Found

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The orders that were tried."""
        return _orders(len(self.order))

    @property
    def shown(self) -> bool:
        """Whether features matter only where they are seen."""
        return self.name in (MAR, SHOWN)


def class_features(name: str, features: FeatureSpace, blocks: Blocks, block: int) -> tuple[str, ...]:
    """Return the features that a class allows as reasons for a block."""
    match name:
        case "MCAR":
            kept = set[str]()
        case "simple MAR":
            kept = set(features.names) - set(blocks.features)
        case "all parents":
            kept = set(features.names)
        case _:
            kept = set(features.names) - set(blocks.names[block])
    return tuple(n for n in features.names if n in kept)


def best_structures(searcher: Searcher[Evidence], *, snapshots: bool) -> list[Best]:
    """Return the best structure of each class, narrowest first; classes that coincide with a narrower one are left out.

    Parameters
    ----------
    searcher
        The data.
    snapshots
        Whether the data are single observations, which say nothing of what is not seen.
    """
    names = [MCAR, SIMPLE, SHOWN] if snapshots else [MCAR, SIMPLE, MAR, NO_SELF, ALL]
    features, blocks = searcher.mdp.space.features, searcher.blocks
    several = len(blocks.names) > 1
    listed: list[Best] = []
    met: list[list[tuple[str, ...]]] = []
    for name in names:
        own = [class_features(name, features, blocks, i) for i in range(len(blocks.names))]
        shown = name in (MAR, SHOWN)
        if (own in met and not shown) or (shown and not several):
            continue
        if not shown:
            met.append(own)
        listed.append(_best(searcher, name, own, listed[-1] if listed else None))
    return listed


def _best(
    searcher: Searcher[Evidence],
    name: str,
    features: Sequence[tuple[str, ...]],
    narrower: Best | None,
) -> Best:
    """Return the best structure of a class, in the best order."""
    starts = [] if narrower is None else [narrower.found.fit.table]
    first, *others = _orders(len(features))
    natural = _in_order(searcher, name, features, first, starts)
    tried = {first: natural}
    # A wider class that is hardly better may owe that to the order.
    close = narrower is not None and narrower.found.score > natural.found.score - _CLOSE
    if narrower is not None and close and narrower.order not in tried:
        tried[narrower.order] = _in_order(searcher, name, features, narrower.order, starts)
    # Values that are shown depend on who comes first; else orders only matter where blocks depend on each other.
    shown = name in (MAR, SHOWN)
    depend = name in (NO_SELF, ALL) and any(after for one in tried.values() for _, after in one.found.asked)
    if shown or depend:
        for order in others:
            if order not in tried:
                tried[order] = _in_order(searcher, name, features, order, starts)
    return max(tried.values(), key=lambda one: one.found.score)


def _in_order(
    searcher: Searcher[Evidence],
    name: str,
    features: Sequence[tuple[str, ...]],
    order: tuple[int, ...],
    starts: Sequence[NDArray[np.float64]],
) -> Best:
    shown = name in (MAR, SHOWN)
    allowed: list[Allowed] = []
    for i, names in enumerate(features):
        earlier = tuple(sorted(order[: order.index(i)]))
        hidden = {n for j in range(len(features)) if j not in earlier for n in searcher.blocks.names[j]}
        allowed.append((tuple(n for n in names if n not in hidden) if shown else names, earlier))
    return Best(name, order, searcher.search(allowed, starts=starts, shown=shown))


def _orders(count: int) -> list[tuple[int, ...]]:
    """Return orders of blocks: all if they are few, else one for each block that comes last."""
    if count <= _MOST_ORDERED:
        return list(permutations(range(count)))
    return [(*(i for i in range(count) if i != last), last) for last in reversed(range(count))]


def find_drivers(
    mdp: FactoredMDP, blocks: Blocks, best: Best, fit: EMFit, fits: Sequence[Maximised]
) -> list[Driver]:
    """Return what makes each block go missing, block by block, the strongest first.

    Parameters
    ----------
    best
        The structure.
    fit
        M fitted with it.
    fits
        M fitted to resampled logs; none for no intervals.
    """
    listed: list[Driver] = []
    for i, (given, after) in enumerate(best.found.asked):
        cells = block_cells(mdp, blocks, i, given, after, shown=best.shown)
        effects = _Effects(mdp, blocks, i, cells, best, fit)
        own = [effects.driver(v, fits) for v in range(len(cells.variables))]
        listed += sorted(own, key=lambda driver: -driver.difference)
    return listed


class _Effects:
    """The rates of one block in cells that are told apart by its reasons."""

    def __init__(
        self, mdp: FactoredMDP, blocks: Blocks, block: int, cells: Cells, best: Best, fit: EMFit
    ) -> None:
        self.mdp, self.blocks, self.block, self.cells = mdp, blocks, block, cells
        part = best.found.factors.parts[block]
        flat = np.unique(cells.factor.label.reshape(-1), return_index=True)[1]
        self.leaf = part.label.reshape(-1)[flat]
        self.weight = np.where(cells.live, cells.factor.counts(fit.expected).sum(axis=1), 0.0)
        self.estimate = fit.maximised

    def driver(self, v: int, fits: Iterable[Maximised]) -> Driver:
        """Return the effect of one variable."""
        values, mixing, usable = self._mixing(v)
        rates = mixing @ self._rates(self.estimate)
        low, high = usable[np.argmin(rates[usable])], usable[np.argmax(rates[usable])]
        drawn = np.array([(mixing[high] - mixing[low]) @ self._rates(one) for one in fits])
        name = self.cells.variables[v]
        indicator = not isinstance(name, str)
        return Driver(
            self.blocks.names[self.block],
            name if isinstance(name, str) else self.blocks.names[name][0],
            indicator,
            self._value(name, int(values[low])),
            self._value(name, int(values[high])),
            float(rates[low]),
            float(rates[high]),
            _interval(drawn, float(rates[high] - rates[low])) if len(drawn) else None,
        )

    def _rates(self, fit: Maximised) -> NDArray[np.float64]:
        return fit.parameters[self.block][self.leaf, 1]

    def _mixing(self, v: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the values of a variable, for each the weights of cells, shape (V, cells), and which can be compared.

        All else is distributed as it was visited, so values that go with little else are no comparison, nor are
        those that hardly occur.
        """
        others = np.delete(self.cells.values, v, axis=1)
        rest = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1)
        weight = np.bincount(rest, self.weight)[rest] * self.cells.live
        values = np.unique(self.cells.values[self.weight > 0.0, v])
        chosen = self.cells.values[:, v] == values[:, None]
        mixing = weight * chosen
        total = mixing.sum(axis=1)
        visits = (self.weight * chosen).sum(axis=1)
        usable = np.flatnonzero((visits >= _ENOUGH) & (total >= _COMMON * self.weight.sum()))
        if len(usable) < 2:
            usable = np.arange(len(values))
        return values, mixing / np.maximum(total, 1e-300)[:, None], usable

    def _value(self, name: str | int, code: int) -> Any:
        if not isinstance(name, str):
            return "missing" if code else "seen"
        if self.cells.shown and name in self.blocks.features:
            if code == 0:
                return "missing"
            code -= 1
        features = self.mdp.space.features
        return features.values[features.position(name)][code]


def _interval(drawn: NDArray[np.float64], estimate: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return min(float(low), estimate), max(float(high), estimate)

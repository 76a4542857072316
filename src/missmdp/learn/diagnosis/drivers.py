"""How much each reason matters: standardised differences of missing rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.blocks import Blocks
from missmdp.learn.diagnosis.classes import Best
from missmdp.learn.diagnosis.rows import Driver
from missmdp.learn.em.iterate import EMFit, Maximised
from missmdp.learn.em.trees import Cells, block_cells
from missmdp.model.mdp import FactoredMDP

__all__ = ["find_drivers"]

_ENOUGH = 30.0
"""Expected visits of a value from which it counts as lowest or highest."""
_COMMON = 0.5
"""Share of everything else with which a value must be possible to count as lowest or highest."""


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
        M fitted to logs drawn anew; none for no intervals.
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

        All else is distributed as it was visited, so that values that go with little else are no comparison, nor are
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

"""Structure from data: a tree for every block, found by expectation–maximisation.

In turns, trees are grown on the expected counts of patterns and states under the present M, and M is fitted with
these trees. What one block's tree cannot say yet may look like a reason for another's, so that at the end every
variable has to prove itself: a structure without it, fitted anew, must have a worse score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.histories import Histories
from missmdp.learn.em.iterate import EMFit, iterate, penalised
from missmdp.learn.em.structures import Blocks, Factor, Factors
from missmdp.learn.em.trees import Cells, Tree, block_cells, grow
from missmdp.model.mdp import FactoredMDP

__all__ = ["Allowed", "Found", "Searcher"]

_ROUNDS = 12
_STALE = 3
"""Rounds without a better score after which growing and fitting in turns stops."""
_ROUGH = 1e-6
"""Tolerance while searching: a structure need not be fitted to the last digit to be judged."""

Allowed = tuple[tuple[str, ...], tuple[int, ...]]
"""The features and the earlier blocks that the tree of a block may ask about."""

Tell = Callable[[str, float], None]
"""Is told what was fitted and its log-likelihood."""


@dataclass(frozen=True, eq=False)
class Found:
    """A structure, and M fitted with it."""

    cells: tuple[Cells, ...]
    trees: tuple[Tree, ...]
    factors: Factors
    fit: EMFit
    score: float
    """Log-likelihood minus the costs of the trees: higher is better."""

    @property
    def asked(self) -> tuple[Allowed, ...]:
        """The features and earlier blocks on which the indicator of each block depends."""
        return tuple((part.given, part.after) for part in self.factors.parts)


class Searcher:
    """Looks for the structure with the best score.

    Parameters
    ----------
    mdp, blocks, histories
        The data.
    prior
        P(pattern | state) towards which pseudo-counts go and where fitting starts, shape (K, S).
    pseudo_count
        Observations that every leaf gets beside its own.
    """

    def __init__(
        self,
        mdp: FactoredMDP,
        blocks: Blocks,
        histories: Histories,
        prior: NDArray[np.float64],
        pseudo_count: float,
        *,
        threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.mdp = mdp
        self.blocks = blocks
        self.histories = histories
        self.prior = prior
        self.pseudo_count = pseudo_count
        self.threads = threads
        self.tell = tell
        self.visits: NDArray[np.float64] = histories.expect(prior, threads).counts.sum(axis=0)

    def search(self, allowed: Sequence[Allowed]) -> Found:
        """Return the best structure in which each block's indicator depends on what is allowed for it.

        It starts from AsMAR and from what has all allowed reasons at once.
        """
        cells = [block_cells(self.mdp, self.blocks, i, *own) for i, own in enumerate(allowed)]
        everything = Factors("all reasons", self.blocks, tuple(own.factor for own in cells))
        starts = (self.prior, self.fit(everything, self.prior).table)
        found = max((self.from_table(allowed, start) for start in starts), key=lambda one: one.score)
        return self._pruned(found)

    def fit(self, factors: Factors, start: NDArray[np.float64], *, tolerance: float = _ROUGH) -> EMFit:
        """Return M fitted with some factors and the pseudo-counts."""
        model = penalised(factors, self.prior, self.visits, self.pseudo_count)
        fit = iterate(self.histories, model, start, tolerance=tolerance, threads=self.threads)
        if self.tell is not None:
            self.tell(factors.name, fit.log_likelihood)
        return fit

    def from_table(self, allowed: Sequence[Allowed], start: NDArray[np.float64]) -> Found:
        """Return the best structure met on the way from an M, growing and fitting in turns."""
        cells = tuple(block_cells(self.mdp, self.blocks, i, *own) for i, own in enumerate(allowed))
        expected, table = self.histories.expect(start, self.threads).counts, start
        best: Found | None = None
        met: set[bytes] = set()
        stale = 0
        for _ in range(_ROUNDS):
            trees = tuple(grow(own, own.factor.counts(expected), self.histories.n_steps) for own in cells)
            key = b"|".join(tree.leaf.tobytes() for tree in trees)
            if key in met:
                break
            met.add(key)
            found = self._fitted(cells, trees, table)
            stale = 0 if best is None or found.score > best.score + 0.5 else stale + 1
            if best is None or found.score > best.score:
                best = found
            if stale == _STALE:
                break
            table, expected = found.fit.table, found.fit.expected
        assert best is not None, "there is at least one round"
        return best

    def _fitted(self, cells: tuple[Cells, ...], trees: tuple[Tree, ...], start: NDArray[np.float64]) -> Found:
        parts = tuple(_leaves(own, tree) for own, tree in zip(cells, trees, strict=True))
        factors = Factors("lumped m-graph", self.blocks, parts)
        fit = self.fit(factors, start)
        return Found(cells, trees, factors, fit, fit.log_likelihood - sum(tree.cost for tree in trees))

    def _pruned(self, found: Found) -> Found:
        """Return the structure without variables that do not pay for themselves."""
        while True:
            better = found
            for i, (features, after) in enumerate(found.asked):
                for variable in (*features, *after):
                    allowed = list(found.asked)
                    allowed[i] = (
                        tuple(name for name in features if name != variable),
                        tuple(block for block in after if block != variable),
                    )
                    better = max(better, self.from_table(allowed, found.fit.table), key=lambda one: one.score)
            if better is found:
                return found
            found = better


def _leaves(cells: Cells, tree: Tree) -> Factor:
    """Return the factor whose groups are the leaves of a tree."""
    return replace(
        cells.factor,
        given=tuple(v for v in tree.asked if isinstance(v, str)),
        after=tuple(v for v in tree.asked if not isinstance(v, str)),
        label=tree.leaf[cells.factor.label],
        n_groups=tree.count,
        lumped=True,
    )

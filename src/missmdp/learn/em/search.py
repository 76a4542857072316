"""Structure from data: a tree for every block, found by expectation–maximisation.

In turns, trees are grown on the expected counts of patterns and states under the present M, and M is fitted with
these trees. What one block's tree cannot say yet may look like a reason for another's, so at the end every variable
has to prove itself: a structure without it, fitted again, must have a worse score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from missmdp.errors import DataError
from missmdp.learn.blocks import Blocks, States, joined_blocks
from missmdp.learn.em.iterate import EMFit, Evidence, iterate, penalised
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.em.trees import Cells, QuestionTree, block_cells, grow
from missmdp.model.mgraph import MissingnessGraph
from missmdp.sums import one_by_one

_ROUNDS = 12
_STALE = 3
"""Rounds without a better score after which growing and fitting in turns stops."""
_ROUGH = 1.0
"""Nats that a fit may have left to gain while searching: a structure need not be fitted to the last digit."""
_SLOW = 1e-6
"""Gain per observation below which a fit is too slow to go on while searching."""
_HOPELESS = 50.0
"""Nats that a structure may be behind after its first fit for it to be followed further."""
_MOST_STEPS = 200_000
"""Observations above which a search begins with some of them."""
_MOST_BYTES = 4 * 2**30
"""Memory above which a search is refused."""
_FIRST_ITERATIONS = 12
"""Iterations with all reasons at once, which is only a place to start from."""

Allowed = tuple[tuple[str, ...], tuple[int, ...]]
"""The features and the earlier blocks that the tree of a block may ask about."""

Data = TypeVar("Data", bound=Evidence)

Tell = Callable[[str, float], None]
"""Is told what was fitted and its log-likelihood."""


@dataclass(frozen=True, eq=False)
class Found:
    """A structure, and M fitted with it."""

    cells: tuple[Cells, ...]
    trees: tuple[QuestionTree, ...]
    factors: Factors
    fit: EMFit
    score: float
    """Log-likelihood minus the costs of the trees: higher is better."""

    @property
    def asked(self) -> tuple[Allowed, ...]:
        """The features and earlier blocks that the tree of each block asks about."""
        return tuple(split(tree.asked) for tree in self.trees)


class Searcher(Generic[Data]):
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
        mdp: States,
        blocks: Blocks,
        histories: Data,
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

    def search(
        self, allowed: Sequence[Allowed], *, starts: Sequence[NDArray[np.float64]] = (), shown: bool = False
    ) -> Found:
        """Return the best structure in which each block's indicator depends on what is allowed for it.

        Parameters
        ----------
        starts
            Where to start, besides AsMAR and what has all allowed reasons at once.
        shown
            Whether features of earlier blocks matter only where they are seen (MAR); see `block_cells`.
        """
        self._check_size(allowed)
        thin = self.histories.thinned(_MOST_STEPS)
        if thin is self.histories:
            found = self._searched(allowed, starts, shown)
        else:
            # The structure of a part of the data, and from there on all of them.
            part = Searcher(
                self.mdp,
                self.blocks,
                thin,
                self.prior,
                self.pseudo_count,
                threads=self.threads,
                tell=self.tell,
            )
            first = part._pruned(part._searched(allowed, starts, shown), shown)
            found = max(
                (self.from_table(own, first.fit.table, shown=shown) for own in (allowed, first.asked)),
                key=lambda one: one.score,
            )
        return self._pruned(found, shown)

    def _check_size(self, allowed: Sequence[Allowed]) -> None:
        """Raise `DataError` if searching would take too much memory."""
        count, n_states = len(self.blocks.names), self.mdp.n_states
        variables = sum(len(names) + len(after) for names, after in allowed)
        # Two labels for each block, and the values of each variable, at most three times at once.
        size = 24.0 * len(self.blocks.patterns) * n_states * (2 * count + variables / max(count, 1))
        if size > _MOST_BYTES:
            raise DataError(
                f"{count} features or blocks go missing on their own, which makes 2^{count} patterns; with "
                f"{n_states:,} states, looking for what drives them takes about {size / 2**30:,.0f} GB, too much "
                "(features that are given as one block take less, and so does a learner that counts, such as AsMAR)"
            )

    def _searched(
        self, allowed: Sequence[Allowed], starts: Sequence[NDArray[np.float64]], shown: bool
    ) -> Found:
        best: Found | None = None
        for variant in self._variants(allowed):
            points = [self.prior]
            # Where all reasons are seen, the counts do not depend on where one starts.
            if not shown and any(name in self.blocks.features for names, _ in variant for name in names):
                cells = self._cells(variant, shown)
                everything = Factors("all reasons", self.blocks, tuple(own.factor for own in cells))
                first = self.fit(everything, self.prior, max_iterations=_FIRST_ITERATIONS)
                points += [first.table, *starts]
            for start in points:
                found = self.from_table(variant, start, shown=shown)
                # Only the best is kept: each has several tables of patterns × states.
                best = found if best is None else max(best, found, key=lambda one: one.score)
        assert best is not None, "there is at least one variant, and one start"
        return best

    def _variants(self, allowed: Sequence[Allowed]) -> list[Sequence[Allowed]]:
        """Return what is allowed, and the same with one block at most that may ask about itself.

        Blocks that censor themselves explain each other's gaps, so a search for all of them may lose its way.
        """
        own = [i for i, (names, _) in enumerate(allowed) if set(names) & set(self.blocks.names[i])]
        if len(own) < 2:
            return [allowed]
        return [allowed, *(self._without_own(allowed, but=i) for i in own)]

    def _without_own(self, allowed: Sequence[Allowed], but: int) -> list[Allowed]:
        return [
            (tuple(n for n in names if i == but or n not in self.blocks.names[i]), after)
            for i, (names, after) in enumerate(allowed)
        ]

    def fit(self, factors: Factors, start: NDArray[np.float64], *, max_iterations: int = 1000) -> EMFit:
        """Return M fitted with some factors and the pseudo-counts, well enough for a search."""
        model = penalised(factors, self.prior, self.visits, self.pseudo_count)
        fit = iterate(
            self.histories,
            model,
            start,
            tolerance=_SLOW,
            rest=_ROUGH,
            max_iterations=max_iterations,
            threads=self.threads,
        )
        if self.tell is not None:
            self.tell(factors.name, fit.log_likelihood)
        return fit

    def from_table(
        self,
        allowed: Sequence[Allowed],
        start: NDArray[np.float64],
        *,
        shown: bool = False,
        floor: float = -math.inf,
    ) -> Found:
        """Return the best structure met on the way from an M, growing and fitting in turns.

        The way ends after its first step if the score is below `floor` there: further steps gain little.
        """
        cells = self._cells(allowed, shown)
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
            if stale == _STALE or best.score < floor:
                break
            table, expected = found.fit.table, found.fit.expected
        assert best is not None, "there is at least one round"
        return best

    def _cells(self, allowed: Sequence[Allowed], shown: bool) -> tuple[Cells, ...]:
        return tuple(
            block_cells(self.mdp, self.blocks, i, *own, shown=shown) for i, own in enumerate(allowed)
        )

    def _fitted(
        self, cells: tuple[Cells, ...], trees: tuple[QuestionTree, ...], start: NDArray[np.float64]
    ) -> Found:
        parts = tuple(leaves(self.blocks, own, tree) for own, tree in zip(cells, trees, strict=True))
        factors = Factors("lumped m-graph", self.blocks, parts)
        fit = self.fit(factors, start)
        return Found(cells, trees, factors, fit, fit.log_likelihood - one_by_one(tree.cost for tree in trees))

    def _pruned(self, found: Found, shown: bool) -> Found:
        """Return the structure without variables that do not pay for themselves."""
        while True:
            better = found
            for i, own in enumerate(found.asked):
                for less in fewer(own):
                    allowed = [*found.asked[:i], less, *found.asked[i + 1 :]]
                    floor = better.score - _HOPELESS
                    other = self.from_table(allowed, found.fit.table, shown=shown, floor=floor)
                    better = max(better, other, key=lambda one: one.score)
            if better is found:
                return found
            found = better


def fewer(asked: Allowed) -> Iterator[Allowed]:
    """Yield what is left without one variable, and nothing: variables that mean something only together go at once."""
    features, after = asked
    if len(features) + len(after) > 1:
        yield (), ()
    for variable in (*features, *after):
        yield tuple(v for v in features if v != variable), tuple(v for v in after if v != variable)


def split(asked: Sequence[str | int]) -> Allowed:
    return tuple(v for v in asked if isinstance(v, str)), tuple(v for v in asked if not isinstance(v, str))


def leaves(blocks: Blocks, cells: Cells, tree: QuestionTree) -> Factor:
    """Return the factor whose groups are the leaves of a tree."""
    given, after = split(tree.asked)
    if cells.shown:
        after = tuple(sorted({*after, *(blocks.home(name) for name in given if name in blocks.features)}))
    return replace(
        cells.factor,
        given=given,
        after=after,
        label=tree.leaf[cells.factor.label],
        n_groups=tree.count,
        lumped=True,
    )


def allowed_parents(mdp: States, blocks: Blocks, graph: MissingnessGraph) -> list[Allowed]:
    """Return what the indicator of each block may depend on: its parents, and blocks that it is joined with."""
    allowed: list[Allowed] = [((), ())] * len(blocks.names)
    for group in joined_blocks(blocks, graph):
        parents = {p for i in group for name in blocks.names[i] for p in graph.parents(name)}
        listed = tuple(name for name in mdp.space.features.names if name in parents)
        for i in group:
            allowed[i] = (listed, tuple(j for j in group if j < i))
    return allowed

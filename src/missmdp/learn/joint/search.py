"""The search for T, b₀ and M together.

T and M can explain each other's share of what is seen, so the order of the search matters. First gaps depend on what is
always seen, until T has settled. Then they may depend on other features, at last on the values that they hide: for that
the score has to rise by more than log n. A fit in which gaps may depend on everything is only a place to start from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.em.iterate import StructureModel, asmar_of, penalised
from missmdp.learn.em.search import Allowed, fewer, leaves, split
from missmdp.learn.em.structures import Factors, named_factors
from missmdp.learn.em.trees import QuestionTree, block_cells, grow
from missmdp.learn.joint.dynamics import Dynamics
from missmdp.learn.joint.fit import JointFit, Parameters, fit_jointly, maximised
from missmdp.learn.joint.layout import JointHistories, Layout, Prepared
from missmdp.learn.joint.structure import Grower, Rules, Structure, structure_cost
from missmdp.sums import one_by_one

Tell = Callable[[str, float], None]
"""Is told what was fitted and its log-likelihood."""

_EAGER = (3.0, 3.0, 1.0, 0.4, 1.0)
"""How many times counts are taken in the rounds in which T settles."""
_FIRST_EAGER = 3.0
_SHORT, _LONG = 15, 30
"""Expectation steps of a fit while searching, and of one that begins with all reasons at once."""
_ROUGH = 0.5
"""Nats that an expectation step must gain for a fit to go on while searching."""
_MOST_STEPS = 200_000
"""Observations above which a search begins with some of them."""
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Found:
    """Structures of T and M, fitted."""

    structure: Structure
    fit: JointFit
    trees: tuple[QuestionTree, ...]
    """Of the blocks of M; none if M's structure was not searched."""
    score: float
    """Log-likelihood minus the costs of the structures: higher is better."""

    @property
    def asked(self) -> tuple[Allowed, ...]:
        """The features and earlier blocks that the tree of each block asks about."""
        return tuple(split(tree.asked) for tree in self.trees)


class JointSearch:
    """Looks for the structures with the best score.

    Parameters
    ----------
    prepared
        The log.
    rules
        What the user says of T and b₀.
    pseudo_count
        Observations that every group of states gets beside its own, distributed as AsMAR estimates them.
    """

    def __init__(
        self,
        prepared: Prepared,
        rules: Rules,
        pseudo_count: float,
        *,
        histories: JointHistories | None = None,
        threads: int | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.prepared = prepared
        self.histories = prepared.histories if histories is None else histories
        self.rules = rules
        self.pseudo_count = pseudo_count
        self.threads = threads
        self.tell = tell
        self.best: Found | None = None
        """The best so far: what is left if the search is stopped."""
        layout = self.layout
        self.prior = asmar_of(layout.states.space, layout.blocks, prepared.codes, prepared.counts)

    @property
    def layout(self) -> Layout:
        """The log's layout."""
        return self.prepared.histories.layout

    def thinned(self) -> JointSearch | None:
        """Return the same search in a part of a long log, or None if the log is not long."""
        thin = self.histories.thinned(_MOST_STEPS)
        if thin is self.histories:
            return None
        return JointSearch(
            self.prepared, self.rules, self.pseudo_count, histories=thin, threads=self.threads, tell=self.tell
        )

    def first(self, before: Found | None = None) -> Found:
        """Return a structure of T from full observations, refined while gaps depend on what is always seen.

        Parameters
        ----------
        before
            What was found in a part of the log, to go on from.
        """
        if before is not None:
            start = self._fitted(before.structure.dynamics, before.fit.model, before.fit.parameters)
            again = self.scored(before.structure, start, before.trees)
            return self.settled(again, (1.0, 0.4, 1.0), reorder=True)
        complete = self.prepared.complete
        grower = Grower(
            self.layout, complete.moved, complete.began, self.rules, eager=_FIRST_EAGER, prune=False
        )
        structure = grower.structure()
        point = structure.dynamics.maximise(complete.moved, complete.began)
        expected = self.histories.expect(
            structure.dynamics.transition(point),
            structure.dynamics.initial(point),
            self.prior,
            self.threads,
        )
        model = self.penalised(named_factors(self.layout.states, self.layout.blocks, "smar"))
        start = maximised(structure.dynamics, model, expected)
        found = self.scored(structure, self._fitted(structure.dynamics, model, start), ())
        return self.settled(found, _EAGER, reorder=True)

    def penalised(self, factors: Factors, counts: NDArray[np.float64] | None = None) -> StructureModel:
        """Return factors of M with pseudo-counts, by how often states are visited if that is known."""
        visits = self.layout.states.reachable.astype(np.float64) if counts is None else counts.sum(axis=0)
        return penalised(factors, self.prior, visits, self.pseudo_count)

    def with_model(self, model: StructureModel, before: Found | None = None) -> Found:
        """Return the best structure of T when that of M is given."""
        found = self._with_model(self._kept(self.first(before)), model, ())
        return self._kept(self.settled(found, (3.0, 1.0, 0.4, 1.0), reorder=True))

    def settled(self, found: Found, eager: Sequence[float] = (0.4, 1.0), *, reorder: bool = False) -> Found:
        """Return the best of what comes from growing T's trees and fitting in turns."""
        if self.rules.saturated or self.rules.parents is not None:
            return found
        best, now = found, found
        for number, times in enumerate(eager):
            order = None if reorder and number in (0, len(eager) - 2) else now.structure.order
            now = self._grown_from(now, order, eager=times, like_steps=now.structure.like_steps)
            if now.score > best.score:
                best = now
        if reorder:
            best = self._reordered(best)
        if self.rules.initial is not None:
            return best
        # Expected counts hardly show that features of first states hang together while the model says that they do not.
        other = self._grown_from(best, best.structure.order, like_steps=not best.structure.like_steps)
        return max(best, other, key=lambda one: one.score)

    def _reordered(self, found: Found) -> Found:
        """Return the best of what comes from exchanging neighbours of which one depends on the other.

        Expected counts come from a model with the present order, and speak for it: each exchange is fitted.
        """
        tried: set[tuple[int, ...]] = {found.structure.order}
        better = True
        while better:
            better = False
            order, n = found.structure.order, len(found.structure.order)
            for place in range(n - 1):
                one, other = order[place], order[place + 1]
                swapped = (*order[:place], other, one, *order[place + 2 :])
                family = found.structure.dynamics.steps.families[place + 1]
                if swapped in tried or n + 1 + one not in family.partition.asked:
                    continue
                tried.add(swapped)
                now = found
                for times in (_FIRST_EAGER, 1.0, 0.4):
                    now = self._grown_from(now, swapped, eager=times, like_steps=now.structure.like_steps)
                    if now.score > found.score:
                        found, better = now, True
                if better:
                    break
        return found

    def _grown_from(
        self, found: Found, order: Sequence[int] | None, *, eager: float = 1.0, like_steps: bool
    ) -> Found:
        """Return a fit with trees that are grown from another one's expected counts."""
        expected = found.fit.expected
        grower = Grower(
            self.layout,
            expected.moved,
            expected.began,
            self.rules,
            eager=eager,
            prune=eager <= 1.0,
            like_steps=like_steps,
        )
        structure = grower.structure(order)
        now = self._refitted(found, structure)
        if now.fit.expected.impossible > expected.impossible:
            # What was ruled out did happen.
            now = self._refitted(found, grower.unpruned(structure.order))
        return now

    def _refitted(self, found: Found, structure: Structure) -> Found:
        model, expected = found.fit.model, found.fit.expected
        start = Parameters(
            structure.dynamics.maximise(expected.moved, expected.began), found.fit.parameters.missingness
        )
        return self.scored(structure, self._fitted(structure.dynamics, model, start), found.trees)

    def with_trees(self, found: Found, allowed: Sequence[Allowed], *, rounds: int = _ROUNDS) -> Found:
        """Return the best of what comes from growing M's trees and fitting in turns."""
        layout = self.layout
        cells = [block_cells(layout.states, layout.blocks, i, *own) for i, own in enumerate(allowed)]
        best: Found | None = None
        now, met = found, set[bytes]()
        for _ in range(rounds):
            counts = now.fit.expected.counts
            trees = tuple(grow(own, own.factor.counts(counts), self.histories.n_steps) for own in cells)
            key = b"|".join(tree.leaf.tobytes() for tree in trees)
            if key in met:
                break
            met.add(key)
            parts = tuple(leaves(layout.blocks, own, tree) for own, tree in zip(cells, trees, strict=True))
            model = self.penalised(Factors("lumped m-graph", layout.blocks, parts), counts)
            now = self._with_model(now, model, trees)
            if best is None or now.score > best.score:
                best = now
        assert best is not None, "there is at least one round"
        return best

    def _with_model(
        self, found: Found, model: StructureModel, trees: tuple[QuestionTree, ...], most: int = _SHORT
    ) -> Found:
        start = Parameters(found.fit.parameters.dynamics, model.maximise(found.fit.expected.counts))
        fit = self._fitted(found.structure.dynamics, model, start, most)
        return self.scored(found.structure, fit, trees)

    def with_everything(self, found: Found, allowed: Sequence[Allowed]) -> Found:
        """Return a fit in which gaps depend on all that is allowed: a place to start from."""
        layout = self.layout
        cells = [block_cells(layout.states, layout.blocks, i, *own) for i, own in enumerate(allowed)]
        factors = Factors("all reasons", layout.blocks, tuple(own.factor for own in cells))
        model = self.penalised(factors, found.fit.expected.counts)
        return self._with_model(found, model, (), _LONG)

    def searched(self, allowed: Sequence[Allowed], before: Found | None = None) -> Found:
        """Return the best structures in which each block's indicator depends on what is allowed for it.

        Parameters
        ----------
        before
            What was found in a part of the log: its structures are refined, not looked for again.
        """
        found = self._kept(self.first(before))
        if not self.layout.blocks.names:
            return found
        if before is not None:
            grown = self._better(found, self.with_trees(found, before.asked, rounds=2))
            return self._better(grown, self.with_trees(grown, allowed, rounds=1))
        blocks = self.layout.blocks.names
        without = [
            (tuple(n for n in names if n not in blocks[i]), after) for i, (names, after) in enumerate(allowed)
        ]
        best = self._kept(self.with_trees(found, without))
        hidden = self.layout.blocks.features
        if any(name in hidden for names, _ in without for name in names):
            best = self._better(best, self.with_trees(self.with_everything(best, without), without))
        best = self._better(best, self.settled(best))
        worth = math.log(self.histories.n_steps)
        for variant in _variants(allowed, without, blocks):
            # T has adapted to gaps without this reason, so it takes both to see it.
            other = self.with_trees(self.with_everything(best, variant), variant)
            other = self.settled(other)
            other = self.settled(self.with_trees(other, variant))
            if other.score > best.score + worth:
                best = self._kept(self.settled(other, _EAGER, reorder=True))
        return self._pruned(best)

    def _better(self, one: Found, other: Found) -> Found:
        return self._kept(other) if other.score > one.score else one

    def _kept(self, found: Found) -> Found:
        self.best = found
        return found

    def _pruned(self, found: Found) -> Found:
        """Return the structure without variables that do not pay for themselves."""
        while True:
            better = found
            for i, own in enumerate(found.asked):
                for less in fewer(own):
                    allowed = [*found.asked[:i], less, *found.asked[i + 1 :]]
                    other = self.with_trees(found, allowed, rounds=1)
                    if other.score > better.score:
                        better = other
            if better is found:
                return found
            found = self._kept(better)

    def _fitted(
        self, dynamics: Dynamics, model: StructureModel, start: Parameters, most: int = _SHORT
    ) -> JointFit:
        tell = self.tell

        def report(value: float) -> None:
            if tell is not None:
                tell(model.name, value)

        return fit_jointly(
            self.histories,
            dynamics,
            model,
            start,
            rest=_ROUGH,
            max_iterations=most,
            threads=self.threads,
            report=report,
        )

    def scored(self, structure: Structure, fit: JointFit, trees: tuple[QuestionTree, ...]) -> Found:
        """Return a fit with its score; without trees, M costs what BIC takes off."""
        expected = fit.expected
        cost = structure_cost(structure, expected.moved, expected.began)
        if trees:
            cost += one_by_one(tree.cost for tree in trees)
        else:
            n_parameters = fit.model.n_parameters(self.layout.states.reachable)
            cost += 0.5 * n_parameters * math.log(self.histories.n_steps)
        return Found(structure, fit, trees, fit.log_likelihood - cost)


def _variants(
    allowed: Sequence[Allowed], without: Sequence[Allowed], blocks: Sequence[Sequence[str]]
) -> list[list[Allowed]]:
    """Return what is allowed, and the same with one block only that may ask about itself."""
    own = [i for i, (names, _) in enumerate(allowed) if set(names) & set(blocks[i])]
    one = [[*without[:i], allowed[i], *without[i + 1 :]] for i in own]
    return [*one, list(allowed)] if len(own) > 1 else one

"""Likelihood-ratio tests of each class of reasons within the next, and of self-censoring block by block.

The chi-square distribution is a poor guide where there is little information on an effect: values that hardly
occur, or that always come with what is already explained. Further effects are therefore turned into directions that
are uncorrelated given the effects that are there, and those with little information are left out. That is decided
under what is tested, so the test keeps its level.

What is tested has all effects that its class found, in full, and the effects of all further values that the class
allows; against it stand the values that the wider class adds. Blocks may depend on whether earlier ones are missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from missmdp.learn.diagnosis.classes import ALL, MAR, NO_SELF, SHOWN, Best, class_features
from missmdp.learn.diagnosis.result import NestedTest
from missmdp.learn.em.effects import Effects, EffectTerms, columns_of_values, design_of
from missmdp.learn.em.iterate import EMFit, Evidence, Maximised, iterate
from missmdp.learn.em.search import Searcher
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.em.trees import block_cells

_LEAST = 10.0
"""Information on a direction from which it is tested: as much as 40 observations at a rate of one half have."""

_REST = 0.01
"""Nats that a fit may have left to gain."""

_TINY = 1e-30
"""A p-value below which a test need not be more exact."""

_STILL = 1e-3
"""Nats per iteration below which a fit has come to rest."""

_FIRST, _BETWEEN, _MOST_LEAPS = 15, 5, 25
"""Plain iterations at first and after each leap, and how many leaps there are at most."""


def chain_tests(searcher: Searcher[Evidence], classes: Sequence[Best], level: float) -> Iterator[NestedTest]:
    """Yield the tests of each class within the next; MAR, which is not within the next, is left out."""
    chain = [best for best in classes if best.name != MAR]
    for narrow, wide in pairwise(chain):
        ratio = _chain_ratio(searcher, narrow, wide)
        if ratio is not None:
            yield NestedTest(narrow.name, wide.name, searcher.blocks.features, *ratio, level)


def _chain_ratio(searcher: Searcher[Evidence], narrow: Best, wide: Best) -> Ratio | None:
    if wide.name != SHOWN:
        return _ratio(searcher, narrow, wide.name, narrow.order)
    # Which values are shown to whom depends on the order: each has its test, and the clearest counts.
    found = [_ratio(searcher, narrow, SHOWN, order) for order in wide.orders]
    usable = [ratio for ratio in found if ratio is not None]
    if not usable:
        return None
    clearest = min(usable, key=lambda ratio: ratio.p_value)
    return clearest._replace(p_value=min(clearest.p_value * len(usable), 1.0))


def _ratio(searcher: Searcher[Evidence], narrow: Best, wide: str, order: tuple[int, ...]) -> Ratio | None:
    """Return the test of a class against the values that a wider one adds."""
    features, blocks = searcher.mdp.space.features, searcher.blocks
    listed: list[tuple[EffectTerms, tuple[str, ...]]] = []
    for i in range(len(blocks.names)):
        allowed = class_features(narrow.name, features, blocks, i)
        wider = class_features(wide, features, blocks, i)
        if wide == SHOWN:
            seen = {n for j in order[: order.index(i)] for n in blocks.names[j]}
            wider = tuple(n for n in wider if n in seen or n not in blocks.features)
        listed.append(
            (_reasons(narrow, i, order, allowed), tuple(name for name in wider if name not in allowed))
        )
    return _tested(searcher, listed, order, narrow.found.fit.table, shown=wide == SHOWN)


def own_tests(
    searcher: Searcher[Evidence],
    classes: Sequence[Best],
    best: Best,
    chain: Sequence[NestedTest],
    level: float,
) -> Iterator[NestedTest]:
    """Yield for each block the test that its own values play no part, given all other reasons.

    Parameters
    ----------
    best
        The best structure of all, which says what matters to the other blocks.
    chain
        The tests of classes, of which the last is the same where there is only one block.
    """
    blocks = searcher.blocks
    without = [one for one in classes if one.name not in (ALL, MAR)][-1]
    for i, names in enumerate(blocks.names):
        if len(blocks.names) == 1:
            found = [Ratio(t.statistic, t.freedom, t.p_value) for t in chain if t.alternative == ALL]
            ratio = found[0] if found else None
        else:
            ratio = _own_ratio(searcher, without, best, i)
        if ratio is not None:
            yield NestedTest(NO_SELF, "self-censoring", names, *ratio, level)


def _own_ratio(searcher: Searcher[Evidence], without: Best, best: Best, block: int) -> Ratio | None:
    features, blocks = searcher.mdp.space.features, searcher.blocks
    listed: list[tuple[EffectTerms, tuple[str, ...]]] = []
    for j, names in enumerate(blocks.names):
        others = class_features(NO_SELF, features, blocks, j)
        if j == block:
            listed.append((_reasons(without, j, best.order, others), names))
            continue
        asked = best.found.factors.parts[j].given
        allowed = features.names if set(asked) & set(names) else others
        listed.append((_reasons(best, j, best.order, allowed), ()))
    return _tested(searcher, listed, best.order, best.found.fit.table)


def _reasons(best: Best, block: int, order: tuple[int, ...], single: Sequence[str]) -> EffectTerms:
    """Return what a class found for a block, in full, and the effects of single values."""
    part = best.found.factors.parts[block]
    earlier = set(order[: order.index(block)])
    same = set(part.after) <= earlier
    leaf = part.label if same else np.zeros_like(part.label)
    return EffectTerms((part.given, tuple(j for j in part.after if j in earlier)), leaf, tuple(single))


def _tested(
    searcher: Searcher[Evidence],
    listed: Sequence[tuple[EffectTerms, tuple[str, ...]]],
    order: tuple[int, ...],
    start: NDArray[np.float64],
    *,
    shown: bool = False,
) -> Ratio | None:
    """Return the test of reasons against the values of further features, block by block."""
    designs: list[NDArray[np.float64]] = []
    further: list[NDArray[np.float64]] = []
    parts: list[Factor] = []
    names = searcher.mdp.space.features.names
    for i, (reasons, more) in enumerate(listed):
        used = {*reasons.together[0], *reasons.single, *more}
        earlier = tuple(sorted(order[: order.index(i)]))
        cells = block_cells(
            searcher.mdp, searcher.blocks, i, [n for n in names if n in used], earlier, shown=shown
        )
        parts.append(cells.factor)
        designs.append(design_of(cells, reasons))
        columns = columns_of_values(cells, more)
        further.append(np.concatenate([np.zeros((len(cells.values), 0)), *columns], axis=1))
    first = tuple(np.zeros(design.shape[1]) for design in designs)
    null = Effects(Factors("effects", searcher.blocks, tuple(parts)), tuple(designs), first)
    return likelihood_ratio(searcher.histories, null, further, start, searcher.threads)


class Ratio(NamedTuple):
    """The result of a test; where p-values are tiny, the statistic may still be larger."""

    statistic: float
    freedom: int
    p_value: float


def likelihood_ratio(
    evidence: Evidence,
    null: Effects,
    further: Sequence[NDArray[np.float64]],
    start: NDArray[np.float64],
    threads: int | None = None,
) -> Ratio | None:
    """Return the test of a structure against one with further effects; None if none can be told from those there.

    Parameters
    ----------
    null
        What is tested.
    further
        The further effects of each block, shape (G, q) each.
    start
        P(pattern | state) to begin with, shape (K, S).
    """
    narrow = fitted(evidence, null, start, threads)
    designs: list[NDArray[np.float64]] = []
    first: list[NDArray[np.float64]] = []
    freedom = 0
    for part, design, more, effect in zip(
        null.factors.parts, null.designs, further, narrow.maximised.parameters, strict=True
    ):
        directions = _directions(design, more, effect, part.counts(narrow.expected).sum(axis=1))
        freedom += directions.shape[1]
        designs.append(np.concatenate([design, directions], axis=1))
        first.append(np.concatenate([effect, np.zeros(directions.shape[1])]))
    if freedom == 0:
        return None
    wider = Effects(null.factors, tuple(designs), tuple(first))
    # Nobody needs to know a p-value far below this one exactly.
    plenty = narrow.log_likelihood + 0.5 * float(special.chdtri(float(freedom), _TINY))
    wide = fitted(evidence, wider, narrow.table, threads, plenty)
    statistic = 2.0 * max(wide.log_likelihood - narrow.log_likelihood, 0.0)
    return Ratio(statistic, freedom, float(special.chdtrc(float(freedom), statistic)))


def _directions(
    design: NDArray[np.float64],
    more: NDArray[np.float64],
    effect: NDArray[np.float64],
    visits: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the directions of further effects on which there is enough information, shape (G, d)."""
    if more.shape[1] == 0:
        return more
    odds = np.clip(design @ effect, -30.0, 30.0)
    weight = visits / (2.0 * np.cosh(0.5 * odds)) ** 2
    there = design.T @ (design * weight[:, None])
    cross = design.T @ (more * weight[:, None])
    # What is left of each further effect once those that are there have explained what they can.
    left = more.T @ (more * weight[:, None]) - cross.T @ np.linalg.pinv(there, 1e-9, True) @ cross
    values, vectors = np.linalg.eigh(left)
    return more @ vectors[:, values > _LEAST]


def fitted(
    evidence: Evidence,
    model: Effects,
    start: NDArray[np.float64],
    threads: int | None,
    plenty: float = math.inf,
) -> EMFit:
    """Return M fitted closely enough for a test: plain iterations, and leaps where they are slow.

    There are no leaps once the log-likelihood is above `plenty`.
    """
    fit = _plain(evidence, model, start, threads, _FIRST)
    for _ in range(_MOST_LEAPS):
        if fit.converged or fit.log_likelihood > plenty:
            break
        landed = _squarem_step(evidence, model, fit, threads)
        again = replace(model, first=landed.parameters)
        fit = _plain(evidence, again, landed.table, threads, _BETWEEN)
    return fit


def _plain(
    evidence: Evidence, model: Effects, start: NDArray[np.float64], threads: int | None, most: int
) -> EMFit:
    enough = _STILL / evidence.n_steps
    return iterate(evidence, model, start, tolerance=enough, rest=_REST, max_iterations=most, threads=threads)


def _squarem_step(evidence: Evidence, model: Effects, fit: EMFit, threads: int | None) -> Maximised:
    """Return where two iterations point to, far ahead; or where they end, if it is no better there.

    The extrapolation is that of squared iterative methods (Varadhan and Roland 2008).
    """
    one = model.maximise(fit.expected, fit.maximised)
    two = model.maximise(evidence.expect(one.table, threads).counts, one)
    here, there, beyond = (np.concatenate(point.parameters) for point in (fit.maximised, one, two))
    step = there - here
    bend = (beyond - there) - step
    size = float(np.linalg.norm(bend))
    length = max(float(np.linalg.norm(step)) / size, 1.0) if size > 0.0 else 1.0
    ends = np.cumsum([len(part) for part in two.parameters])[:-1]
    far = tuple(np.split(here + 2.0 * length * step + length**2 * bend, ends))
    landed = Maximised(model.table(far), 0.0, far)
    better = evidence.expect(landed.table, threads).log_likelihood > fit.log_likelihood
    return landed if better else two

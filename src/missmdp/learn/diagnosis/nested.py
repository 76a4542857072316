"""Likelihood-ratio tests of each class of reasons within the next, and of self-censoring block by block.

What is tested has all effects that its class found, in full, and the effects of all further values that the class
allows; against it stand the values that the wider class adds. Blocks may depend on whether earlier ones are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from missmdp.learn.diagnosis.classes import ALL, MAR, NO_SELF, SHOWN, Best, class_features
from missmdp.learn.diagnosis.effects import Effects, Reasons, columns_of_values, design_of
from missmdp.learn.diagnosis.ratio import Ratio, likelihood_ratio
from missmdp.learn.diagnosis.rows import NestedTest
from missmdp.learn.em.iterate import Evidence
from missmdp.learn.em.search import Searcher
from missmdp.learn.em.structures import Factor, Factors
from missmdp.learn.em.trees import block_cells

__all__ = ["chain_tests", "own_tests"]


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
    listed: list[tuple[Reasons, tuple[str, ...]]] = []
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
    listed: list[tuple[Reasons, tuple[str, ...]]] = []
    for j, names in enumerate(blocks.names):
        others = class_features(NO_SELF, features, blocks, j)
        if j == block:
            listed.append((_reasons(without, j, best.order, others), names))
            continue
        asked = best.found.factors.parts[j].given
        allowed = features.names if set(asked) & set(names) else others
        listed.append((_reasons(best, j, best.order, allowed), ()))
    return _tested(searcher, listed, best.order, best.found.fit.table)


def _reasons(best: Best, block: int, order: tuple[int, ...], single: Sequence[str]) -> Reasons:
    """Return what a class found for a block, in full, and the effects of single values."""
    part = best.found.factors.parts[block]
    earlier = set(order[: order.index(block)])
    same = set(part.after) <= earlier
    leaf = part.label if same else np.zeros_like(part.label)
    return Reasons((part.given, tuple(j for j in part.after if j in earlier)), leaf, tuple(single))


def _tested(
    searcher: Searcher[Evidence],
    listed: Sequence[tuple[Reasons, tuple[str, ...]]],
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

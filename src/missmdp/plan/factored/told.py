"""What ties sites together, as lists of terms: each a product with one factor per site.

Which term it was is told in the world of the upper bound (see `causes`). Seen values are known anyway: telling them
costs nothing.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.causes import Term, causes
from missmdp.plan.factored.parts import Gaps, Part


class Local(NamedTuple):
    """What one term says of one site; None where it says nothing."""

    before: NDArray[np.float64] | None = None
    """Likelihood of its value as it was, shape (values,)."""
    kernel: NDArray[np.float64] | None = None
    """How it changes, shape (values, values)."""
    after: NDArray[np.float64] | None = None
    """Likelihood of its next value, shape (values,)."""
    seen: bool = False
    """Whether its next value is seen."""


Tie = list[dict[int, Local]]
"""Terms, each by site; they add up to what happens."""


def told_before(part: Part) -> Tie:
    """Return what is told by something that depends on the sites as they were."""
    return [_by_sites(part.sites, term, "before") for term in causes(part.table)]


def told_after(part: Part) -> Tie:
    """Return what is told by something that depends on the sites as they are next."""
    return [_by_sites(part.sites, term, "after") for term in causes(part.table)]


def _by_sites(sites: tuple[int, ...], term: Term, when: str) -> dict[int, Local]:
    return {
        site: Local(before=factor) if when == "before" else Local(after=factor)
        for site, factor in zip(sites, (term.own, *term.others), strict=True)
    }


def told_by_kernel(site: int, kernel: Part) -> Tie:
    """Return how a site changes, where that depends on others."""
    size = kernel.table.shape[-1]
    own_first = np.moveaxis(kernel.table, (-2, -1), (0, 1)).reshape(size * size, *kernel.table.shape[:-2])
    return [
        {site: Local(kernel=term.own.reshape(size, size))}
        | {k: Local(before=factor) for k, factor in zip(kernel.sites, term.others, strict=True)}
        for term in causes(own_first)
    ]


def told_by_gaps(gaps: Gaps) -> Tie:
    """Return what is told by which sites are seen, with their values."""
    tie: Tie = []
    sites = gaps.given.sites
    for k, pattern in enumerate(gaps.patterns):
        table = gaps.given.table[..., k]
        if not table.any():
            continue
        if not sites:  # the same for all values of all sites: told with the first one
            tie.append(
                {
                    site: Local(after=table if j == 0 else None, seen=bool(flag))
                    for j, (site, flag) in enumerate(zip(gaps.of, pattern, strict=True))
                }
            )
            continue
        shown = {site: bool(flag) for site, flag in zip(gaps.of, pattern, strict=True)}
        known = [axis for axis, site in enumerate(sites) if shown.get(site, False)]
        unknown = [axis for axis in range(len(sites)) if axis not in known]
        table = table.transpose([*known, *unknown])
        names = [sites[axis] for axis in (*known, *unknown)]
        for weights, row in _proportional(table, len(known)):
            for one, two in product(_terms(weights), _terms(row)):
                tie.append(_joined(shown, dict(zip(names, (*one, *two), strict=True))))
    return tie


def _terms(table: NDArray[np.float64]) -> list[tuple[NDArray[np.float64], ...]]:
    """Return a table as a sum of products, one factor per axis."""
    if table.ndim == 0:
        return [()]
    return [(term.own, *term.others) for term in causes(table)]


def _proportional(
    table: NDArray[np.float64], n_known: int
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return a table as a sum of (function of the first axes) × (function of the others), by groups of equal rows."""
    if n_known == 0:
        return [(np.ones(()), table)]
    shape = table.shape[:n_known]
    rows = table.reshape(int(np.prod(shape)), -1)
    if n_known == table.ndim:
        return [(table, np.ones(()))]
    top = rows.max(axis=1)
    left = top > 0.0
    found: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    while left.any():
        first = int(np.argmax(left))
        row = rows[first] / top[first]
        same = left & (np.abs(rows - top[:, None] * row).max(axis=1) <= 1e-14 * np.maximum(top, 1e-300))
        found.append((np.where(same, top, 0.0).reshape(shape), row.reshape(table.shape[n_known:])))
        left &= ~same
    return found


def _joined(shown: dict[int, bool], after: dict[int, NDArray[np.float64]]) -> dict[int, Local]:
    return {site: Local(after=after.get(site), seen=shown.get(site, False)) for site in {*shown, *after}}

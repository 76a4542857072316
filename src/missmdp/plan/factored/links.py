"""Which of several sites are seen, where hidden values do not matter: small tables instead of one term per pattern.

P(pattern) is a table with one axis per site: 0 = missing, 1 = seen. Patterns are known, and what happens is linear in
this table, so it may be split in any way that adds up to it. Sites that are independent of all others have gaps of
their own. The others are *linked*: each has a flag, and tables of flags are multiplied with the cores of their sites.
Where few causes stand behind all gaps, a chain of small tables (a tensor train) takes less work than one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from missmdp.plan.factored.parts import Gaps, Part

_EXACT = 1e-14
"""Sums of differences between distributions up to this are rounding."""
_MOST_SITES = 16
"""Sites of one table; where more go missing together, patterns stay as they are."""
_LENGTH = 6.0
"""Rows of a core, about: how much more work a core is than a table of flags, per entry."""


class Link(NamedTuple):
    """A table of flags of sites, or a part of one."""

    sites: tuple[int, ...]
    """The sites whose flags are the first axes."""
    bonds: tuple[int, ...]
    """The other axes: two links each have them, and they are summed over."""
    table: NDArray[np.float64]


class Shown(NamedTuple):
    """Which sites are seen in a scene."""

    gaps: list[Gaps]
    """Of sites without flags."""
    links: list[Link]
    """Of sites with flags; each site has one flag in one link."""

    @property
    def flagged(self) -> frozenset[int]:
        """The sites with flags."""
        return frozenset(site for link in self.links for site in link.sites)


def shown(gaps: Sequence[Gaps]) -> Shown:
    """Return which sites are seen in a scene: by gaps that depend on hidden values, and by links."""
    found = Shown([], [])
    numbers = count()
    for one in gaps:
        one = one._replace(given=_needed(one.given))
        if len(one.of) == 1 or one.given.sites or len(one.of) > _MOST_SITES:
            found.gaps.append(one)
            continue
        table = np.zeros((2,) * len(one.of))
        np.add.at(table, tuple(one.patterns.T.astype(np.intp)), one.given.table)
        for group in _groups(table):
            others = tuple(k for k in range(table.ndim) if k not in group)
            sites, own = tuple(one.of[k] for k in group), table.sum(axis=others)
            if len(group) == 1:
                found.gaps.append(Gaps(sites, np.array([[False], [True]]), Part((), own)))
                continue
            chain = _chain(own)
            if chain is None:
                found.links.append(Link(sites, (), own))
                continue
            bonds = [next(numbers) for _ in chain[1:]]
            ends = [(), *((bond,) for bond in bonds), ()]
            for k, (site, piece) in enumerate(zip(sites, chain, strict=True)):
                found.links.append(Link((site,), (*ends[k], *ends[k + 1]), piece))
    return found


def missing_chance(gaps: Gaps, site: int) -> NDArray[np.float64]:
    """Return the probability that a site is missing, by the values that gaps depend on."""
    return gaps.given.table[..., ~gaps.patterns[:, gaps.of.index(site)]].sum(axis=-1)


def _needed(part: Part) -> Part:
    """Return the same without sites that make no difference."""
    sites, table = list(part.sites), part.table
    for axis in reversed(range(len(sites))):
        first = table.take([0], axis=axis)
        if (table == first).all():
            table = np.asarray(table.take(0, axis=axis))
            del sites[axis]
    return Part(tuple(sites), table)


def _groups(table: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """Return groups of axes that are independent of each other."""
    axes = range(table.ndim)
    group = list(axes)
    for i, j in combinations(axes, 2):
        both = table.sum(axis=tuple(k for k in axes if k not in (i, j)))
        if (
            group[i] != group[j]
            and np.abs(both - np.outer(both.sum(axis=1), both.sum(axis=0))).max() > _EXACT
        ):
            group = [group[i] if k == group[j] else k for k in group]
    found = [tuple(k for k in axes if group[k] == g) for g in dict.fromkeys(group)]
    # What is independent two by two need not be independent.
    whole = np.ones(())
    for one in found:
        own = table.sum(axis=tuple(k for k in axes if k not in one), keepdims=True)
        whole = whole * own
    return found if np.abs(whole - table).sum() <= _EXACT else [tuple(axes)]


def _chain(table: NDArray[np.float64]) -> list[NDArray[np.float64]] | None:
    """Return tables that multiply to one, a flag and one or two bonds each; None if that would be more work."""
    n = table.ndim
    pieces: list[NDArray[np.float64]] = []
    rest, rank, work = table.reshape(1, -1), 1, 0.0
    for _ in range(n - 1):
        left, sizes, right = np.linalg.svd(rest.reshape(2 * rank, -1), full_matrices=False)
        keep = max(int((sizes > np.finfo(float).eps * max(rest.shape) * sizes[0]).sum()), 1)
        pieces.append(left[:, :keep].reshape(rank, 2, keep))
        rest = sizes[:keep, None] * right[:keep]
        work += 2.0 * rank * (1.0 + keep / _LENGTH)
        rank = keep
    work += 2.0 * rank * (1.0 + 1.0 / _LENGTH)
    pieces.append(rest.reshape(rank, 2, 1))
    half = n // 2
    if work >= 2.0 ** (half + 1) + 2.0 ** (n - half + 1) - 4.0 + 2.0**n / _LENGTH:
        return None
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = np.tensordot(whole, piece, axes=(-1, 0))
    if np.abs(whole.reshape(table.shape) - table).sum() > _EXACT:
        return None
    flag_first = [piece.transpose(1, 0, 2) for piece in pieces]
    return [flag_first[0][:, 0], *flag_first[1:-1], flag_first[-1][..., 0]]

"""AMCAR, AsMAR and AIMI as the paper's equations, over lists of observations: loops, dicts, nothing shared.

Observations and states are tuples, with None for ⊥; features are positions. Corrected as the library says it is:
r_i = 0 ⟺ z_i = ⊥, the factor 1[z ⪯ s], and κ on the patterns of features in Î_mis only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

__all__ = ["aimi", "asmar", "groups_without_data", "i_hat_always", "joint_groups", "total_variation"]

Row = tuple[Any, ...]
Learned = dict[Row, dict[Row, float]]
"""State s → {observation z: M̂(z | s)}, observations of probability zero left out."""


def i_hat_always(rows: Iterable[Row], n: int) -> list[int]:
    """Î_always = {i ∈ I | #_D({z ∈ Z | z_i = ⊥}) = 0}."""
    return [i for i in range(n) if sum(z[i] is None for z in rows) == 0]


def _frequencies(
    counts: dict[Any, int], pooled: dict[Any, int], kappa: float, unseen: str
) -> dict[Any, float]:
    """Return (count + κ) / Σ (count + κ); where there is no data, what `unseen` says."""
    if sum(counts.values()) == 0:
        counts = pooled if unseen == "pooled" else dict.fromkeys(counts, 0)
        if sum(counts.values()) == 0:
            return dict.fromkeys(counts, 1.0 / len(counts))
    total = sum(count + kappa for count in counts.values())
    return {key: (count + kappa) / total for key, count in counts.items()}


def joint_groups(rows: Sequence[Row], n: int, *, by_state: bool, ignore: Collection[int] = ()) -> list[int]:
    """Return the features by whose values AsMAR (by_state) or AMCAR counts."""
    return [i for i in i_hat_always(rows, n) if by_state and i not in ignore]


def asmar(
    rows: Sequence[Row],
    states: Sequence[Row],
    *,
    kappa: float,
    by_state: bool = True,
    ignore: Collection[int] = (),
    unseen: str = "uniform",
    only_seen: bool = False,
) -> Learned:
    """Return M̂ of AsMAR, Eq. 1, or of AMCAR, where nothing is given (by_state=False)."""
    n = len(states[0])
    missing = [i for i in range(n) if i not in i_hat_always(rows, n)]
    given = joint_groups(rows, n, by_state=by_state, ignore=ignore)

    def in_group(z: Row, s: Row) -> bool:
        return all(z[i] == s[i] for i in given)

    def count(some: Iterable[Row], r: tuple[int, ...]) -> int:
        return sum(all((z[i] is None) == (ri == 0) for i, ri in zip(missing, r, strict=True)) for z in some)

    inside = [z for z in rows if any(in_group(z, s) for s in states)]
    patterns = [r for r in product((0, 1), repeat=len(missing)) if not only_seen or count(inside, r)]
    patterns = patterns or [(1,) * len(missing)]
    pooled = {r: count(inside, r) for r in patterns}
    learned: Learned = {}
    for s in states:
        here = [z for z in rows if in_group(z, s)]
        estimate = _frequencies({r: count(here, r) for r in patterns}, pooled, kappa, unseen)
        learned[s] = {}
        for r, p in estimate.items():
            z = tuple(None if i in missing and r[missing.index(i)] == 0 else s[i] for i in range(n))
            if p > 0.0:
                learned[s][z] = p
    return learned


def aimi(
    rows: Sequence[Row],
    states: Sequence[Row],
    *,
    kappa: float,
    blocks: Sequence[Sequence[int]] = (),
    parents: Mapping[int, Collection[int]] | None = None,
    assume: str | None = None,
    unseen: str = "uniform",
) -> Learned:
    """Return M̂ of AIMI, Eq. 2, with its modifications (a) m-graph, (b) simple MAR, (c) MCAR, over blocks."""
    n = len(states[0])
    factors = [_factor(rows, states, block, n, kappa, parents, assume, unseen) for block in _cover(blocks, n)]
    learned: Learned = {}
    for s in states:
        learned[s] = {}
        for r in product((0, 1), repeat=len(factors)):
            p = prod(shown[s][ri] for (_, shown), ri in zip(factors, r, strict=True))
            hidden = {i for (block, _), ri in zip(factors, r, strict=True) if ri == 0 for i in block}
            if p > 0.0:
                learned[s][tuple(None if i in hidden else s[i] for i in range(n))] = p
    return learned


def _cover(blocks: Sequence[Sequence[int]], n: int) -> list[list[int]]:
    owned = [i for block in blocks for i in block]
    return [list(block) for block in blocks] + [[i] for i in range(n) if i not in owned]


def aimi_given(
    rows: Sequence[Row],
    block: Collection[int],
    n: int,
    parents: Mapping[int, Collection[int]] | None,
    assume: str | None,
) -> list[int]:
    """Return the features on which the indicator of a block may depend."""
    if parents is not None:
        return [j for j in range(n) if j not in block and any(j in parents.get(i, ()) for i in block)]
    if assume == "MCAR":
        return []
    if assume == "simple MAR":
        return [j for j in i_hat_always(rows, n) if j not in block]
    return [j for j in range(n) if j not in block]


def _factor(
    rows: Sequence[Row],
    states: Sequence[Row],
    block: list[int],
    n: int,
    kappa: float,
    parents: Mapping[int, Collection[int]] | None,
    assume: str | None,
    unseen: str,
) -> tuple[list[int], dict[Row, dict[int, float]]]:
    """Return for every state P̂(the block is missing) at 0 and P̂(it is shown) at 1."""
    if all(i in i_hat_always(rows, n) for i in block):
        return block, {s: {0: 0.0, 1: 1.0} for s in states}
    given = aimi_given(rows, block, n, parents, assume)

    def count(some: Iterable[Row]) -> dict[int, int]:
        some = list(some)
        return {
            0: sum(all(z[i] is None for i in block) for z in some),
            1: sum(all(z[i] is not None for i in block) for z in some),
        }

    def in_group(z: Row, s: Row) -> bool:
        return all(z[j] is not None and z[j] == s[j] for j in given)

    pooled = count(z for z in rows if any(in_group(z, s) for s in states))
    return block, {
        s: _frequencies(count(z for z in rows if in_group(z, s)), pooled, kappa, unseen) for s in states
    }


def groups_without_data(
    rows: Iterable[Row], states: Iterable[Row], given: Sequence[int], block: Sequence[int] = ()
) -> set[Row]:
    """Return the values of the given features that some state has and no row (with a whole block) shows."""
    usable = [z for z in rows if len({z[i] is None for i in block}) < 2]
    shown = {tuple(z[j] for j in given) for z in usable if all(z[j] is not None for j in given)}
    return {tuple(s[j] for j in given) for s in states} - shown


def total_variation(one: Mapping[Row, float], other: Mapping[Row, float]) -> float:
    """Return ½ Σ_z |M̂(z | s) − M(z | s)| of two distributions over observations."""
    return 0.5 * sum(abs(one.get(z, 0.0) - other.get(z, 0.0)) for z in {*one, *other})

"""The paper's definitions, written as it writes them: quantifiers over states, observations and indicators.

A missingness function is a plain dict here: state s → {observation z: M(z | s)}, both tuples, with None for ⊥.
Indicators follow the paper: r_i = 1 where feature i is observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations, product
from math import isclose, prod
from typing import Any

import missmdp as mm

__all__ = [
    "admits",
    "always_observed",
    "dependent_pairs",
    "is_independent",
    "is_mar",
    "is_mcar",
    "is_positive",
    "is_simple_mar",
    "minimal_determining_sets",
    "over_reachable_states",
    "reachable_states",
    "self_censoring",
]

State = tuple[Any, ...]
Missingness = Mapping[State, Mapping[State, float]]


def reachable_states(mdp: mm.FactoredMDP) -> set[State]:
    """Return the states on a path from an initial one, by a search over plain lists."""
    states = [tuple(state) for state in mdp.states]
    matrices = [matrix.toarray().tolist() for matrix in mdp.transition]
    found = [s for s, p in enumerate(mdp.initial.tolist()) if p > 0.0]
    for s in found:
        for matrix in matrices:
            found += [t for t, p in enumerate(matrix[s]) if p > 0.0 and t not in found]
    return {states[s] for s in found}


def over_reachable_states(model: mm.MissMDP) -> Missingness:
    """Return M of the states that can be reached."""
    return {
        state: {tuple(z): p for z, p in model.missingness.distribution(state).items()}
        for state in sorted(reachable_states(model.mdp), key=repr)
    }


def admits(z: State, s: State) -> bool:
    """Return z ⪯ s: for all i ∈ I, z_i = ⊥ or z_i = s_i."""
    return all(zi is None or zi == si for zi, si in zip(z, s, strict=True))


def _features(M: Missingness) -> range:
    return range(len(next(iter(M))))


def _indicator(z: State) -> tuple[int, ...]:
    return tuple(int(zi is not None) for zi in z)


def _all_indicators(M: Missingness) -> Iterator[tuple[int, ...]]:
    return product((0, 1), repeat=len(_features(M)))


def _all_observations(M: Missingness) -> list[State]:
    """Return Z = ×_i (S_i ∪ {⊥})."""
    return list(product(*([*sorted({s[i] for s in M}, key=repr), None] for i in _features(M))))


def _pr_indicator(M: Missingness, s: State, r: tuple[int, ...]) -> float:
    """Return Pr(R(z) = r | z ∼ M(s))."""
    return sum(p for z, p in M[s].items() if _indicator(z) == r)


def _pr_feature(M: Missingness, s: State, i: int, value: Any) -> float:
    """Return Pr(z_i = value | z ∼ M(s))."""
    return sum(p for z, p in M[s].items() if z[i] == value)


def _equal(p: float, q: float) -> bool:
    return isclose(p, q, rel_tol=0.0, abs_tol=1e-9)


def always_observed(M: Missingness) -> set[int]:
    """I_always = {i ∈ I | ∀ s ∈ S: Pr(z_i = ⊥ | z ∼ M(s)) = 0}."""
    return {i for i in _features(M) if all(_pr_feature(M, s, i, None) == 0.0 for s in M)}


def is_mcar(M: Missingness) -> bool:
    """∀ r ∈ R, ∃ p_r ∈ [0, 1], ∀ s ∈ S: Pr(R(z) = r | z ∼ M(s)) = p_r."""
    return all(
        any(all(_equal(_pr_indicator(M, s, r), p) for s in M) for p in {_pr_indicator(M, s, r) for s in M})
        for r in _all_indicators(M)
    )


def is_simple_mar(M: Missingness) -> bool:
    """∀ s, s′ ∈ S that agree on I_always, ∀ r ∈ R: Pr(R(z) = r | z ∼ M(s)) = Pr(R(z′) = r | z′ ∼ M(s′))."""
    always = always_observed(M)
    return all(
        _equal(_pr_indicator(M, s, r), _pr_indicator(M, t, r))
        for s, t in product(M, repeat=2)
        if all(s[i] == t[i] for i in always)
        for r in _all_indicators(M)
    )


def is_mar(M: Missingness) -> bool:
    """∀ s, s′ ∈ S, z ∈ Z with z ⪯ s, s′ and r = R(z): Pr(R(z′) = r | M(s)) = Pr(R(z″) = r | M(s′))."""
    return all(
        _equal(_pr_indicator(M, s, _indicator(z)), _pr_indicator(M, t, _indicator(z)))
        for z in _all_observations(M)
        for s, t in product([s for s in M if admits(z, s)], repeat=2)
    )


def self_censoring(M: Missingness) -> set[int]:
    """Features i with s, s′ that differ only in i and Pr(z_i = ⊥ | z ∼ M(s)) ≠ Pr(z_i = ⊥ | z ∼ M(s′))."""
    return {
        i
        for i in _features(M)
        for s, t in product(M, repeat=2)
        if s[i] != t[i]
        and all(s[j] == t[j] for j in _features(M) if j != i)
        and not _equal(_pr_feature(M, s, i, None), _pr_feature(M, t, i, None))
    }


def is_independent(M: Missingness) -> bool:
    """∀ s ∈ S, z ∈ Z: Pr(z | z ∼ M(s)) = Π_i Pr(z_i | z ∼ M(s))."""
    return all(
        _equal(M[s].get(z, 0.0), prod(_pr_feature(M, s, i, z[i]) for i in _features(M)))
        for s in M
        for z in _all_observations(M)
    )


def is_positive(M: Missingness) -> bool:
    """∀ i ∈ I, s ∈ S: Pr(z_i ≠ ⊥ | z ∼ M(s)) > 0."""
    return all(_pr_feature(M, s, i, s[i]) > 0.0 for s in M for i in _features(M))


def minimal_determining_sets(M: Missingness, i: int) -> list[set[int]]:
    """Return the smallest sets of features (by inclusion) of which Pr(z_i = ⊥ | s) is a function."""

    def determines(chosen: tuple[int, ...]) -> bool:
        return all(
            _equal(_pr_feature(M, s, i, None), _pr_feature(M, t, i, None))
            for s, t in product(M, repeat=2)
            if all(s[j] == t[j] for j in chosen)
        )

    n = len(_features(M))
    subsets = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
    found: list[set[int]] = []
    for chosen in subsets:
        if not any(smaller <= set(chosen) for smaller in found) and determines(chosen):
            found.append(set(chosen))
    return found


def dependent_pairs(M: Missingness) -> set[tuple[int, int]]:
    """Return the pairs i < j with Pr(z_i = z_j = ⊥ | s) ≠ Pr(z_i = ⊥ | s) Pr(z_j = ⊥ | s) for some s ∈ S."""

    def both(s: State, i: int, j: int) -> float:
        return sum(p for z, p in M[s].items() if z[i] is None and z[j] is None)

    return {
        (i, j)
        for i, j in combinations(_features(M), 2)
        for s in M
        if not _equal(both(s, i, j), _pr_feature(M, s, i, None) * _pr_feature(M, s, j, None))
    }

"""Tests of what learners assume, on the counts that they learn from.

Given the states, the indicators of different rows are independent, so these tests hold for logs too, where the
states of successive rows are anything but independent. That is so under blind behaviour. If behaviour reacts to
what is observed, states tell of earlier indicators, and whoever stops when it suits can make a p-value small: for
such logs p-values are indications.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from missmdp.data.counts import ObservationCounts
from missmdp.data.statistics import fisher_log_p
from missmdp.errors import Argument, Message
from missmdp.learn.groups import GroupCounts, assigned
from missmdp.model.space import MISSING, StateSpace

_log = logging.getLogger(__name__)

_CLEAR = 1e-4
"""Findings are reported if their p-values, times the number of tests of their kind, are below this."""

_FEW = 0.05
"""A feature seems always observed on few samples if it could still be missing this often."""

_LEAST_EXPECTED = 20.0
"""The least expected count of a cell that enters a chi-square statistic."""

_MOST_CELLS = 5_000_000
"""Cells (groups × values × patterns) up to which a chi-square test is made."""

_MOST_STRATA = 200
"""Strata that a test of two indicators looks at, the largest ones; choosing them by size does not disturb it."""


@dataclass(frozen=True)
class AssumptionFinding:
    """Something in the data that speaks against an assumption."""

    message: str
    features: tuple[str, ...]
    """The features that it is about."""
    p_value: float | None = None
    """How likely data as extreme as these are under the assumption, where there is a test for it."""

    def __str__(self) -> str:
        return str(self.message)


def _p(value: float) -> str:
    return "p < 1e-300" if value < 1e-300 else f"p = {value:.1g}"


def few_samples(counts: ObservationCounts, *, declared: Sequence[str]) -> Iterator[AssumptionFinding]:
    """Yield the features that are taken as always observed on the strength of few observations."""
    names = tuple(name for name in counts.always_observed() if name not in declared)
    rate = 1.0 - 0.05 ** (1.0 / counts.n_steps)
    if names and rate > _FEW:
        yield AssumptionFinding(
            f"{', '.join(names)}: taken as always observed on {counts.n_steps} observations only; "
            f"with 95 % confidence up to {rate:.0%} could be missing (declare always_observed= if it is known)",
            names,
        )


def never_observed(counts: ObservationCounts) -> Iterator[AssumptionFinding]:
    """Yield the features that are missing in every observation, against positivity."""
    for name, rate in counts.missing_rates().items():
        if rate == 1.0:
            yield AssumptionFinding(
                f"{name}: missing in every observation, so nothing can depend on it", (name,)
            )


def outside_the_model(counts: ObservationCounts, parts: Iterable[GroupCounts]) -> Iterator[AssumptionFinding]:
    """Yield how many rows have values that no state of the model has."""
    most = max((part.outside for part in parts), default=0)
    if most:
        yield AssumptionFinding(
            f"{most:,} of {counts.n_steps:,} observations have values that no state of the model has, and are "
            "left out (missmdp.validate says which)",
            (),
        )


def broken_blocks(counts: ObservationCounts, parts: Iterable[GroupCounts]) -> Iterator[AssumptionFinding]:
    """Yield the blocks of features that are seen in part, so they do not go missing together."""
    for part in parts:
        seen = counts.observed[:, part.counter.features].sum(axis=1)
        times = int(counts.counts[(seen > 0) & (seen < part.counter.features.sum())].sum())
        if times:
            yield AssumptionFinding(
                f"{', '.join(part.features)}: given as a block, but seen in part in {times:,} of "
                f"{counts.n_steps:,} observations, which are left out",
                part.features,
            )


def dependence_on_values(
    counts: ObservationCounts, parts: Iterable[GroupCounts], assumption: str
) -> Iterator[AssumptionFinding]:
    """Yield the features on whose values missingness depends though the learner takes it not to.

    For every part and every feature j that it does not count by: within each group, among the observations that
    show j, the pattern must not depend on the value of j. Pearson's chi-square, added over groups.
    """
    features = counts.mdp.space.features
    tests: list[tuple[GroupCounts, str, float]] = []
    for part in parts:
        others = ~part.counter.given & (features.sizes > 1)
        if part.counter.together:
            others &= ~part.counter.features
        if len(part.patterns) < 2 or not others.any():
            continue
        rows, group, column = assigned(counts, part)
        for j in np.flatnonzero(others):
            shape = (len(part.counts), int(features.sizes[j]), len(part.patterns))
            if math.prod(shape) > _MOST_CELLS:
                _log.info("not tested whether missingness depends on %s: too many cells", features.names[j])
                continue
            value = counts.codes[rows, j]
            shown = value != MISSING
            table = np.zeros(shape, dtype=np.int64)
            np.add.at(table, (group[shown], value[shown], column[shown]), counts.counts[rows[shown]])
            tests.append((part, features.names[j], _chi_square(table)))
    for part, name, p_value in tests:
        if p_value * len(tests) < _CLEAR:
            yield AssumptionFinding(
                f"{', '.join(part.features)}: what is missing depends on the value of {name} "
                f"({_p(p_value)}), which {assumption} rules out",
                (*part.features, name),
                p_value,
            )


def _chi_square(table: NDArray[np.int64]) -> float:
    """Return the p-value of independence within each stratum, for counts of shape (strata, rows, columns).

    Rows and columns with small expected counts are left out, where the distribution is only a poor
    approximation; choosing them by margins does not disturb the test. Each stratum has the factor (n − 1)/n, which
    makes its mean given the margins exactly its degrees of freedom: over many small strata the rest would add up.
    """
    o = table.astype(np.float64)
    column = o.sum(axis=1, keepdims=True)
    total = column.sum(axis=2, keepdims=True)
    common = column >= 4.0 * _LEAST_EXPECTED
    least = np.where(common, column, np.inf).min(axis=2, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = o.sum(axis=2, keepdims=True) * (least / total) >= _LEAST_EXPECTED
    rows &= np.isfinite(least)
    o = np.where(common & rows, o, 0.0)
    row, column = o.sum(axis=2, keepdims=True), o.sum(axis=1, keepdims=True)
    total = row.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = row * column / total
        terms = np.where(expected > 0.0, (o - expected) ** 2 / expected, 0.0) * (1.0 - 1.0 / total)
    statistic = np.where(total > 0.0, terms, 0.0).sum()
    freedom = np.maximum((row > 0).sum(axis=1) - 1, 0) * np.maximum((column > 0).sum(axis=2) - 1, 0)
    degrees = float(freedom.sum())
    return float(special.chdtrc(degrees, float(statistic))) if degrees else 1.0


def dependent_indicators(
    counts: ObservationCounts, parts: Sequence[GroupCounts]
) -> Iterator[AssumptionFinding]:
    """Yield the pairs of features or blocks whose indicators are not independent given the state.

    Given the values of what i may depend on, j left out, the share of missing i must not depend on whether j is
    missing. Where i may depend on the value of j too, the share where j is missing is some average over its values:
    it lies between the smallest and the largest share among the observations that show j. Fisher's exact test
    against every value (the largest p-value counts, since the share may be as large as at any one of them),
    combined over groups by Fisher's method.
    """
    parts = [part for part in parts if len(part.patterns) == 2]
    pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1, len(parts))]
    for i, j in pairs:
        a, b = parts[i], parts[j]
        log_p = min(_log_p_of_pair(counts, a, b), _log_p_of_pair(counts, b, a)) + math.log(2.0)
        p_value = math.exp(min(log_p, 0.0))
        if p_value * len(pairs) < _CLEAR:
            block = (*a.features, *b.features)
            yield AssumptionFinding(
                Message(
                    f"{', '.join(a.features)} and {', '.join(b.features)}: taken to go missing independently, but the "
                    f"data say otherwise ({_p(p_value)}); if they go missing together, pass ",
                    Argument("blocks", [block]),
                ),
                block,
                p_value,
            )


def _log_p_of_pair(counts: ObservationCounts, i: GroupCounts, j: GroupCounts) -> float:
    """Return the log p-value that missing i, where j is missing, is within its range over the values of j."""
    features = counts.mdp.space.features
    observed = counts.observed
    block_i, block_j = i.counter.features, j.counter.features
    rest = i.counter.given & ~block_j
    valued = i.counter.given & block_j
    i_seen, j_seen = observed[:, block_i].sum(axis=1), observed[:, block_j].sum(axis=1)
    i_missing, j_missing = i_seen == 0, j_seen == 0
    usable = np.asarray(observed[:, rest].all(axis=1))
    usable = usable & (i_missing | (i_seen == block_i.sum())) & (j_missing | (j_seen == block_j.sum()))
    stratum = features.rank(np.where(rest, counts.codes, MISSING))
    value = features.rank(np.where(rest | valued, counts.codes, MISSING))
    values_in = _values_by_stratum(counts.mdp.space, rest, valued)
    statistic = np.zeros(2)
    strata = 0
    keys, place = np.unique(stratum[usable & j_missing], return_inverse=True)
    sizes = np.bincount(place.reshape(-1), counts.counts[usable & j_missing], minlength=len(keys))
    for key in keys[np.argsort(-sizes, kind="stable")[:_MOST_STRATA]]:
        here = usable & (stratum == key)
        n0, k0 = _sums(counts.counts, here & j_missing, i_missing)
        shown = [
            # Every value of j that a state of the model has must have been seen for the stratum to say anything.
            _sums(counts.counts, here & ~j_missing & (value == v), i_missing)
            for v in values_in(key)
        ]
        if shown:
            statistic -= 2.0 * np.array(
                [_outside(k0, n0, shown), _outside(n0 - k0, n0, [(n, n - k) for n, k in shown])]
            )
            strata += 1
    if not strata:
        return 0.0
    # ln of the chi-square tail; far out, where the tail underflows, by its leading term.
    worst = float(statistic.max())
    tail = float(special.chdtrc(2 * strata, worst))
    leading = -worst / 2.0 + (strata - 1) * math.log(max(worst / 2.0, 1.0)) - math.lgamma(strata)
    return (math.log(tail) if tail > 0.0 else leading) + math.log(2.0)


def _values_by_stratum(
    space: StateSpace, rest: NDArray[np.bool_], valued: NDArray[np.bool_]
) -> Callable[[np.int64], NDArray[np.int64]]:
    """Return a function from the rank of values of `rest` to the ranks, with those of `valued`, that states have."""
    features = space.features
    if space.is_product:
        places = np.flatnonzero(valued)
        combined = list(np.ndindex(*(int(features.sizes[j]) for j in places)))
        codes = np.array(combined, dtype=np.int64).reshape(len(combined), len(places))
        added = (codes + 1) @ features.weights[places]
        return lambda key: key + added
    of_states = np.unique(features.rank(np.where(rest | valued, space.codes, MISSING)))
    home = features.rank(np.where(rest, features.unrank(of_states), MISSING))
    return lambda key: of_states[home == key]


def _outside(k0: int, n0: int, shown: Sequence[tuple[int, int]]) -> float:
    """Return the log p-value that k0 of n0 is a share no larger than the largest of k of n."""
    if any(k0 * n <= k * n0 for n, k in shown):
        return 0.0
    return max(fisher_log_p(k0, n0, k, n) for n, k in shown)


def _sums(
    counts: NDArray[np.int64], chosen: NDArray[np.bool_], missing: NDArray[np.bool_]
) -> tuple[int, int]:
    return int(counts[chosen].sum()), int(counts[chosen & missing].sum())
